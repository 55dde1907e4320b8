/* SPDX-License-Identifier: BSD-2-Clause */
/* Drawing random batches and carrying them out on the model; see plan.h. */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	enum ibv_wr_opcode wr;
	enum ibv_wc_opcode wc;
	enum ibv_wc_opcode recv;
	bool receives;
	bool imm;
} op_facts[OP_KINDS] = {
	[OP_SEND] = {"SEND", IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, true, false},
	[OP_SEND_IMM] = {"SEND_IMM", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true, true},
	[OP_WRITE] = {"WRITE", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, false, false},
	[OP_WRITE_IMM] = {"WRITE_IMM", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
			  IBV_WC_RECV_RDMA_WITH_IMM, true, true},
	[OP_READ] = {"READ", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0, false, false},
	[OP_COMPARE_SWAP] = {"COMPARE_SWAP", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 0, false,
			     false},
	[OP_FETCH_ADD] = {"FETCH_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 0, false,
			  false},
};

bool op_receives(enum op_kind kind)
{
	return op_facts[kind].receives;
}

bool op_has_imm(enum op_kind kind)
{
	return op_facts[kind].imm;
}

enum ibv_wc_opcode op_wc_opcode(enum op_kind kind)
{
	return op_facts[kind].wc;
}

enum ibv_wc_opcode op_recv_opcode(enum op_kind kind)
{
	return op_facts[kind].recv;
}

enum ibv_wr_opcode op_wr_opcode(enum op_kind kind)
{
	return op_facts[kind].wr;
}

const char *op_name(enum op_kind kind)
{
	return op_facts[kind].name;
}

static bool is_send(enum op_kind kind)
{
	return kind == OP_SEND || kind == OP_SEND_IMM;
}

static bool is_atomic(enum op_kind kind)
{
	return kind == OP_COMPARE_SWAP || kind == OP_FETCH_ADD;
}

/* Does it bring something back into the initiator's memory? */
static bool op_answers(enum op_kind kind)
{
	return kind == OP_READ || is_atomic(kind);
}

bool flow_open(struct flow *flow, uint64_t seed, const struct plan_limits *limits)
{
	*flow = (struct flow){
		.limits = *limits,
		.rnd = {seed},
		.initiator = malloc(PLAN_BYTES),
		.target = malloc(PLAN_BYTES),
		.bounce = malloc(PLAN_AREA),
	};
	if (!flow->initiator || !flow->target || !flow->bounce) {
		flow_close(flow);
		return false;
	}
	for (uint32_t i = 0; i < PLAN_BYTES; i++) {
		uint64_t r = rnd_next(&flow->rnd);

		flow->initiator[i] = (uint8_t)r;
		flow->target[i] = (uint8_t)(r >> 8);
	}
	return true;
}

void flow_close(struct flow *flow)
{
	free(flow->initiator);
	free(flow->target);
	free(flow->bounce);
	flow->initiator = NULL;
	flow->target = NULL;
	flow->bounce = NULL;
}

void flow_fill(const struct flow *flow, uint8_t *initiator, uint8_t *target)
{
	if (initiator)
		memcpy(initiator, flow->initiator, PLAN_BYTES);
	if (target)
		memcpy(target, flow->target, PLAN_BYTES);
}

/* ---- drawing ---- */

static enum op_kind draw_kind(struct flow *flow)
{
	/* UC knows no READ and no atomics, UD only SEND (IBTA volume 1, table 35). */
	switch (flow->limits.type) {
	case IBV_QPT_UD:
		return rnd_percent(&flow->rnd, 50) ? OP_SEND : OP_SEND_IMM;
	case IBV_QPT_UC:
		return (enum op_kind)rnd_below(&flow->rnd, OP_WRITE_IMM + 1);
	default:
		return (enum op_kind)rnd_below(&flow->rnd, OP_KINDS);
	}
}

/* Sizes gather where code branches: around nothing, cache lines, packets and pages. */
static uint32_t draw_length(struct flow *flow)
{
	uint32_t mtu = flow->limits.mtu;
	uint32_t edges[] = {0,	 1,	  2,   7,	    8,	     9,	   15,
			    16,	 63,	  64,  65,	    mtu - 1, mtu,  mtu + 1,
			    255, mtu * 2, 256, 2 * mtu + 1, 4095,    4096, 4097};
	uint32_t length;

	if (rnd_percent(&flow->rnd, 50)) {
		length = edges[rnd_below(&flow->rnd, sizeof(edges) / sizeof(edges[0]))];
	} else if (rnd_percent(&flow->rnd, 5)) {
		length = flow->limits.max_size;
	} else {
		/* Every power of two is as likely as the next. */
		uint64_t bits = rnd_below(&flow->rnd, 21);

		length = (uint32_t)rnd_below(&flow->rnd, (2ull << bits));
	}
	return length < flow->limits.max_size ? length : flow->limits.max_size;
}

/* Cuts a length into entries that lie apart by small gaps; returns how many. */
static uint32_t draw_sges(struct flow *flow, struct op_sge *sges, uint32_t length, uint32_t max)
{
	struct rnd *rnd = &flow->rnd;
	uint32_t count = rnd_percent(rnd, 40) ? 1 : 1 + (uint32_t)rnd_below(rnd, max);
	uint32_t gaps[PLAN_MAX_SGE];
	uint32_t span = length;
	uint32_t offset;

	if (!length)
		return 0;
	if (count > length)
		count = length;
	for (uint32_t i = 0; i < count; i++) {
		gaps[i] = (uint32_t)rnd_below(rnd, 70);
		span += gaps[i];
	}
	offset = (uint32_t)rnd_below(rnd, PLAN_AREA - span + 1);
	if (rnd_percent(rnd, 30)) /* page-aligned, or at the very end of the registration */
		offset = rnd_percent(rnd, 50) ? offset & ~4095u : PLAN_AREA - span;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t left = count - i - 1;
		/* An entry of length 0 would mean 2 GiB to mlx5: each gets one byte at least. */
		uint32_t most = length - left;
		uint32_t take = left ? 1 + (uint32_t)rnd_below(rnd, most) : length;

		if (left && take > 64 && rnd_percent(rnd, 50))
			take = 1 + take / (left + 1);
		offset += gaps[i];
		sges[i] = (struct op_sge){offset, take, rnd_percent(rnd, 50)};
		offset += take;
		length -= take;
	}
	return count;
}

static bool ranges_overlap(uint32_t a, uint32_t alen, uint32_t b, uint32_t blen)
{
	return alen && blen && a < b + blen && b < a + alen;
}

static bool lists_overlap(const struct op_sge *a, uint32_t na, const struct op_sge *b, uint32_t nb)
{
	for (uint32_t i = 0; i < na; i++) {
		for (uint32_t j = 0; j < nb; j++) {
			if (ranges_overlap(a[i].offset, a[i].length, b[j].offset, b[j].length))
				return true;
		}
	}
	return false;
}

/* Does op touch, on either side, what the earlier READ or atomic touches? */
static bool op_conflicts(const struct op *op, const struct op *earlier)
{
	struct op_sge from = {.offset = earlier->remote, .length = earlier->length};
	struct op_sge to = {.offset = op->remote, .length = op->length};

	if (lists_overlap(op->local, op->locals, earlier->local, earlier->locals))
		return true;
	if (is_send(op->kind))
		return lists_overlap(op->receive, op->receives, &from, 1);
	return lists_overlap(&to, 1, &from, 1);
}

static bool needs_fence(const struct batch *batch, const struct op *op)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		if (op_answers(batch->ops[i].kind) && op_conflicts(op, &batch->ops[i]))
			return true;
	}
	return false;
}

static void draw_atomic(struct flow *flow, struct op *op)
{
	uint64_t now;

	op->length = 8;
	op->locals = 1;
	op->local[0] = (struct op_sge){(uint32_t)rnd_below(&flow->rnd, PLAN_AREA - 8), 8,
				       rnd_percent(&flow->rnd, 50)};
	/* The address must be aligned in memory; areas are registered PLAN_GUARD off a page. */
	op->remote = (uint32_t)rnd_below(&flow->rnd, PLAN_AREA / 8 - 1) * 8 + 8 - PLAN_GUARD % 8;
	memcpy(&now, flow->target + PLAN_GUARD + op->remote, 8);
	op->compare_add = rnd_percent(&flow->rnd, 60) ? now : rnd_next(&flow->rnd);
	op->swap = rnd_next(&flow->rnd);
}

static void draw_data(struct flow *flow, struct op *op)
{
	struct plan_limits *limits = &flow->limits;

	op->length = draw_length(flow);
	op->locals = draw_sges(flow, op->local, op->length, limits->max_sge);
	if (is_send(op->kind)) {
		bool ud = limits->type == IBV_QPT_UD;
		/* A receive may be longer than the message. */
		uint32_t room =
			op->length + (ud ? PLAN_GRH : 0) +
			(rnd_percent(&flow->rnd, 50) ? (uint32_t)rnd_below(&flow->rnd, 100) : 0);

		op->receives = draw_sges(flow, op->receive, room, limits->max_recv_sge);
	} else {
		op->remote = (uint32_t)rnd_below(&flow->rnd, PLAN_AREA - op->length + 1);
		op->remote_second_key = rnd_percent(&flow->rnd, 50);
	}
}

static void draw_op(struct flow *flow, bool last)
{
	struct batch *batch = &flow->batch;
	struct op *op = &batch->ops[batch->count];
	bool fence;

	*op = (struct op){.kind = draw_kind(flow)};
	/*
	 * An unreliable initiator learns nothing about the arrival of its WRITEs, but the target
	 * does by a message behind them.
	 */
	if (last && flow->limits.type == IBV_QPT_UC && !op_receives(op->kind))
		op->kind = OP_SEND;
	if (is_atomic(op->kind))
		draw_atomic(flow, op);
	else
		draw_data(flow, op);

	fence = needs_fence(batch, op);
	/* Inline data is taken when posted, before the fence. */
	op->inlined = !op_answers(op->kind) && !fence && op->length <= flow->limits.max_inline &&
		      rnd_percent(&flow->rnd, 50);
	op->fenced = fence || (flow->limits.type == IBV_QPT_RC && rnd_percent(&flow->rnd, 10));
	op->signaled = last || rnd_percent(&flow->rnd, 50);
	op->solicited = op_receives(op->kind) && rnd_percent(&flow->rnd, 30);
	op->imm = (uint32_t)rnd_next(&flow->rnd);
	batch->count++;
}

/* ---- the model ---- */

/* Copies between a contiguous piece and a list of pieces of an area. */
static void gather_bytes(uint8_t *to, const uint8_t *area, const struct op_sge *sges,
			 uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		memcpy(to, area + PLAN_GUARD + sges[i].offset, sges[i].length);
		to += sges[i].length;
	}
}

static void scatter_bytes(uint8_t *area, const struct op_sge *sges, uint32_t count, uint32_t skip,
			  const uint8_t *from, uint32_t length)
{
	for (uint32_t i = 0; i < count && length; i++) {
		uint32_t off = skip < sges[i].length ? skip : sges[i].length;
		uint32_t room = sges[i].length - off;
		uint32_t n = room < length ? room : length;

		memcpy(area + PLAN_GUARD + sges[i].offset + off, from, n);
		skip -= off;
		from += n;
		length -= n;
	}
}

static void model_op(struct flow *flow, const struct op *op)
{
	uint8_t *bounce = flow->bounce;
	uint8_t *remote = flow->target + PLAN_GUARD + op->remote;
	uint64_t old;

	switch (op->kind) {
	case OP_SEND:
	case OP_SEND_IMM:
		gather_bytes(bounce, flow->initiator, op->local, op->locals);
		scatter_bytes(flow->target, op->receive, op->receives,
			      flow->limits.type == IBV_QPT_UD ? PLAN_GRH : 0, bounce, op->length);
		break;
	case OP_WRITE:
	case OP_WRITE_IMM:
		gather_bytes(bounce, flow->initiator, op->local, op->locals);
		memcpy(remote, bounce, op->length);
		break;
	case OP_READ:
		scatter_bytes(flow->initiator, op->local, op->locals, 0, remote, op->length);
		break;
	case OP_COMPARE_SWAP:
	case OP_FETCH_ADD:
		memcpy(&old, remote, 8);
		scatter_bytes(flow->initiator, op->local, op->locals, 0, (const uint8_t *)&old, 8);
		if (op->kind == OP_FETCH_ADD) {
			old += op->compare_add;
			memcpy(remote, &old, 8);
		} else if (old == op->compare_add) {
			memcpy(remote, &op->swap, 8);
		}
		break;
	case OP_KINDS:
		break;
	}
}

void flow_next(struct flow *flow)
{
	struct batch *batch = &flow->batch;
	uint32_t count = 1 + (uint32_t)rnd_below(&flow->rnd, flow->limits.max_batch);

	batch->count = 0;
	batch->late_receive = flow->limits.type == IBV_QPT_RC && rnd_percent(&flow->rnd, 10);
	for (uint32_t i = 0; i < count; i++) {
		draw_op(flow, i + 1 == count);
		/* At once: a later atomic compares with what is there by then. */
		model_op(flow, &batch->ops[i]);
	}
	for (uint32_t i = 0; i < count;) {
		uint32_t group = 1 + (uint32_t)rnd_below(&flow->rnd, 8);

		batch->group[i] = group < count - i ? group : count - i;
		batch->extended[i] = rnd_percent(&flow->rnd, 50);
		i += batch->group[i];
	}
}
