// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests that hold a send queue back until something has happened elsewhere, and requests that
 * let another queue go on (local.h).
 *
 * Completion queues tell of their completions.  Nobody tells of a store into memory, so the device
 * looks again and again: soon at first, then more and more seldom.
 */
#include "adapter/local/local.h"

#include <string.h>

#include "adapter/qp/qp.h"
#include "adapter/queue/cq.h"
#include "base/clock.h"
#include "base/explain.h"
#include "prm/cqe.h"
#include "usermem/usermem.h"

/* The time between two looks: it begins with the first and grows to the second. */
#define LOOK_SOON_NS   2000u
#define LOOK_SELDOM_NS 100000u

static void wait_due(struct timer *t)
{
	qp_kick(container_of(t, struct qp, wait.timer));
}

static void wait_over(struct cq_waiter *w)
{
	qp_kick(container_of(w, struct qp, wait.completions));
}

void wait_init(struct qp *qp)
{
	qp->wait.timer.fire = wait_due;
	qp->wait.completions.over = wait_over;
}

static void wait_until(struct qp *qp, uint64_t ns)
{
	timer_arm(&qp->adapter->timers, &qp->wait.timer, ns);
}

/* Loads the number from memory; the request holds its value in the same form. */
static bool wait_load(struct qp *qp, const struct wqe_wait *s, uint64_t *there)
{
	const struct mkey_use u = {
		.key = be32_get(s->lkey),
		.pdn = qp->create.pdn,
		.qpn = MKEY_ANY_QPN,
	};
	uint64_t addr = be64_get(s->addr);
	struct runs runs;
	be64 word;

	runs_begin(&runs);
	if (addr % sizeof(word) ||
	    mkey_resolve(qp->adapter, &u, addr, sizeof(word), &runs) != MKEY_OK || runs.n != 1 ||
	    !usermem_copy(&word, runs.run[0].addr, sizeof(word)))
		return false;
	*there = be64_get(word);
	return true;
}

/* True if a is behind b, for numbers that wrap after the mask's highest bit. */
static bool cyclic_smaller(uint64_t a, uint64_t b, uint64_t mask)
{
	uint64_t top = mask ? 1ull << (63 - __builtin_clzll(mask)) : 0;
	uint64_t ahead = (b - a) & mask;

	return ahead && !(ahead & top);
}

static bool wait_holds(const struct wqe_wait *s, uint64_t there)
{
	uint32_t operation = be32_get(s->operation);
	uint64_t mask = be64_get(s->mask), value = be64_get(s->value) & mask;
	bool holds = true;

	there &= mask;
	switch (operation & ~(uint32_t)WQE_WAIT_INVERT) {
	case WQE_WAIT_EQUAL:
		holds = value == there;
		break;
	case WQE_WAIT_BIGGER:
		holds = value > there;
		break;
	case WQE_WAIT_SMALLER:
		holds = value < there;
		break;
	case WQE_WAIT_CYCLIC_BIGGER:
		holds = cyclic_smaller(there, value, mask);
		break;
	case WQE_WAIT_CYCLIC_SMALLER:
		holds = cyclic_smaller(value, there, mask);
		break;
	default:
		break;
	}
	return holds != !!(operation & WQE_WAIT_INVERT);
}

/* The time of the next look.  A time that lies ahead is known. */
static uint64_t wait_next_look(struct qp *qp, const struct wqe_wait *s, bool time)
{
	uint64_t now = clock_ns(), ahead = (be64_get(s->value) - now) & be64_get(s->mask);

	if (time && ahead && ahead < LOOK_SELDOM_NS)
		return now + ahead + 1;
	qp->wait.pause_ns = min_u64(qp->wait.pause_ns * 2, LOOK_SELDOM_NS);
	if (!qp->wait.pause_ns)
		qp->wait.pause_ns = LOOK_SOON_NS;
	return now + qp->wait.pause_ns;
}

static uint8_t wait_for_number(struct qp *qp, const struct send_wqe *w, bool *waits)
{
	bool time = wqe_opmod(&w->ctrl) == WQE_OPMOD_WAIT_TIME;
	uint64_t there = clock_ns();
	struct wqe_wait s;

	if (wqe_ds(&w->ctrl) * WQE_UNIT != sizeof(w->ctrl) + sizeof(s))
		return explained(CQE_SYN_LOCAL_QP_OP, "a wait for a number has 3 units, not %u",
				 wqe_ds(&w->ctrl));
	memcpy(&s, w->bytes + sizeof(w->ctrl), sizeof(s));
	if ((be32_get(s.operation) & ~(uint32_t)WQE_WAIT_INVERT) > WQE_WAIT_CYCLIC_SMALLER)
		return explained(CQE_SYN_LOCAL_QP_OP,
				 "a wait for condition 0x%x, which there is not",
				 be32_get(s.operation));
	if (!time && !wait_load(qp, &s, &there))
		return CQE_SYN_LOCAL_PROT;
	*waits = !wait_holds(&s, there);
	if (*waits)
		wait_until(qp, wait_next_look(qp, &s, time));
	else
		qp->wait.pause_ns = 0;
	return 0;
}

/* Reads the segment of a master's request. */
static bool sync_segment(const struct qp *qp, const struct send_wqe *w, struct wqe_sync *s)
{
	if (!qp->create.master || wqe_ds(&w->ctrl) * WQE_UNIT != sizeof(w->ctrl) + sizeof(*s))
		return explained(false, "QP 0x%x is no master of other queues, or ds is not 2",
				 qp->qpn);
	memcpy(s, w->bytes + sizeof(w->ctrl), sizeof(*s));
	return true;
}

static uint8_t wait_for_completions(struct qp *qp, const struct send_wqe *w, bool *waits)
{
	enum cq_wait_verdict v;
	struct wqe_sync s;

	if (!sync_segment(qp, w, &s))
		return CQE_SYN_LOCAL_QP_OP;
	v = cq_wait(qp->adapter, be32_get(s.number), be32_get(s.index), &qp->wait.completions);
	*waits = v == CQ_WAITS;
	return v != CQ_WAIT_NO_QUEUE
		       ? 0
		       : explained(CQE_SYN_LOCAL_QP_OP, "a wait for CQ 0x%x, which there is not",
				   be32_get(s.number));
}

uint8_t wait_execute(struct qp *qp, const struct send_wqe *w, bool *waits)
{
	switch (wqe_opmod(&w->ctrl)) {
	case WQE_OPMOD_WAIT_INDEX:
		return wait_for_completions(qp, w, waits);
	case WQE_OPMOD_WAIT_DATA:
	case WQE_OPMOD_WAIT_TIME:
		return wait_for_number(qp, w, waits);
	default:
		return explained(CQE_SYN_LOCAL_QP_OP, "a wait of kind %u, which there is not",
				 wqe_opmod(&w->ctrl));
	}
}

/* The queue pair whose sends or receives a master enables; NULL if it is no such slave. */
static struct qp *sync_slave(struct qp *qp, const struct wqe_sync *s, bool receives)
{
	struct qp *slave = number_find(&qp->adapter->qps, be32_get(s->number));

	if (slave && (receives ? slave->create.slave_receive : slave->create.slave_send))
		return slave;
	return explained(NULL, "QP 0x%x, whose %s are to be enabled, is no slave or is not there",
			 be32_get(s->number), receives ? "receives" : "requests");
}

uint8_t send_en_execute(struct qp *qp, const struct send_wqe *w)
{
	struct wqe_sync s;
	struct qp *slave;

	if (!sync_segment(qp, w, &s))
		return CQE_SYN_LOCAL_QP_OP;
	slave = sync_slave(qp, &s, false);
	if (!slave)
		return CQE_SYN_LOCAL_QP_OP;
	/* A queue pair in RESET begins with nothing enabled. */
	if (qp_state(slave) == IB_QPS_RESET)
		return 0;
	atomic_store(&slave->enabled, be32_get(s.index));
	qp_kick(slave);
	return 0;
}

/* No kick: nobody waits for a receive, because a sender that found none comes again, or its message
 * is lost. */
uint8_t receive_en_execute(struct qp *qp, const struct send_wqe *w)
{
	struct wqe_sync s;
	struct qp *slave;

	if (!sync_segment(qp, w, &s))
		return CQE_SYN_LOCAL_QP_OP;
	slave = sync_slave(qp, &s, true);
	if (!slave)
		return CQE_SYN_LOCAL_QP_OP;
	if (qp_state(slave) != IB_QPS_RESET)
		atomic_store(&slave->receives_enabled, be32_get(s.index));
	return 0;
}
