// SPDX-License-Identifier: BSD-2-Clause
/*
 * abuse UVERBS-FILE: malformed ioctl and write calls on a device file, each with the errno that
 * the kernel gives; then a while of random ones.  Afterwards a well-formed call works.  Prints a
 * line per call that is answered otherwise.
 */
#include "abuse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "random.h"

#define MLX5_UHW_BYTES 32

int fd, failures;
uint8_t *nowhere;

void expect(const char *what, long ret, int want)
{
	int got = ret < 0 ? errno : 0;

	if (got == want)
		return;
	failures++;
	printf("wrong: %s: %s, expected %s\n", what, got ? strerrorname_np(got) : "success",
	       want ? strerrorname_np(want) : "success");
}

struct call call(uint16_t object, uint16_t method, uint16_t n)
{
	return (struct call){.hdr = {.length = (uint16_t)(sizeof(struct ib_uverbs_ioctl_hdr) +
							  n * sizeof(struct ib_uverbs_attr)),
				     .object_id = object,
				     .method_id = method,
				     .num_attrs = n,
				     .driver_id = RDMA_DRIVER_MLX5}};
}

void attr(struct call *c, unsigned i, uint16_t id, uint16_t len, const void *data)
{
	c->attrs[i] = (struct ib_uverbs_attr){.attr_id = id,
					      .len = len,
					      .flags = UVERBS_ATTR_F_MANDATORY,
					      .data = (uintptr_t)data};
}

void attr_value(struct call *c, unsigned i, uint16_t id, uint16_t len, uint64_t value)
{
	attr(c, i, id, len, NULL);
	c->attrs[i].data = value;
}

void expect_call(const char *what, struct call *c, int want)
{
	expect(what, ioctl(fd, RDMA_VERBS_IOCTL, c), want);
}

static void query_port(const char *what, uint64_t port, uint16_t id, void *resp, uint16_t len,
		       int want)
{
	struct call c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 2);

	attr_value(&c, 0, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, port);
	attr(&c, 1, id, len, resp);
	expect_call(what, &c, want);
}

static void bad_headers(void)
{
	struct call c;

	expect("another request", ioctl(fd, RDMA_VERBS_IOCTL + 1, &c), ENOTTY);
	expect("no header", ioctl(fd, RDMA_VERBS_IOCTL, NULL), EFAULT);
	expect("header nowhere", ioctl(fd, RDMA_VERBS_IOCTL, nowhere), EFAULT);
	/* The last bytes of a page: the attributes are not there. */
	c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 1);
	memcpy(nowhere - sizeof(c.hdr), &c.hdr, sizeof(c.hdr));
	expect("attributes nowhere", ioctl(fd, RDMA_VERBS_IOCTL, nowhere - sizeof(c.hdr)), EFAULT);
	c.hdr.length++;
	expect_call("length of no whole attribute", &c, EINVAL);
	c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 1);
	c.hdr.num_attrs = UINT16_MAX;
	expect_call("65535 attributes", &c, EINVAL);
	c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 0);
	c.hdr.reserved1 = 1;
	expect_call("reserved field", &c, EPROTONOSUPPORT);
	c = call(0x0fff, 0, 0);
	expect_call("unknown object", &c, EPROTONOSUPPORT);
	c = call(UVERBS_OBJECT_DEVICE, 0x0fff, 0);
	expect_call("unknown method", &c, EPROTONOSUPPORT);
	c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 0);
	c.hdr.driver_id = RDMA_DRIVER_MLX4;
	expect_call("another driver", &c, EINVAL);
}

static void get_context(void)
{
	struct call c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, 2);
	/* Longer than struct mlx5_ib_alloc_ucontext_req_v2, with bytes behind it that no kernel
	 * looks at: CQE version 1, 4K UARs, dynamic UARs. */
	uint32_t uhw[MLX5_UHW_BYTES / 4 + 1] = {16, 4, 0, 0, [4] = 1, [6] = 3, [8] = 1};
	uint8_t resp[72];

	attr(&c, 0, UVERBS_ATTR_UHW_IN, 12, uhw);
	attr(&c, 1, UVERBS_ATTR_UHW_OUT, sizeof(resp), resp);
	expect_call("GET_CONTEXT with neither an old nor a new struct", &c, EINVAL);
	c.attrs[0].len = sizeof(uhw);
	uhw[2] = 1u << 31;
	expect_call("GET_CONTEXT with an unknown flag", &c, EOPNOTSUPP);
	uhw[2] = 0;
	uhw[3] = 1;
	expect_call("GET_CONTEXT with an unknown mask", &c, EOPNOTSUPP);
	uhw[3] = 0;
	expect_call("GET_CONTEXT", &c, 0);
	expect_call("GET_CONTEXT again", &c, EINVAL);
}

static void bad_attributes(void)
{
	uint8_t resp[48];
	struct call c;

	query_port("good", 1, UVERBS_ATTR_QUERY_PORT_RESP, resp, sizeof(resp), 0);
	query_port("port 0", 0, UVERBS_ATTR_QUERY_PORT_RESP, resp, sizeof(resp), EINVAL);
	query_port("port 2", 2, UVERBS_ATTR_QUERY_PORT_RESP, resp, sizeof(resp), EINVAL);
	query_port("unknown attribute", 1, 0x0ff0, resp, sizeof(resp), EPROTONOSUPPORT);
	query_port("answer too small", 1, UVERBS_ATTR_QUERY_PORT_RESP, resp, 1, EINVAL);
	query_port("answer nowhere", 1, UVERBS_ATTR_QUERY_PORT_RESP, nowhere, sizeof(resp), EFAULT);
	query_port("answer half there", 1, UVERBS_ATTR_QUERY_PORT_RESP, nowhere - 8, sizeof(resp),
		   EFAULT);
	c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 1);
	attr_value(&c, 0, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	expect_call("attribute missing", &c, EINVAL);
	c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 2);
	attr_value(&c, 0, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	c.attrs[1] = c.attrs[0];
	expect_call("attribute twice", &c, EINVAL);
	c = call(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, 1);
	attr(&c, 0, UVERBS_ATTR_DESTROY_PD_HANDLE, 0, NULL);
	c.attrs[0].data = 12345;
	expect_call("unknown handle", &c, ENOENT);
	c.attrs[0].data = UINT64_MAX;
	expect_call("negative handle", &c, EINVAL);
	c.attrs[0].data = INT64_MAX;
	expect_call("huge handle", &c, ENOENT);
	c.attrs[0].len = 8;
	expect_call("handle with a length", &c, EINVAL);
}

void expect_write(const char *what, struct message *m, size_t body, int want)
{
	m->hdr.in_words = (uint16_t)((sizeof(m->hdr) + body) / 4);
	expect(what, write(fd, m, sizeof(m->hdr) + body), want);
}

static void bad_commands(void)
{
	uint32_t resp[2] = {0};
	struct message m = {.hdr = {.command = IB_USER_VERBS_CMD_ALLOC_PD, .out_words = 2},
			    .alloc_pd = {.response = (uintptr_t)resp}};
	uint32_t pd;

	expect("nothing", write(fd, &m, 0), EINVAL);
	expect("half a header", write(fd, &m, 4), EINVAL);
	expect("a message nowhere", write(fd, nowhere, 64), EFAULT);
	m.hdr.in_words = 1000;
	expect("another length", write(fd, &m, sizeof(m.hdr) + sizeof(m.alloc_pd)), EINVAL);
	expect_write("ALLOC_PD", &m, sizeof(m.alloc_pd), 0);
	pd = resp[0];
	m.alloc_pd.response = (uintptr_t)nowhere;
	expect_write("response nowhere", &m, sizeof(m.alloc_pd), EFAULT);
	m.hdr.command = 0x7f;
	expect_write("unknown command", &m, 8, EOPNOTSUPP);
	m.hdr.command = IB_USER_VERBS_CMD_REG_MR;
	m.hdr.out_words = 3;
	m.reg_mr = (struct ib_uverbs_reg_mr){.response = (uintptr_t)resp,
					     .start = (uintptr_t)nowhere,
					     .length = 4096,
					     .hca_va = (uintptr_t)nowhere,
					     .pd_handle = pd};
	expect_write("memory nowhere", &m, sizeof(m.reg_mr), EFAULT);
	m.reg_mr.length = UINT64_MAX;
	expect_write("memory that wraps", &m, sizeof(m.reg_mr), EINVAL);
	m.hdr.command = IB_USER_VERBS_CMD_DEALLOC_PD;
	m.hdr.out_words = 0;
	m.dealloc_pd = (struct ib_uverbs_dealloc_pd){.pd_handle = pd};
	expect_write("DEALLOC_PD", &m, sizeof(m.dealloc_pd), 0);
	expect_write("DEALLOC_PD again", &m, sizeof(m.dealloc_pd), ENOENT);
}

/* Addresses are a few good and bad ones; the rest is whatever comes. */
static void random_calls(uint64_t seed, unsigned n)
{
	struct rnd r = {seed};
	const uint64_t places[] = {(uintptr_t)nowhere - 4096, (uintptr_t)nowhere - 8,
				   (uintptr_t)nowhere, 0, 1ull << 63};

	for (unsigned i = 0; i < n; i++) {
		struct call c = call((uint16_t)rnd_below(&r, 20), (uint16_t)rnd_below(&r, 12),
				     (uint16_t)rnd_below(&r, ATTRS / 2 + 1));
		struct message m = {.hdr = {.command = (uint32_t)rnd_below(&r, 60),
					    .out_words = (uint16_t)rnd_below(&r, 64)}};

		if (rnd_below(&r, 4) == 0)
			c.hdr.object_id |= 0x1000;
		for (unsigned a = 0; a < c.hdr.num_attrs; a++)
			c.attrs[a] = (struct ib_uverbs_attr){
				.attr_id = (uint16_t)(rnd_below(&r, 16) |
						      (rnd_below(&r, 4) ? 0 : 0x1000)),
				.len = (uint16_t)rnd_below(&r, 200),
				.flags = (uint16_t)rnd_below(&r, 2),
				.data = places[rnd_below(&r, 5)]};
		(void)ioctl(fd, RDMA_VERBS_IOCTL, &c);
		for (unsigned at = 0; at < sizeof(m.bytes); at += 8)
			memcpy(m.bytes + at,
			       &(uint64_t){rnd_below(&r, 2) ? rnd_below(&r, 16)
							    : places[rnd_below(&r, 5)]},
			       8);
		/* GET_CONTEXT and completion channels make descriptors that we would have to
		 * close. */
		if (m.hdr.command == IB_USER_VERBS_CMD_GET_CONTEXT ||
		    m.hdr.command == IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL)
			continue;
		m.hdr.in_words = (uint16_t)(2 + rnd_below(&r, 60));
		(void)!write(fd, &m, m.hdr.in_words * 4u);
	}
}

int main(int argc, char **argv)
{
	uint8_t *pages =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct call early = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, 0);

	if (argc != 2 || pages == MAP_FAILED || mprotect(pages + 4096, 4096, PROT_NONE)) {
		fprintf(stderr, "usage: abuse UVERBS-FILE\n");
		return 2;
	}
	nowhere = pages + 4096;
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		perror(argv[1]);
		return 2;
	}
	bad_headers();
	expect_call("a query without context", &early, EINVAL);
	abuse_before_context();
	get_context();
	bad_attributes();
	bad_commands();
	abuse_ioctl();
	abuse_write();
	random_calls(1, 20000);
	query_port("good, after all", 1, UVERBS_ATTR_QUERY_PORT_RESP, (uint8_t[48]){0}, 48, 0);
	close(fd);
	return failures != 0;
}
