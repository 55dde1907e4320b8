// SPDX-License-Identifier: BSD-2-Clause
/*
 * ucma: bare writes to /dev/infiniband/rdma_cm, with the sizes and errors of the kernel's ucma.c and
 * cma.c.
 *
 *	ucma ADDRESS           (of a port of this host)
 *	ucma ADDRESS member    joins a group, says so, and waits until it is lost
 *	ucma foreign FD        FD is such a file's of another program; standard input is a socket by which
 *	                       another one comes
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_sa.h>
#include <rdma/rdma_user_cm.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void *volatile bad_address = (void *)8;
#define BAD bad_address

static int file;
static struct sockaddr_in here;

struct call {
	struct rdma_ucm_cmd_hdr head;
	uint8_t bytes[512];
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

/* ---- what Linux 6.1 does not have ---- */

#define CMD_WRITE_EVENT 24
#define EVENT_USER	18
#define EVENT_INTERNAL	19

/* As rdma/rdma_user_cm.h of Linux 6.17 has it. */
struct write_event {
	uint32_t id, reserved, event, status;
	uint64_t arg;
	uint8_t rest[296];
};

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
	CHECK(CALL(BIND, bad, 0) == EINVAL);
	bad.addr.ss_family = AF_INET;
	bad.addr_size = 28;
	CHECK(CALL(BIND, bad, 0) == EINVAL);
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

/* An event that a program writes for an id of its own, with an argument. */
static void test_written(void)
{
	struct write_event c = {.event = EVENT_USER, .status = 5, .arg = 0x1122334455667788};
	struct pollfd p = {.fd = file, .events = POLLIN};
	struct rdma_ucm_destroy_id_resp destroyed;
	struct rdma_ucm_destroy_id destroy;
	struct rdma_ucm_event_resp e;
	uint64_t arg;
	int ret;

	c.id = 60000;
	ret = call_write(file, CMD_WRITE_EVENT, &c, sizeof(c), 0);
	if (!getenv("SOFTHCA_DIR") && ret == EINVAL) {
		printf("(this kernel is older than 6.17) ");
		return;
	}
	CHECK(ret == ENOENT);
	c.id = id_make(RDMA_PS_TCP);
	for (uint32_t event = 0; event < 32; event++) {
		const bool known = event == EVENT_USER || event == EVENT_INTERNAL;

		c.event = event;
		CHECK(call_write(file, CMD_WRITE_EVENT, &c, sizeof(c), 0) == (known ? 0 : EINVAL));
	}
	for (uint32_t event = EVENT_USER; event <= EVENT_INTERNAL; event++) {
		CHECK(poll(&p, 1, 0) == 1);
		CHECK(!event_get(&e) && e.id == c.id && e.uid == 77 && e.event == event);
		memcpy(&arg, &e.param, sizeof(arg));
		CHECK(e.status == 5 && arg == c.arg);
	}
	CHECK(!poll(&p, 1, 0));
	/* One that nobody takes goes with its id. */
	c.event = EVENT_USER;
	CHECK(!call_write(file, CMD_WRITE_EVENT, &c, sizeof(c), 0));
	destroy = (struct rdma_ucm_destroy_id){.response = (uintptr_t)&destroyed, .id = c.id};
	CHECK(!CALL(DESTROY_ID, destroy, sizeof(destroyed)) && destroyed.events_reported == 2);
	CHECK(!poll(&p, 1, 0));
	CHECK(call_write(file, CMD_WRITE_EVENT, &c, sizeof(c), 0) == ENOENT);
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
	CHECK(!resolve(id, "198.18.0.77"));
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
	CHECK(!a.ibdev_index);
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
	CHECK(a.src_size == sizeof(here) && a.dst_size == sizeof(here)); /* of all zeroes */
	CHECK(a.ibdev_index == UINT32_MAX);				 /* there was no room */
	CHECK(!CALL(INIT_QP_ATTR, init, sizeof(attr)));
	CHECK(attr.qp_attr_mask == (1 | 8 | 16 | 32) && attr.port_num == 1 &&
	      !attr.qp_access_flags);
	init.qp_state = 2; /* of which the same is said, as nobody is at the other end */
	CHECK(!CALL(INIT_QP_ATTR, init, sizeof(attr)));
	CHECK(attr.qp_state == 2 && attr.qp_attr_mask == (1 | 8 | 16 | 32));
	init.qp_state = 7;
	CHECK(CALL(INIT_QP_ATTR, init, sizeof(attr)) == EINVAL); /* there is no such state */
	CHECK(!listen_on(id));
	init.qp_state = 1;
	CHECK(CALL(INIT_QP_ATTR, init, sizeof(attr)) == EINVAL);
	id_end(id);
}

/* ---- connections ---- */

/* The next event, which is of that kind and succeeded. */
static struct rdma_ucm_event_resp event_of(uint32_t kind)
{
	struct rdma_ucm_event_resp e;

	CHECK(!event_get(&e));
	CHECK_SAY(e.event == kind && !e.status, "event %u status %d", e.event, (int)e.status);
	return e;
}

struct path {
	struct rdma_ucm_query_path_resp head;
	struct ib_path_rec_data record;
};

static struct path path_query(uint32_t id)
{
	struct path p = {{0}};
	struct rdma_ucm_query q = {
		.response = (uintptr_t)&p, .id = id, .option = RDMA_USER_CM_QUERY_PATH};

	CHECK(!CALL(QUERY, q, sizeof(p)));
	CHECK(p.head.num_paths == 1);
	CHECK(p.record.flags == (IB_PATH_GMP | IB_PATH_PRIMARY | IB_PATH_BIDIRECTIONAL));
	return p;
}

static int path_set(uint32_t id, const void *paths, uint32_t n)
{
	struct rdma_ucm_set_option c = {.optval = (uintptr_t)paths,
					.id = id,
					.level = RDMA_OPTION_IB,
					.optname = RDMA_OPTION_IB_PATH,
					.optlen = n};

	return CALL(SET_OPTION, c, 0);
}

/* An id whose peer is at this address, and whose path is known. */
static uint32_t route_make(struct path *p)
{
	struct rdma_ucm_resolve_route c = {.timeout_ms = 2000};
	const uint32_t id = id_make(RDMA_PS_TCP);

	c.id = id;
	CHECK(!resolve(id, NULL));
	(void)event_of(0);
	CHECK(!CALL(RESOLVE_ROUTE, c, 0));
	(void)event_of(2);
	*p = path_query(id);
	CHECK(CALL(RESOLVE_ROUTE, c, 0) == EINVAL);
	return id;
}

/* A program that knows its path (by ibacm) brings it. */
static void test_paths(void)
{
	struct path p, q;
	struct ib_path_rec_data two[6] = {0};
	uint32_t id = route_make(&p);

	CHECK(path_set(id, &p.record, sizeof(p.record)) == EINVAL); /* it has one */
	id_end(id);
	id = id_make(RDMA_PS_TCP);
	CHECK(path_set(id, &p.record, sizeof(p.record)) == EINVAL); /* no device */
	CHECK(!resolve(id, NULL));
	(void)event_of(0);
	CHECK(path_set(id, &p.record, 0) == EINVAL);
	CHECK(path_set(id, &p.record, sizeof(p.record) - 1) == EINVAL);
	CHECK(path_set(id, BAD, sizeof(p.record)) == EFAULT);
	two[0] = p.record;
	two[0].flags = IB_PATH_GMP | IB_PATH_PRIMARY;
	CHECK(path_set(id, two, sizeof(two[0])) == EINVAL);
	two[5] = p.record;
	CHECK(!path_set(id, two, sizeof(two)));
	(void)event_of(2);
	q = path_query(id);
	CHECK(!memcmp(&p, &q, sizeof(p)));
	id_end(id);
}

/* What enhanced connections ask for comes to the other end, and back. */
static void test_ece(void)
{
	const struct rdma_ucm_conn_param valid = {.valid = 1, .qp_num = 0x123};
	struct rdma_ucm_connect c = {.conn_param = valid, .ece = {0xabcdef, 0x12345678}};
	struct rdma_ucm_accept a = {.uid = 78, .conn_param = valid, .ece = {0x13579b, 0x2468}};
	struct rdma_ucm_event_resp e;
	const uint32_t listener = id_make(RDMA_PS_TCP);
	struct path p;
	uint32_t id;

	CHECK(!bind_to(listener, NULL, 7471) && !listen_on(listener));
	id = route_make(&p);
	c.id = id;
	CHECK(!CALL(CONNECT, c, 0));
	e = event_of(4);
	CHECK(e.uid == 77 && e.ece.vendor_id == 0xabcdef && e.ece.attr_mod == 0x12345678);
	a.id = e.id;
	a.conn_param.qp_num = 0x124;
	CHECK(!CALL(ACCEPT, a, 0));
	e = event_of(5);
	CHECK(e.id == id && e.ece.vendor_id == 0x13579b && e.ece.attr_mod == 0x2468);
	id_end(id);
	id_end(a.id);
	id_end(listener);
}

/* A queue pair has one connection; here one end of it names the other end's number as its own. */
static void test_stale(void)
{
	const struct rdma_ucm_conn_param valid = {.valid = 1, .qp_num = 0x123};
	struct rdma_ucm_connect c = {.conn_param = valid};
	struct rdma_ucm_accept a = {.uid = 78, .conn_param = valid};
	struct rdma_ucm_event_resp e;
	const uint32_t listener = id_make(RDMA_PS_TCP);
	struct path p;

	CHECK(!bind_to(listener, NULL, 7471) && !listen_on(listener));
	c.id = route_make(&p);
	CHECK(!CALL(CONNECT, c, 0));
	e = event_of(4);
	a.id = e.id;
	CHECK(!CALL(ACCEPT, a, 0));
	CHECK(!event_get(&e));
	CHECK_SAY(e.event == 8 && e.id == a.id && e.status == 10, "event %u status %d", e.event,
		  (int)e.status);
	id_end(a.id);
	id_end(c.id);
	id_end(listener);
}

/* A listener of IPv6 takes requests by IPv4, unless it wants none. */
static void test_families(void)
{
	const struct rdma_ucm_conn_param valid = {.valid = 1, .qp_num = 0x123};
	struct rdma_ucm_connect c = {.conn_param = valid};
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(7471)};

	for (uint32_t only = 0; only < 2; only++) {
		const uint32_t listener = id_make(RDMA_PS_TCP);
		struct rdma_ucm_bind b = {.id = listener, .addr_size = sizeof(any)};
		struct rdma_ucm_event_resp e;
		struct path p;

		memcpy(&b.addr, &any, sizeof(any));
		CHECK(!option_set(listener, RDMA_OPTION_ID_AFONLY, &only, 4));
		CHECK(!CALL(BIND, b, 0) && !listen_on(listener));
		c.id = route_make(&p);
		CHECK(!CALL(CONNECT, c, 0));
		CHECK(!event_get(&e));
		if (only)
			CHECK_SAY(e.event == 8 && e.id == c.id && e.status == 28,
				  "event %u status %d", e.event, (int)e.status);
		else
			CHECK_SAY(e.event == 4, "event %u status %d", e.event, (int)e.status);
		if (!only)
			id_end(e.id);
		id_end(c.id);
		id_end(listener);
	}
}

/* Libraries that find no AF_IB use the commands for IP addresses. */
static void test_ip_commands(void)
{
	struct rdma_ucm_query_route_resp r;
	struct rdma_ucm_query q = {.response = (uintptr_t)&r};
	struct rdma_ucm_bind_ip b = {0};
	struct rdma_ucm_resolve_ip a = {.timeout_ms = 2000};
	struct rdma_ucm_resolve_route route = {.timeout_ms = 2000};
	struct sockaddr_in to = here;
	const uint32_t id = id_make(RDMA_PS_TCP);

	q.id = b.id = a.id = route.id = id;
	b.addr.sin6_family = 77;
	CHECK(CALL(BIND_IP, b, 0) == EINVAL);
	memcpy(&b.addr, &here, sizeof(here));
	CHECK(!CALL(BIND_IP, b, 0));
	to.sin_port = htons(7471);
	a.dst_addr.sin6_family = 77;
	CHECK(CALL(RESOLVE_IP, a, 0) == EINVAL);
	memcpy(&a.dst_addr, &to, sizeof(to));
	CHECK(!CALL(RESOLVE_IP, a, 0));
	(void)event_of(0);
	CHECK(!CALL(RESOLVE_ROUTE, route, 0));
	(void)event_of(2);
	CHECK(CALL(QUERY_ROUTE, q, 199) == ENOSPC);
	CHECK(!CALL(QUERY_ROUTE, q, sizeof(r)));
	CHECK(r.node_guid && r.port_num == 1 && r.num_paths == 1);
	CHECK(r.src_addr.sin6_family == AF_INET && !memcmp(&r.dst_addr, &to, 8));
	id_end(id);
}

static void handler(int signo)
{
	(void)signo;
}

/* Whoever waits for an event hears of signals. */
static void test_signals(void)
{
	struct sigaction act = {.sa_handler = handler};
	struct itimerval soon = {.it_value = {.tv_usec = 50000}};
	struct rdma_ucm_event_resp e;

	CHECK(!sigaction(SIGALRM, &act, NULL) && !setitimer(ITIMER_REAL, &soon, NULL));
	CHECK(event_get(&e) == EINTR);
}

/* ---- many programs ---- */

#define CROWD 200u

/* Connects, waits for the other side's end, and ends. */
static void crowd_member(uint32_t number)
{
	struct rdma_ucm_connect c = {.conn_param = {.valid = 1, .qp_num = 0x1000 + number}};
	struct rdma_ucm_accept established = {0};
	struct rdma_ucm_disconnect d;
	struct path p;

	file = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	CHECK(file >= 0);
	c.id = d.id = established.id = route_make(&p);
	CHECK(!CALL(CONNECT, c, 0));
	(void)event_of(5);
	CHECK(!CALL(ACCEPT, established, 0));
	(void)event_of(10);
	CHECK(!CALL(DISCONNECT, d, 0));
	id_end(c.id);
	_exit(0);
}

/* As many programs connect to one listener at once. */
static void test_crowd(void)
{
	const uint32_t listener = id_make(RDMA_PS_TCP);
	struct rdma_ucm_listen l = {.id = listener};
	uint32_t ids[CROWD], requests = 0, ends = 0;

	CHECK(!bind_to(listener, NULL, 7471) && !CALL(LISTEN, l, 0));
	for (uint32_t i = 0; i < CROWD; i++) {
		const pid_t child = fork();

		CHECK(child >= 0);
		if (!child)
			crowd_member(i);
	}
	while (ends < CROWD) {
		struct rdma_ucm_accept a = {.conn_param = {.valid = 1}};
		struct rdma_ucm_event_resp e;
		struct rdma_ucm_disconnect d;

		CHECK(!event_get(&e) && !e.status);
		switch (e.event) {
		case 4:
			CHECK(requests < CROWD);
			ids[requests] = a.id = e.id;
			a.uid = 1 + requests;
			a.conn_param.qp_num = 0x2000 + requests++;
			CHECK(!CALL(ACCEPT, a, 0));
			break;
		case 9:
			CHECK(e.uid && e.uid <= requests && ids[e.uid - 1] == e.id);
			d.id = e.id;
			CHECK(!CALL(DISCONNECT, d, 0));
			break;
		case 10:
			ends++;
			break;
		default:
			CHECK_SAY(e.event == 15, "event %u", e.event);
		}
	}
	for (uint32_t i = 0; i < CROWD; i++) {
		int status;

		id_end(ids[i]);
		CHECK(wait(&status) > 0 && !status);
	}
	id_end(listener);
}

/* ---- groups ---- */

static int join(uint32_t id, const void *address, uint16_t n, uint16_t flags, uint32_t *group)
{
	struct rdma_ucm_create_id_resp r = {UINT32_MAX};
	struct rdma_ucm_join_mcast c = {.response = (uintptr_t)&r,
					.uid = 79,
					.id = id,
					.addr_size = n,
					.join_flags = flags};
	int ret;

	memcpy(&c.addr, address, n);
	ret = CALL(JOIN_MCAST, c, sizeof(r));
	*group = r.id;
	return ret;
}

static uint32_t leave(uint32_t group)
{
	struct rdma_ucm_destroy_id_resp r = {77};
	struct rdma_ucm_destroy_id c = {.response = (uintptr_t)&r, .id = group};

	CHECK(!CALL(LEAVE_MCAST, c, sizeof(r)));
	CHECK(CALL(LEAVE_MCAST, c, sizeof(r)) == ENOENT);
	return r.events_reported;
}

static bool is_infiniband(void)
{
	struct path p;
	const uint32_t id = route_make(&p);
	const uint8_t *record = (const uint8_t *)p.record.path_rec;

	id_end(id);
	return record[47] <= 1; /* a hop limit: no router is on the way */
}

static void test_groups(void)
{
	const bool infiniband = is_infiniband();
	static const uint8_t of_udp[16] = {0xff, 0x12, 0x40, 0x01, 0xff, 0xff, 0, 0,
					   0,	 0,    0,    0,	   0xf,	 1,    2, 3};
	static const uint8_t of_ip[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0,
					  0,	0,    0,    0,	  0xf,	1,    2, 3};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = inet_addr("239.1.2.3")};
	struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	uint32_t id = id_make(RDMA_PS_TCP), other, group, second;
	struct rdma_ucm_event_resp e;

	CHECK(!bind_to(id, NULL, 7475));
	CHECK(join(id, &to, sizeof(to), 0, &group) == EINVAL); /* it has no datagrams */
	id_end(id);
	id = id_make(RDMA_PS_UDP);
	CHECK(join(id, &to, sizeof(to), 0, &group) == EINVAL); /* no device */
	CHECK(!bind_to(id, NULL, 7475));
	CHECK(join(id, &to, sizeof(to), 2, &group) == EINVAL); /* no such flag */
	CHECK(!join(id, &to, sizeof(to), 0, &group));
	e = event_of(12);
	CHECK(e.uid == 79 && e.id == group && e.param.ud.qp_num == 0xffffff);
	CHECK(e.param.ud.qkey == 0x01234567 && e.param.ud.ah_attr.is_global);
	if (infiniband)
		CHECK(e.param.ud.ah_attr.dlid >= 0xc000 &&
		      !memcmp(e.param.ud.ah_attr.grh.dgid, of_udp, 16));
	else
		CHECK(!e.param.ud.ah_attr.dlid && e.param.ud.ah_attr.grh.dgid[12] == 239);
	/* One id may leave while another stays. */
	other = id_make(RDMA_PS_UDP);
	CHECK(!bind_to(other, NULL, 7476) && !join(other, &to, sizeof(to), 0, &second));
	(void)event_of(12);
	CHECK(second != group && leave(group) == 1);
	id_end(id);
	id_end(other);
	if (!infiniband)
		return;
	/* The subnet administration names a group, and one may leave before it has. */
	id = id_make(RDMA_PS_UDP);
	CHECK(!bind_to(id, NULL, 7475) && !join(id, &any, sizeof(any), 0, &group));
	e = event_of(12);
	CHECK(e.param.ud.ah_attr.grh.dgid[2] == 0xa0 && e.param.ud.ah_attr.grh.dgid[3] == 0x1b);
	CHECK(leave(group) == 1);
	CHECK(!join(id, &any, sizeof(any), 0, &group));
	(void)leave(group);
	id_end(id);
	/* A group of IP over InfiniBand has the broadcast group's Q_Key. */
	id = id_make(RDMA_PS_IPOIB);
	CHECK(!bind_to(id, NULL, 7475) && !join(id, &to, sizeof(to), 0, &group));
	e = event_of(12);
	CHECK(e.param.ud.qkey == 0x0b1b && !memcmp(e.param.ud.ah_attr.grh.dgid, of_ip, 16));
	id_end(id);
}

/* A child may not use its parent's file, and opens its own; a file that is closed takes its ids along. */
static void test_fork(void)
{
	uint32_t id = id_make(RDMA_PS_TCP);
	int status, second = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	pid_t child = fork();

	CHECK(child >= 0 && second >= 0);
	if (!child) {
		CHECK(bind_to(id, NULL, 7474) == EACCES);
		CHECK(write(file, &id, 1) == -1 && errno == EACCES);
		file = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
		CHECK(file >= 0);
		CHECK(!bind_to(id_make(RDMA_PS_TCP), NULL, 7474));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	CHECK(!bind_to(id, NULL, 7474));
	id_end(id);
	(void)id_make_in(second, RDMA_PS_TCP);
	close(second);
	if (geteuid())
		return;
	/* Nor may somebody else. */
	CHECK(!setegid(65534));
	CHECK(bind_to(id, NULL, 7474) == EACCES);
	CHECK(!setegid(0));
}

/* A file that this program has not opened takes none of its commands. */
static void foreign_check(int fd)
{
	struct rdma_ucm_create_id c = {.ps = RDMA_PS_TCP};
	struct call whole = {.head = {RDMA_USER_CM_CMD_CREATE_ID, sizeof(c), 4}};
	struct iovec part = {&whole, sizeof(whole.head) + sizeof(c)};

	CHECK(call_write(fd, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), 4) == EACCES);
	memcpy(whole.bytes, &c, sizeof(c));
	CHECK(writev(fd, &part, 1) == -1 && errno == EACCES);
	CHECK(write(fd, &c, 1) == -1 && errno == EACCES);
}

static void foreign(int fd)
{
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control;
	uint8_t byte;
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int sent;

	foreign_check(fd);
	CHECK(recvmsg(0, &m, 0) == 1 && m.msg_controllen >= sizeof(control.head));
	memcpy(&sent, CMSG_DATA(&control.head), sizeof(sent));
	foreign_check(sent);
	/* What is no such file is refused as ever. */
	close(sent);
	CHECK(write(sent, &byte, 1) == -1 && errno == EBADF);
	sent = open("/dev/null", O_RDONLY);
	CHECK(sent >= 0 && write(sent, &byte, 1) == -1 && errno == EBADF);
}

/* Descriptors that come to another program, by execve and by a message. */
static void test_passed_on(void)
{
	const uint32_t id = id_make(RDMA_PS_TCP);
	const int file_again = dup(file);
	union {
		struct cmsghdr head;
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
	} control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
	uint8_t byte = 0;
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int ends[2], status;
	char number[16];
	pid_t child;

	CHECK(file_again >= 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	snprintf(number, sizeof(number), "%d", file_again);
	memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
	CHECK(sendmsg(ends[0], &m, 0) == 1);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		dup2(ends[1], 0);
		execl("/proc/self/exe", "ucma", "foreign", number, NULL);
		_exit(127);
	}
	CHECK_SAY(waitpid(child, &status, 0) == child && !status, "status %#x", status);
	close(ends[0]);
	close(ends[1]);
	/* The owner goes on. */
	CHECK(!bind_to(id, NULL, 7474));
	id_end(id);
	close(file_again);
}

static void member(void)
{
	const struct sockaddr_in to = {.sin_family = AF_INET,
				       .sin_addr.s_addr = inet_addr("239.1.2.3")};
	const uint32_t id = id_make(RDMA_PS_UDP);
	struct rdma_ucm_event_resp e;
	uint32_t group;

	CHECK(!bind_to(id, NULL, 7475) && !join(id, &to, sizeof(to), 0, &group));
	(void)event_of(12);
	puts("joined");
	fflush(stdout);
	CHECK(!event_get(&e));
	CHECK(e.event == 13 && e.uid == 79 && e.id == group && (int)e.status == -ENETRESET);
	CHECK(leave(group) == 2);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {
	{"file", test_file},
	{"ids", test_ids},
	{"addresses and options", test_binding},
	{"events", test_events},
	{"written events", test_written},
	{"queries", test_queries},
	{"paths", test_paths},
	{"enhanced connections", test_ece},
	{"stale connections", test_stale},
	{"families of addresses", test_families},
	{"commands for IP addresses", test_ip_commands},
	{"signals", test_signals},
	{"200 programs", test_crowd},
	{"groups", test_groups},
	{"files that are passed on", test_passed_on},
	/* The last one: Linux takes nothing more of a process whose user has changed. */
	{"children and users", test_fork},
};

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "foreign")) {
		foreign(atoi(argv[2]));
		return 0;
	}
	CHECK(argc == 2 || (argc == 3 && !strcmp(argv[2], "member")));
	here = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = inet_addr(argv[1])};
	file = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);
	CHECK(file >= 0);
	if (argc == 3) {
		member();
		return 0;
	}
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		tests[i].run();
		printf("%s: as expected\n", tests[i].name);
		fflush(stdout);
	}
	return 0;
}
