// SPDX-License-Identifier: BSD-2-Clause
/*
 * Sockets of the kernel's RDMA netlink family, which would list the machine's own devices.  What the
 * program gets instead is a socket of the driver's (driver/netlink/netlink.h).  Its reads are real ones;
 * all calls that name an address or say of what kind the socket is are answered here.  Any other socket
 * costs one look at the descriptor table.
 */
#include "preload/libc.h"

#include <errno.h>
#include <limits.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/thread.h"
#include "driver/netlink/netlink.h"
#include "preload/program_memory.h"
#include "preload/socket.h"
#include "preload/tree.h"

/* Longer than any request: the driver says that it is too long. */
#define MOST_SENT_BYTES (1u << 20)

ssize_t __recv_chk(int fd, void *buf, size_t n, size_t buf_len, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t buf_len, int flags,
		       struct sockaddr *address, socklen_t *length);

static int netlink_result(long ret)
{
	if (ret >= 0)
		return (int)ret;
	errno = (int)-ret;
	return -1;
}

exported int socket(int domain, int type, int protocol)
{
	if (domain != AF_NETLINK || protocol != NETLINK_RDMA)
		return real(socket)(domain, type, protocol);
	if (!tree_active()) {
		int fd = real(socket)(domain, type, protocol);
		int saved_errno = errno;

		/* A user who preloads us and asks for devices wants ours; if the machine has none
		 * either, nothing else would say why. */
		if (fd < 0)
			tree_missed();
		errno = saved_errno;
		return fd;
	}
	return netlink_result(netlink_open(type));
}

/* ---- addresses ---- */

/* Reads an address that the program gives.  Returns 0 or a negative errno. */
static int address_read(struct sockaddr_nl *to, const void *from, socklen_t length)
{
	if (length < sizeof(*to))
		return -EINVAL;
	return program_read(to, from, sizeof(*to)) ? 0 : -EFAULT;
}

/* Gives an address to memory of the program that the kernel has just written, or would write. */
static int address_store(const struct sockaddr_nl *from, void *to, socklen_t *length)
{
	socklen_t room;

	if (!program_read(&room, length, sizeof(room)))
		return -EFAULT;
	if ((int)room < 0)
		return -EINVAL;
	memcpy(to, from, room < sizeof(*from) ? room : sizeof(*from));
	*length = sizeof(*from);
	return 0;
}

int socket_bind(int fd, const struct sockaddr *address, socklen_t length)
{
	struct sockaddr_nl nl;
	int ret = address_read(&nl, address, length);

	return netlink_result(ret ? ret : netlink_bind(fd, &nl));
}

/* Only the kernel is at the other end, and it has port 0. */
static int kernel_is_meant(const struct sockaddr_nl *to)
{
	if (to->nl_family != AF_NETLINK)
		return -EINVAL;
	if (to->nl_groups)
		return -EPERM;
	return to->nl_pid ? -ECONNREFUSED : 0;
}

exported int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
	struct sockaddr_nl nl;
	int ret;

	if (!netlink_is(fd))
		return real(connect)(fd, address, length);
	ret = address_read(&nl, address.__sockaddr__, length);
	if (!ret && nl.nl_family != AF_UNSPEC)
		ret = kernel_is_meant(&nl);
	return netlink_result(ret);
}

exported int getsockname(int fd, __SOCKADDR_ARG address, socklen_t *restrict length)
{
	struct sockaddr_nl nl;
	int ret;

	if (!netlink_is(fd))
		return real(getsockname)(fd, address, length);
	ret = netlink_address(fd, &nl);
	return netlink_result(ret ? ret : address_store(&nl, address.__sockaddr__, length));
}

exported int getpeername(int fd, __SOCKADDR_ARG address, socklen_t *restrict length)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	if (!netlink_is(fd))
		return real(getpeername)(fd, address, length);
	return netlink_result(address_store(&kernel, address.__sockaddr__, length));
}

/* ---- options ---- */

exported int setsockopt(int fd, int level, int option, const void *value, socklen_t length)
{
	int number;

	if (level != SOL_NETLINK || !netlink_is(fd))
		return real(setsockopt)(fd, level, option, value, length);
	if (length < sizeof(number))
		return netlink_result(-EINVAL);
	if (!program_read(&number, value, sizeof(number)))
		return netlink_result(-EFAULT);
	return netlink_result(netlink_set_option(fd, option, number));
}

/* Gives a number to a program that asks for an option, at the level SOL_SOCKET as much of it as the
 * program has room for. */
static int number_store(int level, int number, void *value, socklen_t *length)
{
	socklen_t room;

	if (!program_read(&room, length, sizeof(room)))
		return -EFAULT;
	if ((int)room < 0 || (level == SOL_NETLINK && room < sizeof(number)))
		return -EINVAL;
	*length = room < sizeof(number) ? room : (socklen_t)sizeof(number);
	memcpy(value, &number, *length);
	return 0;
}

/* Returns 1 if the kernel's answer is right. */
static int option_get(int fd, int level, int option, int *number)
{
	if (level == SOL_NETLINK)
		return netlink_get_option(fd, option, number);
	if (level != SOL_SOCKET)
		return 1;
	switch (option) {
	case SO_DOMAIN:
		*number = AF_NETLINK;
		return 0;
	case SO_PROTOCOL:
		*number = NETLINK_RDMA;
		return 0;
	case SO_TYPE:
		*number = netlink_type(fd);
		return *number < 0 ? *number : 0;
	default:
		return 1;
	}
}

exported int getsockopt(int fd, int level, int option, void *restrict value,
			socklen_t *restrict length)
{
	int number, ret;

	if (!netlink_is(fd))
		return real(getsockopt)(fd, level, option, value, length);
	ret = option_get(fd, level, option, &number);
	if (ret > 0)
		return real(getsockopt)(fd, level, option, value, length);
	return netlink_result(ret ? ret : number_store(level, number, value, length));
}

/* ---- sending ---- */

/* Adds up the lengths of a list of the program.  Returns a negative errno where that is too long. */
static ssize_t vector_bytes(const struct iovec *program, size_t count)
{
	struct iovec one;
	size_t n = 0;

	if (count > IOV_MAX)
		return -EMSGSIZE;
	for (size_t i = 0; i < count; i++) {
		if (!program_read(&one, program + i, sizeof(one)))
			return -EFAULT;
		if (one.iov_len > MOST_SENT_BYTES - n)
			return -EMSGSIZE;
		n += one.iov_len;
	}
	return (ssize_t)n;
}

/* Copies what a list of the program names.  Returns the length, or a negative errno; *out is the
 * caller's to free. */
static ssize_t datagram_gather(const struct iovec *program, size_t count, uint8_t **out)
{
	const ssize_t n = vector_bytes(program, count);
	struct iovec one;
	size_t at = 0;

	*out = n < 0 ? NULL : malloc((size_t)n + 1);
	if (n < 0)
		return n;
	if (!*out)
		return -ENOBUFS;
	for (size_t i = 0; i < count; i++, at += one.iov_len)
		/* Another thread may have changed the list. */
		if (!program_read(&one, program + i, sizeof(one)) || one.iov_len > (size_t)n - at ||
		    (one.iov_len && !program_read(*out + at, one.iov_base, one.iov_len)))
			return -EFAULT;
	return (ssize_t)at;
}

static ssize_t gather_and_send(int fd, const struct iovec *vector, size_t count, int flags,
			       const void *name, socklen_t name_length)
{
	struct sockaddr_nl to = {.nl_family = AF_NETLINK};
	uint8_t *datagram;
	ssize_t ret = name_length ? address_read(&to, name, name_length) : 0;

	if (flags & MSG_OOB)
		ret = -EOPNOTSUPP;
	if (!ret)
		ret = kernel_is_meant(&to);
	if (ret)
		return ret;
	ret = datagram_gather(vector, count, &datagram);
	if (ret >= 0)
		ret = netlink_send(fd, datagram, (size_t)ret);
	free(datagram);
	return ret;
}

static ssize_t netlink_gather_and_send(int fd, const struct iovec *vector, size_t count, int flags,
				       const void *name, socklen_t name_length)
{
	uint64_t signals;
	ssize_t ret;

	/* A handler may send, too, or jump away. */
	signals_hold(&signals);
	ret = gather_and_send(fd, vector, count, flags, name, name_length);
	signals_release(&signals);
	return netlink_result(ret);
}

exported ssize_t sendto(int fd, const void *buf, size_t n, int flags, __CONST_SOCKADDR_ARG address,
			socklen_t length)
{
	const struct iovec vector = {(void *)(uintptr_t)buf, n};

	if (!netlink_is(fd))
		return real(sendto)(fd, buf, n, flags, address, length);
	pthread_testcancel();
	return netlink_gather_and_send(fd, &vector, 1, flags, address.__sockaddr__,
				       address.__sockaddr__ ? length : 0);
}

exported ssize_t send(int fd, const void *buf, size_t n, int flags)
{
	const struct iovec vector = {(void *)(uintptr_t)buf, n};

	if (!netlink_is(fd))
		return real(send)(fd, buf, n, flags);
	pthread_testcancel();
	return netlink_gather_and_send(fd, &vector, 1, flags, NULL, 0);
}

static ssize_t netlink_send_message(int fd, const struct msghdr *message, int flags)
{
	struct msghdr m;

	if (!program_read(&m, message, sizeof(m)))
		return netlink_result(-EFAULT);
	return netlink_gather_and_send(fd, m.msg_iov, m.msg_iovlen, flags, m.msg_name,
				       m.msg_name ? m.msg_namelen : 0);
}

exported ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	if (!netlink_is(fd))
		return real(sendmsg)(fd, message, flags);
	pthread_testcancel();
	return netlink_send_message(fd, message, flags);
}

exported int sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags)
{
	if (!netlink_is(fd))
		return real(sendmmsg)(fd, messages, n, flags);
	pthread_testcancel();
	for (unsigned i = 0; i < n; i++) {
		ssize_t sent = netlink_send_message(fd, &messages[i].msg_hdr, flags);

		if (sent < 0)
			return i ? (int)i : -1;
		messages[i].msg_len = (unsigned)sent;
	}
	return (int)n;
}

/* ---- receiving ---- */

/* The kernel's messages come from port 0. */
static void sender_store(void *name, socklen_t room)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	memcpy(name, &kernel, room < sizeof(kernel) ? room : sizeof(kernel));
}

static ssize_t netlink_receive_from(int fd, void *buf, size_t n, int flags, void *name,
				    socklen_t *length)
{
	struct sockaddr_nl other;
	socklen_t room = 0, other_length = sizeof(other);
	ssize_t got;
	int lost;

	if (name && !program_read(&room, length, sizeof(room)))
		return netlink_result(-EFAULT);
	lost = netlink_read_begin(fd);
	if (lost)
		return netlink_result(lost);
	/* The real address goes elsewhere: it may be longer than what the program has room for. */
	got = real(recvfrom)(fd, buf, n, flags, (struct sockaddr *)&other, &other_length);
	if (got < 0)
		return got;
	netlink_read_end(fd);
	if (name) {
		sender_store(name, room);
		*length = sizeof(struct sockaddr_nl);
	}
	return got;
}

exported ssize_t recvfrom(int fd, void *restrict buf, size_t n, int flags, __SOCKADDR_ARG address,
			  socklen_t *restrict length)
{
	if (!netlink_is(fd))
		return real(recvfrom)(fd, buf, n, flags, address, length);
	return netlink_receive_from(fd, buf, n, flags, address.__sockaddr__, length);
}

exported ssize_t recv(int fd, void *buf, size_t n, int flags)
{
	if (!netlink_is(fd))
		return real(recv)(fd, buf, n, flags);
	return netlink_receive_from(fd, buf, n, flags, NULL, NULL);
}

exported ssize_t __recv_chk(int fd, void *buf, size_t n, size_t buf_len, int flags)
{
	/* If the count is larger than the buffer, libc ends the program, as it would without us. */
	if (n > buf_len || !netlink_is(fd))
		return real(__recv_chk)(fd, buf, n, buf_len, flags);
	return netlink_receive_from(fd, buf, n, flags, NULL, NULL);
}

exported ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t buf_len, int flags,
				struct sockaddr *address, socklen_t *length)
{
	if (n > buf_len || !netlink_is(fd))
		return real(__recvfrom_chk)(fd, buf, n, buf_len, flags, address, length);
	return netlink_receive_from(fd, buf, n, flags, address, length);
}

static ssize_t netlink_receive_message(int fd, struct msghdr *message, int flags)
{
	struct msghdr m;
	ssize_t got;
	int lost;

	if (!program_read(&m, message, sizeof(m)))
		return netlink_result(-EFAULT);
	lost = netlink_read_begin(fd);
	if (lost)
		return netlink_result(lost);
	got = real(recvmsg)(fd, message, flags);
	if (got < 0)
		return got;
	netlink_read_end(fd);
	if (m.msg_name) {
		sender_store(m.msg_name, m.msg_namelen);
		message->msg_namelen = sizeof(struct sockaddr_nl);
	}
	return got;
}

exported ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	return netlink_is(fd) ? netlink_receive_message(fd, message, flags)
			      : real(recvmsg)(fd, message, flags);
}

exported int recvmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags,
		      struct timespec *timeout)
{
	int got;

	if (!netlink_is(fd))
		return real(recvmmsg)(fd, messages, n, flags, timeout);
	/* One at a time, because the queue gets more answers when one has been taken. */
	if (!n)
		return 0;
	got = (int)netlink_receive_message(fd, &messages[0].msg_hdr, flags & ~MSG_WAITFORONE);
	if (got < 0)
		return -1;
	messages[0].msg_len = (unsigned)got;
	return 1;
}

/* ---- calls of all kinds of descriptors ---- */

ssize_t socket_read(int fd, void *buf, size_t n)
{
	if (!n) /* takes no datagram, other than recv */
		return 0;
	return netlink_receive_from(fd, buf, n, 0, NULL, NULL);
}

ssize_t socket_write(int fd, const void *buf, size_t n)
{
	const struct iovec vector = {(void *)(uintptr_t)buf, n};

	return netlink_gather_and_send(fd, &vector, 1, 0, NULL, 0);
}

ssize_t socket_readv(int fd, const struct iovec *vector, int count)
{
	struct msghdr m = {.msg_iov = (struct iovec *)(uintptr_t)vector,
			   .msg_iovlen = (size_t)count};

	return netlink_receive_message(fd, &m, 0);
}

ssize_t socket_writev(int fd, const struct iovec *vector, int count)
{
	return netlink_gather_and_send(fd, vector, (size_t)count, 0, NULL, 0);
}
