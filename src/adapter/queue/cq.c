// SPDX-License-Identifier: BSD-2-Clause
/*
 * Completion queues.  The ring and the doorbell record lie in the program's memory; the device owns
 * the producer index, the program the consumer index.
 *
 * Arming: the program writes (sn, solicited-only, consumer index) into the arm record, then rings.
 * The request stands while its sn equals the number of events delivered (mod 4), so one event makes
 * it stale.  The device looks at the record when the bell rings and after each CQE.  So an unheard
 * bell loses nothing, because the program polls once more after arming, as the API demands.
 * A DPA arms by value instead: the bell says the consumer index, and the request stands until the
 * next event (cq_bell.h).
 */
#include "adapter/queue/cq.h"
#include "adapter/queue/cq_bell.h"
#include "adapter/queue/cq_wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/explain.h"
#include "base/log.h"
#include "base/rcu.h"
#include "base/trace.h"
#include "prm/wqe.h"
#include "usermem/usermem.h"

/* So many queue pairs are named when the queue is over. */
#define USERS_NAMED 8u

struct cq {
	struct adapter *adapter;
	struct cq_attr attr;
	uint32_t cqn;
	_Atomic(uint32_t) users;
	struct spin lock;
	uint32_t pi;	       /* producer index, never masked */
	uint32_t solicited_pi; /* pi just after the last solicited CQE */
	uint32_t event_sn;
	uint32_t event_pi; /* pi at the last event, which reported all before it */
	uint32_t mask;	   /* index -> entry */
	bool overrun;
	bool armed;	  /* by value */
	uint32_t bell_ci; /* of the last bell by value; counts as pi does */
	/*
	 * Resize markers that the program has taken since it wrote resize_ci into its record, the
	 * last of them when the producer index was resize_pi.  See cq_outstanding.
	 */
	uint32_t resizes;
	uint32_t resize_ci;
	uint32_t resize_pi;
	/* moderation; both 0: none */
	uint32_t event_count;
	uint64_t event_period_ns;
	bool event_newest;  /* the period begins anew with each completion */
	uint32_t period_pi; /* pi when it began */
	struct timer timer; /* of the moderated event */
	bool timer_used;
	uint32_t named[USERS_NAMED]; /* numbers of queue pairs that complete here; 0: none */
	struct object_row *row;	     /* for people; may be NULL */
	struct cq_bell bell;	     /* in the table if there is a region */
	struct cq_entry entry;
	struct cq_waiter *waiters;
};

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
						});
}

static be32 *dbrec_of(const struct cq *cq, unsigned word)
{
	return (be32 *)cq->attr.dbrec + word;
}

static void cq_event_due(struct timer *timer);

int cq_create(struct adapter *a, const struct cq_attr *attr, struct cq **out)
{
	struct cq *cq;

	if (!attr->entries || attr->entries & (attr->entries - 1) ||
	    attr->entries > ADAPTER_MAX_CQE + 1 ||
	    (attr->cqe_bytes != CQE_BYTES && attr->cqe_bytes != 2 * CQE_BYTES))
		return -EINVAL;
	/* Zero, the memory's initial content, is also the first real request, so mark "never
	 * armed". */
	if (!usermem_store_be32((be32 *)attr->dbrec + DBREC_CQ_ARM, DBREC_CQ_ARM_NEVER))
		return -EFAULT;
	cq = aligned_alloc(_Alignof(struct cq), sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	*cq = (struct cq){.adapter = a, .attr = *attr, .timer.fire = cq_event_due};
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

/* The place of a number among those named, or USERS_NAMED.  Lock held. */
static uint32_t cq_place_of(const struct cq *cq, uint32_t qpn)
{
	uint32_t i = 0;

	while (i < USERS_NAMED && cq->named[i] != qpn)
		i++;
	return i;
}

/* Puts a number into the place of another; to is once there at most.  Lock held. */
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
	/* Last, for the queue may be destroyed then. */
	atomic_fetch_sub(&cq->users, 1);
}

/* The same where no record says it. */
static uint32_t cq_unreported_by_value(const struct cq *cq)
{
	if (cq->attr.arming == CQ_ARM_ALWAYS)
		return cq->pi - cq->event_pi;
	/* An index ahead of what is there waits for it. */
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
	newest = arm & DBREC_CQ_ARM_SOLICITED ? cq->solicited_pi : cq->pi;
	ci = DBREC_CQ_ARM_CI(arm);
	/*
	 * Has anything come since the program last looked, and since the last event?  Programs arm
	 * right after an event and poll then.  The counters are serial numbers of 24 bits.
	 */
	if ((int32_t)((newest - ci) << 8) <= 0 || (int32_t)(newest - cq->event_pi) <= 0)
		return 0;
	return min_u32((newest - ci) & 0xffffff, newest - cq->event_pi);
}

/* Lock held. */
static void cq_report(struct cq *cq)
{
	cq->event_sn++;
	cq->event_pi = cq->pi;
	cq->armed = false;
	cq->attr.event(cq->attr.user);
}

static bool is_moderated(const struct cq *cq)
{
	return cq->event_count || cq->event_period_ns;
}

/* May n completions wait for more to come?  Lock held. */
static bool cq_postpone(struct cq *cq, uint32_t n)
{
	struct adapter *a = cq->adapter;

	if (cq->event_count && n >= cq->event_count) {
		timer_cancel(&a->timers, &cq->timer);
		return false;
	}
	/* A running timer counts from the first completion that waits, or from the last. */
	if (cq->event_period_ns &&
	    (!timer_armed(&cq->timer) || (cq->event_newest && cq->period_pi != cq->pi))) {
		timer_arm(&a->timers, &cq->timer, clock_ns() + cq->event_period_ns);
		cq->period_pi = cq->pi;
	}
	return true;
}

/* Reports if the program has asked for what the queue now holds.  Somebody wants to know.  Lock
 * held. */
static void cq_notify(struct cq *cq)
{
	uint32_t n = cq_unreported(cq);

	if (n && (likely(!is_moderated(cq)) || !cq_postpone(cq, n)))
		cq_report(cq);
}

/* The period of a moderated event is over. */
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
	/* The new rule decides about completions that wait by the old one. */
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

/* "QP 0x400, 0x401" */
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
		     "nothing that is posted to %s completes: the cqe of ibv_create_cq has to be "
		     "max_send_wr and max_recv_wr of all of them together",
		     subnet_port_text(wire_subnet(wire), wire_port_row(wire), port), cq->cqn,
		     program_invocation_short_name, cq->attr.entries,
		     cq_users_text(cq, users, sizeof(users)));
}

static void cq_overrun(struct cq *cq)
{
	if (cq->overrun)
		return;
	cq->overrun = true;
	trace(cq, overrun, cq->cqn, cq->attr.entries);
	log_warn("CQ 0x%x: overrun, %u entries and none consumed", cq->cqn, cq->attr.entries);
	if (explaining())
		cq_explain_overrun(cq);
	if (cq->attr.async)
		cq->attr.async(cq->attr.user, IB_EVENT_CQ_ERR);
}

static uint8_t *cq_entry(const struct cq *cq, uint32_t index)
{
	uint8_t *at = (uint8_t *)cq->attr.buf + (size_t)(index & cq->mask) * cq->attr.cqe_bytes;

	return at + (cq->attr.cqe_bytes - CQE_BYTES);
}

static uint8_t cq_owner(const struct cq *cq, uint32_t index)
{
	return !!(index & cq->attr.entries);
}

/* An error CQE has other fields in place of the timestamp. */
static bool has_timestamp(const struct cqe64 *cqe)
{
	uint8_t op = cqe->op_own >> 4;

	return op != CQE_OP_REQ_ERR && op != CQE_OP_RESP_ERR && op != CQE_OP_SIG_ERR;
}

/* Clears the half of the entry in front of the CQE. */
static bool cq_pad(const struct cq *cq, uint32_t index)
{
	static const uint8_t zeros[CQE_BYTES];

	return cq->attr.cqe_bytes == CQE_BYTES ||
	       usermem_copy(cq_entry(cq, index) - CQE_BYTES, zeros, sizeof(zeros));
}

void cq_fetch_ahead(const struct cq *cq)
{
	__builtin_prefetch(dbrec_of(cq, DBREC_CQ_CI));
	__builtin_prefetch(cq_entry(cq, cq->pi), 1);
}

/*
 * How many entries the program has not consumed, if its record says ci.  It takes a resize marker
 * within the call that resizes and does not write its record for that, but with its next
 * completion.  Markers do not count as entries, or a program that resizes often would have less
 * room than it was promised, and none in the end.  Lock held.
 */
static uint32_t cq_outstanding(const struct cq *cq, uint32_t ci)
{
	uint32_t pi = cq->pi;

	/* A bell says what is consumed as well as the record does. */
	if (cq->attr.arming != CQ_ARM_RECORD)
		return min_u32((pi - ci) & 0xffffff, pi - cq->bell_ci);

	/* after half a turn of the 24 bits it is another ci of the same value */
	if (cq->resizes && ci == cq->resize_ci && pi - cq->resize_pi < 0x800000)
		ci += cq->resizes;
	return (pi - ci) & 0xffffff;
}

/*
 * The program moves what it has not consumed one place up into the new ring, so that the marker is
 * in front of it.  Lock held.
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

struct cq_waiter **cq_waiters(struct cq *cq)
{
	return &cq->waiters;
}

void cq_lock(struct cq *cq)
{
	spin_lock(&cq->lock);
}

void cq_unlock(struct cq *cq)
{
	spin_unlock(&cq->lock);
}

bool cq_has_reached(const struct cq *cq, uint32_t index)
{
	return !((cq->pi - index) & 0x800000);
}

/* A completion has come, and somebody waits for some.  Lock held. */
static __attribute__((cold)) void cq_tell_waiters(struct cq *cq)
{
	for (struct cq_waiter *w = cq->waiters; w; w = w->next) {
		if (w->told || !cq_has_reached(cq, w->index))
			continue;
		w->told = true;
		w->over(w);
	}
}

/* Is there room for one more?  Lock held. */
static bool cq_has_room(struct cq *cq)
{
	uint32_t ci;

	if (unlikely(!usermem_load_be32(dbrec_of(cq, DBREC_CQ_CI), &ci)))
		return false;
	/* consumer index: 24 bits; the ring is far smaller */
	if (likely(((cq->pi - ci) & 0xffffff) < cq->attr.entries) || cq->attr.overrun_ignore ||
	    cq_outstanding(cq, ci) < cq->attr.entries)
		return true;
	cq_overrun(cq);
	return false;
}

/* Lock held. */
static bool cq_append(struct cq *cq, struct cqe64 *cqe)
{
	uint32_t pi = cq->pi;

	if (unlikely(cq->overrun) || !cq_has_room(cq) ||
	    (unlikely(cq->attr.padded) && !cq_pad(cq, pi)))
		return false;
	if (unlikely(cq->attr.timestamps) && has_timestamp(cqe))
		cqe->timestamp = be64_of(clock_ns());
	cqe->word[CQE_WORD_LAST] |= cqe_last_word(0, 0, cq_owner(cq, pi));
	if (unlikely(!usermem_publish(cq_entry(cq, pi), cqe, sizeof(*cqe))))
		return false;
	cq->pi = pi + 1;
	return true;
}

void cq_push_all(struct cq *cq, struct cqe64 *cqe, uint32_t n, uint32_t solicited)
{
	uint32_t done = 0;

	spin_lock(&cq->lock);
	for (uint32_t i = 0; i < n; i++) {
		if (unlikely(!cq_append(cq, &cqe[i])))
			continue;
		done++;
		if (i + 1 == solicited)
			cq->solicited_pi = cq->pi;
	}
	if (unlikely(cq->waiters) && done)
		cq_tell_waiters(cq);
	if (done && cq->attr.event) {
		/*
		 * Writes the CQEs before the look at the arm record; the program stores the record
		 * before it polls again.  So one of the two sees the other.
		 */
		atomic_thread_fence(memory_order_seq_cst);
		cq_notify(cq);
	}
	spin_unlock(&cq->lock);
}

void cq_push(struct cq *cq, struct cqe64 *cqe, bool solicited)
{
	cq_push_all(cq, cqe, 1, solicited);
}

void cq_push_empty(struct cq *cq)
{
	struct cqe64 cqe = {0};

	cq_push(cq, &cqe, false);
}

void cq_doorbell(struct cq *cq)
{
	spin_lock(&cq->lock);
	if (cq->attr.event)
		cq_notify(cq);
	spin_unlock(&cq->lock);
}

/* The index that a bell gives, 24 bits of it, as the producer index counts: near that one. */
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

/* Has the program asked for an event?  Lock held. */
static bool cq_is_armed(const struct cq *cq)
{
	uint32_t arm;

	if (cq->attr.arming != CQ_ARM_RECORD)
		return cq->armed || cq->attr.arming == CQ_ARM_ALWAYS;
	return usermem_load_be32(dbrec_of(cq, DBREC_CQ_ARM), &arm) && arm != DBREC_CQ_ARM_NEVER &&
	       DBREC_CQ_ARM_SN(arm) == (cq->event_sn & 3);
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
	if (!usermem_load_be32(dbrec_of(cq, DBREC_CQ_CI), &ci)) {
		ret = -EFAULT;
		goto unlock;
	}
	/* The resize marker also takes an entry in the old ring and an index in the new one. */
	if (cq_outstanding(cq, ci) >= min_u32(entries, cq->attr.entries))
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
	/* The timer may be about to fire on another thread, or a bell be heard there. */
	if (cq->timer_used || cq->bell.cq)
		rcu_wait();
	/* A late cq_doorbell of another thread is the program's error, but must not lock freed
	 * memory. */
	spin_lock(&cq->lock);
	spin_unlock(&cq->lock);
	expose_object_end(cq->row);
	free(cq);
	return 0;
}
