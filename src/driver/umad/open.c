// SPDX-License-Identifier: BSD-2-Clause
/* Life of a umad file: open, the look of a character device, and the last close. */
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_mad.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/thread.h"
#include "driver/umad/device.h"
#include "driver/umad/umad.h"

static void device_fstat(struct cdev_file *f, struct stat *st)
{
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(UMAD_MAJOR, umad_device_of(f)->minor);
	st->st_size = 0;
	st->st_blocks = 0;
}

/* The daemon sees the end of the socket when the last process closes it, so nobody tells it. */
static void device_last_close(struct cdev_file *f)
{
	(void)f;
}

static void device_release(struct cdev_file *f)
{
	struct umad_device *u = umad_device_of(f);

	munmap(u->page, sizeof(*u->page));
	free(u);
}

static const struct cdev_ops umad_ops = {
	.ioctl = umad_ioctl,
	.read = umad_read,
	.write = umad_write,
	.fstat = device_fstat,
	.last_close = device_last_close,
	.release = device_release,
	.shared = true,
};

static int page_map(struct umad_device *u, int fd)
{
	void *page = mmap(NULL, sizeof(*u->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return -errno;
	u->page = page;
	if (u->page->magic == UMAD_MAGIC)
		return 0;
	munmap(page, sizeof(*u->page));
	return -EPROTO;
}

static int device_make(uint64_t token, uint32_t minor, int flags, int page,
		       struct umad_device **out)
{
	struct umad_device *u = calloc(1, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	cdev_file_init(&u->cdev, &umad_ops);
	u->token = token;
	u->access = flags & O_ACCMODE;
	u->minor = minor;
	ret = page_map(u, page);
	if (ret)
		free(u);
	else
		*out = u;
	return ret;
}

int umad_device_open(const char *name, int flags)
{
	struct umad_device *u = NULL;
	int fds[MSG_MAX_FDS], sock, fd, ret;
	struct msg m = {0};

	user_guard();
	sock = umad_link_open(name, false, MSG_UMAD_OPEN, &m, fds);
	if (sock < 0)
		return sock;
	ret = device_make(m.umad_open_reply.token,
			  (uint32_t)strtoul(name + strlen("umad"), NULL, 10), flags,
			  fds[UMAD_OPEN_FD_PAGE], &u);
	close(sock);
	close(fds[UMAD_OPEN_FD_PAGE]);
	fd = cdev_descriptor(fds[UMAD_OPEN_FD_SOCKET], flags);
	if (!ret && fd >= 0)
		ret = cdev_install(fd, &u->cdev);
	else if (!ret)
		ret = fd;
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	if (u)
		device_release(&u->cdev);
	return ret;
}

/* ---- files that another process has opened ---- */

static bool request_is_umads(unsigned long request)
{
	switch ((uint32_t)request) {
	case IB_USER_MAD_REGISTER_AGENT:
	case IB_USER_MAD_REGISTER_AGENT2:
	case IB_USER_MAD_UNREGISTER_AGENT:
	case IB_USER_MAD_ENABLE_PKEY:
		return true;
	default:
		return false;
	}
}

/* We do not know any more how it was opened, so the file allows both. */
static bool device_adopt(int fd)
{
	struct umad_device *u = NULL;
	int fds[MSG_MAX_FDS], sock, ret;
	struct msg m = {0};
	struct stat st;

	if (syscall(SYS_fstat, fd, &st) || !S_ISSOCK(st.st_mode))
		return false;
	m.umad_adopt.inode = st.st_ino;
	sock = umad_adopt_open(&m, fds);
	if (sock < 0)
		return false;
	ret = device_make(m.umad_adopt_reply.token, m.umad_adopt_reply.number, O_RDWR, fds[0], &u);
	close(sock);
	close(fds[0]);
	if (ret)
		return false;
	if (!cdev_install(fd, &u->cdev))
		return true;
	device_release(&u->cdev);
	return false;
}

/* Two threads that come with the same descriptor add it to the table one after the other. */
bool umad_device_adopt(int fd, unsigned long request)
{
	int saved_errno = errno;
	bool adopted;

	if (!request_is_umads(request))
		return false;
	no_cancellation();
	user_guard();
	adopted = device_adopt(fd);
	errno = saved_errno;
	return adopted;
}
