// SPDX-License-Identifier: BSD-2-Clause
/* See netlink.h. */
#include "driver/netlink/netlink.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/thread.h"
#include "driver/file/cdev_file.h"
#include "driver/netlink/request.h"
#include "driver/runtime/process.h"

/* A request is the header and a few attributes; what is longer is none. */
#define REQUEST_MOST_BYTES 65536u

struct netlink_socket {
	struct cdev_file cdev;
	int type;
	pthread_mutex_t lock; /* guards what follows */
	bool bound;
	bool has_pid; /* its port is the number of the process that chose it */
	uint32_t portid, groups;
	uint32_t options; /* a bit for each of NETLINK_EXT_ACK, ... that is on */
	/* Answers that the queue had no room for, from 'sent' on. */
	struct answers answers;
	size_t sent;
	int lost; /* 0, or the negative errno that says why answers were lost; told once */
	_Atomic(pid_t) owner; /* the process that asked for them */
};

static const struct cdev_ops netlink_ops;

/* ---- the file ---- */

static struct netlink_socket *netlink_socket_of(struct cdev_file *f)
{
	return container_of(f, struct netlink_socket, cdev);
}

/* The process one of whose sockets has the number of the process as its port: a child of fork has
 * another.  And how often another socket has been given a port. */
static _Atomic(uint32_t) pid_given;
static _Atomic(uint32_t) portids_given;

static void netlink_release(struct cdev_file *f)
{
	struct netlink_socket *s = netlink_socket_of(f);

	uint32_t pid = s->portid;

	if (s->has_pid)
		atomic_compare_exchange_strong(&pid_given, &pid, 0);
	pthread_mutex_destroy(&s->lock);
	free(s->answers.bytes);
	free(s);
}

/* The socket that fd names, with a reference; NULL: it is none. */
static struct netlink_socket *netlink_get_socket(int fd)
{
	struct cdev_file *f = cdev_get(fd);

	if (f && f->ops == &netlink_ops)
		return netlink_socket_of(f);
	if (f)
		cdev_put(f);
	return NULL;
}

bool netlink_is(int fd)
{
	struct netlink_socket *s = NULL;
	uint64_t signals;

	if (likely(!cdev_table_load(fd)))
		return false;
	/* A handler that jumped away would leave the file in use for ever. */
	signals_hold(&signals);
	if (cdev_table_is_true(fd))
		s = netlink_get_socket(fd);
	if (s)
		cdev_put(&s->cdev);
	signals_release(&signals);
	return s;
}

/* ---- exclusion ---- */

/*
 * In a child of fork the lock may be held by a thread that is not there, and the answers that wait are
 * its parent's, who will put them into the queue that both read.
 */
static void socket_forked(struct netlink_socket *s)
{
	pthread_mutex_init(&s->lock, NULL);
	s->answers.used = 0;
	s->answers.failed = false;
	s->sent = 0;
	s->lost = 0;
	atomic_store(&s->owner, getpid());
}

static void socket_lock(struct netlink_socket *s)
{
	if (atomic_load(&s->owner) != getpid())
		socket_forked(s);
	pthread_mutex_lock(&s->lock);
}

/* Also gives the reference back. */
static void socket_unlock(struct netlink_socket *s)
{
	pthread_mutex_unlock(&s->lock);
	cdev_put(&s->cdev);
}

/* The socket, locked; NULL: fd is none. */
static struct netlink_socket *socket_enter(int fd)
{
	struct netlink_socket *s = netlink_get_socket(fd);

	if (s)
		socket_lock(s);
	return s;
}

/* ---- opening ---- */

/*
 * The kernel gives the socket a name that nobody else has; once it is connected to itself, nobody else
 * can send to it.
 */
static int self_connected(int flags)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	socklen_t length = sizeof(name);
	int fd = socket(AF_UNIX, SOCK_DGRAM | flags, 0);
	int error;

	if (fd < 0)
		return -errno;
	if (!bind(fd, (struct sockaddr *)&name, sizeof(name.sun_family)) &&
	    !getsockname(fd, (struct sockaddr *)&name, &length) &&
	    !connect(fd, (struct sockaddr *)&name, length))
		return fd;
	error = -errno;
	close(fd);
	return error;
}

int netlink_open(int type)
{
	no_cancellation();
	const int flags = type & (SOCK_CLOEXEC | SOCK_NONBLOCK), kind = type & ~flags;
	struct netlink_socket *s;
	int fd, ret;

	if (kind != SOCK_RAW && kind != SOCK_DGRAM)
		return -ESOCKTNOSUPPORT;
	/* Without a fabric there is no such family, as on a kernel without RDMA. */
	if (process_ensure_fabric())
		return -EPROTONOSUPPORT;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	cdev_file_init(&s->cdev, &netlink_ops);
	pthread_mutex_init(&s->lock, NULL);
	s->type = kind;
	atomic_init(&s->owner, getpid());
	fd = self_connected(flags);
	ret = fd < 0 ? fd : cdev_install(fd, &s->cdev);
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	netlink_release(&s->cdev);
	return ret;
}

/* ---- addresses ---- */

/* As the kernel does: the number of the process, or some number if a socket has that already. */
static void portid_choose(struct netlink_socket *s)
{
	const uint32_t pid = (uint32_t)getpid();

	if (s->bound)
		return;
	s->bound = true;
	s->has_pid = atomic_exchange(&pid_given, pid) != pid;
	s->portid = s->has_pid ? pid : 0u - 4096 - atomic_fetch_add(&portids_given, 1);
}

int netlink_bind(int fd, const struct sockaddr_nl *address)
{
	struct netlink_socket *s = socket_enter(fd);
	int ret = 0;

	if (!s)
		return -EBADF;
	if (address->nl_family != AF_NETLINK || (s->bound && address->nl_pid != s->portid))
		ret = -EINVAL;
	if (!ret && address->nl_pid) {
		s->bound = true;
		s->portid = address->nl_pid;
	} else if (!ret) {
		portid_choose(s);
	}
	if (!ret)
		s->groups = address->nl_groups;
	socket_unlock(s);
	return ret;
}

int netlink_address(int fd, struct sockaddr_nl *out)
{
	struct netlink_socket *s = socket_enter(fd);

	if (!s)
		return -EBADF;
	*out = (struct sockaddr_nl){
		.nl_family = AF_NETLINK, .nl_pid = s->portid, .nl_groups = s->groups};
	socket_unlock(s);
	return 0;
}

int netlink_type(int fd)
{
	struct netlink_socket *s = netlink_get_socket(fd);
	int type = s ? s->type : -EBADF;

	if (s)
		cdev_put(&s->cdev);
	return type;
}

/* ---- options ---- */

static bool option_is_a_switch(int option)
{
	switch (option) {
	case NETLINK_PKTINFO:
	case NETLINK_BROADCAST_ERROR:
	case NETLINK_NO_ENOBUFS:
	case NETLINK_CAP_ACK:
	case NETLINK_EXT_ACK:
	case NETLINK_GET_STRICT_CHK:
		return true;
	default:
		return false;
	}
}

static int membership_change(struct netlink_socket *s, int option, int group)
{
	if (group < 1 || group > 32)
		return -EINVAL;
	portid_choose(s);
	if (option == NETLINK_ADD_MEMBERSHIP)
		s->groups |= 1u << (group - 1);
	else
		s->groups &= ~(1u << (group - 1));
	return 0;
}

int netlink_set_option(int fd, int option, int value)
{
	struct netlink_socket *s = socket_enter(fd);
	int ret = 0;

	if (!s)
		return -EBADF;
	if (option == NETLINK_ADD_MEMBERSHIP || option == NETLINK_DROP_MEMBERSHIP)
		ret = membership_change(s, option, value);
	else if (!option_is_a_switch(option))
		ret = -ENOPROTOOPT;
	else if (value)
		s->options |= 1u << option;
	else
		s->options &= ~(1u << option);
	socket_unlock(s);
	return ret;
}

int netlink_get_option(int fd, int option, int *value)
{
	struct netlink_socket *s = socket_enter(fd);
	int ret = option_is_a_switch(option) ? 0 : -ENOPROTOOPT;

	if (!s)
		return -EBADF;
	if (!ret)
		*value = s->options >> option & 1;
	socket_unlock(s);
	return ret;
}

/* ---- requests and answers ---- */

/* Puts as many answers into the queue as it takes.  The socket is locked.  What will never go in (a
 * SO_SNDBUF below its size) would hold up all that follow, and is lost. */
static void answers_send(struct netlink_socket *s, int fd)
{
	size_t n;

	while ((n = answers_datagram(&s->answers, s->sent))) {
		ssize_t sent;

		do
			sent = syscall(SYS_sendto, fd, s->answers.bytes + s->sent, n,
				       MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
		while (sent < 0 && errno == EINTR);
		if (sent < 0 && errno == EAGAIN)
			return;
		/* A socket that was closed meanwhile has nobody to tell. */
		if (sent < 0 && errno != EBADF && errno != ENOTSOCK)
			s->lost = errno == EMSGSIZE ? -EMSGSIZE : -ENOBUFS;
		s->sent += n;
	}
	s->answers.used = 0;
	s->sent = 0;
}

/* Why answers were lost since the last time somebody asked. */
static int lost_take(struct netlink_socket *s)
{
	int lost = s->lost;

	s->lost = 0;
	return lost;
}

ssize_t netlink_send(int fd, const void *datagram, size_t n)
{
	no_cancellation();
	struct netlink_socket *s;
	int lost;

	if (n > REQUEST_MOST_BYTES)
		return -EMSGSIZE;
	s = socket_enter(fd);
	if (!s)
		return -EBADF;
	portid_choose(s);
	s->answers.portid = s->portid;
	if (netlink_requests(&s->answers, datagram, n, s->options >> NETLINK_CAP_ACK & 1))
		s->lost = -ENOBUFS;
	answers_send(s, fd);
	lost = lost_take(s);
	socket_unlock(s);
	return lost ? lost : (ssize_t)n;
}

/* Puts answers that wait into the queue; if told, the caller is told of answers that were lost. */
static int queue_refill(int fd, bool told)
{
	const int saved_errno = errno;
	struct netlink_socket *s;
	uint64_t signals;
	int lost = 0;

	/* A handler may jump away. */
	signals_hold(&signals);
	s = socket_enter(fd);
	if (s) {
		answers_send(s, fd);
		lost = told ? lost_take(s) : 0;
		socket_unlock(s);
	}
	signals_release(&signals);
	errno = saved_errno;
	return lost;
}

int netlink_read_begin(int fd)
{
	return queue_refill(fd, true);
}

void netlink_read_end(int fd)
{
	(void)queue_refill(fd, false);
}

static const struct cdev_ops netlink_ops = {
	.release = netlink_release,
	.shared = true,
};
