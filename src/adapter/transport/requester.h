/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester: reads the send ring and makes request packets. */
#pragma once

#include "adapter/qp/qp.h"
#include "base/trace.h"

/* Outstanding PSNs take less than half of the space, because old and new ones look alike beyond
 * that. */
#define PSN_WINDOW ((int32_t)(IB_PSN_MASK + 1) / 2)

static inline bool psns_left(const struct qp *qp, uint32_t npkts)
{
	return psn_diff(qp->req.psn, atomic_load(&qp->comp.acked_psn)) + (int32_t)npkts <
	       PSN_WINDOW;
}

/*
 * Notes the next request of the ring as outstanding.  The caller holds sq.  It stores field by
 * field: a structure that is put together first is copied with wider loads than the stores that
 * filled it, and those loads wait until earlier stores, into a channel, have got their cache line.
 */
static inline void requester_append(struct qp *qp, uint8_t opcode, uint32_t nblocks, uint8_t ce,
				    bool awaits_answer, uint32_t npkts, uint32_t len)
{
	uint32_t tail = atomic_load_explicit(&qp->req.tail, memory_order_relaxed);
	struct send_op *op = qp_send_op(qp, tail);

	trace(wqe, taken, qp->qpn, (uint16_t)qp->req.next_block, wqe_opcode_name(opcode), len);
	op->block = (uint16_t)qp->req.next_block;
	op->opcode = opcode;
	op->nblocks = (uint8_t)nblocks;
	op->ce = ce;
	op->awaits_answer = awaits_answer;
	atomic_store_explicit(&op->done, false, memory_order_relaxed);
	op->syndrome = 0;
	op->vendor_err = 0;
	op->asked = false;
	op->offered = false;
	op->injected = false;
	op->first_psn = qp->req.psn;
	op->npkts = npkts;
	op->len = len;
	atomic_store_explicit(&op->read_bytes, 0, memory_order_relaxed);
	qp->req.psn = psn_add(qp->req.psn, npkts);
	qp->req.next_block += nblocks;
	if (atomic_load_explicit(&qp->comp.head, memory_order_relaxed) == tail)
		atomic_store_explicit(&qp->comp.fresh, true, memory_order_relaxed);
	atomic_store_explicit(&qp->req.tail, tail + 1, memory_order_release);
}

/* Runs the requester here unless another thread runs it.  The caller holds no other lock and is a
 * reader. */
void qp_run(struct qp *qp);
/* Runs the requester.  The caller holds the baton. */
void requester_run(struct qp *qp);
