// SPDX-License-Identifier: BSD-2-Clause
/* The adapter as a whole: its lists of queue pairs that have work, its timers, packets that arrive.
 */
#include "adapter/adapter.h"

#include <errno.h>
#include <stdlib.h>

#include "adapter/transport/dct.h"
#include "adapter/core/device.h"
#include "adapter/transport/qp.h"
#include "adapter/ethernet/raw.h"
#include "base/clock.h"
#include "base/rcu.h"
#include "base/trace.h"

#define NO_TIMER UINT64_MAX

/* How soon a queue that found the wire busy is tried again if nobody polls. */
#define BUSY_RETRY_NS 20000u

/* ---- lists ---- */

static void kick(struct adapter *a)
{
	if (a->attr.kick)
		a->attr.kick(a->attr.user);
}

void qp_kick(struct qp *qp)
{
	struct adapter *a = qp->adapter;

	if (atomic_exchange(&qp->queued, true))
		return;
	spin_lock(&a->run_lock);
	qp->run_next = NULL;
	if (a->run_tail)
		a->run_tail->run_next = qp;
	else
		a->run_head = qp;
	a->run_tail = qp;
	atomic_store(&a->run_any, true);
	spin_unlock(&a->run_lock);
}

void qp_kick_later(struct qp *qp)
{
	struct adapter *a = qp->adapter;

	if (atomic_exchange(&qp->queued, true))
		return;
	spin_lock(&a->run_lock);
	qp->run_next = a->later_head;
	a->later_head = qp;
	atomic_store(&a->later_any, true);
	spin_unlock(&a->run_lock);
	kick(a);
}

static struct qp *run_pop(struct adapter *a)
{
	struct qp *qp;

	spin_lock(&a->run_lock);
	qp = a->run_head;
	if (qp) {
		a->run_head = qp->run_next;
		if (!a->run_head)
			a->run_tail = NULL;
		/* before it runs: what comes while it runs must list it again */
		atomic_store(&qp->queued, false);
	}
	if (!a->run_head)
		atomic_store(&a->run_any, false);
	spin_unlock(&a->run_lock);
	return qp;
}

void adapter_run_queued(struct adapter *a)
{
	while (atomic_load_explicit(&a->run_any, memory_order_relaxed)) {
		struct qp *qp;

		rcu_enter();
		qp = run_pop(a);
		if (qp) {
			responder_continue(qp);
			qp_run(qp);
		}
		rcu_leave();
	}
}

/* The wire may have room again. */
static bool run_later(struct adapter *a)
{
	struct qp *list;

	if (likely(!atomic_load_explicit(&a->later_any, memory_order_relaxed)))
		return false;
	spin_lock(&a->run_lock);
	list = a->later_head;
	a->later_head = NULL;
	atomic_store(&a->later_any, false);
	while (list) {
		struct qp *next = list->run_next;

		list->run_next = NULL;
		if (a->run_tail)
			a->run_tail->run_next = list;
		else
			a->run_head = list;
		a->run_tail = list;
		atomic_store(&a->run_any, true);
		list = next;
	}
	spin_unlock(&a->run_lock);
	return true;
}

static void unlink_run(struct adapter *a, struct qp *qp)
{
	struct qp **at = &a->run_head, *last = NULL;

	for (; *at && *at != qp; at = &(*at)->run_next)
		last = *at;
	if (*at) {
		*at = qp->run_next;
		if (a->run_tail == qp)
			a->run_tail = last;
	}
	for (at = &a->later_head; *at && *at != qp; at = &(*at)->run_next)
		;
	if (*at)
		*at = qp->run_next;
}

/* ---- timers ---- */

void adapter_timer(struct qp *qp, uint64_t deadline_ns)
{
	struct adapter *a = qp->adapter;
	bool sooner = false;

	spin_lock(&a->timer_lock);
	atomic_store(&qp->deadline_ns, deadline_ns);
	if (!qp->timer_listed) {
		qp->timer_listed = true;
		qp->timer_prev = NULL;
		qp->timer_next = a->timers;
		if (a->timers)
			a->timers->timer_prev = qp;
		a->timers = qp;
	}
	if (deadline_ns < atomic_load(&a->timer_next_ns)) {
		atomic_store(&a->timer_next_ns, deadline_ns);
		sooner = true;
	}
	spin_unlock(&a->timer_lock);
	if (sooner)
		kick(a);
}

/* Lock held. */
static void timer_unlink(struct adapter *a, struct qp *qp)
{
	if (!qp->timer_listed)
		return;
	if (qp->timer_prev)
		qp->timer_prev->timer_next = qp->timer_next;
	else
		a->timers = qp->timer_next;
	if (qp->timer_next)
		qp->timer_next->timer_prev = qp->timer_prev;
	qp->timer_listed = false;
}

/* The first QP whose time has come, taken off the list; refreshes the next deadline otherwise. */
static struct qp *timer_pop(struct adapter *a, uint64_t now)
{
	uint64_t soonest = NO_TIMER;
	struct qp *next, *due = NULL;

	spin_lock(&a->timer_lock);
	for (struct qp *qp = a->timers; qp; qp = next) {
		uint64_t deadline = atomic_load(&qp->deadline_ns);

		next = qp->timer_next;
		if (!deadline) {
			timer_unlink(a, qp);
		} else if (deadline <= now) {
			timer_unlink(a, qp);
			atomic_store(&qp->deadline_ns, 0);
			due = qp;
			break;
		} else if (deadline < soonest) {
			soonest = deadline;
		}
	}
	if (!due)
		atomic_store(&a->timer_next_ns, soonest);
	spin_unlock(&a->timer_lock);
	return due;
}

static bool run_timers(struct adapter *a, uint64_t now)
{
	bool any = false;

	while (now >= atomic_load_explicit(&a->timer_next_ns, memory_order_relaxed)) {
		struct qp *qp;

		rcu_enter();
		qp = timer_pop(a, now);
		if (qp) {
			completer_timeout(qp);
			any = true;
		}
		rcu_leave();
	}
	return any;
}

void adapter_forget_qp(struct adapter *a, struct qp *qp)
{
	spin_lock(&a->run_lock);
	unlink_run(a, qp);
	spin_unlock(&a->run_lock);
	spin_lock(&a->timer_lock);
	timer_unlink(a, qp);
	spin_unlock(&a->timer_lock);
}

static bool any_timer(const struct adapter *a)
{
	return atomic_load_explicit(&a->timer_next_ns, memory_order_relaxed) != NO_TIMER ||
	       atomic_load_explicit(&a->cq_timers.next_ns, memory_order_relaxed) != CQ_TIMER_NONE;
}

static bool run_due(struct adapter *a)
{
	uint64_t now = clock_ns();
	bool any = run_timers(a, now);

	rcu_enter();
	any |= cq_timers_run(&a->cq_timers, now);
	rcu_leave();
	return any;
}

/* A poll is short beside any timer: pollers look at the clock only now and then. */
static bool time_to_look(struct adapter *a)
{
	uint32_t polls = atomic_load_explicit(&a->polls, memory_order_relaxed) + 1;

	atomic_store_explicit(&a->polls, polls, memory_order_relaxed);
	return polls % 32 == 0;
}

bool adapter_progress(struct adapter *a, uint64_t *deadline_ns)
{
	bool any = run_later(a);
	uint64_t next;

	if (unlikely(any_timer(a)) && (deadline_ns || time_to_look(a)))
		any |= run_due(a);
	if (atomic_load_explicit(&a->run_any, memory_order_relaxed)) {
		adapter_run(a);
		any = true;
	}
	if (!deadline_ns)
		return any;
	next = min_u64(atomic_load(&a->timer_next_ns), atomic_load(&a->cq_timers.next_ns));
	if (atomic_load(&a->later_any))
		next = min_u64(next, clock_ns() + BUSY_RETRY_NS);
	*deadline_ns = min_u64(*deadline_ns, next);
	return any;
}

void adapter_batch_end(struct adapter *a)
{
	if (atomic_load_explicit(&a->prompt, memory_order_relaxed)) {
		atomic_store_explicit(&a->prompt, false, memory_order_relaxed);
		adapter_run(a);
	}
}

bool adapter_owes(const struct adapter *a)
{
	return atomic_load_explicit(&a->run_any, memory_order_relaxed) ||
	       atomic_load_explicit(&a->later_any, memory_order_relaxed);
}

/* ---- packets ---- */

static void receive(void *user, const struct pkt *pkt)
{
	struct adapter *a = user;
	struct qp *qp;

	rcu_enter();
	qp = number_find(&a->qps, pkt->dqpn);
	if (likely(qp && (pkt->opcode & 0xe0) == qp->bth)) {
		if (pkt_props(pkt)->response)
			completer_receive(qp, pkt);
		else if (unlikely(qp->bth == BTH_DC))
			dct_receive(qp, pkt);
		else if (pkt_props(pkt)->request)
			responder_receive(qp, pkt);
	} else {
		trace(packet, dropped, pkt->dqpn, bth_op_name(pkt->opcode), pkt->psn, pkt->sqpn,
		      qp ? "transport" : "no-such-qp");
	}
	rcu_leave();
}

static bool receive_group(void *user, const struct pkt *pkt)
{
	struct adapter *a = user;

	switch (pkt->opcode & 0xe0) {
	case BTH_RAW:
		return a->port->ethernet && raw_receive(a, pkt);
	case BTH_UD:
		return pkt_props(pkt)->request && multicast_receive(a, pkt);
	default:
		return false;
	}
}

/* ---- life ---- */

int adapter_create(const struct adapter_attr *attr, struct adapter **out)
{
	struct adapter *a = calloc(1, sizeof(*a));
	const struct wire_client client = {
		.receive = receive, .receive_group = receive_group, .user = a};

	if (!a)
		return -ENOMEM;
	a->attr = *attr;
	a->wire = attr->wire;
	a->port = &wire_registry(a->wire)->ports[wire_port_row(a->wire)];
	a->counters = wire_counters(a->wire);
	a->slots = wire_slots(a->wire);
	a->slot = wire_slot(a->wire);
	pd_space_init(&a->pds);
	pd_space_init(&a->xrcds);
	atomic_store(&a->next_cqn, 0x80);
	atomic_store(&a->timer_next_ns, NO_TIMER);
	cq_timers_init(&a->cq_timers);
	number_space_init(&a->qps);
	number_space_init(&a->srqs);
	number_space_init(&a->mkeys);
	number_space_init(&a->psvs);
	null_mkey_init(&a->null_mkey);
	reserve_init(&a->reserve);
	multicast_init(&a->multicast);
	steering_init(&a->steering);
	wire_attach(a->wire, &client);
	*out = a;
	return 0;
}

void adapter_destroy(struct adapter *a)
{
	const struct wire_client nobody = {0};

	wire_attach(a->wire, &nobody);
	rcu_wait();
	number_space_release(&a->qps);
	number_space_release(&a->srqs);
	number_space_release(&a->mkeys);
	number_space_release(&a->psvs);
	null_mkey_release(&a->null_mkey);
	reserve_release(&a->reserve);
	pd_space_release(&a->pds);
	multicast_release(&a->multicast);
	steering_release(&a->steering);
	pd_space_release(&a->xrcds);
	free(a);
}
