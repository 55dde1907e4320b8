// SPDX-License-Identifier: BSD-2-Clause
/*
 * netlink socket|hold N|children|files|monitor: sockets of RDMA netlink as the kernel's behave, on any
 * device there is; or N queue pairs, held until the program is killed; or what a list of objects leaves
 * behind; or the numbers of device files; or what a socket hears of devices until SIGINT comes.
 *
 * "socket" asks nothing that only softhca's devices would say, so it may run on a machine with others.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_netlink.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "check.h"

#define BYTES 8192u
#define BAD   ((void *)8)

/* The kernel's headers have these since Linux 6.12. */
#define GROUP_NOTIFY	      4
#define SYS_ATTR_MONITOR_MODE 103

struct request {
	struct nlmsghdr head;
	uint8_t attrs[64];
};

static int family_open(int type)
{
	int fd = socket(AF_NETLINK, type, NETLINK_RDMA);

	if (fd < 0)
		SKIP("no RDMA netlink: %s", strerror(errno));
	return fd;
}

static struct request request_of(unsigned client, unsigned op, unsigned flags)
{
	return (struct request){.head = {.nlmsg_len = NLMSG_HDRLEN,
					 .nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(client, op),
					 .nlmsg_flags = (uint16_t)flags,
					 .nlmsg_seq = 77}};
}

static void request_add(struct request *r, uint16_t type, const void *value, size_t n)
{
	struct nlattr attr = {(uint16_t)(NLA_HDRLEN + n), type};
	uint8_t *at = (uint8_t *)r + r->head.nlmsg_len;

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + NLA_HDRLEN, value, n);
	r->head.nlmsg_len += (uint32_t)NLA_ALIGN(NLA_HDRLEN + n);
}

static void request_send(int fd, const struct request *r)
{
	CHECK(send(fd, r, r->head.nlmsg_len, 0) == (ssize_t)r->head.nlmsg_len);
}

/* The next datagram's first message, of which there must be one. */
static const struct nlmsghdr *answer_take(int fd, ssize_t *n)
{
	static _Alignas(8) uint8_t buf[BYTES];

	*n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);
	CHECK_SAY(*n >= (ssize_t)NLMSG_HDRLEN, "%zd, %s", *n, strerror(errno));
	return (const void *)buf;
}

/* The error that a request is answered with, by a message of that type; 0: it went well. */
static int error_by(int fd, const struct request *r, uint16_t type)
{
	const struct nlmsghdr *head;
	const struct nlmsgerr *error;
	ssize_t n;

	request_send(fd, r);
	do
		head = answer_take(fd, &n);
	while (head->nlmsg_type != NLMSG_ERROR && head->nlmsg_type != NLMSG_DONE);
	error = (const void *)(head + 1);
	CHECK_SAY(head->nlmsg_type == type, "%u", head->nlmsg_type);
	CHECK(head->nlmsg_seq == 77 && (type == NLMSG_DONE || error->msg.nlmsg_seq == 77));
	CHECK(recv(fd, NULL, 0, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	return error->error;
}

static int error_of(int fd, const struct request *r)
{
	return error_by(fd, r, NLMSG_ERROR);
}

/* The error that ends a dump without the attribute it needs. */
static int dump_error(int fd, unsigned op)
{
	struct request r = request_of(RDMA_NL_NLDEV, op, NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP);

	return error_by(fd, &r, NLMSG_DONE);
}

static int nldev_error(int fd, unsigned op, unsigned flags)
{
	struct request r = request_of(RDMA_NL_NLDEV, op, NLM_F_REQUEST | flags);

	return error_of(fd, &r);
}

static int nldev_error_of(int fd, unsigned op, unsigned flags, uint16_t type, uint32_t value)
{
	struct request r = request_of(RDMA_NL_NLDEV, op, NLM_F_REQUEST | flags);

	request_add(&r, type, &value, sizeof(value));
	return error_of(fd, &r);
}

/* ---- addresses and options ---- */

static void test_addresses(void)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK}, b = {0};
	socklen_t length = sizeof(b);
	int one = family_open(SOCK_RAW | SOCK_CLOEXEC), two = family_open(SOCK_DGRAM);

	CHECK(!getsockname(one, (struct sockaddr *)&b, &length) && length == sizeof(b));
	CHECK(b.nl_family == AF_NETLINK && !b.nl_pid && !b.nl_groups);
	CHECK(!getpeername(one, (struct sockaddr *)&b, &length) && !b.nl_pid);
	CHECK(bind(one, (struct sockaddr *)&a, 4) < 0 && errno == EINVAL);
	CHECK(bind(one, BAD, sizeof(a)) < 0 && errno == EFAULT);
	CHECK(!bind(one, (struct sockaddr *)&a, sizeof(a)));
	CHECK(!getsockname(one, (struct sockaddr *)&b, &length));
	CHECK(b.nl_pid == (uint32_t)getpid());
	CHECK(bind(one, (struct sockaddr *)&a, sizeof(a)) < 0 && errno == EINVAL);
	a.nl_pid = b.nl_pid + 1;
	CHECK(bind(one, (struct sockaddr *)&a, sizeof(a)) < 0 && errno == EINVAL);
	a = b;
	CHECK(!bind(one, (struct sockaddr *)&a, sizeof(a)));
	a.nl_pid = 0;
	CHECK(!bind(two, (struct sockaddr *)&a, sizeof(a)));
	CHECK(!getsockname(two, (struct sockaddr *)&b, &length));
	CHECK(b.nl_pid && b.nl_pid != (uint32_t)getpid());
	a.nl_family = AF_INET;
	CHECK(bind(two, (struct sockaddr *)&a, sizeof(a)) < 0 && errno == EINVAL);
	CHECK(getsockname(two, (struct sockaddr *)&b, BAD) < 0 && errno == EFAULT);
	close(one);
	close(two);
}

static void test_options(void)
{
	int fd = family_open(SOCK_RAW), on = 1, value = 0;
	socklen_t length = sizeof(value);
	static const int switches[] = {NETLINK_EXT_ACK, NETLINK_CAP_ACK, NETLINK_GET_STRICT_CHK};

	for (size_t i = 0; i < 3; i++) {
		CHECK(!getsockopt(fd, SOL_NETLINK, switches[i], &value, &length) && !value);
		CHECK(!setsockopt(fd, SOL_NETLINK, switches[i], &on, sizeof(on)));
		CHECK(!getsockopt(fd, SOL_NETLINK, switches[i], &value, &length) && value == 1);
	}
	CHECK(setsockopt(fd, SOL_NETLINK, 99, &on, sizeof(on)) < 0 && errno == ENOPROTOOPT);
	CHECK(setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, 1) < 0 && errno == EINVAL);
	CHECK(setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, BAD, sizeof(on)) < 0 && errno == EFAULT);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &length) && value == AF_NETLINK);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &length) && value == NETLINK_RDMA);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length) && value == SOCK_RAW);
	length = 1;
	value = 0;
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &value, &length) && length == 1 &&
	      value == NETLINK_RDMA);
	CHECK(getsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &value, &length) < 0 && errno == EINVAL);
	value = 32768;
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, sizeof(value)));
	close(fd);
	CHECK(socket(AF_NETLINK, SOCK_STREAM, NETLINK_RDMA) < 0 && errno == ESOCKTNOSUPPORT);
}

/* ---- errors of requests ---- */

static void test_errors(void)
{
	int fd = family_open(SOCK_RAW), error, on = 1;
	struct request r;

	CHECK(nldev_error(fd, RDMA_NLDEV_CMD_UNSPEC, 0) == -EINVAL);
	CHECK(nldev_error(fd, RDMA_NLDEV_NUM_OPS + 40, 0) == -EINVAL);
	r = request_of(RDMA_NL_NUM_CLIENTS, 1, NLM_F_REQUEST);
	CHECK(error_of(fd, &r) == -EINVAL);
	CHECK(nldev_error(fd, RDMA_NLDEV_CMD_GET, 0) == -EINVAL);
	CHECK(nldev_error(fd, RDMA_NLDEV_CMD_PORT_GET, 0) == -EINVAL);
	CHECK(dump_error(fd, RDMA_NLDEV_CMD_PORT_GET) == -EINVAL);
	CHECK(dump_error(fd, RDMA_NLDEV_CMD_RES_QP_GET) == -EINVAL);
	CHECK(nldev_error(fd, RDMA_NLDEV_CMD_SYS_GET, NLM_F_DUMP) == -EINVAL);
	CHECK(nldev_error(fd, RDMA_NLDEV_CMD_GET_CHARDEV, 0) == -EINVAL);
	CHECK(nldev_error_of(fd, RDMA_NLDEV_CMD_GET, 0, RDMA_NLDEV_ATTR_DEV_INDEX, 4711) ==
	      -EINVAL);
	CHECK(nldev_error_of(fd, RDMA_NLDEV_CMD_PORT_GET, 0, RDMA_NLDEV_ATTR_DEV_INDEX, 0) ==
	      -EINVAL);
	CHECK(nldev_error_of(fd, RDMA_NLDEV_CMD_RES_CQ_GET, 0, RDMA_NLDEV_ATTR_DEV_INDEX, 0) ==
	      -EINVAL);
	error = nldev_error_of(fd, RDMA_NLDEV_CMD_STAT_SET, 0, RDMA_NLDEV_ATTR_DEV_INDEX, 0);
	CHECK_SAY(geteuid() ? error == -EPERM : error < 0, "%d", error);
	r = request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV, NLM_F_REQUEST);
	request_add(&r, RDMA_NLDEV_ATTR_CHARDEV_TYPE, "nothing", 8);
	CHECK(error_of(fd, &r) == -EOPNOTSUPP);
	/* An error repeats the request, unless the program wants it short. */
	r = request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, NLM_F_REQUEST);
	request_add(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &(uint32_t){4711}, 4);
	for (int capped = 0; capped < 2; capped++) {
		const struct nlmsghdr *head;
		ssize_t n;

		request_send(fd, &r);
		head = answer_take(fd, &n);
		CHECK(head->nlmsg_len ==
		      NLMSG_HDRLEN + 4 + (capped ? NLMSG_HDRLEN : r.head.nlmsg_len));
		CHECK(!(head->nlmsg_flags & NLM_F_CAPPED) == !capped);
		CHECK(!setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on)));
	}
	close(fd);
}

/* Bad memory, and datagrams that are no messages. */
static void test_bad_input(void)
{
	int fd = family_open(SOCK_RAW);
	struct request r =
		request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, NLM_F_REQUEST | NLM_F_ACK);
	struct sockaddr_nl to = {.nl_family = AF_NETLINK, .nl_pid = 1};
	struct msghdr m = {.msg_iov = BAD, .msg_iovlen = 1};
	static const uint8_t noise[200] = {0xff, 0xff, 0xff, 0xff, 1, 2, 3};
	uint8_t buf[BYTES];

	CHECK(send(fd, BAD, 16, 0) < 0 && errno == EFAULT);
	CHECK(send(fd, &r, r.head.nlmsg_len, MSG_OOB) < 0 && errno == EOPNOTSUPP);
	CHECK(recv(fd, buf, sizeof(buf), MSG_OOB | MSG_DONTWAIT) < 0 && errno == EOPNOTSUPP);
	CHECK(sendmsg(fd, &m, 0) < 0 && errno == EFAULT);
	CHECK(sendmsg(fd, BAD, 0) < 0 && errno == EFAULT);
	CHECK(recvmsg(fd, BAD, MSG_DONTWAIT) < 0 && errno == EFAULT);
	CHECK(sendto(fd, &r, r.head.nlmsg_len, 0, (void *)&to, sizeof(to)) < 0);
	CHECK_SAY(errno == ECONNREFUSED || errno == EPERM, "%s", strerror(errno));
	for (size_t n = 0; n < sizeof(noise); n++)
		CHECK(send(fd, noise, n, 0) == (ssize_t)n);
	CHECK(recv(fd, buf, sizeof(buf), MSG_DONTWAIT) < 0 && errno == EAGAIN);
	request_send(fd, &r);
	CHECK(recv(fd, BAD, sizeof(buf), MSG_DONTWAIT) < 0 && errno == EFAULT);
	close(fd);
}

/* ---- answers ---- */

/* An answer and its acknowledgement, by every way to receive. */
static void test_receiving(void)
{
	int fd = family_open(SOCK_RAW);
	struct request r =
		request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, NLM_F_REQUEST | NLM_F_ACK);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct sockaddr_nl from = {0};
	_Alignas(8) uint8_t buf[BYTES], small[4];
	struct iovec parts[2] = {{small, 4}, {buf, sizeof(buf)}};
	struct msghdr m = {.msg_name = &from, .msg_iov = parts, .msg_iovlen = 2};
	socklen_t length = sizeof(from);
	const struct nlmsghdr *head = (const void *)buf;
	ssize_t n, whole;

	CHECK(!poll(&p, 1, 0));
	request_send(fd, &r);
	CHECK(poll(&p, 1, 0) == 1 && p.revents & POLLIN);
	whole = recv(fd, small, sizeof(small), MSG_PEEK | MSG_TRUNC);
	CHECK(whole > (ssize_t)sizeof(small));
	n = recvfrom(fd, buf, sizeof(buf), 0, (void *)&from, &length);
	CHECK(n == whole && length == sizeof(from));
	CHECK(from.nl_family == AF_NETLINK && !from.nl_pid && !from.nl_groups);
	CHECK(head->nlmsg_type == r.head.nlmsg_type && head->nlmsg_seq == 77);
	CHECK(head->nlmsg_pid == (uint32_t)getpid());
	/* The acknowledgement is a datagram of its own. */
	CHECK((size_t)n == NLMSG_ALIGN(head->nlmsg_len));
	m.msg_namelen = sizeof(from);
	n = recvmsg(fd, &m, 0);
	CHECK(n > (ssize_t)NLMSG_HDRLEN && m.msg_namelen == sizeof(from) && !m.msg_flags);
	CHECK(!poll(&p, 1, 0));
	parts[0] = (struct iovec){&r, 10};
	parts[1] = (struct iovec){(uint8_t *)&r + 10, r.head.nlmsg_len - 10};
	CHECK(writev(fd, parts, 2) == (ssize_t)r.head.nlmsg_len);
	CHECK(read(fd, small, 0) == 0 && poll(&p, 1, 0) == 1);
	CHECK(read(fd, small, sizeof(small)) == sizeof(small));
	close(fd);
}

static void *answer_await(void *arg)
{
	static _Alignas(8) uint8_t buf[BYTES];

	return (void *)recv(*(int *)arg, buf, sizeof(buf), 0);
}

/* A thread that waits for the answer of another's request; a child that asks by its parent's socket. */
static void test_sharing(void)
{
	int fd = family_open(SOCK_RAW), status;
	struct request r =
		request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, NLM_F_REQUEST | NLM_F_DUMP);
	pthread_t thread;
	void *got;
	ssize_t n;
	pid_t child;

	CHECK(!pthread_create(&thread, NULL, answer_await, &fd));
	usleep(20000);
	request_send(fd, &r);
	CHECK(!pthread_join(thread, &got) && (ssize_t)got > (ssize_t)NLMSG_HDRLEN);
	close(fd);
	fd = family_open(SOCK_RAW);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		request_send(fd, &r);
		answer_take(fd, &n);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(dup2(fd, 100) == 100 && !close(fd));
	request_send(100, &r);
	answer_take(100, &n);
	close(100);
}

/* Many answers that nobody takes: none is lost, and they come in order. */
static void test_full_queue(void)
{
	int fd = family_open(SOCK_RAW | SOCK_NONBLOCK);
	struct request r = request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, NLM_F_REQUEST);
	_Alignas(8) uint8_t buf[BYTES];
	uint32_t next = 0;

	for (uint32_t i = 0; i < 3000; i++) {
		r.head.nlmsg_seq = i;
		request_send(fd, &r);
	}
	for (ssize_t n; (n = recv(fd, buf, sizeof(buf), 0)) > 0;)
		for (ssize_t at = 0; at < n;) {
			const struct nlmsghdr *head = (const void *)(buf + at);

			CHECK_SAY(head->nlmsg_seq == next, "%u after %u", head->nlmsg_seq, next);
			next++;
			at += NLMSG_ALIGN(head->nlmsg_len);
		}
	CHECK_SAY(errno == EAGAIN && next == 3000, "%u answers", next);
	close(fd);
}

/* ---- device files ---- */

/* An attribute of a message, which must be there. */
static const void *attr_of(const struct nlmsghdr *head, uint16_t type)
{
	const uint8_t *at = (const uint8_t *)(head + 1),
		      *end = (const uint8_t *)head + head->nlmsg_len;

	while (at < end) {
		const struct nlattr *attr = (const void *)at;

		if (attr->nla_type == type)
			return attr + 1;
		at += NLA_ALIGN(attr->nla_len);
	}
	CHECK_SAY(false, "no attribute %u", type);
	return NULL;
}

/* What is said of a file is what stat says of it. */
static void file_check(const char *kind, bool device, bool port)
{
	struct request r = request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET_CHARDEV, NLM_F_REQUEST);
	int fd = family_open(SOCK_RAW);
	const struct nlmsghdr *head;
	uint64_t number;
	struct stat st;
	char path[64];
	ssize_t n;

	if (device)
		request_add(&r, RDMA_NLDEV_ATTR_DEV_INDEX, &(uint32_t){0}, 4);
	if (port)
		request_add(&r, RDMA_NLDEV_ATTR_PORT_INDEX, &(uint32_t){1}, 4);
	request_add(&r, RDMA_NLDEV_ATTR_CHARDEV_TYPE, kind, strlen(kind) + 1);
	request_send(fd, &r);
	head = answer_take(fd, &n);
	CHECK_SAY(head->nlmsg_type == r.head.nlmsg_type, "%s", kind);
	snprintf(path, sizeof(path), "/dev/infiniband/%s",
		 (const char *)attr_of(head, RDMA_NLDEV_ATTR_CHARDEV_NAME));
	memcpy(&number, attr_of(head, RDMA_NLDEV_ATTR_CHARDEV), sizeof(number));
	CHECK_SAY(!stat(path, &st), "%s", path);
	CHECK_SAY(major(st.st_rdev) == (number >> 8 & 0xfff) &&
			  minor(st.st_rdev) == ((number & 0xff) | (number >> 12 & 0xfff00)),
		  "%s is %u:%u, not %#llx", path, major(st.st_rdev), minor(st.st_rdev),
		  (unsigned long long)number);
	close(fd);
}

/* Of the device with index 0, which has an InfiniBand port. */
static void files_check(void)
{
	file_check("uverbs", true, false);
	file_check("umad", true, true);
	file_check("issm", true, true);
	file_check("rdma_cm", false, false);
}

/* ---- sockets that are used badly ---- */

/* A queue too small for an answer loses that answer, not the next, and says so. */
static void test_small_queue(void)
{
	static _Alignas(8) uint8_t large[20000];
	struct request r =
		request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, NLM_F_REQUEST | NLM_F_ACK);
	int fd = family_open(SOCK_RAW), least = 1;
	const struct nlmsghdr *head;
	ssize_t n;

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least)));
	memcpy(large, &r, sizeof(r));
	((struct nlmsghdr *)(void *)large)->nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, 0);
	((struct nlmsghdr *)(void *)large)->nlmsg_len = sizeof(large);
	n = send(fd, large, sizeof(large), 0);
	CHECK_SAY(n < 0 && errno == EMSGSIZE, "%zd, %s", n, strerror(errno));
	while (recv(fd, large, sizeof(large), MSG_DONTWAIT) > 0)
		;
	for (unsigned i = 0; i < 100; i++) {
		request_send(fd, &r);
		head = answer_take(fd, &n);
		CHECK(head->nlmsg_type == r.head.nlmsg_type);
		head = answer_take(fd, &n);
		CHECK(head->nlmsg_type == NLMSG_ERROR);
	}
	close(fd);
}

/* The number of a socket becomes that of another file, without the C library. */
static void test_number_reused(void)
{
	struct request r = request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, NLM_F_REQUEST);
	int fd = family_open(SOCK_RAW), ends[2], domain;
	socklen_t length = sizeof(domain);
	uint8_t buf[BYTES];
	ssize_t n;

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	CHECK(syscall(SYS_dup2, ends[0], fd) == fd);
	CHECK(!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) && domain == AF_UNIX);
	CHECK(send(fd, "other", 5, 0) == 5 && recv(ends[1], buf, sizeof(buf), 0) == 5);
	syscall(SYS_close, fd);
	CHECK(send(fd, &r, r.head.nlmsg_len, 0) < 0 && errno == EBADF);
	CHECK(family_open(SOCK_RAW) == fd);
	request_send(fd, &r);
	answer_take(fd, &n);
	close(fd);
	close(ends[0]);
	close(ends[1]);
}

/* A child of fork has a port of its own, and the parent's stays the parent's. */
static void test_ports_of_a_child(void)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK}, b = {0};
	int fd = family_open(SOCK_RAW), status;
	socklen_t length = sizeof(b);
	pid_t child;

	CHECK(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		int own = family_open(SOCK_RAW);

		CHECK(!bind(own, (struct sockaddr *)&a, sizeof(a)));
		CHECK(!getsockname(own, (struct sockaddr *)&b, &length));
		CHECK(b.nl_pid == (uint32_t)getpid());
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	close(fd);
}

#define ROUNDS 300

/* Sends and receives on one socket beside others, and on one of its own. */
static void *use_both(void *arg)
{
	struct request r = request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, NLM_F_REQUEST);
	int shared = *(int *)arg;
	uint8_t buf[BYTES];

	for (unsigned i = 0; i < ROUNDS; i++) {
		int own = family_open(SOCK_RAW | SOCK_NONBLOCK);

		request_send(shared, &r);
		CHECK(recv(shared, buf, sizeof(buf), 0) > (ssize_t)NLMSG_HDRLEN);
		request_send(own, &r);
		CHECK(recv(own, buf, sizeof(buf), 0) > (ssize_t)NLMSG_HDRLEN);
		close(own);
	}
	return NULL;
}

/* Numbers beyond those that programs have by themselves. */
static void test_large_numbers(void)
{
	struct request r = request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, NLM_F_REQUEST);
	struct rlimit limit;
	ssize_t n;
	int fd;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	fd = family_open(SOCK_RAW);
	for (int large = 200; large < (int)limit.rlim_max && large < 20000; large *= 5) {
		CHECK(dup2(fd, large) == large);
		request_send(large, &r);
		answer_take(large, &n);
		close(large);
	}
	close(fd);
}

/* Threads that send on one socket and take each other's answers. */
static void test_threads(void)
{
	int fd = family_open(SOCK_RAW);
	pthread_t threads[4];
	uint8_t buf[BYTES];

	for (unsigned i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, use_both, &fd));
	for (unsigned i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(recv(fd, buf, sizeof(buf), MSG_DONTWAIT) < 0 && errno == EAGAIN);
	close(fd);
}

static sigjmp_buf away;

static void jump(int signal)
{
	siglongjmp(away, signal);
}

/* A handler that jumps out of whatever call is under way, again and again: the socket stays usable. */
static void test_jumps(void)
{
	const struct itimerval soon = {.it_value.tv_usec = 700}, never = {0};
	const struct sigaction action = {.sa_handler = jump};
	struct request r =
		request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, NLM_F_REQUEST | NLM_F_DUMP);
	int fd = family_open(SOCK_RAW | SOCK_NONBLOCK);
	volatile unsigned jumps = 0;
	uint8_t buf[BYTES];

	CHECK(!sigaction(SIGALRM, &action, NULL));
	if (sigsetjmp(away, 1))
		jumps++;
	while (jumps < 300) {
		CHECK(!setitimer(ITIMER_REAL, &soon, NULL));
		for (;;) {
			request_send(fd, &r);
			while (recv(fd, buf, sizeof(buf), 0) > 0)
				;
		}
	}
	CHECK(!setitimer(ITIMER_REAL, &never, NULL));
	while (recv(fd, buf, sizeof(buf), 0) > 0)
		;
	request_send(fd, &r);
	CHECK(recv(fd, buf, sizeof(buf), 0) > (ssize_t)NLMSG_HDRLEN);
	close(fd);
}

static void *close_it(void *arg)
{
	usleep(1000);
	close(*(int *)arg);
	return NULL;
}

/* A socket that is closed while another thread sends on it. */
static void test_closed_meanwhile(void)
{
	struct request r =
		request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET, NLM_F_REQUEST | NLM_F_DUMP);

	for (unsigned i = 0; i < 50; i++) {
		int fd = family_open(SOCK_RAW);
		pthread_t thread;

		CHECK(!pthread_create(&thread, NULL, close_it, &fd));
		while (send(fd, &r, r.head.nlmsg_len, 0) > 0)
			;
		CHECK_SAY(errno == EBADF, "%s", strerror(errno));
		CHECK(!pthread_join(thread, NULL));
	}
}

/* ---- queue pairs ---- */

static void hold(unsigned n)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *context = devices ? ibv_open_device(devices[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};

	CHECK(cq);
	for (unsigned i = 0; i < n; i++)
		CHECK(ibv_create_qp(pd, &attr));
	printf("held\n");
	fflush(stdout);
	pause();
}

/* ---- what a list leaves behind ---- */

/* A list of objects is the work of a child of the library's, which is gone with the answer. */
static void no_children(void)
{
	struct request r =
		request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_RES_GET, NLM_F_REQUEST | NLM_F_DUMP);
	int fd = family_open(SOCK_RAW), next = dup(0);

	close(next);
	for (unsigned i = 0; i < 3; i++) {
		request_send(fd, &r);
		CHECK(waitpid(-1, NULL, __WALL | WNOHANG) < 0 && errno == ECHILD);
	}
	CHECK(dup(0) == next);
}

/* ---- notifications ---- */

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	(void)signal;
	interrupted = 1;
}

/* Waits for notifications of devices until SIGINT comes.  The same socket answers requests meanwhile. */
static void monitor(void)
{
	const struct sigaction action = {.sa_handler = interrupt};
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_groups = 1 << (GROUP_NOTIFY - 1)};
	struct request r = request_of(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SYS_GET, NLM_F_REQUEST);
	int fd = family_open(SOCK_RAW | SOCK_CLOEXEC), group = GROUP_NOTIFY;
	socklen_t length = sizeof(a);
	const struct nlmsghdr *head;
	uint8_t buf[BYTES];
	ssize_t n;

	CHECK(!sigaction(SIGINT, &action, NULL));
	CHECK(!bind(fd, (struct sockaddr *)&a, sizeof(a)));
	CHECK(!getsockname(fd, (struct sockaddr *)&a, &length) && a.nl_groups == 8);
	CHECK(!setsockopt(fd, SOL_NETLINK, NETLINK_DROP_MEMBERSHIP, &group, sizeof(group)));
	CHECK(!getsockname(fd, (struct sockaddr *)&a, &length) && !a.nl_groups);
	CHECK(!setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)));
	request_send(fd, &r);
	head = answer_take(fd, &n);
	CHECK(*(const uint8_t *)attr_of(head, SYS_ATTR_MONITOR_MODE) == 1);
	printf("listening\n");
	fflush(stdout);
	n = recv(fd, buf, sizeof(buf), 0);
	CHECK_SAY(n < 0 && errno == EINTR && interrupted, "%zd, %s", n, strerror(errno));
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "monitor")) {
		monitor();
		return 0;
	}
	if (argc == 2 && !strcmp(argv[1], "children")) {
		no_children();
		return 0;
	}
	if (argc == 3 && !strcmp(argv[1], "hold")) {
		hold((unsigned)strtoul(argv[2], NULL, 10));
		return 1;
	}
	if (argc == 2 && !strcmp(argv[1], "files")) {
		files_check();
		return 0;
	}
	if (argc != 2 || strcmp(argv[1], "socket") != 0)
		return 2;
	test_addresses();
	test_options();
	test_errors();
	test_bad_input();
	test_receiving();
	test_sharing();
	test_full_queue();
	test_small_queue();
	test_number_reused();
	test_ports_of_a_child();
	test_large_numbers();
	test_threads();
	test_jumps();
	test_closed_meanwhile();
	return 0;
}
