/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The plan of the data checker and its reference model.
 *
 * A flow is one direction of one connection: an initiator that posts operations and a target that
 * they act on, each with an area of memory.  Both sides of the test draw the same plan from the
 * same seed and carry it out, with plain memcpy, on copies of both areas.  What the adapter leaves
 * in the real areas must be equal to the copies in every byte, those that no operation names
 * included.
 *
 *   initiator                                   target
 *   +------------------------+                  +------------------------+
 *   | guard | registered     | -- SEND/WRITE -> | guard | registered     |
 *   |       | area   | guard | <- READ/atomic - |       | area   | guard |
 *   +------------------------+                  +------------------------+
 *
 * The model relies only on the order that the specification promises (IBTA volume 1, 10.8.3.3): an
 * operation that touches what an earlier READ or atomic of the same batch touches is fenced.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "random.h"

/* Not multiples of anything: registrations begin and end in the middle of a page. */
#define PLAN_GUARD 4099u
#define PLAN_AREA  (2u << 20)
#define PLAN_BYTES (2 * PLAN_GUARD + PLAN_AREA)

#define PLAN_MAX_SGE   32u
#define PLAN_MAX_BATCH 24u
#define PLAN_GRH       40u

enum op_kind {
	OP_SEND,
	OP_SEND_IMM,
	OP_WRITE,
	OP_WRITE_IMM,
	OP_READ,
	OP_COMPARE_SWAP,
	OP_FETCH_ADD,
	OP_KINDS,
};

/* Offsets count from the first byte of the registered area. */
struct op_sge {
	uint32_t offset;
	uint32_t length;
	bool second_key; /* through the second registration of the same memory */
};

struct op {
	enum op_kind kind;
	uint32_t length;
	struct op_sge local[PLAN_MAX_SGE];
	uint32_t locals;
	uint32_t remote; /* offset in the target's area; WRITE, READ, atomics */
	bool remote_second_key;
	struct op_sge receive[PLAN_MAX_SGE]; /* where the target receives; SEND */
	uint32_t receives;
	uint64_t compare_add;
	uint64_t swap;
	uint32_t imm; /* in network order */
	bool signaled;
	bool inlined;
	bool fenced;
	bool solicited;
};

struct batch {
	struct op ops[PLAN_MAX_BATCH];
	uint32_t count;
	uint32_t group[PLAN_MAX_BATCH]; /* operations posted by one call, from this one on */
	bool extended[PLAN_MAX_BATCH];	/* ... through ibv_wr_* rather than ibv_post_send */
	bool late_receive; /* the target posts its receives after the initiator began */
};

struct plan_limits {
	enum ibv_qp_type type;
	uint32_t max_size;
	uint32_t mtu;
	uint32_t max_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	uint32_t max_batch;
};

struct flow {
	struct plan_limits limits;
	struct rnd rnd;
	uint8_t *initiator; /* model: PLAN_BYTES each */
	uint8_t *target;
	uint8_t *bounce; /* a message between gather and scatter */
	struct batch batch;
};

bool flow_open(struct flow *flow, uint64_t seed, const struct plan_limits *limits);
void flow_close(struct flow *flow);

/* What the real areas must hold before the first batch. */
void flow_fill(const struct flow *flow, uint8_t *initiator, uint8_t *target);

/* Draws the next batch into flow->batch and carries it out on the model. */
void flow_next(struct flow *flow);

/* Does this kind consume a receive at the target? */
bool op_receives(enum op_kind kind);
/* Opcodes of the completions, and of the work request. */
enum ibv_wc_opcode op_wc_opcode(enum op_kind kind);
enum ibv_wc_opcode op_recv_opcode(enum op_kind kind);
enum ibv_wr_opcode op_wr_opcode(enum op_kind kind);
const char *op_name(enum op_kind kind);
bool op_has_imm(enum op_kind kind);
