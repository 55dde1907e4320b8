/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for completions, and checking every field of each: which operations complete, in which
 * order, and what the completion says about them.
 */
#include "side.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#define PATIENCE_NS (20 * 1000000000ull)

/* A completion, however it was polled. */
struct done {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	uint32_t qpn;
	uint32_t bytes;
	uint32_t imm;
	uint32_t src_qp;
	unsigned flags;
};

static int poll_plain(struct ibv_cq *cq, struct done *done)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(cq, 1, &wc);

	if (n == 1) {
		*done = (struct done){
			.wr_id = wc.wr_id,
			.status = wc.status,
			.opcode = wc.opcode,
			.qpn = wc.qp_num,
			.bytes = wc.byte_len,
			.imm = wc.imm_data,
			.src_qp = wc.src_qp,
			.flags = wc.wc_flags,
		};
	}
	return n;
}

static int poll_extended(struct ibv_cq_ex *cq, struct done *done)
{
	struct ibv_poll_cq_attr attr = {0};
	int err = ibv_start_poll(cq, &attr);

	if (err)
		return err == ENOENT ? 0 : -err;
	*done = (struct done){.wr_id = cq->wr_id, .status = cq->status};
	if (done->status == IBV_WC_SUCCESS) {
		done->opcode = ibv_wc_read_opcode(cq);
		done->qpn = ibv_wc_read_qp_num(cq);
		done->bytes = ibv_wc_read_byte_len(cq);
		done->flags = ibv_wc_read_wc_flags(cq);
		if (done->flags & IBV_WC_WITH_IMM)
			done->imm = ibv_wc_read_imm_data(cq);
		done->src_qp = ibv_wc_read_src_qp(cq);
	}
	ibv_end_poll(cq);
	return 1;
}

/* The index of the next operation from 'from' on that completes; count if none does. */
static uint32_t next_signaled(const struct batch *batch, uint32_t from)
{
	while (from < batch->count && !batch->ops[from].signaled)
		from++;
	return from;
}

static uint32_t next_receiving(const struct batch *batch, uint32_t from)
{
	while (from < batch->count && !op_receives(batch->ops[from].kind))
		from++;
	return from;
}

static bool check_common(struct traffic_side *side, const struct done *done, uint32_t conn,
			 uint32_t index, const struct op *op, enum ibv_wc_opcode opcode,
			 const char *what)
{
	uint64_t wr_id = side_wr_id(side, conn, index);

	if (done->status != IBV_WC_SUCCESS) {
		side_complain(side, "%s of %s %u on connection %u (%u bytes): %s", what,
			      op_name(op->kind), index, conn, op->length,
			      ibv_wc_status_str(done->status));
		return false;
	}
	if (done->wr_id != wr_id || done->opcode != opcode ||
	    done->qpn != side->ends[conn].qp->qp_num) {
		side_complain(side,
			      "%s of %s %u on connection %u: wr_id %#lx, expected %#lx; opcode %u, "
			      "expected %u; qp %u, expected %u",
			      what, op_name(op->kind), index, conn, done->wr_id, wr_id,
			      done->opcode, opcode, done->qpn, side->ends[conn].qp->qp_num);
		return false;
	}
	return true;
}

static bool check_sent(struct traffic_side *side, const struct done *done, uint32_t conn)
{
	struct end *end = &side->ends[conn];
	const struct batch *batch = &end->flows[side->index].batch;
	uint32_t index = next_signaled(batch, end->sent);
	const struct op *op = &batch->ops[index];

	if (index == batch->count) {
		side_complain(side, "a send completion too many on connection %u", conn);
		return false;
	}
	end->sent = index + 1;
	if (!check_common(side, done, conn, index, op, op_wc_opcode(op->kind), "completion"))
		return false;
	/* The length is defined where data came back. */
	if ((op->kind == OP_READ || op->kind >= OP_COMPARE_SWAP) && done->bytes != op->length) {
		side_complain(side, "%s %u: %u bytes, expected %u", op_name(op->kind), index,
			      done->bytes, op->length);
		return false;
	}
	return true;
}

static bool check_received(struct traffic_side *side, const struct done *done, uint32_t conn)
{
	struct end *end = &side->ends[conn];
	const struct batch *batch = &end->flows[!side->index].batch;
	uint32_t index = next_receiving(batch, end->received);
	const struct op *op = &batch->ops[index];
	bool ud = side->options->type == IBV_QPT_UD;
	uint32_t bytes;

	if (index == batch->count) {
		side_complain(side, "a receive completion too many on connection %u", conn);
		return false;
	}
	end->received = index + 1;
	if (!check_common(side, done, conn, index, op, op_recv_opcode(op->kind), "receive"))
		return false;
	bytes = op->length + (ud ? PLAN_GRH : 0);
	if (done->bytes != bytes) {
		side_complain(side, "receive of %s %u: %u bytes, expected %u", op_name(op->kind),
			      index, done->bytes, bytes);
		return false;
	}
	if (!!(done->flags & IBV_WC_WITH_IMM) != op_has_imm(op->kind) ||
	    (op_has_imm(op->kind) && done->imm != op->imm)) {
		side_complain(side, "receive of %s %u: flags %#x, immediate %#x, expected %#x",
			      op_name(op->kind), index, done->flags, done->imm, op->imm);
		return false;
	}
	if (ud &&
	    (done->src_qp != end->peer_qpn || !!(done->flags & IBV_WC_GRH) != side->port.global)) {
		side_complain(side, "receive of %s %u: from qp %u, expected %u; flags %#x",
			      op_name(op->kind), index, done->src_qp, end->peer_qpn, done->flags);
		return false;
	}
	return true;
}

/* Takes one completion of either queue: 1 taken, 0 none, -1 wrong. */
static int take_batch(struct traffic_side *side, bool receive)
{
	struct done done = {0};
	bool extended = side->options->extended_cq;
	struct ibv_cq *cq = receive ? side->recv_cq.cq : side->send_cq.cq;
	int n = extended ? poll_extended(receive ? side->recv_cq.ex : side->send_cq.ex, &done)
			 : poll_plain(cq, &done);
	uint32_t conn;

	if (n < 0) {
		side_complain(side, "polling: %d", n);
		return -1;
	}
	if (!n)
		return 0;
	conn = (uint32_t)done.wr_id >> 8;
	if (conn >= side->options->qps) {
		side_complain(side, "a completion with wr_id %#lx, status %s", done.wr_id,
			      ibv_wc_status_str(done.status));
		return -1;
	}
	return (receive ? check_received(side, &done, conn) : check_sent(side, &done, conn)) ? 1
											     : -1;
}

static bool all_there(const struct traffic_side *side)
{
	for (uint32_t i = 0; i < side->options->qps; i++) {
		const struct end *end = &side->ends[i];
		const struct batch *out = &end->flows[side->index].batch;
		const struct batch *in = &end->flows[!side->index].batch;

		if (next_signaled(out, end->sent) < out->count ||
		    next_receiving(in, end->received) < in->count)
			return false;
	}
	return true;
}

/* Sleeps until a completion event comes; the caller has armed the queues and polled once more. */
static bool wait_event(struct traffic_side *side)
{
	struct pollfd fd = {.fd = side->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	/* The end of patience is noticed by the caller. */
	if (poll(&fd, 1, 1000) != 1)
		return true;
	if (ibv_get_cq_event(side->channel, &cq, &context)) {
		side_complain(side, "ibv_get_cq_event: %m");
		return false;
	}
	ibv_ack_cq_events(cq, 1);
	return true;
}

static bool arm_cq(struct traffic_side *side)
{
	if (ibv_req_notify_cq(side->send_cq.cq, 0) || ibv_req_notify_cq(side->recv_cq.cq, 0)) {
		side_complain(side, "ibv_req_notify_cq failed");
		return false;
	}
	return true;
}

static void complain_of_delay(const struct traffic_side *side)
{
	for (uint32_t i = 0; i < side->options->qps; i++) {
		const struct end *end = &side->ends[i];

		side_complain(side,
			      "no completion: connection %u: sent %u of %u, received %u of %u", i,
			      end->sent, end->flows[side->index].batch.count, end->received,
			      end->flows[!side->index].batch.count);
	}
}

bool side_complete(struct traffic_side *side)
{
	uint64_t end = device_now_ns() + PATIENCE_NS;
	bool armed = false;

	for (uint32_t i = 0; i < side->options->qps; i++)
		side->ends[i].sent = side->ends[i].received = 0;
	while (!all_there(side)) {
		int sent = take_batch(side, false);
		int received = take_batch(side, true);

		if (sent < 0 || received < 0)
			return false;
		if (sent || received)
			continue;
		if (device_now_ns() > end) {
			complain_of_delay(side);
			return false;
		}
		if (!side->options->events)
			continue;
		/* Arm, look again, then sleep: what came before the arming raises no event. */
		if (armed ? !wait_event(side) : !arm_cq(side))
			return false;
		armed = !armed;
	}
	return true;
}
