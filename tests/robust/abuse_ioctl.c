// SPDX-License-Identifier: BSD-2-Clause
/*
 * ioctl calls of libraries that know more than this kernel, or other things: which errno says "not
 * here", "not so" and "not yet" is what they find out by.
 */
#include <errno.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <string.h>

#include "abuse.h"

/* Numbers that later kernels gave. */
#define OBJECT_DMAH		(UVERBS_OBJECT_ASYNC_EVENT + 1)
#define OBJECT_COMP_CNTR	(UVERBS_OBJECT_ASYNC_EVENT + 3)
#define METHOD_QUERY_PORT_SPEED (UVERBS_METHOD_QUERY_GID_ENTRY + 1)
#define METHOD_REG_MR		(UVERBS_METHOD_REG_DMABUF_MR + 1)
#define METHOD_DATA_DIRECT	(MLX5_IB_METHOD_QUERY_PORT + 1)

static void unknown_method(const char *what, uint16_t object, uint16_t method)
{
	struct call c = call(object, method, 1);

	attr(&c, 0, 0, UINT16_MAX, nowhere);
	expect_call(what, &c, EPROTONOSUPPORT);
}

static void later_kernels(void)
{
	struct call c = call(OBJECT_DMAH, 0, 1);

	unknown_method("object DMAH", OBJECT_DMAH, 0);
	unknown_method("object COMP_CNTR", OBJECT_COMP_CNTR, 0);
	unknown_method("method QUERY_PORT_SPEED", UVERBS_OBJECT_DEVICE, METHOD_QUERY_PORT_SPEED);
	unknown_method("method REG_MR", UVERBS_OBJECT_MR, METHOD_REG_MR);
	unknown_method("a method of mlx5", UVERBS_OBJECT_DEVICE, METHOD_DATA_DIRECT);
	unknown_method("an object of mlx5", 0x1fff, 0x1000);
	unknown_method("a third name space", 0x2000, 0);
	/* The method is looked for before the attributes are. */
	memcpy(nowhere - sizeof(c.hdr), &c.hdr, sizeof(c.hdr));
	expect("unknown object, attributes nowhere",
	       ioctl(fd, RDMA_VERBS_IOCTL, nowhere - sizeof(c.hdr)), EPROTONOSUPPORT);
}

static struct call query_port(uint16_t n, void *resp, uint16_t len)
{
	struct call c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, n);

	attr_value(&c, 0, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	attr(&c, 1, UVERBS_ATTR_QUERY_PORT_RESP, len, resp);
	return c;
}

static void unknown_attributes(void)
{
	uint8_t resp[48];
	struct call c = query_port(3, resp, sizeof(resp));

	attr(&c, 2, 99, UINT16_MAX, nowhere);
	expect_call("unknown attribute that must be known", &c, EPROTONOSUPPORT);
	c.attrs[2].flags = 0;
	c.attrs[2].attr_data.reserved = 1;
	expect_call("unknown attribute that need not be", &c, 0);
	attr(&c, 2, UVERBS_ATTR_UHW_OUT, 8, resp);
	expect_call("private part that the method has not got", &c, EPROTONOSUPPORT);
	c.attrs[2].flags = 0;
	expect_call("such a part that need not be known", &c, 0);
	attr(&c, 2, 99, 0, NULL);
	c.attrs[0].len = 0;
	expect_call("a bad attribute before an unknown one", &c, EINVAL);
}

static void bad_answers(void)
{
	uint8_t resp[200];
	struct call c = query_port(2, resp, sizeof(resp));

	memset(resp, 0xaa, sizeof(resp));
	expect_call("an answer longer than known", &c, 0);
	expect("its rest is zero", resp[sizeof(resp) - 1] ? (errno = ERANGE, -1) : 0, 0);
	expect("it is marked as written",
	       c.attrs[1].flags & UVERBS_ATTR_F_VALID_OUTPUT ? 0 : (errno = ERANGE, -1), 0);
	c = query_port(2, nowhere - 150, sizeof(resp));
	expect_call("an answer whose rest is nowhere", &c, EFAULT);
	c = query_port(2, resp, sizeof(resp));
	c.attrs[1].attr_data.reserved = 1;
	expect_call("an answer's reserved field", &c, EINVAL);
}

static void bad_numbers(void)
{
	uint8_t resp[48];
	struct call c = query_port(2, resp, sizeof(resp));

	c.attrs[0].len = 4;
	expect_call("a number of 4 bytes", &c, EINVAL);
	c.attrs[0].len = 9;
	expect_call("a number of 9 bytes", &c, EINVAL);
	c = query_port(2, resp, sizeof(resp));
	c.attrs[0].attr_data.reserved = 0x100;
	expect_call("a number's reserved field", &c, EINVAL);
	c.attrs[0] = (struct ib_uverbs_attr){
		.attr_id = UVERBS_ATTR_QUERY_PORT_PORT_NUM, .len = 8, .data = 0x101};
	expect_call("a number of more bits", &c, EINVAL);
	c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, 4);
	attr_value(&c, 0, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 8, 1ull << 32 | 1);
	attr_value(&c, 1, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 8, 0);
	attr_value(&c, 2, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, 0);
	attr(&c, 3, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, 32, resp);
	expect_call("a port of more bits", &c, EINVAL);
	c.attrs[0].data = 1;
	expect_call("a port of its bits", &c, 0);
	c.attrs[1].data = 1ull << 32;
	expect_call("an index of more bits", &c, EINVAL);
}

static void flags_of(const char *what, uint16_t len, uint64_t flags, int want)
{
	uint8_t entries[40 * 32];
	uint64_t n;
	struct call c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, 4);

	attr_value(&c, 0, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, 32);
	attr_value(&c, 1, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, len, flags);
	attr(&c, 2, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, sizeof(entries), entries);
	attr(&c, 3, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8, &n);
	expect_call(what, &c, want);
}

/*
 * How the first of two attributes is taken: the second is unknown, so the first was found good
 * (want 0) if the call is refused for that.
 */
static void expect_first(const char *what, struct call *c, int want)
{
	attr(c, 1, 99, 0, NULL);
	expect_call(what, c, want ? want : EPROTONOSUPPORT);
}

/* Only a struct may be longer than known. */
static void bad_lengths(void)
{
	uint8_t cap[100] = {0};
	struct call c = call(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, 2);

	attr(&c, 0, UVERBS_ATTR_CREATE_QP_CAP, sizeof(cap), cap);
	expect_first("a longer struct, zero behind", &c, 0);
	cap[99] = 1;
	expect_first("a longer struct, not zero behind", &c, EOPNOTSUPP);
	c.attrs[0].attr_data.reserved = 1;
	expect_first("such a struct, and its reserved field", &c, EOPNOTSUPP);
	attr(&c, 0, UVERBS_ATTR_CREATE_QP_CAP, sizeof(cap), nowhere - 50);
	expect_first("a longer struct, half there", &c, EOPNOTSUPP);
	attr(&c, 0, UVERBS_ATTR_CREATE_QP_CAP, 19, cap);
	expect_first("a shorter struct", &c, EINVAL);
	attr_value(&c, 0, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 4, 0);
	expect_first("a shorter word", &c, EINVAL);
	attr(&c, 0, UVERBS_ATTR_CREATE_QP_USER_HANDLE, 16, cap);
	expect_first("a longer word", &c, EINVAL);
	attr(&c, 0, UVERBS_ATTR_UHW_IN, 8, cap);
	expect_first("a private part", &c, 0);
}

static void bad_choices(void)
{
	struct call c = call(MLX5_IB_OBJECT_FLOW_MATCHER, MLX5_IB_METHOD_FLOW_MATCHER_CREATE, 2);

	attr_value(&c, 0, MLX5_IB_ATTR_FLOW_MATCHER_FLOW_TYPE, 0, 0);
	c.attrs[0].attr_data.enum_data.elem_id = MLX5_IB_FLOW_TYPE_MC_DEFAULT + 1;
	c.attrs[0].attr_data.enum_data.reserved = 1;
	expect_first("an unknown choice", &c, EOPNOTSUPP);
	c.attrs[0].attr_data.enum_data.elem_id = MLX5_IB_FLOW_TYPE_MC_DEFAULT;
	expect_first("a choice's reserved field", &c, EINVAL);
	c.attrs[0].attr_data.enum_data.reserved = 0;
	expect_first("a choice", &c, 0);
	c.attrs[0].len = 2;
	expect_first("a choice with data that it has not got", &c, EINVAL);
}

/* Channels and new handles. */
static void bad_objects(void)
{
	struct call c = call(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, 2);

	attr_value(&c, 0, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 0, 0);
	expect_first("a descriptor of something else", &c, EBADF);
	c.attrs[0].data = (uint64_t)fd;
	expect_first("a descriptor of the device", &c, EBADF);
	c.attrs[0].data = 1000000;
	expect_first("no descriptor", &c, EBADF);
	c.attrs[0].data = UINT64_MAX;
	expect_first("descriptor -1", &c, EBADF);
	c.attrs[0].data = 1ull << 32;
	expect_first("a descriptor of more bits", &c, EINVAL);
	c.attrs[0].data = 0;
	c.attrs[0].len = 4;
	expect_first("a descriptor with a length", &c, EINVAL);
	attr_value(&c, 0, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
	expect_first("a new handle", &c, 0);
	c.attrs[0].attr_data.reserved = 1;
	expect_first("a new handle's reserved field", &c, EINVAL);
}

/* Attributes that the method looks up itself. */
static void own_lookups(void)
{
	struct call c = call(UVERBS_OBJECT_DM, UVERBS_METHOD_DM_FREE, 1);

	attr_value(&c, 0, UVERBS_ATTR_FREE_DM_HANDLE, 0, UINT64_MAX);
	expect_call("a negative handle of device memory", &c, EINVAL);
	c.attrs[0].data = 12345;
	expect_call("no handle of device memory", &c, ENOENT);
	c = call(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, 2);
	attr_value(&c, 0, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, 0, 1ull << 32);
	expect_first("an answer channel of more bits", &c, EINVAL);
	c.attrs[0].data = 0;
	expect_first("an answer channel", &c, 0);
}

static void foreign_handles(void)
{
	uint32_t resp[2] = {0};
	struct message m = {.hdr = {.command = IB_USER_VERBS_CMD_ALLOC_PD, .out_words = 2},
			    .alloc_pd = {.response = (uintptr_t)resp}};
	struct call c = call(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, 1);

	expect_write("ALLOC_PD", &m, sizeof(m.alloc_pd), 0);
	attr_value(&c, 0, UVERBS_ATTR_DESTROY_MR_HANDLE, 0, resp[0]);
	expect_call("a handle of another kind", &c, EINVAL);
	c = call(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, 1);
	attr_value(&c, 0, UVERBS_ATTR_DESTROY_PD_HANDLE, 0, resp[0]);
	c.attrs[0].attr_data.reserved = 1;
	expect_call("a handle's reserved field", &c, EINVAL);
	c.attrs[0].attr_data.reserved = 0;
	expect_call("the handle", &c, 0);
	expect_call("the handle again", &c, ENOENT);
}

static void invoke_ioctl(const char *what, uint64_t number, uint16_t in_len, int want)
{
	uint8_t in[64] = {0};
	struct call c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, 2);

	attr_value(&c, 0, UVERBS_ATTR_WRITE_CMD, 8, number);
	attr(&c, 1, UVERBS_ATTR_CORE_IN, in_len, in);
	expect_call(what, &c, want);
}

static void handles_of(const char *what, uint64_t object, uint16_t len, int want)
{
	uint32_t total, list[4];
	struct call c = call(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INFO_HANDLES, 3);

	attr_value(&c, 0, UVERBS_ATTR_INFO_OBJECT_ID, 8, object);
	attr(&c, 1, UVERBS_ATTR_INFO_TOTAL_HANDLES, 4, &total);
	attr(&c, 2, UVERBS_ATTR_INFO_HANDLES_LIST, len, list);
	expect_call(what, &c, want);
}

/* Attributes are looked at before anybody asks for the context. */
void abuse_before_context(void)
{
	uint8_t resp[48];
	struct call c = query_port(2, resp, sizeof(resp));

	expect_call("a good query without context", &c, EINVAL);
	attr(&c, 1, 99, 0, NULL);
	expect_call("an unknown attribute without context", &c, EPROTONOSUPPORT);
	c = call(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, 1);
	attr_value(&c, 0, UVERBS_ATTR_DESTROY_PD_HANDLE, 0, 0);
	expect_call("a handle without context", &c, ENOENT);
	c = call(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, 1);
	attr_value(&c, 0, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
	expect_call("a new handle without context", &c, EINVAL);
}

void abuse_ioctl(void)
{
	later_kernels();
	unknown_attributes();
	bad_answers();
	bad_numbers();
	flags_of("flags of 4 bytes", 4, 0, 0);
	flags_of("flags of 8 bytes", 8, 0, 0);
	flags_of("flags of 6 bytes", 6, 0, EINVAL);
	flags_of("flags of 2 bytes", 2, 0, EINVAL);
	flags_of("an unknown flag", 4, 1, EINVAL);
	flags_of("an unknown flag far up", 8, 1ull << 40, EINVAL);
	bad_lengths();
	bad_choices();
	bad_objects();
	own_lookups();
	foreign_handles();
	invoke_ioctl("an unknown command", 0x7f, 8, EOPNOTSUPP);
	invoke_ioctl("a command that no device has", IB_USER_VERBS_CMD_QUERY_MR, 8, EOPNOTSUPP);
	invoke_ioctl("a command of more bits", 1ull << 32 | IB_USER_VERBS_CMD_DEALLOC_PD, 8,
		     EINVAL);
	invoke_ioctl("a command with unknown flags", 1u << 30, 8, EINVAL);
	invoke_ioctl("a command that is too short", IB_USER_VERBS_CMD_CREATE_SRQ, 4, ENOSPC);
	handles_of("no handles of that kind", UVERBS_OBJECT_PD, 16, 0);
	handles_of("handles of an unknown kind", OBJECT_DMAH, 16, ENOENT);
	handles_of("half a handle", UVERBS_OBJECT_PD, 10, EINVAL);
}
