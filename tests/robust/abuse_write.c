// SPDX-License-Identifier: BSD-2-Clause
/* Commands by write: lengths, fields and masks that this kernel does not know. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "abuse.h"

#define EXTENDED(number) (IB_USER_VERBS_EX_CMD_##number | IB_USER_VERBS_CMD_FLAG_EXTENDED)

struct ex_message {
	struct ib_uverbs_cmd_hdr hdr;
	struct ib_uverbs_ex_cmd_hdr ex;
	uint8_t body[256];
};

static uint8_t response[256];

static struct ex_message ex_message(uint32_t command, size_t core)
{
	return (struct ex_message){
		.hdr = {.command = command,
			.in_words = (uint16_t)(core / 8),
			.out_words = sizeof(response) / 8},
		.ex = {.response = (uintptr_t)response},
	};
}

static void expect_ex(const char *what, const struct ex_message *m, size_t body, int want)
{
	expect(what, write(fd, m, sizeof(m->hdr) + sizeof(m->ex) + body), want);
}

static void unknown_commands(void)
{
	struct message m = {.hdr = {.command = IB_USER_VERBS_CMD_POLL_CQ}};
	struct ex_message e = ex_message(EXTENDED(QUERY_DEVICE), 8);

	expect_write("a command that no device has", &m, 8, EOPNOTSUPP);
	expect("such a command of another length", write(fd, &m, 12), EINVAL);
	m.hdr.command = IB_USER_VERBS_CMD_OPEN_QP + 1;
	expect("the first unknown command, of another length", write(fd, &m, 12), EOPNOTSUPP);
	m.hdr.command = IB_USER_VERBS_CMD_ALLOC_PD | 1u << 30;
	expect_write("an unknown flag", &m, sizeof(m.alloc_pd), EINVAL);
	e.hdr.command = (IB_USER_VERBS_EX_CMD_MODIFY_CQ + 1) | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	expect_ex("the first unknown extended command", &e, 8, EOPNOTSUPP);
	e.hdr.command = IB_USER_VERBS_CMD_ALLOC_PD | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	expect_ex("a command that has no extended form", &e, 8, EINVAL);
	e.hdr.in_words = (sizeof(e.hdr) + sizeof(e.ex) + 8) / 4;
	expect_ex("such a command with the length of a plain one", &e, 8, EOPNOTSUPP);
}

static void plain_lengths(void)
{
	uint32_t resp[16] = {0}; /* the kernel writes here */
	struct message m = {.hdr = {.command = IB_USER_VERBS_CMD_ALLOC_PD, .out_words = 0},
			    .alloc_pd = {.response = (uintptr_t)resp}};
	uint32_t pd;

	expect_write("too short an answer", &m, sizeof(m.alloc_pd), ENOSPC);
	m.hdr.out_words = sizeof(resp) / 4;
	expect_write("too short a command", &m, 4, ENOSPC);
	m.bytes[sizeof(m.alloc_pd)] = 1;
	expect_write("ALLOC_PD with a longer private part", &m, sizeof(m.alloc_pd) + 8, 0);
	pd = resp[0];
	m = (struct message){.hdr = {.command = IB_USER_VERBS_CMD_DEALLOC_PD},
			     .dealloc_pd = {.pd_handle = pd}};
	m.bytes[15] = 1;
	expect_write("a longer command, not zero behind", &m, 16, EOPNOTSUPP);
	m.bytes[15] = 0;
	expect_write("a longer command, zero behind", &m, 16, 0);
}

static void extended_lengths(void)
{
	struct ex_message m = ex_message(EXTENDED(QUERY_DEVICE), 8);

	expect_ex("EX_QUERY_DEVICE", &m, 8, 0);
	expect("half an extended header", write(fd, &m, sizeof(m.hdr) + 8), EINVAL);
	expect_ex("another length", &m, 16, EINVAL);
	m.ex.provider_in_words = 1;
	expect_ex("another length with the private part", &m, 8, EINVAL);
	m = ex_message(EXTENDED(QUERY_DEVICE), 0);
	m.ex.cmd_hdr_reserved = 1;
	expect_ex("too short a command", &m, 0, ENOSPC);
	m = ex_message(EXTENDED(QUERY_DEVICE), 8);
	m.ex.cmd_hdr_reserved = 1;
	expect_ex("the reserved field", &m, 8, EINVAL);
	m = ex_message(EXTENDED(QUERY_DEVICE), 8);
	m.hdr.out_words = 0;
	expect_ex("an answer of no length", &m, 8, EINVAL);
	m.hdr.out_words = 1;
	expect_ex("too short an answer", &m, 8, ENOSPC);
	m.ex.response = 0;
	expect_ex("a length of no answer", &m, 8, EINVAL);
	m.hdr.out_words = 0;
	expect_ex("no answer wanted", &m, 8, 0);
	m = ex_message(EXTENDED(QUERY_DEVICE), 24);
	expect_ex("a longer command, zero behind", &m, 24, 0);
	m.body[23] = 1;
	expect_ex("a longer command, not zero behind", &m, 24, EOPNOTSUPP);
}

/* A field that this kernel does not know, in a command that is zero otherwise. */
static const struct {
	const char *what;
	uint32_t command;
	size_t core, at;
	uint32_t value;
	int want;
} masks[] = {
#define MASK(number, type, field, value_, errno_)                                               \
	{                                                                                       \
#number ": " #field " " #value_, EXTENDED(number),                              \
			(sizeof(struct type) + 7) & ~7ul, offsetof(struct type, field), value_, \
			errno_                                                                  \
	}
	MASK(QUERY_DEVICE, ib_uverbs_ex_query_device, comp_mask, 1, EINVAL),
	MASK(QUERY_DEVICE, ib_uverbs_ex_query_device, reserved, 1, EINVAL),
	MASK(CREATE_CQ, ib_uverbs_ex_create_cq, comp_mask, 1, EINVAL),
	MASK(CREATE_CQ, ib_uverbs_ex_create_cq, reserved, 1, EINVAL),
	MASK(CREATE_QP, ib_uverbs_ex_create_qp, comp_mask, 2, EINVAL),
	MASK(MODIFY_QP, ib_uverbs_ex_modify_qp, base.attr_mask, 1u << 31, EOPNOTSUPP),
	MASK(CREATE_FLOW, ib_uverbs_create_flow, comp_mask, 1, EINVAL),
	MASK(DESTROY_FLOW, ib_uverbs_destroy_flow, comp_mask, 1, EINVAL),
	MASK(CREATE_WQ, ib_uverbs_ex_create_wq, comp_mask, 1, EOPNOTSUPP),
	MASK(MODIFY_WQ, ib_uverbs_ex_modify_wq, attr_mask, 0, EINVAL),
	MASK(MODIFY_WQ, ib_uverbs_ex_modify_wq, attr_mask, 8, EINVAL),
	MASK(DESTROY_WQ, ib_uverbs_ex_destroy_wq, comp_mask, 1, EOPNOTSUPP),
	MASK(CREATE_RWQ_IND_TBL, ib_uverbs_ex_create_rwq_ind_table, comp_mask, 1, EOPNOTSUPP),
	MASK(DESTROY_RWQ_IND_TBL, ib_uverbs_ex_destroy_rwq_ind_table, comp_mask, 1, EOPNOTSUPP),
	MASK(MODIFY_CQ, ib_uverbs_ex_modify_cq, attr_mask, 0, EINVAL),
	MASK(MODIFY_CQ, ib_uverbs_ex_modify_cq, attr_mask, 2, EOPNOTSUPP),
	MASK(MODIFY_CQ, ib_uverbs_ex_modify_cq, reserved, 1, EINVAL),
#undef MASK
};

static void unknown_masks(void)
{
	for (size_t i = 0; i < sizeof(masks) / sizeof(masks[0]); i++) {
		struct ex_message m = ex_message(masks[i].command, masks[i].core);

		memcpy(m.body + masks[i].at, &masks[i].value, sizeof(masks[i].value));
		expect_ex(masks[i].what, &m, masks[i].core, masks[i].want);
	}
}

void abuse_write(void)
{
	unknown_commands();
	plain_lengths();
	extended_lengths();
	unknown_masks();
}
