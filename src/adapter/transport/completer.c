// SPDX-License-Identifier: BSD-2-Clause
/*
 * The completer: takes acknowledgements and answers, retires requests in the order in which they
 * were posted.
 *
 * Runs with qp->comp.lock held.  On loopback it runs inside the requester's wire_xmit.
 */
#include "adapter/transport/completer.h"

#include "adapter/bypass/bypass.h"
#include "adapter/qp/flow.h"
#include "adapter/qp/qp_state.h"
#include "adapter/qp/send_cqe.h"
#include "adapter/qp/send_wqe.h"
#include "adapter/signed/transfer.h"
#include "adapter/transport/dc.h"
#include "adapter/transport/path_migration.h"
#include "adapter/transport/explain.h"
#include "base/clock.h"
#include "base/trace.h"
#include "prm/vendor_err.h"
#include "usermem/usermem.h"
#include "wire/counter_shard.h"
#include "wire/payload.h"
#include "wire/short_send.h"

/*
 * Requests that end in error.  Their completions give memory back to the program, so they wait until
 * peers have left it.
 */

/* An error in the send queue of a UC or UD QP stops only the send queue (IBTA 10.3.1). */
static void send_queue_failed(struct qp *qp, const char *why)
{
	uint32_t rts = IB_QPS_RTS;

	if (qp_is_reliable(qp) ||
	    !atomic_compare_exchange_strong(&qp->state, &rts, (uint32_t)IB_QPS_SQE)) {
		qp_fail(qp, why);
		return;
	}
	trace(qp, state, qp->qpn, qp_state_name(IB_QPS_RTS), qp_state_name(IB_QPS_SQE), why);
	expose_object_failed(qp->row, why);
	qp_kick(qp);
}

void completer_withdraw(struct qp *qp)
{
	if (!qp_is_reliable(qp) || atomic_load(&qp->comp.withdrawn))
		return;
	atomic_store(&qp->comp.withdrawn, 1);
	if (wire_withdraw(qp->adapter->wire, qp->attr.dest_qpn, qp->qpn))
		atomic_fetch_add(&qp->comp.given_up, 1);
}

/* True if a peer may be reading what was given up. */
static bool completer_awaits(struct qp *qp)
{
	return unlikely(atomic_load_explicit(&qp->comp.given_up, memory_order_relaxed) !=
			atomic_load_explicit(&qp->comp.waited_for, memory_order_relaxed));
}

/*
 * True if the request stands before the index in memory.  In the error state a device completes only
 * what does, whatever it has fetched and executed before: a program that has written a smaller value
 * by mistake sees no completion, not even that of the failed request.  An index that cannot be read
 * holds nothing back.
 */
static bool before_producer(const struct qp *qp, const struct send_op *op)
{
	uint32_t producer;
	uint16_t ahead;

	if (!usermem_fetch_be32(qp->producer, &producer))
		return true;
	ahead = (uint16_t)(producer - op->block);
	/* An index beyond the ring does not stand behind the request either. */
	return ahead && (ahead <= qp->create.sq_blocks || !(ahead & 0x8000));
}

/* Gives the first outstanding request its own error, if it has failed, and every other one a flush
 * error; all of them were given up before.  False: some are left, which 'up_to_producer' keeps. */
static bool flush_outstanding(struct qp *qp, bool up_to_producer)
{
	uint32_t first = atomic_load(&qp->comp.head);
	uint32_t tail = atomic_load(&qp->req.tail);
	uint32_t n;

	for (n = first; n != tail; n++) {
		struct send_op *op = qp_send_op(qp, n);

		if (up_to_producer && unlikely(!before_producer(qp, op)))
			break;
		if (op->awaits_answer)
			atomic_fetch_sub(&qp->comp.rd_outstanding, 1);
		atomic_store(&qp->comp.head, n + 1);
		/* A request that had ended behind the failed one is flushed like the others (IBTA
		 * 10.3.1). */
		if (n == first && op->done && op->syndrome)
			send_cqe_error(qp, op);
		else
			send_cqe_flush(qp, op);
		atomic_store(&qp->comp.completed, n + 1);
	}
	/* The cause has been told: what is left is flushed, even if it has failed by itself. */
	if (n != tail && n != first)
		qp_send_op(qp, n)->syndrome = 0;
	atomic_store(&qp->waiting, 0);
	timer_disarm(&qp->timer);
	return n == tail;
}

/* True if an error's completion has to wait, because it gives memory back that a peer may still
 * read.  We hold a lock, so the requester waits for the peer and then comes back here. */
static bool error_waits(struct qp *qp)
{
	completer_withdraw(qp);
	if (!completer_awaits(qp))
		return false;
	atomic_store(&qp->comp.resend, true);
	qp_kick(qp);
	return true;
}

/*
 * The first outstanding request has ended in error: takes it, and what stands behind it, to their
 * completions.  Under comp.lock.
 *
 * The completion of a failed request tells the program that the queue pair is in error, so it comes
 * when that is so and peers have left its memory: with the flush (requester_flush).  A DCI that
 * contains the error does not flush, so it waits for them here.
 */
static void completer_failed(struct qp *qp, const struct send_op *op)
{
	enum ib_qp_state state = qp_state(qp);

	if (state == IB_QPS_ERR || state == IB_QPS_SQE || (qp->dci && error_waits(qp)))
		return;
	if (!qp->dci || !dci_contain(qp)) {
		send_queue_failed(qp, cqe_syndrome_name(op->syndrome));
		return;
	}
	(void)flush_outstanding(qp, false);
	/* the requester may be sending one of them just now */
	atomic_store(&qp->comp.resend, true);
	qp_kick(qp);
}

/* True if the first outstanding request has failed and the wait for peers kept it. */
static bool completer_kept(struct qp *qp)
{
	uint32_t head = atomic_load(&qp->comp.head);

	return unlikely(qp->dci) && head != atomic_load(&qp->req.tail) &&
	       qp_send_op(qp, head)->done;
}

static void completer_retire_done(struct qp *qp);

enum completer_settled completer_settle(struct qp *qp)
{
	if (completer_awaits(qp)) {
		if (!qp->req.revocation)
			bypass_revoke_ask(qp);
		if (!bypass_revoke_over(qp) || completer_awaits(qp)) { /* more was given up since */
			qp_kick_later(qp);
			return COMPLETER_WAITS;
		}
	} else if (likely(!completer_kept(qp))) {
		/* A modification that ends the wait tells nobody. */
		return COMPLETER_NOTHING;
	}
	completer_retire_done(qp);
	return COMPLETER_SETTLED;
}

bool completer_give_up(struct qp *qp)
{
	spin_lock(&qp->comp.lock);
	if (atomic_load(&qp->comp.head) != atomic_load(&qp->req.tail))
		completer_withdraw(qp);
	spin_unlock(&qp->comp.lock);
	return completer_settle(qp) != COMPLETER_WAITS;
}

bool completer_flush(struct qp *qp)
{
	bool all;

	spin_lock(&qp->comp.lock);
	/* Queues that are rung by value have no record in memory. */
	all = flush_outstanding(qp, qp_state(qp) == IB_QPS_ERR && !qp->create.region);
	spin_unlock(&qp->comp.lock);
	return all;
}

/* RNR NAK timer codes, in microseconds (IBTA table 45). */
static const uint32_t rnr_us[32] = {
	655360, 10,    20,    30,    40,    60,	    80,	    120,    160,    240,    320,
	480,	640,   960,   1280,  1920,  2560,   3840,   5120,   7680,   10240,  15360,
	20480,	30720, 40960, 61440, 81920, 122880, 163840, 245760, 327680, 491520,
};

#define RNR_RETRY_FOREVER 7

uint32_t rnr_timer_us(uint8_t aeth)
{
	return rnr_us[aeth & AETH_VALUE_MASK];
}

/* Stands for no CQE syndrome: we cannot read the memory from which an answer comes. */
#define SYN_SOURCE_GONE 0xff

static uint32_t last_psn(const struct send_op *op)
{
	return psn_add(op->first_psn, op->npkts - 1);
}

/* The lock is the completer's. */
static void window_grow(struct qp *qp)
{
	int32_t window = atomic_load_explicit(&qp->comp.window, memory_order_relaxed);
	int32_t more = window < qp->comp.window_calm
			       ? WINDOW_ANSWER
			       : (WINDOW_ANSWER * WINDOW_ANSWER - 1) / window + 1;

	if (window < WINDOW_MOST)
		atomic_store_explicit(&qp->comp.window, window + more, memory_order_relaxed);
}

static void completer_retire(struct qp *qp)
{
	uint32_t head = atomic_load_explicit(&qp->comp.head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&qp->req.tail, memory_order_acquire);
	bool answered = false;
	unsigned waiting;

	while (head != tail && qp_send_op(qp, head)->done) {
		struct send_op *op = qp_send_op(qp, head);

		if (unlikely(op->syndrome)) {
			completer_failed(qp, op);
			break;
		}
		if (op->awaits_answer) {
			atomic_fetch_sub(&qp->comp.rd_outstanding, 1);
			answered = true;
		}
		head++;
		atomic_store_explicit(&qp->comp.head, head, memory_order_release);
		if (ce_is_signaled(op->ce))
			send_cqe_success(qp, op);
		else
			trace(wqe, done, qp->qpn, op->block, "SUCCESS");
		atomic_store_explicit(&qp->comp.completed, head, memory_order_release);
	}
	/*
	 * The requester may wait for a read or atomic that has ended.  The subtraction above is the
	 * full barrier between that change and this look at who waits.  A requester that waits for
	 * PSNs notes it under our lock.
	 */
	waiting = atomic_load_explicit(&qp->waiting, memory_order_relaxed);
	if (((answered && waiting & QP_WAIT_READS) || unlikely(waiting & QP_WAIT_PSNS)) &&
	    atomic_fetch_and(&qp->waiting, ~(unsigned)QP_WAIT_ANSWERS) & QP_WAIT_ANSWERS) {
		if (waiting & QP_WAIT_PSNS)
			window_grow(qp);
		qp_kick(qp);
	}
	if (head == tail && unlikely(atomic_load_explicit(&qp->drain_notify, memory_order_relaxed)))
		qp_kick(qp);
}

/*
 * Notes progress: the peer lives.  The running timer stays as it is, because moving it would cost a
 * look at the clock per answer; if it finds the mark when it fires, it runs once more.  So a
 * missing answer is noticed after one to two timeouts (IBTA 9.7.6.1.3 allows up to four).
 */
static void completer_progress(struct qp *qp)
{
	qp->comp.retry_left = qp->attr.retry_cnt;
	qp->comp.rnr_left = qp->attr.rnr_retry;
	atomic_store_explicit(&qp->comp.fresh, true, memory_order_relaxed);
}

static void done_locked(struct qp *qp, uint32_t n, uint8_t syndrome)
{
	struct send_op *op = qp_send_op(qp, n);

	if (unlikely(syndrome) && explaining())
		explain_failed(qp, op, syndrome);
	op->syndrome = syndrome;
	atomic_store_explicit(&op->done, true, memory_order_release);
	completer_retire(qp);
}

void completer_done(struct qp *qp, uint32_t n, uint8_t syndrome)
{
	spin_lock(&qp->comp.lock);
	done_locked(qp, n, syndrome);
	spin_unlock(&qp->comp.lock);
}

/* Retires what is ready, when somebody else has noted the ends of requests (sent_frames_add). */
static void completer_retire_done(struct qp *qp)
{
	spin_lock(&qp->comp.lock);
	completer_retire(qp);
	spin_unlock(&qp->comp.lock);
}

uint32_t completer_oldest(struct qp *qp)
{
	uint32_t n = atomic_load_explicit(&qp->comp.head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&qp->req.tail, memory_order_acquire);

	while (n != tail && (qp_send_op(qp, n)->done || !qp_send_op(qp, n)->npkts))
		n++;
	return n;
}

void completer_go_back(struct qp *qp, const char *why)
{
	trace(retry, begin, qp->qpn, qp->attr.dest_qpn, why, atomic_load(&qp->comp.acked_psn),
	      qp->comp.retry_left);
	atomic_store(&qp->comp.resend, true);
	qp_kick(qp);
}

bool completer_retry(struct qp *qp, const char *why)
{
	uint32_t n = completer_oldest(qp);

	qp->comp.asked = false;
	qp_window_shrink(qp);
	if (likely(qp->comp.retry_left)) {
		qp->comp.retry_left--;
		if (explaining())
			explain_retry(qp, qp_send_op(qp, n), why);
		completer_go_back(qp, why);
		return true;
	}
	if (!qp_is_migrated(qp) && migration_begin(qp, why)) {
		qp->comp.retry_left = qp->attr.retry_cnt;
		completer_go_back(qp, why);
		return true;
	}
	trace(retry, exhausted, qp->qpn, qp->attr.dest_qpn, why);
	shard_count(qp->adapter->counters, HW_REQ_TRANSPORT_RETRIES_EXCEEDED, 1);
	if (n != atomic_load(&qp->req.tail))
		done_locked(qp, n, CQE_SYN_RETRY_EXC);
	return false;
}

/*
 * True if nobody has asked for the missing answer yet.  An answer shows that one before it is
 * missing, from acked_psn on.  Other answers under way show the same, perhaps of an earlier
 * connection that used the same numbers.  All that is one loss, which we ask for and count once.
 * If nothing comes then, the timer asks again.
 */
static bool missing_is_new(struct qp *qp)
{
	return !qp->comp.asked || qp->comp.asked_psn != atomic_load(&qp->comp.acked_psn);
}

static void ask_for_missing(struct qp *qp, const char *why)
{
	if (completer_retry(qp, why)) {
		qp->comp.asked_psn = atomic_load(&qp->comp.acked_psn);
		qp->comp.asked = true;
	}
}

/* The peer has received everything up to and including psn. */
static void acknowledge_through(struct qp *qp, uint32_t psn)
{
	uint32_t tail = atomic_load_explicit(&qp->req.tail, memory_order_acquire);
	uint32_t head = atomic_load_explicit(&qp->comp.head, memory_order_relaxed);
	uint32_t acked = atomic_load_explicit(&qp->comp.acked_psn, memory_order_relaxed);
	bool answer_lost = false;

	for (uint32_t n = head; n != tail; n++) {
		struct send_op *op = qp_send_op(qp, n);

		if (op->done || !op->npkts)
			continue;
		if (psn_diff(psn, last_psn(op)) < 0)
			break;
		if (op->awaits_answer) {
			/* The answer was lost (IBTA 9.7.5.2.3, implied NAK): ask again. */
			atomic_store_explicit(&qp->comp.acked_psn, op->first_psn,
					      memory_order_release);
			answer_lost = true;
			break;
		}
		atomic_store_explicit(&op->done, true, memory_order_release);
	}
	if (!answer_lost && psn_diff(psn_add(psn, 1), acked) > 0)
		atomic_store_explicit(&qp->comp.acked_psn, psn_add(psn, 1), memory_order_release);
	completer_retire(qp);
	/* An acknowledgement that only repeats an earlier one must not renew the retry count. */
	if (head != atomic_load_explicit(&qp->comp.head, memory_order_relaxed) ||
	    acked != atomic_load_explicit(&qp->comp.acked_psn, memory_order_relaxed))
		completer_progress(qp);
	if (unlikely(answer_lost) && missing_is_new(qp)) {
		shard_count(qp->adapter->counters, HW_IMPLIED_NAK_SEQ_ERR, 1);
		ask_for_missing(qp, "answer-lost");
	}
}

static void receiver_not_ready(struct qp *qp, const struct pkt *pkt)
{
	uint32_t us = rnr_timer_us(pkt->aeth);

	trace(rnr, received, qp->qpn, pkt->sqpn, pkt->psn, us, qp->comp.rnr_left);
	flow_refused(qp, FLOW_NACK_RNR);
	/*
	 * The request has arrived, and has been answered: it was not lost, however often a packet or
	 * its answer was late before.  A receiver may be without receives for long, on a machine
	 * where each process waits for a processor now and then.
	 */
	qp->comp.retry_left = qp->attr.retry_cnt;
	qp->comp.late = (struct ack_lateness){0};
	if (explaining())
		explain_not_ready(qp, qp_send_op(qp, completer_oldest(qp)), us,
				  qp->attr.rnr_retry == RNR_RETRY_FOREVER);
	if (qp->attr.rnr_retry != RNR_RETRY_FOREVER) {
		if (!qp->comp.rnr_left) {
			uint32_t n = completer_oldest(qp);

			trace(retry, exhausted, qp->qpn, pkt->sqpn, "receiver-not-ready");
			shard_count(qp->adapter->counters, HW_RNR_NAK_RETRY_ERR, 1);
			shard_count(qp->adapter->counters, HW_REQ_RNR_RETRIES_EXCEEDED, 1);
			if (n != atomic_load(&qp->req.tail))
				done_locked(qp, n, CQE_SYN_RNR_RETRY_EXC);
			return;
		}
		qp->comp.rnr_left--;
	}
	atomic_fetch_or(&qp->waiting, QP_WAIT_RNR);
	qp_timer_arm(qp, clock_ns() + us * 1000ull);
}

static void answer_gap(struct qp *qp)
{
	if (!missing_is_new(qp))
		return;
	shard_count(qp->adapter->counters, HW_PACKET_SEQ_ERR, 1);
	ask_for_missing(qp, "answer-gap");
}

static void completer_negative(struct qp *qp, const struct pkt *pkt)
{
	static const uint8_t syndrome[AETH_VALUE_MASK + 1] = {
		[NAK_INVALID_REQUEST] = CQE_SYN_REM_INVAL_REQ,
		[NAK_REMOTE_ACCESS] = CQE_SYN_REM_ACCESS,
		[NAK_REMOTE_OPERATIONAL] = CQE_SYN_REM_OP,
		[NAK_INVALID_RD_REQUEST] = CQE_SYN_REM_INVAL_REQ,
		[NAK_SENDER_FAULT] = CQE_SYN_LOCAL_PROT,
	};
	uint8_t code = pkt->aeth & AETH_VALUE_MASK;
	uint32_t n = completer_oldest(qp);

	trace(nak, received, qp->qpn, pkt->sqpn, aeth_nak_name(code), pkt->psn);
	if (code == NAK_PSN_SEQUENCE) {
		flow_refused(qp, FLOW_NACK_SEQUENCE);
		shard_count(qp->adapter->counters, HW_PACKET_SEQ_ERR, 1);
		completer_retry(qp, "sequence-nak");
		return;
	}
	if (n == atomic_load(&qp->req.tail))
		return;
	if (code == NAK_REMOTE_ACCESS)
		shard_count(qp->adapter->counters, HW_REQ_REMOTE_ACCESS_ERRORS, 1);
	if (code == NAK_INVALID_REQUEST)
		shard_count(qp->adapter->counters, HW_REQ_REMOTE_INVALID_REQUEST, 1);
	done_locked(qp, n, syndrome[code] ? syndrome[code] : CQE_SYN_BAD_RESP);
}

/* False: the acknowledgement is an old one, or is for a PSN that was never sent. */
static bool acknowledges_anything(struct qp *qp, uint32_t psn)
{
	const struct send_op *newest = qp_send_op(qp, atomic_load(&qp->req.tail) - 1);

	return psn_diff(psn, atomic_load(&qp->comp.acked_psn)) >= 0 &&
	       likely(psn_diff(psn, psn_add(newest->first_psn, newest->npkts)) < 0);
}

static void completer_acknowledgement(struct qp *qp, const struct pkt *pkt)
{
	if (!acknowledges_anything(qp, pkt->psn)) {
		if (explaining())
			explain_foreign_psn(qp, pkt);
		return;
	}
	switch (pkt->aeth & AETH_KIND_MASK) {
	case AETH_ACK:
		acknowledge_through(qp, pkt->psn);
		break;
	case AETH_RNR_NAK:
		if (pkt->psn != atomic_load(&qp->comp.acked_psn))
			acknowledge_through(qp, psn_add(pkt->psn, IB_PSN_MASK));
		receiver_not_ready(qp, pkt);
		break;
	case AETH_NAK:
		/* all packets before the refused one have arrived */
		if (pkt->psn != atomic_load(&qp->comp.acked_psn))
			acknowledge_through(qp, psn_add(pkt->psn, IB_PSN_MASK));
		completer_negative(qp, pkt);
		break;
	default:
		break;
	}
}

/* Puts the payload of an answer where the request wants it. */
static uint8_t place_answer(struct qp *qp, struct send_op *op, uint64_t off, const struct pkt *pkt)
{
	enum mkey_verdict v;
	struct send_wqe w;
	struct runs runs;

	if (!pkt->payload_len)
		return 0;
	if (pkt->placed)
		return op->offered ? 0 : CQE_SYN_BAD_RESP;
	runs_begin(&runs);
	if (send_wqe_fetch_again(qp, op, &w) != FETCH_OK || w.bad)
		return CQE_SYN_LOCAL_PROT;
	v = send_wqe_runs(qp->adapter, &w, qp->create.pdn, IB_ACCESS_LOCAL_WRITE, off,
			  pkt->payload_len, &runs);
	if (unlikely(mkey_staged(v) && wqe_props(w.opcode)->atomic)) {
		v = MKEY_NO_RIGHT;
	} else if (unlikely(mkey_staged(v))) {
		struct transfer t = transfer_answered(qp, &w, op->block);

		v = transfer_place(&t, off, pkt);
	} else if (v == MKEY_OK && !payload_pull(runs.run, runs.n, pkt)) {
		v = MKEY_GONE;
	}
	if (unlikely(v == MKEY_GONE && payload_gone(pkt)))
		return SYN_SOURCE_GONE;
	if (likely(v == MKEY_OK))
		return 0;
	op->vendor_err = VENDOR_ERR_NO_ANSWER_PLACE;
	trace(access, local, qp->qpn, "answer", op->block, pkt->payload_len, mkey_verdict_name(v));
	return CQE_SYN_LOCAL_PROT;
}

static void completer_answered(struct qp *qp, uint32_t n, uint8_t syndrome)
{
	struct send_op *op = qp_send_op(qp, n);
	uint32_t next = psn_add(last_psn(op), 1);

	if (!syndrome)
		atomic_store_explicit(&qp->comp.acked_psn, next, memory_order_release);
	done_locked(qp, n, syndrome);
	completer_progress(qp);
}

static void read_response(struct qp *qp, uint32_t n, const struct pkt *pkt)
{
	struct send_op *op = qp_send_op(qp, n);
	uint32_t have = op->read_bytes;
	int32_t at = psn_diff(pkt->psn, op->first_psn);
	uint32_t want = have / qp->mtu;
	bool complete = have + pkt->payload_len == op->len;
	uint8_t syndrome;

	if (at != (int32_t)want) {
		/* a repetition, unless an answer in between was lost */
		if (at > (int32_t)want)
			answer_gap(qp);
		return;
	}
	/* All answers but the last are full. */
	if (pkt->payload_len > op->len - have || pkt_props(pkt)->last != complete ||
	    (!complete && (!pkt->payload_len || pkt->payload_len % qp->mtu)) ||
	    !pkt_fills(pkt, qp->mtu)) {
		completer_answered(qp, n, CQE_SYN_BAD_RESP);
		return;
	}
	syndrome = place_answer(qp, op, have, pkt);
	if (syndrome == SYN_SOURCE_GONE) {
		/* On loopback this is the first read of that memory; the mark makes the responder
		 * refuse the request. */
		if (pkt->payload_gone)
			*pkt->payload_gone = true;
		return;
	}
	if (syndrome || complete) {
		completer_answered(qp, n, syndrome);
		return;
	}
	op->read_bytes = have + pkt->payload_len;
	atomic_store_explicit(&qp->comp.acked_psn, psn_add(op->first_psn, op->read_bytes / qp->mtu),
			      memory_order_release);
	completer_progress(qp);
}

static void completer_answer(struct qp *qp, const struct pkt *pkt)
{
	bool is_read = pkt_op(pkt) != BTH_ATOMIC_ACK;
	struct send_op *op;
	uint32_t n;

	if (psn_diff(pkt->psn, atomic_load(&qp->comp.acked_psn)) < 0)
		return;
	/* An answer also acknowledges the requests before it. */
	n = completer_oldest(qp);
	if (n == atomic_load(&qp->req.tail))
		return;
	if (!qp_send_op(qp, n)->awaits_answer) {
		uint32_t tail = atomic_load(&qp->req.tail);

		while (n != tail && !qp_send_op(qp, n)->awaits_answer)
			n++;
		if (n == tail || psn_diff(pkt->psn, qp_send_op(qp, n)->first_psn) < 0)
			return;
		acknowledge_through(qp, psn_add(qp_send_op(qp, n)->first_psn, IB_PSN_MASK));
	}
	op = qp_send_op(qp, n);
	if (psn_diff(pkt->psn, last_psn(op)) > 0) {
		answer_gap(qp);
		return;
	}
	if (wqe_props(op->opcode)->read != is_read) {
		completer_answered(qp, n, CQE_SYN_BAD_RESP);
		return;
	}
	if (is_read) {
		read_response(qp, n, pkt);
	} else {
		/* The original value, in the byte order of the memory it came from; of 4 bytes, in
		 * network order.  The list may have room for a part only. */
		uint64_t orig = pkt->atomic_orig;
		struct run run = {&orig, min_u32(op->len, sizeof(orig))};
		const struct pkt value = {
			.payload_len = (uint32_t)run.len, .nruns = 1, .runs = &run};

		completer_answered(qp, n, place_answer(qp, op, 0, &value));
	}
}

/* True if some request waits for an answer. */
static bool completer_waits(struct qp *qp)
{
	return atomic_load_explicit(&qp->comp.head, memory_order_relaxed) !=
		       atomic_load_explicit(&qp->req.tail, memory_order_acquire) &&
	       (qp_state(qp) == IB_QPS_RTS || qp_state(qp) == IB_QPS_SQD);
}

/* Why a response from there is dropped, by the checks that responder_receive makes on requests;
 * NULL: it is taken. */
static const char *response_refusal(const struct qp *qp, uint16_t pkey, uint32_t src_port,
				    uint32_t sqpn)
{
	if (unlikely(!pkey_match(pkey, qp->pkey))) {
		shard_count(qp->adapter->counters, PORT_PKEY_VIOLATIONS, 1);
		return "pkey";
	}
	return likely(qp_is_peer(qp, src_port, sqpn)) ? NULL : "not-from-peer";
}

/* True if a response from there is wanted.  A DCI knows its peer while something is outstanding. */
static bool completer_accepts(struct qp *qp, uint8_t opcode, uint32_t psn, uint16_t pkey,
			      uint32_t src_port, uint32_t sqpn)
{
	const char *why;

	if (!completer_waits(qp))
		return false;
	why = response_refusal(qp, pkey, src_port, sqpn);
	if (likely(!why))
		return true;
	trace(packet, dropped, qp->qpn, bth_op_name(opcode), psn, sqpn, why);
	if (explaining())
		explain_answer_dropped(qp, sqpn, why);
	return false;
}

void completer_receive_ack(struct qp *qp, const struct short_send *b)
{
	spin_lock(&qp->comp.lock);
	if (completer_accepts(qp, BTH_RC | BTH_ACK, b->ack_psn, b->pkey, b->src_port, b->sqpn) &&
	    acknowledges_anything(qp, b->ack_psn))
		acknowledge_through(qp, b->ack_psn);
	spin_unlock(&qp->comp.lock);
}

/* The same of a packet.  If the queue pair may migrate, one along the alternate path is wanted, too. */
static bool completer_accepts_packet(struct qp *qp, const struct pkt *pkt)
{
	bool migrated = qp_is_migrated(qp);

	if (!migrated && completer_waits(qp)) {
		enum migration_verdict v = migration_check(qp, pkt);

		if (v != MIGRATION_NO_MATTER)
			return v == MIGRATION_FOLLOWED;
	}
	if (!completer_accepts(qp, pkt->opcode, pkt->psn, pkt->pkey, pkt->path->src_port,
			       pkt->sqpn))
		return false;
	if (!migrated)
		migration_heard(qp, pkt);
	return true;
}

void completer_receive(struct qp *qp, const struct pkt *pkt)
{
	spin_lock(&qp->comp.lock);
	if (completer_accepts_packet(qp, pkt)) {
		if (pkt_op(pkt) == BTH_ACK)
			completer_acknowledgement(qp, pkt);
		else
			completer_answer(qp, pkt);
	}
	spin_unlock(&qp->comp.lock);
}

/* ---- retires frames that were sent, several at a time ---- */

/* How many frames are retired at a time. */
#define SENT_FRAMES 16u

void sent_frames_retire(struct qp *qp)
{
	/* A DC target's queue pair sends nothing, and another thread may be resetting it. */
	if (!qp->create.sq_blocks || !qp->req.marked)
		return;
	qp->req.marked = 0;
	completer_retire_done(qp);
}

void sent_frames_add(struct qp *qp)
{
	struct send_op *op = qp_send_op(qp, qp->req.cur);

	op->syndrome = 0;
	atomic_store_explicit(&op->done, true, memory_order_release);
	if (++qp->req.marked >= min_u32(SENT_FRAMES, qp->create.sq_blocks))
		sent_frames_retire(qp);
}
