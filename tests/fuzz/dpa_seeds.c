// SPDX-License-Identifier: BSD-2-Clause
/* Seeds of the dpa target: the life of a process with one of everything, and the same across contexts. */
#include "dpa_input.h"
#include "prm/cmd_dpa.h"
#include "prm/wqe.h"

static void put_step(struct seed *s, enum dpa_step step, uint32_t context, uint32_t what)
{
	put_u8(s, step);
	put_u8(s, context);
	put_u8(s, what);
}

static void put_length(struct seed *s, uint32_t length)
{
	put_u16(s, length);
	put_u8(s, 0);
}

static void put_create(struct seed *s, uint32_t context, enum dpa_kind kind, uint32_t second)
{
	put_step(s, STEP_CREATE, context, kind);
	put_u8(s, 0);
	put_u8(s, second);
	put_length(s, 0);
}

static void put_general(struct seed *s, uint32_t context, enum dpa_op op, uint32_t function,
			uint32_t memory, uint32_t length)
{
	put_step(s, STEP_GENERAL, context, op);
	put_u8(s, 0);
	put_u8(s, function);
	put_u8(s, memory);
	put_u8(s, 0);
	put_u16(s, 0);
	put_length(s, length);
}

static void put_everything(struct seed *s, uint32_t owner, uint32_t other)
{
	put_create(s, owner, KIND_PROCESS, 0);
	put_create(s, owner, KIND_PD, 0);
	put_create(s, other, KIND_DUAR, 0);
	put_create(s, owner, KIND_STREAM, 0x40);
	put_create(s, owner, KIND_STREAM, 0x43);
	put_create(s, owner, KIND_WINDOW, 0);
	put_create(s, owner, KIND_CMDQ, 0x80);
	put_create(s, owner, KIND_THREAD, 4);
	put_create(s, owner, KIND_OUTBOX, 0);
	for (unsigned i = 0; i < 3; i++)
		put_general(s, owner, DPA_OP_ALLOC, 0, 200, 0);
	put_create(s, owner, KIND_MKEY, 0);
	if (other != owner) {
		put_create(s, other, KIND_ALIAS, 0);
		put_create(s, other, KIND_ALIAS, 1);
	}
	put_create(s, other, KIND_CQ, 1);
	put_step(s, STEP_MODIFY, owner, 6);
	put_u8(s, 0);
	put_length(s, 0);
	put_step(s, STEP_COMPLETE, other, 0);
	put_u8(s, 0);
	put_step(s, STEP_READ, owner, 0);
	put_u8(s, 0);
}

static void put_operations(struct seed *s, uint32_t context, uint32_t function)
{
	for (uint32_t op = DPA_OP_STATE; op <= DPA_OP_STREAM_CLOSE; op++)
		put_general(s, context, op, function, 1, 0);
	for (uint32_t op = DPA_OP_CMDQ_ADD; op <= DPA_OP_CMDQ_IS_EMPTY; op++)
		put_general(s, context, op, function, 1, 0);
}

static void put_ring(struct seed *s, uint32_t which)
{
	put_step(s, STEP_RING, 0, which);
	put_u8(s, 0);
	put_u32(s, which);
}

/* A doorbell of the function to a handler's CQ, and one of the two ends after the other. */
static void seed_emulation(struct seed *s)
{
	enum { ETHERNET = 2 };

	put_everything(s, ETHERNET, ETHERNET);
	put_create(s, ETHERNET, KIND_FUNCTION, 0);
	put_create(s, ETHERNET, KIND_DOORBELL, 0);
	put_create(s, ETHERNET, KIND_DOORBELL, 0);
	put_create(s, ETHERNET, KIND_INTERRUPT, 0);
	/* a CQ of the interrupt */
	put_step(s, STEP_CREATE, ETHERNET, KIND_CQ);
	put_u8(s, 0x40);
	put_u8(s, 2);
	put_length(s, 0);
	put_create(s, ETHERNET, KIND_DOORBELL, 1);
	for (uint32_t round = 0; round < 3; round++) {
		put_step(s, STEP_DRIVER, 0, round == 2 ? 0x80 + 2 * round : 0);
		put_u32(s, round);
		put_ring(s, round);
		put_step(s, STEP_COMPLETE, 0, 0);
		put_u8(s, 1);
	}
	put_step(s, STEP_REOPEN, ETHERNET, 0);
	put_ring(s, 1);
	put_end(s, "emulation");
}

/* An event queue in the process's memory, for completions and what else happens, until it is full. */
static void seed_events(struct seed *s)
{
	put_everything(s, 0, 0);
	put_create(s, 0, KIND_EQ, 1);
	put_step(s, STEP_CREATE, 0, KIND_CQ);
	put_u8(s, 0x08);
	put_u8(s, 2);
	put_length(s, 0);
	for (uint32_t i = 0; i < 6; i++) {
		put_step(s, STEP_COMPLETE, 0, 0);
		put_u8(s, 1);
		for (uint32_t bell = 0; i > 2 && bell < 6; bell++)
			put_ring(s, bell);
	}
	put_end(s, "events");
}

static void put_change(struct seed *s, uint32_t context, enum dpa_change change)
{
	put_step(s, STEP_CHANGE, context, change);
	put_u8(s, 0);
	put_length(s, 0);
}

static void put_post(struct seed *s, uint32_t context, uint32_t at, uint32_t queue, uint32_t opcode)
{
	put_step(s, STEP_POST, context, 3); /* the block of the rings */
	put_u8(s, at);
	put_u8(s, queue);
	put_u8(s, opcode);
	put_u8(s, 0x08);
	put_u8(s, 0);
	put_u8(s, 2);
	put_u16(s, 16);
}

/* Queues of each kind in blocks of a page, whose doorbells the DPA rings; then each is destroyed. */
static void seed_queues(struct seed *s, uint32_t owner, const char *name)
{
	enum { RINGS = 3, QUEUE_FIRST = 11 };
	const uint32_t opcodes[] = {WQE_OP_SEND, WQE_OP_RDMA_WRITE, WQE_OP_RDMA_READ, 0x77};

	put_everything(s, owner, owner);
	for (unsigned i = 0; i < 3; i++) {
		put_step(s, STEP_GENERAL, owner, DPA_OP_ALLOC);
		put_u32(s, 0);
		put_u16(s, 0);
		put_u16(s, 0);
		put_u8(s, 1);
		put_u8(s, 7); /* the lower word of how many bytes */
		put_u32(s, 0x100000u /* big-endian: 4096 */);
	}
	put_create(s, owner, KIND_RMP, RINGS + 1);
	put_create(s, owner, KIND_QP, RINGS);
	put_create(s, owner, KIND_TIS, 0);
	put_create(s, owner, KIND_RQ, RINGS + 2);
	put_create(s, owner, KIND_SQ, RINGS);
	put_create(s, owner, KIND_TIR, 0);
	for (uint32_t change = 0; change < CHANGE_COUNT; change++)
		if (change != CHANGE_QP_ERR && change != CHANGE_QP_RST && change != CHANGE_RQ_ERR &&
		    change != CHANGE_RQ_RST && change != CHANGE_SQ_ERR && change != CHANGE_SQ_RST)
			put_change(s, owner, (enum dpa_change)change);
	for (uint32_t i = 0; i < array_size(opcodes); i++) {
		put_post(s, owner, i + 1 /* behind the receives of the queue pair */, 0,
			 opcodes[i]);
		put_step(s, STEP_RING, owner, owner == 2 ? 131 : 5);
		put_u8(s, 1);
		put_u32(s, i + 1);
	}
	for (uint32_t i = 0; i < array_size(opcodes); i++) {
		put_post(s, owner, i, 0x40, opcodes[i]);
		put_step(s, STEP_RING, owner, owner == 2 ? 131 : 5);
		put_u8(s, 0);
		put_u32(s, i + 1);
	}
	put_change(s, owner, CHANGE_QP_ERR);
	put_change(s, owner, CHANGE_RQ_ERR);
	put_change(s, owner, CHANGE_SQ_ERR);
	for (uint32_t handle = QUEUE_FIRST + 8; handle; handle--)
		put_step(s, STEP_DESTROY, owner, handle - 1);
	put_end(s, name);
}

void target_seeds(struct seed *s)
{
	char name[32];

	for (uint32_t function = 0; function < 8; function++) {
		put_everything(s, 0, function % 3);
		put_operations(s, 0, function);
		put_step(s, STEP_REOPEN, 0, 0);
		put_operations(s, 0, function);
		put_step(s, STEP_COMPLETE, 0, 0);
		put_u8(s, 0);
		snprintf(name, sizeof(name), "life-%u", function);
		put_end(s, name);
	}
	/* Each operation at each length of its fixed part. */
	for (uint32_t length = 16; length <= DPA_IN_FIXED + 8; length += 4) {
		put_create(s, 0, KIND_PROCESS, 0);
		for (uint32_t op = DPA_OP_STATE; op <= DPA_OP_STREAM_CLOSE; op++)
			put_general(s, 0, op, 0, 0, length);
		snprintf(name, sizeof(name), "length-%u", length);
		put_end(s, name);
	}
	/* Of a context that has not got them, and gone in every order. */
	put_everything(s, 0, 0);
	put_operations(s, 1, 0);
	for (uint32_t handle = 0; handle < 16; handle++)
		put_step(s, STEP_DESTROY, 0, handle);
	for (uint32_t handle = 16; handle; handle--)
		put_step(s, STEP_DESTROY, 0, handle - 1);
	put_end(s, "other");
	seed_emulation(s);
	seed_events(s);
	seed_queues(s, 0, "queues-infiniband");
	seed_queues(s, 2, "queues-ethernet");
}
