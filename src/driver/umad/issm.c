// SPDX-License-Identifier: BSD-2-Clause
/* An issm file is the token of its port's IsSM bit for as long as it is open; a program can do
 * nothing else with it. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/descriptor.h"
#include "driver/umad/device.h"
#include "driver/umad/umad.h"

struct issm_device {
	struct cdev_file cdev;
	uint32_t minor;
};

static int issm_ioctl(struct cdev_file *f, unsigned long request, void *arg)
{
	(void)f, (void)request, (void)arg;
	return -ENOTTY;
}

static ssize_t issm_read(struct cdev_file *f, int fd, void *buf, size_t count)
{
	(void)f, (void)fd, (void)buf, (void)count;
	return -EINVAL;
}

static ssize_t issm_write(struct cdev_file *f, int fd, const void *buf, size_t count)
{
	(void)f, (void)fd, (void)buf, (void)count;
	return -EINVAL;
}

static void issm_fstat(struct cdev_file *f, struct stat *st)
{
	st->st_mode = S_IFCHR | 0666;
	st->st_rdev = makedev(UMAD_MAJOR, container_of(f, struct issm_device, cdev)->minor);
	st->st_size = 0;
	st->st_blocks = 0;
}

static void issm_last_close(struct cdev_file *f)
{
	(void)f;
}

static void issm_release(struct cdev_file *f)
{
	free(container_of(f, struct issm_device, cdev));
}

static const struct cdev_ops issm_ops = {
	.ioctl = issm_ioctl,
	.read = issm_read,
	.write = issm_write,
	.fstat = issm_fstat,
	.last_close = issm_last_close,
	.release = issm_release,
	.shared = true,
};

/* ---- waiting for the token ---- */

static void waiting_end(void *link)
{
	hidden_close(link);
}

/* Waits until the daemon has answered.  Other holders may keep us waiting for days; a signal ends
 * the wait or not, as its handler was installed. */
static int answer_await(int sock)
{
	char c;

	if (recv(sock, &c, 1, MSG_PEEK) < 0)
		return -errno;
	return 0;
}

/* Waits in the queue; the connection is our place in it. */
static int token_await(const char *name, int fds[MSG_MAX_FDS], const int *cancel)
{
	const struct timeval forever = {0};
	struct msg m = {0}, lease = {0};
	struct hidden link = HIDDEN_NONE;
	int ret = umad_lease_open(&lease, fds);

	if (ret < 0)
		return ret;
	link = hidden_keep(ret);
	setsockopt(link.fd, SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof(forever));
	umad_request_fill(&m, name, true);
	msg_prepare(&m, MSG_ISSM_OPEN, MSG_REQUEST, 1, 0);
	ret = msg_send(link.fd, &m, NULL, 0, 0);
	pthread_cleanup_push(waiting_end, &link);
	cancel_restore(cancel);
	if (!ret)
		ret = answer_await(link.fd);
	cancel_hold();
	pthread_cleanup_pop(0);
	if (!ret)
		ret = msg_recv(link.fd, &m, fds, 1u << MSG_REPLY, MSG_DONTWAIT);
	if (!ret)
		ret = m.head.status;
	hidden_close(&link);
	return umad_request_error(ret);
}

/* Asks first without a place in the queue, because that takes one connection less. */
static int token_get(const char *name, bool wait, int fds[MSG_MAX_FDS], const int *cancel)
{
	struct msg m = {0};
	int sock = umad_link_open(name, false, MSG_ISSM_OPEN, &m, fds);

	if (sock >= 0) {
		close(sock);
		return 0;
	}
	return sock == -EAGAIN && wait ? token_await(name, fds, cancel) : sock;
}

int issm_device_open(const char *name, int flags)
{
	no_cancellation();
	struct issm_device *d = calloc(1, sizeof(*d));
	int fds[MSG_MAX_FDS];
	int fd, ret;

	if (!d)
		return -ENOMEM;
	cdev_file_init(&d->cdev, &issm_ops);
	d->minor = ISSM_MINOR + (uint32_t)strtoul(name + strlen("issm"), NULL, 10);
	ret = token_get(name, !(flags & O_NONBLOCK), fds, &cancel_state_);
	fd = ret ? ret : cdev_descriptor(fds[0], flags);
	ret = fd < 0 ? fd : cdev_install(fd, &d->cdev);
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	free(d);
	return ret;
}
