// SPDX-License-Identifier: BSD-2-Clause
/* umad and issm files: their life, agents, and requests to the daemon. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/ib_user_mad.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/descriptor.h"
#include "driver/umad/umad.h"
#include "fabric/client/link.h"

/* ---- requests to the daemon ---- */

/* Requests of umad and issm files to the daemon, each on a connection of its own: that costs less
 * than a second descriptor for the life of each file. */

static void umad_request_fill(struct msg *m, const char *name, bool wait)
{
	const struct fabric_environment *env = fabric_environment();

	memset(&m->umad_open, 0, sizeof(m->umad_open));
	if (env)
		memcpy(m->umad_open.host, env->host, sizeof(m->umad_open.host));
	/* A longer one names no file. */
	memcpy(m->umad_open.name, name, strnlen(name, sizeof(m->umad_open.name) - 1));
	m->umad_open.wait = wait;
}

/* The error of a file whose request ended with 'ret' on its way, among those that the kernel's
 * files have: -EIO if the daemon is silent or makes no sense, -ENOMEM if the socket has no room. */
static int umad_request_error(int ret)
{
	switch (ret) {
	case -ENOBUFS:
		return -ENOMEM;
	case -ETIMEDOUT:
	case -ECONNRESET:
	case -EPIPE:
	case -EBADMSG:
	case -EPROTO:
		return -EIO;
	default:
		return ret;
	}
}

static int daemon_open(struct msg *m, enum msg_type type, int fds[MSG_MAX_FDS])
{
	const struct fabric_environment *env = fabric_environment();
	int sock;

	if (!env)
		return -ENODEV;
	sock = link_open(env->dir, env->daemon[0] ? env->daemon : NULL, m, type, fds);
	return sock == -ECONNREFUSED ? -ENXIO : umad_request_error(sock);
}

/*
 * Asks the daemon for a umad or issm file by its name; the reply replaces the request.  Returns the
 * connection, or a negative errno.  -ENODEV: this process is on no fabric.
 */
static must_check int umad_link_open(const char *name, bool wait, enum msg_type type, struct msg *m,
				     int fds[MSG_MAX_FDS])
{
	umad_request_fill(m, name, wait);
	return daemon_open(m, type, fds);
}

/* Asks for the file whose socket has that inode, as umad_link_open does, but starts no daemon. */
static must_check int umad_adopt_open(struct msg *m, int fds[MSG_MAX_FDS])
{
	const struct fabric_environment *env = fabric_environment();

	return env ? link_open(env->dir, NULL, m, MSG_UMAD_ADOPT, fds) : -ENODEV;
}

/* Opens a connection for more requests. */
static must_check int umad_lease_open(struct msg *m, int fds[MSG_MAX_FDS])
{
	const struct fabric_environment *env = fabric_environment();

	if (env)
		memcpy(m->lease.host, env->host, sizeof(m->lease.host));
	return daemon_open(m, MSG_LEASE, fds);
}

int umad_ask(struct umad_device *u, struct msg *m, enum msg_type type, int fds[MSG_MAX_FDS])
{
	const struct fabric_environment *env = fabric_environment();
	int none[MSG_MAX_FDS], sock;

	if (!env || umad_is_gone(u))
		return -EIO;
	sock = link_open(env->dir, NULL, m, type, fds ? fds : none);
	if (sock == -ECONNREFUSED || sock == -ESTALE) {
		atomic_store_explicit(&u->page->gone, 1, memory_order_release);
		return -EIO;
	}
	if (sock < 0)
		return umad_request_error(sock);
	close(sock);
	return 0;
}

/* ---- umad files ---- */

/* Life of a umad file: open, the look of a character device, and the last close. */

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

static int umad_ioctl(struct cdev_file *f, unsigned long request, void *arg);

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

/* ---- agents ---- */

/* Agents of a umad file come and go by ioctl; the order of the checks is the kernel's. */

/* Reads the arguments of either request into the form of the newer one. */
static int agent_read(const void *arg, bool second, struct ib_user_mad_reg_req2 *out)
{
	struct ib_user_mad_reg_req old;

	if (second)
		return user_load(out, arg, sizeof(*out));
	if (user_load(&old, arg, sizeof(old)))
		return -EFAULT;
	*out = (struct ib_user_mad_reg_req2){
		.qpn = old.qpn,
		.mgmt_class = old.mgmt_class,
		.mgmt_class_version = old.mgmt_class_version,
		.oui = (uint32_t)old.oui[0] << 16 | (uint32_t)old.oui[1] << 8 | old.oui[2],
		.rmpp_version = old.rmpp_version,
	};
	memcpy(out->method_mask, old.method_mask, sizeof(out->method_mask));
	return 0;
}

static bool agents_full(const struct umad_page *page)
{
	for (unsigned i = 0; i < UMAD_AGENTS; i++)
		if (!atomic_load_explicit(&page->agents[i], memory_order_relaxed))
			return false;
	return true;
}

static int agent_flags_check(const struct ib_user_mad_reg_req2 *req,
			     struct ib_user_mad_reg_req2 *arg)
{
	const uint32_t known = IB_USER_MAD_REG_FLAGS_CAP;

	if (!(req->flags & ~known))
		return 0;
	return user_store(&arg->flags, &known, sizeof(known)) ? -EFAULT : -EINVAL;
}

static int agent_undo(struct umad_device *u, uint32_t id)
{
	struct msg m = {.umad_agent = {.token = u->token, .id = id, .undo = 1}};
	int ret = umad_ask(u, &m, MSG_UMAD_UNREGISTER, NULL);

	/* Whatever came of the store, the program must hear of its bad address. */
	(void)ret;
	return -EFAULT;
}

static int agent_register(struct umad_device *u, void *arg, bool second)
{
	void *id_at = second ? (void *)&((struct ib_user_mad_reg_req2 *)arg)->id
			     : (void *)&((struct ib_user_mad_reg_req *)arg)->id;
	struct ib_user_mad_reg_req2 req;
	struct msg m = {0};
	uint32_t id;
	int ret;

	if (umad_is_gone(u))
		return -EPIPE;
	if (agent_read(arg, second, &req))
		return -EFAULT;
	if (req.qpn > 1)
		return -EINVAL;
	ret = second ? agent_flags_check(&req, arg) : 0;
	if (ret)
		return ret;
	/* If there is no room, the daemon says so, and its error comes first. */
	if (req.mgmt_class && req.oui >> 24 && !agents_full(u->page))
		return -EINVAL;
	m.umad_register = (struct msg_umad_register){
		.token = u->token,
		.qpn = req.qpn,
		.oui = req.oui & 0xffffff,
		.flags = req.flags,
		.class = req.mgmt_class,
		.class_version = req.mgmt_class_version,
		.rmpp_version = req.rmpp_version,
		.second = second,
	};
	memcpy(m.umad_register.methods, req.method_mask, sizeof(m.umad_register.methods));
	ret = umad_ask(u, &m, MSG_UMAD_REGISTER, NULL);
	if (ret)
		return ret == -EIO && umad_is_gone(u) ? -EPIPE : ret;
	id = m.umad_agent.id;
	return user_store(id_at, &id, sizeof(id)) ? agent_undo(u, id) : 0;
}

static int agent_unregister(struct umad_device *u, const void *arg)
{
	struct msg m = {.umad_agent.token = u->token};
	int ret;

	if (user_load(&m.umad_agent.id, arg, sizeof(m.umad_agent.id)))
		return -EFAULT;
	if (m.umad_agent.id >= UMAD_AGENTS)
		return -EINVAL;
	ret = umad_ask(u, &m, MSG_UMAD_UNREGISTER, NULL);
	return ret == -EIO && umad_is_gone(u) ? -EINVAL : ret;
}

static int pkey_enable(struct umad_device *u)
{
	struct msg m = {.umad_file.token = u->token};

	return umad_ask(u, &m, MSG_UMAD_PKEY, NULL);
}

static int umad_ioctl(struct cdev_file *f, unsigned long request, void *arg)
{
	struct umad_device *u = umad_device_of(f);

	switch ((uint32_t)request) {
	case IB_USER_MAD_REGISTER_AGENT:
		return agent_register(u, arg, false);
	case IB_USER_MAD_REGISTER_AGENT2:
		return agent_register(u, arg, true);
	case IB_USER_MAD_UNREGISTER_AGENT:
		return agent_unregister(u, arg);
	case IB_USER_MAD_ENABLE_PKEY:
		return pkey_enable(u);
	default:
		return -ENOTTY;
	}
}

/* ---- issm files ---- */

/* An issm file is the token of its port's IsSM bit for as long as it is open; a program can do
 * nothing else with it. */

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

static void issm_release(struct cdev_file *f)
{
	free(container_of(f, struct issm_device, cdev));
}

static const struct cdev_ops issm_ops = {
	.ioctl = issm_ioctl,
	.read = issm_read,
	.write = issm_write,
	.fstat = issm_fstat,
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
