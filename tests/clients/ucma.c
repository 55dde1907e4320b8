// SPDX-License-Identifier: BSD-2-Clause
/*
 * ucma: bare writes to /dev/infiniband/rdma_cm, with the sizes and errors of the kernel's ucma.c and
 * cma.c.
 *
 *	ucma ADDRESS    (of a port of this host)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_user_cm.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void *volatile bad_address = (void *)8;
#define BAD bad_address

static int file;
static struct sockaddr_in here;

struct call {
	struct rdma_ucm_cmd_hdr head;
	uint8_t bytes[320];
};

/* Writes a command; 0 or an errno. */
static int call_write(int fd, uint32_t cmd, const void *in, size_t n, size_t out)
{
	struct call c = {.head = {cmd, (uint16_t)n, (uint16_t)out}};
	ssize_t ret;

	memcpy(c.bytes, in, n);
	ret = write(fd, &c, sizeof(c.head) + n);
	if (ret < 0)
		return errno;
	CHECK(ret == (ssize_t)(sizeof(c.head) + n));
	return 0;
}

#define CALL(cmd, in, out) call_write(file, RDMA_USER_CM_CMD_##cmd, &(in), sizeof(in), out)

static uint32_t id_make_in(int fd, uint16_t ps)
{
	struct rdma_ucm_create_id_resp r = {UINT32_MAX};
	struct rdma_ucm_create_id c = {.uid = 77, .response = (uintptr_t)&r, .ps = ps};

	CHECK(!call_write(fd, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), sizeof(r)));
	CHECK(r.id < 65536);
	return r.id;
}

static uint32_t id_make(uint16_t ps)
{
	return id_make_in(file, ps);
}

static void id_end(uint32_t id)
{
	struct rdma_ucm_destroy_id_resp r;
	struct rdma_ucm_destroy_id c = {.response = (uintptr_t)&r, .id = id};

	CHECK(!CALL(DESTROY_ID, c, sizeof(r)));
}

static int bind_to(uint32_t id, const char *address, uint16_t port)
{
	struct rdma_ucm_bind c = {.id = id, .addr_size = sizeof(struct sockaddr_in)};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

	a.sin_addr.s_addr = address ? inet_addr(address) : here.sin_addr.s_addr;
	memcpy(&c.addr, &a, sizeof(a));
	return CALL(BIND, c, 0);
}

static int listen_on(uint32_t id)
{
	struct rdma_ucm_listen c = {.id = id, .backlog = 8};

	return CALL(LISTEN, c, 0);
}

static int option_set(uint32_t id, uint32_t name, const void *value, uint32_t n)
{
	struct rdma_ucm_set_option c = {.optval = (uintptr_t)value,
					.id = id,
					.level = RDMA_OPTION_ID,
					.optname = name,
					.optlen = n};

	return CALL(SET_OPTION, c, 0);
}

/* ---- the file ---- */

static void test_file(void)
{
	struct rdma_ucm_disconnect c = {.id = 60000};
	struct call any = {.head = {RDMA_USER_CM_CMD_DISCONNECT, 4, 0}};
	struct stat st;
	uint8_t byte;

	CHECK(!fstat(file, &st) && S_ISCHR(st.st_mode) && major(st.st_rdev) == 10);
	CHECK(read(file, &byte, 1) < 0 && errno == EINVAL);
	CHECK(ioctl(file, 0x1234, &byte) < 0 && errno == ENOTTY);
	CHECK(write(file, &any, 7) < 0 && errno == EINVAL);
	CHECK(write(file, BAD, 12) < 0 && errno == EFAULT);
	any.head.in = 5;
	CHECK(write(file, &any, 12) < 0 && errno == EINVAL);
	any.head = (struct rdma_ucm_cmd_hdr){200, 0, 0};
	CHECK(write(file, &any, 12) < 0 && errno == EINVAL);
	any.head = (struct rdma_ucm_cmd_hdr){RDMA_USER_CM_CMD_GET_OPTION, 0, 0};
	CHECK(write(file, &any, 12) < 0 && errno == ENOSYS);
	CHECK(CALL(DISCONNECT, c, 0) == ENOENT);
}

/* ---- ids ---- */

static void test_ids(void)
{
	struct rdma_ucm_create_id_resp r;
	struct rdma_ucm_create_id c = {.response = (uintptr_t)&r, .ps = 4711};
	struct rdma_ucm_disconnect d;
	int other = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	uint32_t a, b, again;

	CHECK(other >= 0);
	CHECK(CALL(CREATE_ID, c, sizeof(r)) == EINVAL);
	c.ps = RDMA_PS_TCP;
	CHECK(CALL(CREATE_ID, c, 3) == ENOSPC);
	c.response = 8;
	CHECK(CALL(CREATE_ID, c, sizeof(r)) == EFAULT);
	a = id_make(RDMA_PS_TCP);
	b = id_make(RDMA_PS_UDP);
	CHECK(a != b);
	d.id = id_make_in(other, RDMA_PS_TCP);
	CHECK(CALL(DISCONNECT, d, 0) == EINVAL); /* another file's */
	d.id = a;
	CHECK(CALL(DISCONNECT, d, 0) == EINVAL); /* no device */
	id_end(a);
	CHECK(CALL(DISCONNECT, d, 0) == ENOENT);
	again = id_make(RDMA_PS_TCP);
	CHECK(again == a); /* the lowest free number */
	id_end(again);
	id_end(b);
	close(other);
}

/* ---- addresses and ports ---- */

static unsigned privileged_ports(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");
	unsigned n = 1024;

	CHECK(!f || fscanf(f, "%u", &n) == 1);
	if (f)
		fclose(f);
	return n;
}

static void test_binding(void)
{
	uint32_t a = id_make(RDMA_PS_TCP), b = id_make(RDMA_PS_TCP);
	struct rdma_ucm_bind bad = {.id = a, .addr_size = 16, .reserved = 1};
	uint32_t on = 1;
	uint8_t tos = 8;

	CHECK(CALL(BIND, bad, 0) == EINVAL);
	bad.reserved = 0;
	bad.addr_size = 3;
	bad.addr.ss_family = AF_INET;
	CHECK(CALL(BIND, bad, 0) == EINVAL);
	bad.addr_size = 16;
	bad.addr.ss_family = AF_UNIX;
	CHECK(CALL(BIND, bad, 0) == EAFNOSUPPORT);
	CHECK(bind_to(a, "192.0.2.77", 7471) == EADDRNOTAVAIL);
	CHECK(bind_to(a, "198.18.200.1", 7471) == EADDRNOTAVAIL);
	CHECK(!bind_to(a, NULL, 7471));
	CHECK(bind_to(a, NULL, 7472) == EINVAL); /* it is bound */
	CHECK(bind_to(b, NULL, 7471) == EADDRINUSE);
	CHECK(bind_to(b, "0.0.0.0", 7471) == EADDRNOTAVAIL);
	CHECK(!bind_to(b, NULL, 0)); /* any free one */
	id_end(b);
	/* Both allow that the address is used again, until one listens. */
	id_end(a);
	a = id_make(RDMA_PS_TCP);
	b = id_make(RDMA_PS_TCP);
	CHECK(!option_set(a, RDMA_OPTION_ID_REUSEADDR, &on, 4));
	CHECK(!option_set(b, RDMA_OPTION_ID_REUSEADDR, &on, 4));
	CHECK(!bind_to(a, NULL, 7471) && !bind_to(b, NULL, 7471));
	CHECK(listen_on(a) == EADDRINUSE);
	id_end(b);
	CHECK(!listen_on(a) && listen_on(a) == EINVAL);
	CHECK(option_set(a, RDMA_OPTION_ID_TOS, &tos, 2) == EINVAL);
	CHECK(option_set(a, 99, &tos, 1) == ENOSYS);
	CHECK(option_set(a, RDMA_OPTION_ID_TOS, BAD, 1) == EFAULT);
	CHECK(!option_set(a, RDMA_OPTION_ID_TOS, &tos, 1));
	id_end(a);
	if (geteuid() && privileged_ports() > 7) {
		a = id_make(RDMA_PS_TCP);
		CHECK(bind_to(a, NULL, 7) == EACCES);
		id_end(a);
	}
	/* Another port space has the same numbers, and an id that was never bound listens. */
	a = id_make(RDMA_PS_TCP);
	b = id_make(RDMA_PS_UDP);
	CHECK(!bind_to(a, NULL, 7471) && !bind_to(b, NULL, 7471));
	id_end(a);
	id_end(b);
	a = id_make(RDMA_PS_TCP);
	CHECK(!listen_on(a));
	id_end(a);
}

/* ---- events ---- */

static int event_get(struct rdma_ucm_event_resp *e)
{
	struct rdma_ucm_get_event c = {.response = (uintptr_t)e};

	return CALL(GET_EVENT, c, sizeof(*e));
}

static int resolve(uint32_t id, const char *address)
{
	struct rdma_ucm_resolve_addr c = {.id = id, .timeout_ms = 2000, .dst_size = sizeof(here)};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7471)};

	to.sin_addr.s_addr = address ? inet_addr(address) : here.sin_addr.s_addr;
	memcpy(&c.dst_addr, &to, sizeof(to));
	return CALL(RESOLVE_ADDR, c, 0);
}

static void *event_await(void *out)
{
	CHECK(!event_get(out));
	return NULL;
}

static void test_events(void)
{
	struct rdma_ucm_destroy_id_resp destroyed;
	struct rdma_ucm_event_resp e;
	struct rdma_ucm_get_event small = {.response = (uintptr_t)&e};
	struct epoll_event ready, edge = {.events = EPOLLIN | EPOLLET};
	struct pollfd p = {.fd = file, .events = POLLIN | POLLOUT};
	struct rdma_ucm_destroy_id destroy;
	int flags = fcntl(file, F_GETFL), set = epoll_create1(0);
	uint32_t id = id_make(RDMA_PS_TCP), other = id_make(RDMA_PS_TCP);
	pthread_t thread;

	CHECK(!fcntl(file, F_SETFL, flags | O_NONBLOCK));
	CHECK(event_get(&e) == EAGAIN);
	CHECK(CALL(GET_EVENT, small, 323) == ENOSPC);
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, file, &edge));
	CHECK(epoll_wait(set, &ready, 1, 0) <= 1);
	for (int i = 0; i < 2; i++) {
		CHECK(!resolve(i ? other : id, NULL));
		/* Each event is an edge. */
		CHECK(epoll_wait(set, &ready, 1, 1000) == 1);
	}
	CHECK(poll(&p, 1, 0) == 1 && p.revents & POLLIN);
	small.response = 8;
	CHECK(CALL(GET_EVENT, small, sizeof(e)) == EFAULT); /* and the event stays */
	CHECK(!event_get(&e) && e.id == id && e.uid == 77 && !e.event && !e.status);
	CHECK(resolve(id, NULL) == EINVAL); /* it is resolved */
	/* What was taken is counted, and what was not goes with its id. */
	destroy = (struct rdma_ucm_destroy_id){.response = (uintptr_t)&destroyed, .id = id};
	CHECK(!CALL(DESTROY_ID, destroy, sizeof(destroyed)) && destroyed.events_reported == 1);
	destroy.id = other;
	CHECK(!CALL(DESTROY_ID, destroy, sizeof(destroyed)) && !destroyed.events_reported);
	p.events = POLLIN;
	CHECK(!poll(&p, 1, 0) && event_get(&e) == EAGAIN);
	/* Nobody has that address; a thread waits for the event. */
	CHECK(!fcntl(file, F_SETFL, flags));
	id = id_make(RDMA_PS_TCP);
	CHECK(!pthread_create(&thread, NULL, event_await, &e));
	usleep(20000);
	CHECK(!resolve(id, "198.18.200.1"));
	CHECK(!pthread_join(thread, NULL));
	CHECK(e.id == id && e.event == 1 && (int)e.status == -ETIMEDOUT);
	id_end(id);
	close(set);
}

/* ---- answers ---- */

static void test_queries(void)
{
	struct rdma_ucm_query_addr_resp a;
	struct rdma_ucm_query q = {.response = (uintptr_t)&a};
	struct ib_uverbs_qp_attr attr;
	struct rdma_ucm_init_qp_attr init = {.response = (uintptr_t)&attr, .qp_state = 1};
	uint32_t id = id_make(RDMA_PS_TCP);

	q.id = init.id = id;
	CHECK(!CALL(QUERY, q, sizeof(a)) && !a.node_guid && !a.port_num);
	CHECK(a.ibdev_index == UINT32_MAX);
	q.option = 77;
	CHECK(CALL(QUERY, q, sizeof(a)) == ENOSYS);
	q.option = RDMA_USER_CM_QUERY_GID;
	CHECK(!CALL(QUERY, q, sizeof(a)) && a.src_size == 48);
	q.option = RDMA_USER_CM_QUERY_ADDR;
	CHECK(CALL(QUERY, q, 271) == ENOSPC);
	CHECK(CALL(INIT_QP_ATTR, init, sizeof(attr)) == EINVAL); /* no device */
	CHECK(!bind_to(id, NULL, 7473));
	memset(&a, 0xff, sizeof(a));
	CHECK(!CALL(QUERY, q, 272) && a.node_guid && a.port_num == 1);
	CHECK(a.src_size == sizeof(here) && !a.dst_size);
	CHECK(a.ibdev_index == UINT32_MAX); /* there was no room */
	CHECK(!CALL(INIT_QP_ATTR, init, sizeof(attr)));
	CHECK(attr.qp_attr_mask == (1 | 8 | 16 | 32) && attr.port_num == 1 &&
	      !attr.qp_access_flags);
	init.qp_state = 2;
	CHECK(CALL(INIT_QP_ATTR, init, sizeof(attr)) == EINVAL); /* nobody is at the other end */
	id_end(id);
}

/* A child goes on with its parent's file; a file that is closed takes its ids along. */
static void test_fork(void)
{
	uint32_t id = id_make(RDMA_PS_TCP);
	int status, second = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	pid_t child = fork();

	CHECK(child >= 0 && second >= 0);
	if (!child) {
		CHECK(!bind_to(id, NULL, 7474));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(bind_to(id, NULL, 7474) == EINVAL);
	id_end(id);
	(void)id_make_in(second, RDMA_PS_TCP);
	close(second);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	here = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(argv[1])};
	file = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	CHECK(file >= 0);
	test_file();
	test_ids();
	test_binding();
	test_events();
	test_queries();
	test_fork();
	return 0;
}
