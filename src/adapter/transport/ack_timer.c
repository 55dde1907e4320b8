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

/*
 * How long a peer on another machine must have been silent until a request is given up, however
 * short the program's timeout is and however few its retries.  There is no looking whether such a
 * peer waits for a processor, and cards take as long (HARDWARE_TIMEOUT_MIN, 7 retries).
 */
#define OUTSIDE_SILENT_NS 4000000000u

/* What we know of the peer's process when the timer fires. */
enum peer_progress { PEER_UNASKED, PEER_BEHIND, PEER_UNHEARD, PEER_SILENT };

/*
 * Why the last timeout did not count as a loss.  A device answers at once, where a process may have
 * to wait for a processor.  Each reason holds once, and then the next one, so that a loss is
 * noticed however busy both processes are with other things:
 *
 *	BEHIND	the peer's process had not taken what we had sent when the timer fired first
 *	TAKEN	it has now, and may answer
 *	UNHEARD	something of it has come, and this process has not taken that yet
 */
enum ack_grace { GRACE_NONE, GRACE_BEHIND, GRACE_TAKEN, GRACE_UNHEARD };

/*
 * With attr.timing_hardware, retries take as long as measured on cards (docs/fidelity.md): an
 * interval is twice the nominal timeout, and that at least the one of 16.  Before the first interval
 * come early retransmissions, each after twice as long as the one before.  Together they take 13/16
 * of an interval and two of the retries.
 */
#define HARDWARE_TIMEOUT_MIN  16u
#define ADAPTIVE_RETRIES      8u
#define ADAPTIVE_COST	      2u
#define ADAPTIVE_FIRST(total) ((total)*13 / 16 / ((1u << ADAPTIVE_RETRIES) - 1))

/* The timeout is 4.096 us times 2^timeout; 0 waits for ever (IBTA 9.7.6.1.3). */
void ack_timer_set(struct qp *qp)
{
	uint8_t timeout = qp->attr.timeout;

	if (timeout && qp->adapter->attr.timing_hardware)
		qp->ack_timeout_ns = 8192ull
				     << (timeout > HARDWARE_TIMEOUT_MIN ? timeout
									: HARDWARE_TIMEOUT_MIN);
	else
		qp->ack_timeout_ns = timeout ? 4096ull << timeout : 0;
}

/* True if the next retransmission is an early one. */
static bool is_adaptive(const struct qp *qp)
{
	return unlikely(qp->adapter->attr.timing_hardware) && qp->attr.retry_cnt &&
	       qp->comp.adaptive < ADAPTIVE_RETRIES;
}

static uint64_t ack_interval(const struct qp *qp)
{
	return is_adaptive(qp) ? ADAPTIVE_FIRST(qp->ack_timeout_ns) << qp->comp.adaptive
			       : qp->ack_timeout_ns;
}

static void retransmit_early(struct qp *qp)
{
	shard_count(qp->adapter->counters, HW_ROCE_ADP_RETRANS, 1);
	if (++qp->comp.adaptive == ADAPTIVE_RETRIES)
		qp->comp.retry_left -= min_u32(qp->comp.retry_left, ADAPTIVE_COST);
	completer_go_back(qp, "adaptive");
}

void ack_timer_arm(struct qp *qp)
{
	if (!qp->ack_timeout_ns || timer_armed(&qp->timer))
		return;
	/* An RNR wait owns the timer, and begins under the lock. */
	spin_lock(&qp->comp.lock);
	if (!timer_armed(&qp->timer) && !(atomic_load(&qp->waiting) & QP_WAIT_RNR)) {
		if (atomic_load(&qp->comp.fresh))
			qp->comp.adaptive = 0;
		qp_timer_arm(qp, clock_ns() + ack_interval(qp));
	}
	spin_unlock(&qp->comp.lock);
}

/* A process that is stopped or dead is not behind. */
static enum ack_grace grace_of(struct ack_lateness *late, enum peer_progress peer)
{
	uint64_t now = clock_ns();

	if (late->grace <= GRACE_BEHIND && peer == PEER_BEHIND) {
		if (!late->behind_since)
			late->behind_since = now;
		return now - late->behind_since > PEER_BEHIND_NS ? GRACE_NONE : GRACE_BEHIND;
	}
	late->behind_since = 0;
	if (late->grace == GRACE_BEHIND)
		return GRACE_TAKEN;
	return late->grace != GRACE_UNHEARD && peer == PEER_UNHEARD ? GRACE_UNHEARD : GRACE_NONE;
}

/* True if a timeout counts as a loss. */
static bool timeout_counts(struct qp *qp, enum peer_progress peer)
{
	static const char *const why[] = {
		[GRACE_BEHIND] = "peer-has-no-processor",
		[GRACE_TAKEN] = "peer-had-no-processor",
		[GRACE_UNHEARD] = "answer-not-taken",
	};
	enum ack_grace grace = grace_of(&qp->comp.late, peer);

	qp->comp.late.grace = grace;
	if (grace == GRACE_NONE)
		return true;
	trace(retry, deferred, qp->qpn, qp->attr.dest_qpn, why[grace]);
	return false;
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

/* True if the peer is on another machine.  What a file takes, and what the kernel has at the other end of a
 * TAP, gives the port no MTU (tie/udp.h). */
static bool peer_is_elsewhere(const struct qp *qp)
{
	const struct wire *w = qp->adapter->wire;

	return unlikely(wire_leads_out(w, &qp->path)) &&
	       atomic_load_explicit(&wire_subnet(w)->ports[wire_port_row(w)].mtu,
				    memory_order_relaxed);
}

/* True if retries are used up, but a peer on another machine has still time to answer. */
static bool outside_has_time(struct qp *qp)
{
	uint64_t now;

	if (likely(!peer_is_elsewhere(qp)))
		return false;
	now = clock_ns();
	if (!qp->comp.late.silent_since)
		qp->comp.late.silent_since = now;
	return !qp->comp.retry_left && now - qp->comp.late.silent_since < OUTSIDE_SILENT_NS;
}

/* A timeout has shown a loss.  False: the request has been given up. */
static bool timeout_retry(struct qp *qp)
{
	shard_count(qp->adapter->counters, HW_LOCAL_ACK_TIMEOUT_ERR, 1);
	if (!outside_has_time(qp))
		return completer_retry(qp, "timeout");
	qp->comp.asked = false;
	completer_go_back(qp, "timeout");
	return true;
}

/* Handles the timer under comp.lock.  False: the caller has to ask about the peer first. */
static bool fired_locked(struct qp *qp, enum peer_progress peer)
{
	/* Somebody has armed it again since it was found due: an RNR wait has begun and is not
	 * over.  Or there is no timeout any more, by a modification or a migration. */
	if (timer_armed(&qp->timer) || rnr_wait_over(qp) || !qp->ack_timeout_ns ||
	    !awaits_answer(qp))
		return true;
	/* While the rest of a message waits for its rate, the peer cannot answer either. */
	if (atomic_exchange(&qp->comp.fresh, false) || flow_holds_back(qp)) {
		qp->comp.late = (struct ack_lateness){0};
		qp->comp.adaptive = 0;
	} else if (peer == PEER_UNASKED) {
		return false;
	} else if (!timeout_counts(qp, peer)) {
		/* once more */
	} else if (is_adaptive(qp)) {
		retransmit_early(qp);
	} else if (!timeout_retry(qp)) {
		return true;
	}
	qp_timer_arm(qp, clock_ns() + ack_interval(qp));
	return true;
}

/* Opens files and allocates, so it runs without the lock: nobody should spin for that. */
static enum peer_progress peer_ask(const struct qp *qp, const struct path *path, uint32_t dest,
				   struct ack_lateness *late)
{
	struct wire *w = qp->adapter->wire;

	if (late->grace <= GRACE_BEHIND && wire_peer_is_behind(w, path, dest, &late->behind_up_to))
		return PEER_BEHIND;
	late->behind_up_to = 0;
	return wire_peer_is_unheard(w, path, dest) ? PEER_UNHEARD : PEER_SILENT;
}

void ack_timer_fired(struct timer *t)
{
	struct qp *qp = container_of(t, struct qp, timer);
	enum peer_progress peer = PEER_UNASKED;
	struct ack_lateness late = {0};
	struct path path;
	uint32_t dest;
	bool done;

	do {
		spin_lock(&qp->comp.lock);
		if (peer != PEER_UNASKED)
			qp->comp.late.behind_up_to = late.behind_up_to;
		done = fired_locked(qp, peer);
		if (!done) {
			path = qp->path;
			dest = qp->attr.dest_qpn;
			late = qp->comp.late;
		}
		spin_unlock(&qp->comp.lock);
		if (!done)
			peer = peer_ask(qp, &path, dest, &late);
	} while (!done);
}
