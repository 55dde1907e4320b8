// SPDX-License-Identifier: BSD-2-Clause
/*
 * Events of completion queues.
 *
 * Arming: the program writes (sn, solicited-only, consumer index) into the arm record, then rings.
 * The request stands while its sn equals the number of events delivered (mod 4), so one event makes
 * it stale.  A request for any completion stays one until then, even if the program asks only for
 * solicited ones afterwards.  The device looks at the record when the bell rings and after each CQE.
 * A bell that nobody hears loses nothing, because the program polls once more after arming, as the
 * API demands.
 *
 * A DPA arms by value instead: the bell says the consumer index, and the request stands until the
 * next event (cq_bell.h).
 */
#include "adapter/queue/cq_internal.h"

#include "base/clock.h"
#include "usermem/usermem.h"

/* The same for queues whose record does not say it. */
static uint32_t cq_unreported_by_value(const struct cq *cq)
{
	if (cq->attr.arming == CQ_ARM_ALWAYS)
		return cq->pi - cq->event_pi;
	/* A bell with an index ahead of the queue waits for that completion. */
	if (!cq->armed || (int32_t)(cq->pi - cq->bell_ci) <= 0)
		return 0;
	return cq->pi - cq->bell_ci;
}

/* How many completions the arm record wants reported; 0: none.  Lock held. */
static uint32_t cq_unreported(struct cq *cq)
{
	uint32_t arm, newest, ci;

	if (unlikely(cq->attr.arming != CQ_ARM_RECORD))
		return cq_unreported_by_value(cq);
	if (!usermem_load_be32(dbrec_of(cq, DBREC_CQ_ARM), &arm))
		return 0;
	if (arm == DBREC_CQ_ARM_NEVER || DBREC_CQ_ARM_SN(arm) != (cq->event_sn & 3))
		return 0;
	cq->any_wanted |= !(arm & DBREC_CQ_ARM_SOLICITED);
	newest = cq->any_wanted ? cq->pi : cq->solicited_pi;
	ci = DBREC_CQ_ARM_CI(arm);
	/*
	 * True if something has come since the program last looked, and since the last event.
	 * Programs arm right after an event and poll then.  The counters are serial numbers of 24
	 * bits.
	 */
	if ((int32_t)((newest - ci) << 8) <= 0 || (int32_t)(newest - cq->event_pi) <= 0)
		return 0;
	return min_u32((newest - ci) & 0xffffff, newest - cq->event_pi);
}

/* Raises the event.  The caller holds the lock. */
static void cq_report(struct cq *cq)
{
	cq->event_sn++;
	cq->event_pi = cq->pi;
	cq->armed = false;
	cq->any_wanted = false;
	cq->attr.event(cq->attr.user);
}

void cq_report_unasked(struct cq *cq)
{
	if (cq->attr.event)
		cq_report(cq);
}

static bool is_moderated(const struct cq *cq)
{
	return cq->event_count || cq->event_period_ns;
}

/* True if n completions may wait for more to come.  The caller holds the lock. */
static bool cq_postpone(struct cq *cq, uint32_t n)
{
	struct adapter *a = cq->adapter;

	if (cq->event_count && n >= cq->event_count) {
		timer_cancel(&a->timers, &cq->timer);
		return false;
	}
	/* A running timer counts from the first completion that waits, or from the newest. */
	if (cq->event_period_ns &&
	    (!timer_armed(&cq->timer) || (cq->event_newest && cq->period_pi != cq->pi))) {
		timer_arm(&a->timers, &cq->timer, clock_ns() + cq->event_period_ns);
		cq->period_pi = cq->pi;
	}
	return true;
}

void cq_notify(struct cq *cq)
{
	uint32_t n = cq_unreported(cq);

	if (n && (likely(!is_moderated(cq)) || !cq_postpone(cq, n)))
		cq_report(cq);
}

void cq_event_due(struct timer *timer)
{
	struct cq *cq = container_of(timer, struct cq, timer);

	spin_lock(&cq->lock);
	if (cq_unreported(cq))
		cq_report(cq);
	spin_unlock(&cq->lock);
}

void cq_moderate(struct cq *cq, uint32_t count, uint32_t period_us)
{
	spin_lock(&cq->lock);
	cq->timer_used = true;
	cq->event_count = count;
	cq->event_period_ns = period_us * 1000ull;
	/* The new rule decides about completions that wait under the old one. */
	timer_cancel(&cq->adapter->timers, &cq->timer);
	if (cq->attr.event)
		cq_notify(cq);
	spin_unlock(&cq->lock);
}

void cq_moderate_newest(struct cq *cq, bool newest)
{
	spin_lock(&cq->lock);
	cq->event_newest = newest;
	spin_unlock(&cq->lock);
}

void cq_doorbell(struct cq *cq)
{
	spin_lock(&cq->lock);
	if (cq->attr.event)
		cq_notify(cq);
	spin_unlock(&cq->lock);
}

/* Extends the index of a bell, 24 bits, to the producer index's range, near that index. */
static uint32_t cq_whole_index(const struct cq *cq, uint32_t ci)
{
	uint32_t behind = (cq->pi - ci) & 0xffffff;

	return behind < 0x800000 ? cq->pi - behind : cq->pi + (0x1000000 - behind);
}

void cq_arm_by_value(struct cq *cq, uint32_t ci)
{
	spin_lock(&cq->lock);
	cq->bell_ci = cq_whole_index(cq, ci);
	cq->armed = true;
	if (cq->attr.event)
		cq_notify(cq);
	spin_unlock(&cq->lock);
}

bool cq_is_armed(const struct cq *cq)
{
	uint32_t arm;

	if (cq->attr.arming != CQ_ARM_RECORD)
		return cq->armed || cq->attr.arming == CQ_ARM_ALWAYS;
	return usermem_load_be32(dbrec_of(cq, DBREC_CQ_ARM), &arm) && arm != DBREC_CQ_ARM_NEVER &&
	       DBREC_CQ_ARM_SN(arm) == (cq->event_sn & 3);
}
