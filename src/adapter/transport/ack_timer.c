// SPDX-License-Identifier: BSD-2-Clause
/* See ack_timer.h. */
#include "adapter/transport/ack_timer.h"

#include "adapter/qp/flow.h"
#include "adapter/transport/completer.h"
#include "base/clock.h"
#include "base/trace.h"
#include "wire/counter_shard.h"

/* How long a peer may lack a processor before that counts as silence. */
#define PEER_BEHIND_NS 10000000000u

/* What we know of the peer's process when the timer fires. */
enum peer_progress { PEER_UNASKED, PEER_BEHIND, PEER_UNHEARD, PEER_SILENT };

void ack_timer_arm(struct qp *qp)
{
	if (!qp->ack_timeout_ns || timer_armed(&qp->timer))
		return;
	/* An RNR wait owns the timer, and begins under the lock. */
	spin_lock(&qp->comp.lock);
	if (!timer_armed(&qp->timer) && !(atomic_load(&qp->waiting) & QP_WAIT_RNR))
		qp_timer_arm(qp, clock_ns() + qp->ack_timeout_ns);
	spin_unlock(&qp->comp.lock);
}

/*
 * True if the answer may be here: this process had no processor to take it, where a device would
 * have taken it at once.  It is taken before the timer fires again, so this holds once.
 */
static bool timeout_is_unheard(struct qp *qp, enum peer_progress peer)
{
	struct completer *c = &qp->comp;

	c->unheard = peer == PEER_UNHEARD && !c->unheard;
	if (c->unheard)
		trace(retry, deferred, qp->qpn, qp->attr.dest_qpn, "answer-not-taken");
	return c->unheard;
}

/*
 * True if a timeout does not count as a loss.  Nothing is lost if the peer's process has not taken
 * our packets yet: it waits for a processor, where a device would answer at once.  Such a time does
 * not count, within reason.  A process that is stopped or dead is another matter.
 */
static bool timeout_is_behind(struct qp *qp, enum peer_progress peer)
{
	struct completer *c = &qp->comp;
	uint64_t now = clock_ns();

	if (peer != PEER_BEHIND) {
		c->behind_since = 0;
		return false;
	}
	if (!c->behind_since)
		c->behind_since = now;
	if (now - c->behind_since > PEER_BEHIND_NS)
		return false;
	trace(retry, deferred, qp->qpn, qp->attr.dest_qpn, "peer-has-no-processor");
	return true;
}

static bool rnr_wait_over(struct qp *qp)
{
	if (!(atomic_load(&qp->waiting) & QP_WAIT_RNR))
		return false;
	/* completer_go_back comes first: the requester may run as soon as the wait ends, and must
	 * not continue where it stopped; see requester_run. */
	completer_go_back(qp, "rnr-timer");
	atomic_fetch_and(&qp->waiting, ~(unsigned)QP_WAIT_RNR);
	qp_kick(qp);
	return true;
}

/* True if an answer is due.  A request that waits in this process awaits none. */
static bool awaits_answer(struct qp *qp)
{
	uint32_t oldest = completer_oldest(qp);

	return oldest != atomic_load(&qp->req.tail) &&
	       qp_send_op(qp, oldest)->opcode != WQE_OP_WAIT &&
	       (qp_state(qp) == IB_QPS_RTS || qp_state(qp) == IB_QPS_SQD);
}

/* Handles the timer under comp.lock.  False: the caller has to ask about the peer first. */
static bool fired_locked(struct qp *qp, enum peer_progress peer)
{
	/* Somebody has armed it again since it was found due: an RNR wait has begun and is not
	 * over. */
	if (timer_armed(&qp->timer) || rnr_wait_over(qp) || !awaits_answer(qp))
		return true;
	/* While the rest of a message waits for its rate, the peer cannot answer either. */
	if (atomic_exchange(&qp->comp.fresh, false) || flow_holds_back(qp)) {
		completer_peer_lives(qp);
	} else if (peer == PEER_UNASKED) {
		return false;
	} else if (!timeout_is_behind(qp, peer) && !timeout_is_unheard(qp, peer)) {
		shard_count(qp->adapter->counters, HW_LOCAL_ACK_TIMEOUT_ERR, 1);
		if (!completer_retry(qp, "timeout"))
			return true;
	}
	qp_timer_arm(qp, clock_ns() + qp->ack_timeout_ns);
	return true;
}

/* Opens files and allocates, so it runs without the lock: nobody should spin for that. */
static enum peer_progress peer_ask(const struct qp *qp, const struct path *path, uint32_t dest,
				   uint64_t *up_to)
{
	struct wire *w = qp->adapter->wire;

	if (wire_peer_is_behind(w, path, dest, up_to))
		return PEER_BEHIND;
	*up_to = 0;
	return wire_peer_is_unheard(w, path, dest) ? PEER_UNHEARD : PEER_SILENT;
}

void ack_timer_fired(struct timer *t)
{
	struct qp *qp = container_of(t, struct qp, timer);
	enum peer_progress peer = PEER_UNASKED;
	uint64_t up_to = 0;
	struct path path;
	uint32_t dest;
	bool done;

	do {
		spin_lock(&qp->comp.lock);
		if (peer != PEER_UNASKED)
			qp->comp.behind_up_to = up_to;
		done = fired_locked(qp, peer);
		if (!done) {
			path = qp->path;
			dest = qp->attr.dest_qpn;
			up_to = qp->comp.behind_up_to;
		}
		spin_unlock(&qp->comp.lock);
		if (!done)
			peer = peer_ask(qp, &path, dest, &up_to);
	} while (!done);
}
