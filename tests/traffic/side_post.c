/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting a batch, by both programming interfaces of libibverbs. */
#include "side.h"

#include <string.h>

/* The work requests of one call, with their entries. */
struct sges {
	struct ibv_sge list[PLAN_MAX_SGE];
};

static void fill_sges(struct sges *out, const struct op_sge *in, uint32_t count, uint8_t *area,
		      struct ibv_mr *const mr[2])
{
	for (uint32_t i = 0; i < count; i++) {
		out->list[i] = (struct ibv_sge){
			.addr = (uintptr_t)(area + PLAN_GUARD + in[i].offset),
			.length = in[i].length,
			.lkey = mr[in[i].second_key]->lkey,
		};
	}
}

bool side_post_receives(struct traffic_side *side, uint32_t conn)
{
	struct end *end = &side->ends[conn];
	const struct batch *batch = &end->flows[!side->index].batch;

	for (uint32_t i = 0; i < batch->count; i++) {
		const struct op *op = &batch->ops[i];
		struct sges sges;
		struct ibv_recv_wr *bad;
		struct ibv_recv_wr wr = {
			.wr_id = side_wr_id(side, conn, i),
			.sg_list = sges.list,
			.num_sge = (int)op->receives,
		};
		int err;

		if (!op_receives(op->kind))
			continue;
		fill_sges(&sges, op->receive, op->receives, end->target, end->target_mr);
		err = side->srq ? ibv_post_srq_recv(side->srq, &wr, &bad)
				: ibv_post_recv(end->qp, &wr, &bad);
		if (err) {
			side_complain(side, "posting a receive of %u entries: %s", op->receives,
				      strerror(err));
			return false;
		}
	}
	return true;
}

static unsigned op_flags(const struct op *op)
{
	return (op->signaled ? IBV_SEND_SIGNALED : 0u) | (op->inlined ? IBV_SEND_INLINE : 0u) |
	       (op->fenced ? IBV_SEND_FENCE : 0u) | (op->solicited ? IBV_SEND_SOLICITED : 0u);
}

static uint64_t remote_address(const struct end *end, const struct op *op)
{
	return end->peer_target + op->remote;
}

static uint32_t remote_key(const struct end *end, const struct op *op)
{
	return end->peer_rkey[op->remote_second_key];
}

/* ibv_post_send: a list of work requests. */
static int post_list(struct traffic_side *side, uint32_t conn, uint32_t first, uint32_t count)
{
	struct end *end = &side->ends[conn];
	const struct op *ops = end->flows[side->index].batch.ops + first;
	struct ibv_send_wr wrs[PLAN_MAX_BATCH];
	struct sges sges[PLAN_MAX_BATCH];
	struct ibv_send_wr *bad;

	for (uint32_t i = 0; i < count; i++) {
		const struct op *op = &ops[i];
		struct ibv_send_wr *wr = &wrs[i];

		fill_sges(&sges[i], op->local, op->locals, end->initiator, end->initiator_mr);
		*wr = (struct ibv_send_wr){
			.wr_id = side_wr_id(side, conn, first + i),
			.next = i + 1 < count ? wr + 1 : NULL,
			.sg_list = sges[i].list,
			.num_sge = (int)op->locals,
			.opcode = op_wr_opcode(op->kind),
			.send_flags = op_flags(op),
			.imm_data = op->imm,
		};
		if (op->kind == OP_COMPARE_SWAP || op->kind == OP_FETCH_ADD) {
			wr->wr.atomic.remote_addr = remote_address(end, op);
			wr->wr.atomic.rkey = remote_key(end, op);
			wr->wr.atomic.compare_add = op->compare_add;
			wr->wr.atomic.swap = op->swap;
		} else if (end->ah) {
			wr->wr.ud.ah = end->ah;
			wr->wr.ud.remote_qpn = end->peer_qpn;
			wr->wr.ud.remote_qkey = DEVICE_QKEY;
		} else {
			wr->wr.rdma.remote_addr = remote_address(end, op);
			wr->wr.rdma.rkey = remote_key(end, op);
		}
	}
	return ibv_post_send(end->qp, wrs, &bad);
}

static void build_extended(const struct end *end, struct ibv_qp_ex *qp, const struct op *op)
{
	uint64_t address = remote_address(end, op);
	uint32_t key = remote_key(end, op);

	switch (op->kind) {
	case OP_SEND:
		ibv_wr_send(qp);
		break;
	case OP_SEND_IMM:
		ibv_wr_send_imm(qp, op->imm);
		break;
	case OP_WRITE:
		ibv_wr_rdma_write(qp, key, address);
		break;
	case OP_WRITE_IMM:
		ibv_wr_rdma_write_imm(qp, key, address, op->imm);
		break;
	case OP_READ:
		ibv_wr_rdma_read(qp, key, address);
		break;
	case OP_COMPARE_SWAP:
		ibv_wr_atomic_cmp_swp(qp, key, address, op->compare_add, op->swap);
		break;
	case OP_FETCH_ADD:
		ibv_wr_atomic_fetch_add(qp, key, address, op->compare_add);
		break;
	case OP_KINDS:
		break;
	}
}

static void set_data(struct end *end, struct ibv_qp_ex *qp, const struct op *op)
{
	struct sges sges;
	struct ibv_data_buf bufs[PLAN_MAX_SGE];

	fill_sges(&sges, op->local, op->locals, end->initiator, end->initiator_mr);
	if (!op->inlined) {
		ibv_wr_set_sge_list(qp, op->locals, sges.list);
		return;
	}
	for (uint32_t i = 0; i < op->locals; i++) {
		bufs[i].addr = end->initiator + PLAN_GUARD + op->local[i].offset;
		bufs[i].length = op->local[i].length;
	}
	if (op->locals == 1)
		ibv_wr_set_inline_data(qp, bufs[0].addr, bufs[0].length);
	else
		ibv_wr_set_inline_data_list(qp, op->locals, bufs);
}

/* ibv_wr_start, builders and setters, ibv_wr_complete. */
static int post_extended(struct traffic_side *side, uint32_t conn, uint32_t first, uint32_t count)
{
	struct end *end = &side->ends[conn];
	const struct op *ops = end->flows[side->index].batch.ops + first;
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(end->qp);

	ibv_wr_start(qp);
	for (uint32_t i = 0; i < count; i++) {
		qp->wr_id = side_wr_id(side, conn, first + i);
		qp->wr_flags = op_flags(&ops[i]);
		build_extended(end, qp, &ops[i]);
		if (end->ah)
			ibv_wr_set_ud_addr(qp, end->ah, end->peer_qpn, DEVICE_QKEY);
		set_data(end, qp, &ops[i]);
	}
	return ibv_wr_complete(qp);
}

bool side_post_batch(struct traffic_side *side, uint32_t conn)
{
	const struct batch *batch = &side->ends[conn].flows[side->index].batch;

	for (uint32_t i = 0; i < batch->count; i += batch->group[i]) {
		int err = batch->extended[i] ? post_extended(side, conn, i, batch->group[i])
					     : post_list(side, conn, i, batch->group[i]);

		if (err) {
			side_complain(side, "posting %u operations from %u on: %s", batch->group[i],
				      i, strerror(err));
			return false;
		}
	}
	return true;
}
