// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues.  The ring and the doorbell record lie in the program's memory; the device owns
 * the producer index, the program the consumer index.
 */
#include "adapter/queue/cq.h"

#include "adapter/queue/cq_bell.h"
#include "adapter/queue/cq_internal.h"
#include "base/clock.h"
#include "base/explain.h"
#include "base/hazard.h"
#include "base/log.h"
#include "base/trace.h"
#include "prm/wqe.h"
#include "usermem/usermem.h"
#include "usermem/usermem_touch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Raises an event that nobody has to have asked for.  Call it with the lock held. */
static __attribute__((cold)) void cq_report_unasked(struct cq *cq)
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

/* Raises the event if the program has asked for what the queue now holds.  Call it only if somebody
 * wants to know, with the lock held. */
static void cq_notify(struct cq *cq)
{
	uint32_t n = cq_unreported(cq);

	if (n && (likely(!is_moderated(cq)) || !cq_postpone(cq, n)))
		cq_report(cq);
}

/* Runs when the period of a moderated event is over. */
static void cq_event_due(struct timer *timer)
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

/* True if the program has asked for an event.  The caller holds the lock. */
static bool cq_is_armed(const struct cq *cq)
{
	uint32_t arm;

	if (cq->attr.arming != CQ_ARM_RECORD)
		return cq->armed || cq->attr.arming == CQ_ARM_ALWAYS;
	return usermem_load_be32(dbrec_of(cq, DBREC_CQ_ARM), &arm) && arm != DBREC_CQ_ARM_NEVER &&
	       DBREC_CQ_ARM_SN(arm) == (cq->event_sn & 3);
}

static struct cq_entry **cq_entry_row(struct adapter *a, uint32_t cqn)
{
	return &a->cqs.row[cqn % CQ_ROWS];
}

static void cq_waits_begin(struct adapter *a, struct cq_entry *e)
{
	struct cq_entry **row = cq_entry_row(a, e->cqn);

	spin_lock(&a->cqs.lock);
	e->next = *row;
	*row = e;
	spin_unlock(&a->cqs.lock);
}

/* Called when the queue is destroyed: tells all waiters. */
static void cq_waits_end(struct adapter *a, struct cq_entry *e)
{
	struct cq_entry **at = cq_entry_row(a, e->cqn);
	struct cq_waiter *w, *next;

	spin_lock(&a->cqs.lock);
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	spin_lock(&e->cq->lock);
	for (w = e->cq->waiters; w; w = next) {
		next = w->next;
		w->cq = NULL;
		w->over(w);
	}
	e->cq->waiters = NULL;
	spin_unlock(&e->cq->lock);
	spin_unlock(&a->cqs.lock);
}

/* The caller holds the list's lock. */
static struct cq *cq_find(struct adapter *a, uint32_t cqn)
{
	struct cq_entry *e = *cq_entry_row(a, cqn);

	while (e && e->cqn != cqn)
		e = e->next;
	return e ? e->cq : NULL;
}

/* The caller holds both locks. */
static void cq_waiter_unlink(struct cq_waiter *w)
{
	struct cq_waiter **at = &w->cq->waiters;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	w->cq = NULL;
}

/* The caller holds the list's lock. */
static void cq_waiter_leave(struct cq_waiter *w)
{
	struct cq *cq = w->cq;

	if (!cq)
		return;
	spin_lock(&cq->lock);
	cq_waiter_unlink(w);
	spin_unlock(&cq->lock);
}

enum cq_wait_verdict cq_wait(struct adapter *a, uint32_t cqn, uint32_t index, struct cq_waiter *w)
{
	enum cq_wait_verdict v = CQ_WAIT_NO_QUEUE;
	struct cq *cq;

	spin_lock(&a->cqs.lock);
	cq_waiter_leave(w);
	cq = cq_find(a, cqn);
	if (cq) {
		spin_lock(&cq->lock);
		v = cq_has_reached(cq, index) ? CQ_WAIT_OVER : CQ_WAITS;
		if (v == CQ_WAITS) {
			w->cq = cq;
			w->index = index;
			w->told = false;
			w->next = cq->waiters;
			cq->waiters = w;
		}
		spin_unlock(&cq->lock);
	}
	spin_unlock(&a->cqs.lock);
	return v;
}

void cq_wait_end(struct adapter *a, struct cq_waiter *w)
{
	spin_lock(&a->cqs.lock);
	cq_waiter_leave(w);
	spin_unlock(&a->cqs.lock);
}

static const struct object_form cq_form = {{
	[FIGURE_NUMBER] = OBJECT_PLACE(struct cq, cqn),
	[FIGURE_PRODUCED] = OBJECT_PLACE(struct cq, pi),
	[FIGURE_ENTRIES] = OBJECT_PLACE(struct cq, attr.entries),
	[FIGURE_OVERRUN] = OBJECT_PLACE(struct cq, overrun),
	[FIGURE_RECORD] = OBJECT_PLACE(struct cq, attr.dbrec),
}};

void cq_form_expose(struct wire *wire)
{
	expose_object_form(wire_expose(wire), OBJECT_CQ, &cq_form);
}

static struct object_row *cq_list(const struct cq *cq)
{
	struct wire *wire = cq->adapter->wire;

	return expose_object(wire_expose(wire), &(struct object_about){
							.at = (uintptr_t)cq,
							.kind = OBJECT_CQ,
							.number = cq->cqn,
							.port = wire_port_row(wire),
							.context = cq->attr.context,
						});
}

static void cq_zip_due(struct run_entry *e);

int cq_create(struct adapter *a, const struct cq_attr *attr, struct cq **out)
{
	struct cq *cq;

	if (!attr->entries || attr->entries & (attr->entries - 1) ||
	    attr->entries > ADAPTER_MAX_CQE + 1 ||
	    (attr->cqe_bytes != CQE_BYTES && attr->cqe_bytes != 2 * CQE_BYTES))
		return -EINVAL;
	if (attr->compression && attr->collapsed)
		return -EINVAL;
	/* Zero is the memory's initial content and also the first real request, so mark "never
	 * armed". */
	if (!usermem_store_be32((be32 *)attr->dbrec + DBREC_CQ_ARM, DBREC_CQ_ARM_NEVER))
		return -EFAULT;
	cq = aligned_alloc(_Alignof(struct cq), sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	*cq = (struct cq){.adapter = a, .attr = *attr, .timer.fire = cq_event_due};
	cq->run.run = cq_zip_due;
	if (attr->compression) {
		cq->zip = cq_zip_create(attr->compression, attr->mini_format, attr->entries);
		if (!cq->zip) {
			free(cq);
			return -ENOMEM;
		}
	}
	cq->mask = attr->collapsed ? 0 : attr->entries - 1;
	cq->armed = attr->armed;
	cq->cqn = atomic_fetch_add(&a->next_cqn, 1);
	cq->row = cq_list(cq);
	cq->entry = (struct cq_entry){.cq = cq, .cqn = cq->cqn};
	cq_waits_begin(a, &cq->entry);
	if (attr->region) {
		cq->bell.cq = cq;
		cq->bell.cqn = cq->cqn;
		cq->bell.region = attr->region;
		cq_bell_publish(a, &cq->bell);
	}
	*out = cq;
	return 0;
}

uint32_t cq_number(const struct cq *cq)
{
	return cq->cqn;
}

/* The place of a number among the named ones, or USERS_NAMED.  The caller holds the lock. */
static uint32_t cq_place_of(const struct cq *cq, uint32_t qpn)
{
	uint32_t i = 0;

	while (i < USERS_NAMED && cq->named[i] != qpn)
		i++;
	return i;
}

/* Puts number 'to', which has no place yet, in place of 'from'.  The caller holds the lock. */
static void cq_rename_user(struct cq *cq, uint32_t from, uint32_t to)
{
	uint32_t i = cq_place_of(cq, from);

	if (i < USERS_NAMED)
		cq->named[i] = to;
}

void cq_hold(struct cq *cq, uint32_t qpn)
{
	atomic_fetch_add(&cq->users, 1);
	if (!qpn)
		return;
	spin_lock(&cq->lock);
	if (cq_place_of(cq, qpn) == USERS_NAMED)
		cq_rename_user(cq, 0, qpn);
	spin_unlock(&cq->lock);
}

void cq_release(struct cq *cq, uint32_t qpn)
{
	if (qpn) {
		spin_lock(&cq->lock);
		cq_rename_user(cq, qpn, 0);
		spin_unlock(&cq->lock);
	}
	/* Do this last, because the queue may be destroyed then. */
	atomic_fetch_sub(&cq->users, 1);
}

/* Lists the users, as in "QP 0x400, 0x401". */
static const char *cq_users_text(const struct cq *cq, char *text, size_t size)
{
	size_t n = 0;

	(void)snprintf(text, size, "others");
	for (uint32_t i = 0; i < USERS_NAMED; i++)
		if (cq->named[i])
			n += (size_t)snprintf(text + n, size - n, "%s0x%x", n ? ", " : "QP ",
					      cq->named[i]);
	if (cq_place_of(cq, 0) == USERS_NAMED)
		(void)snprintf(text + n, size - n, " and perhaps others");
	return text;
}

static __attribute__((cold)) void cq_explain_overrun(const struct cq *cq)
{
	const struct wire *wire = cq->adapter->wire;
	char port[SUBNET_PORT_TEXT], users[160];

	explain_line(cq->cqn,
		     "%s CQ 0x%x of %s: overrun: a completion has come, and the program has "
		     "polled none of the %u that fill it; it takes no more (IBV_EVENT_CQ_ERR), so "
		     "nothing that is posted to %s completes, and each fails when something would "
		     "(IBV_EVENT_QP_FATAL): the cqe of ibv_create_cq has to be "
		     "max_send_wr and max_recv_wr of all of them together",
		     subnet_port_text(wire_subnet(wire), wire_port_row(wire), port), cq->cqn,
		     program_invocation_short_name, cq->attr.entries,
		     cq_users_text(cq, users, sizeof(users)));
}

/* From now on the queue takes nothing. */
static void cq_fail(struct cq *cq)
{
	cq->overrun = true;
	if (cq->attr.async)
		cq->attr.async(cq->attr.user, IB_EVENT_CQ_ERR);
}

static void cq_overrun(struct cq *cq)
{
	if (cq->overrun)
		return;
	trace(cq, overrun, cq->cqn, cq->attr.entries);
	log_warn("CQ 0x%x: overrun, %u entries and none consumed", cq->cqn, cq->attr.entries);
	if (explaining())
		cq_explain_overrun(cq);
	cq_fail(cq);
}

void cqs_overrun(struct adapter *a, bool (*fn)(void *user, uint32_t cqn), void *user)
{
	spin_lock(&a->cqs.lock);
	for (uint32_t row = 0; row < CQ_ROWS; row++)
		for (struct cq_entry *e = a->cqs.row[row]; e; e = e->next) {
			spin_lock(&e->cq->lock);
			if (!e->cq->overrun && fn(user, e->cqn))
				cq_fail(e->cq);
			spin_unlock(&e->cq->lock);
		}
	spin_unlock(&a->cqs.lock);
}

/* An error CQE has other fields in place of the timestamp. */
static bool has_timestamp(const struct cqe64 *cqe)
{
	uint8_t op = cqe->op_own >> 4;

	return op != CQE_OP_REQ_ERR && op != CQE_OP_RESP_ERR && op != CQE_OP_SIG_ERR;
}

/* Clears the half of the entry that lies in front of the CQE. */
static bool cq_pad(const struct cq *cq, uint32_t index)
{
	static const uint8_t zeros[CQE_BYTES];

	return cq->attr.cqe_bytes == CQE_BYTES ||
	       usermem_copy(cq_entry(cq, index) - CQE_BYTES, zeros, sizeof(zeros));
}

void cq_own_ahead(const struct cq *cq)
{
	prefetch_to_write(atomic_load_explicit(&cq->ahead, memory_order_relaxed));
}

/*
 * How many entries the program has not consumed, if its record says ci.  It takes a resize marker
 * within the call that resizes; it does not write its record then, but with its next completion.
 * Markers do not count as entries: otherwise a program that resizes often would have less room than
 * it was promised, and none in the end.  The caller holds the lock.
 */
static uint32_t cq_outstanding(const struct cq *cq, uint32_t pi, uint32_t ci)
{
	/* A bell says what is consumed, as the record does. */
	if (cq->attr.arming != CQ_ARM_RECORD)
		return min_u32((pi - ci) & 0xffffff, pi - cq->bell_ci);

	/* After half a turn of the 24 bits, it is another ci with the same value. */
	if (cq->resizes && ci == cq->resize_ci && pi - cq->resize_pi < 0x800000)
		ci += cq->resizes;
	return (pi - ci) & 0xffffff;
}

/*
 * Counts a resize marker.  The program moves what it has not consumed one place up in the new ring,
 * so that the marker is in front of it.  The caller holds the lock.
 */
static void cq_count_marker(struct cq *cq, uint32_t ci)
{
	if (ci != cq->resize_ci || cq->pi - cq->resize_pi >= 0x800000)
		cq->resizes = 0;
	cq->resizes++;
	cq->resize_ci = ci;
	cq->resize_pi = cq->pi++;
	cq->solicited_pi++;
	cq->event_pi++;
}

/* Tells those that wait for completions that one has come.  The caller holds the lock. */
static __attribute__((cold)) void cq_tell_waiters(struct cq *cq)
{
	for (struct cq_waiter *w = cq->waiters; w; w = w->next) {
		if (w->told || !cq_has_reached(cq, w->index))
			continue;
		w->told = true;
		w->over(w);
	}
}

/* Called when completions have come.  The caller holds the lock. */
static void cq_completed(struct cq *cq)
{
	if (unlikely(cq->waiters))
		cq_tell_waiters(cq);
	if (!cq->attr.event)
		return;
	/*
	 * The CQEs are written before the look at the arm record, and the program stores the record
	 * before it polls again.  So one of the two sees the other.  A bell arms under the lock,
	 * and looks then.
	 */
	if (likely(cq->attr.arming == CQ_ARM_RECORD))
		atomic_thread_fence(memory_order_seq_cst);
	cq_notify(cq);
}

/* Called when the newest completion in the ring wakes more than others do.  The caller holds the
 * lock. */
static void cq_wakes(struct cq *cq, enum cq_wake wake)
{
	cq->solicited_pi = cq->pi;
	if (unlikely(wake == CQ_WAKE_ALWAYS))
		cq_report_unasked(cq);
}

/* ---- compressed completions ---- */

/* Writes the completions that wait into the ring.  The caller holds the lock. */
static void cq_zip_flush(struct cq *cq)
{
	uint32_t n = cq->zip ? cq->zip->waiting : 0;
	enum cq_wake wake = n ? cq->zip->wake : CQ_WAKE_ARMED;

	if (!n || !cq_zip_write(cq->zip, cq))
		return;
	if (n > 1)
		trace(cq, compressed, cq->cqn, n);
	cq->pi += n;
	if (wake)
		cq_wakes(cq, wake);
	cq_completed(cq);
}

static void cq_zip_due(struct run_entry *e)
{
	struct cq *cq = container_of(e, struct cq, run);

	spin_lock(&cq->lock);
	cq_zip_flush(cq);
	spin_unlock(&cq->lock);
}

/* True if the completion is kept for now.  The caller holds the lock. */
static __attribute__((noinline)) bool cq_zip_takes(struct cq *cq, struct cqe64 *cqe,
						   enum cq_wake wake)
{
	struct cq_zip *z = cq->zip;

	/* A reader knows the rest of a group by the signature of its title (UCX), so a title stands for
	 * no group of the next round. */
	if (!z->waiting && !(cq->pi % cq->attr.entries))
		cq_zip_forget_title(z);
	if (!cq_zip_joins(z, cqe, wake)) {
		cq_zip_flush(cq);
		if (!cq_zip_begins(z, cqe, wake)) {
			cq_seal(cq, cq->pi, cqe);
			return false;
		}
	}
	/* Readers expect one owner bit for all completions that stand together, so a group ends
	 * with the ring. */
	if (z->waiting >= z->most || !((cq->pi + z->waiting) % cq->attr.entries))
		cq_zip_flush(cq);
	else
		runq_add(&cq->adapter->runq, &cq->run);
	return true;
}

/* True if there is room for one more completion.  The caller holds the lock. */
static bool cq_has_room(struct cq *cq)
{
	uint32_t ci, pi = cq->pi + (unlikely(cq->zip) ? cq->zip->waiting : 0);

	/* The program may have consumed more by now, but its record says so in a line of its own,
	 * so read that only if need be. */
	if (likely(((pi - cq->ci) & 0xffffff) < cq->attr.entries))
		return true;
	if (unlikely(!usermem_fetch_be32(dbrec_of(cq, DBREC_CQ_CI), &ci)))
		return false;
	cq->ci = ci;
	/* The consumer index has 24 bits, and the ring is far smaller. */
	if (likely(((pi - ci) & 0xffffff) < cq->attr.entries) || cq->attr.overrun_ignore ||
	    cq_outstanding(cq, pi, ci) < cq->attr.entries)
		return true;
	cq_zip_flush(cq);
	cq_overrun(cq);
	return false;
}

/* Appends a completion.  False: it is not in the ring, or not yet.  The caller holds the lock. */
static bool cq_append(struct cq *cq, struct cqe64 *cqe, enum cq_wake wake)
{
	uint32_t pi;

	if (unlikely(cq->overrun) || !cq_has_room(cq))
		return false;
	if (unlikely(cq->attr.timestamps) && has_timestamp(cqe))
		cqe->timestamp = be64_of(clock_ticks(clock_ns(), cq->adapter->attr.clock_khz));
	if (unlikely(cq->zip) && cq_zip_takes(cq, cqe, wake))
		return false;
	pi = cq->pi;
	if (unlikely(cq->attr.padded) && !cq_pad(cq, pi))
		return false;
	cqe->word[CQE_WORD_LAST] |= cqe_last_word(0, 0, cq_owner(cq, pi));
	if (unlikely(!usermem_publish(cq_entry(cq, pi), cqe, sizeof(*cqe))))
		return false;
	cq_advance(cq, pi + 1);
	if (wake)
		cq_wakes(cq, wake);
	return true;
}

/* Under the lock, which this releases.  False: the queue has overrun. */
static bool cq_leave(struct cq *cq, uint32_t appended)
{
	bool alive;

	if (likely(appended))
		cq_completed(cq);
	alive = !cq->overrun;
	spin_unlock(&cq->lock);
	return alive;
}

/* ---- trace points ---- */

static const char *cqe_kind_name(uint8_t op)
{
	static const char *const names[] = {
		[CQE_OP_RESP_WRITE_IMM] = "RECV_WRITE_IMM",
		[CQE_OP_RESP_SEND] = "RECV",
		[CQE_OP_RESP_SEND_IMM] = "RECV_IMM",
		[CQE_OP_RESP_SEND_INV] = "RECV_INV",
		[CQE_OP_NO_PACKET] = "NO_PACKET",
		[CQE_OP_SIG_ERR] = "SIG_ERR",
		[CQE_OP_RESP_ERR] = "RECV",
	};
	const char *name = op < array_size(names) ? names[op] : NULL;

	return name ? name : "unknown";
}

/* Out of line, so that the data path has only the test and the call. */
static __attribute__((noinline, cold)) void trace_written(const struct cq *cq,
							  const struct cqe64 *cqe)
{
	uint8_t op = cqe->op_own >> 4;
	bool sent = op == CQE_OP_REQ || op == CQE_OP_REQ_ERR;
	bool failed = op == CQE_OP_REQ_ERR || op == CQE_OP_RESP_ERR;
	uint32_t sop_qpn = be32_get(cqe->sop_drop_qpn);

	trace(cqe, written, cq->cqn, sop_qpn & IB_QPN_MASK, be16_get(cqe->wqe_counter),
	      sent ? "SQ" : "RQ",
	      sent ? wqe_opcode_name((uint8_t)(sop_qpn >> 24)) : cqe_kind_name(op),
	      failed ? cqe_syndrome_name(((const struct cqe64_err *)cqe)->syndrome) : "SUCCESS");
}

bool cq_push(struct cq *cq, struct cqe64 *cqe, enum cq_wake wake)
{
	if (trace_is_on(cqe, written))
		trace_written(cq, cqe);
	spin_lock(&cq->lock);
	return cq_leave(cq, cq_append(cq, cqe, wake));
}

/* How many completions go into the ring as they are, without another look.  The caller holds the
 * lock. */
static uint32_t cq_plain_room(struct cq *cq)
{
	uint32_t ci, used;

	if (unlikely(cq->overrun || cq->zip || cq->attr.timestamps || cq->attr.padded) ||
	    !usermem_fetch_be32(dbrec_of(cq, DBREC_CQ_CI), &ci))
		return 0;
	/* Otherwise cq->ci would stay behind by a turn of its 24 bits, for cq_has_room. */
	cq->ci = ci;
	used = (cq->pi - ci) & 0xffffff;
	return used < cq->attr.entries ? cq->attr.entries - used : 0;
}

/* Appends completions for which there is room.  Returns how many; fewer if their memory no longer
 * exists.  The caller holds the lock. */
static uint32_t cq_append_plain(struct cq *cq, struct cqe64 *like, const uint16_t *wqe_counter,
				uint32_t n, bool solicited)
{
	const uint64_t last = like->word[CQE_WORD_LAST];
	uint32_t i, pi = cq->pi;

	for (i = 0; i < n; i++, pi++) {
		like->word[CQE_WORD_LAST] =
			last | cqe_last_word(0, wqe_counter[i], cq_owner(cq, pi));
		if (unlikely(!usermem_publish_64(cq_entry(cq, pi), like->word)))
			break;
	}
	like->word[CQE_WORD_LAST] = last;
	cq_advance(cq, pi);
	if (solicited && i)
		cq->solicited_pi = pi;
	return i;
}

bool cq_push_like(struct cq *cq, struct cqe64 *like, const uint16_t *wqe_counter, uint32_t n,
		  bool solicited, uint32_t *appended)
{
	uint32_t done;

	for (uint32_t i = 0; trace_is_on(cqe, written) && i < n; i++) {
		struct cqe64 cqe = *like;

		cqe.word[CQE_WORD_LAST] |= cqe_last_word(0, wqe_counter[i], 0);
		trace_written(cq, &cqe);
	}
	spin_lock(&cq->lock);
	done = cq_append_plain(cq, like, wqe_counter, min_u32(n, cq_plain_room(cq)), solicited);
	*appended = done;
	for (uint32_t i = done; i < n; i++) {
		struct cqe64 cqe = *like;

		cqe.word[CQE_WORD_LAST] |= cqe_last_word(0, wqe_counter[i], 0);
		*appended += cq_append(cq, &cqe, solicited ? CQ_WAKE_SOLICITED : CQ_WAKE_ARMED);
	}
	return cq_leave(cq, *appended);
}

void cq_push_empty(struct cq *cq)
{
	struct cqe64 cqe = {0};

	(void)cq_push(cq, &cqe, CQ_WAKE_ARMED);
	/* No call of the device is under way that would do it at its end. */
	cq_zip_due(&cq->run);
}

void cq_query(struct cq *cq, struct cq_counters *out)
{
	uint32_t ci = 0;

	spin_lock(&cq->lock);
	out->armed = cq_is_armed(cq);
	if (!usermem_load_be32(dbrec_of(cq, DBREC_CQ_CI), &ci))
		ci = cq->pi;
	out->producer = cq->pi & 0xffffff;
	out->overrun = cq->overrun;
	out->consumer = ci & 0xffffff;
	spin_unlock(&cq->lock);
}

int cq_resize(struct cq *cq, void *buf, uint32_t entries, uint32_t cqe_bytes)
{
	struct cqe64 resize = {.op_own = CQE_OP_RESIZE << 4};
	uint32_t ci;
	int ret = -EINVAL;

	if (!entries || entries & (entries - 1) || entries > ADAPTER_MAX_CQE + 1 ||
	    (cqe_bytes != CQE_BYTES && cqe_bytes != 2 * CQE_BYTES))
		return -EINVAL;
	spin_lock(&cq->lock);
	cq_zip_flush(cq);
	if (cq->zip)
		cq_zip_forget_title(cq->zip);
	if (!usermem_load_be32(dbrec_of(cq, DBREC_CQ_CI), &ci)) {
		ret = -EFAULT;
		goto unlock;
	}
	/* The resize marker takes an entry in the old ring, too, and an index in the new one. */
	if (cq_outstanding(cq, cq->pi, ci) >= min_u32(entries, cq->attr.entries))
		goto unlock;
	resize.op_own = (uint8_t)(resize.op_own | cq_owner(cq, cq->pi));
	if (!usermem_publish(cq_entry(cq, cq->pi), &resize, sizeof(resize))) {
		ret = -EFAULT;
		goto unlock;
	}
	cq_count_marker(cq, ci);
	cq->attr.buf = buf;
	cq->attr.entries = entries;
	cq->attr.cqe_bytes = cqe_bytes;
	cq->mask = entries - 1;
	/* so that the record is read anew */
	cq->ci = cq->pi - entries;
	ret = 0;
unlock:
	spin_unlock(&cq->lock);
	return ret;
}

int cq_destroy(struct cq *cq)
{
	if (atomic_load(&cq->users))
		return -EBUSY;
	if (cq->timer_used)
		timer_cancel(&cq->adapter->timers, &cq->timer);
	cq_waits_end(cq->adapter, &cq->entry);
	if (cq->bell.cq)
		cq_bell_withdraw(cq->adapter, &cq->bell);
	if (cq->zip)
		runq_remove(&cq->adapter->runq, &cq->run);
	/* Another thread may be about to fire the timer, or to write what waits. */
	if (cq->timer_used || cq->zip)
		hazard_wait(cq, sizeof(*cq));
	/* A late cq_doorbell by another thread is the program's error, but it must not lock freed
	 * memory. */
	spin_lock(&cq->lock);
	spin_unlock(&cq->lock);
	expose_object_end(wire_expose(cq->adapter->wire), cq->row);
	free(cq->zip);
	free(cq);
	return 0;
}
