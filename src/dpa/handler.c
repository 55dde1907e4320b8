// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/handler.h. */
#include "dpa/handler.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/spin.h"
#include "dpa/process.h"

/* ---- numbers for other contexts ---- */

static struct {
	struct spin lock;
	struct dpa_shared *first;
} all;

void dpa_share(struct dpa_shared *s)
{
	spin_lock(&all.lock);
	s->next = all.first;
	all.first = s;
	spin_unlock(&all.lock);
}

void dpa_unshare(struct dpa_shared *s)
{
	struct dpa_shared **at = &all.first;

	spin_lock(&all.lock);
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	spin_unlock(&all.lock);
}

/* The lock is held. */
static struct dpa_shared *shared_find(uint32_t number, bool handler)
{
	struct dpa_shared *s = all.first;

	while (s && (s->number != number || (s->handler != NULL) != handler))
		s = s->next;
	return s;
}

struct dpa_process *dpa_shared_process(uint32_t number)
{
	struct dpa_process *p = NULL;
	const struct dpa_shared *s;

	spin_lock(&all.lock);
	s = shared_find(number, false);
	if (s) {
		p = s->process;
		dpa_process_hold(p);
	}
	spin_unlock(&all.lock);
	return p;
}

bool dpa_shared_handler_exists(uint32_t number)
{
	bool exists;

	spin_lock(&all.lock);
	exists = shared_find(number, true);
	spin_unlock(&all.lock);
	return exists;
}

void dpa_shared_handler_activate(uint32_t number)
{
	const struct dpa_shared *s;

	spin_lock(&all.lock);
	s = shared_find(number, true);
	if (s)
		dpa_handler_activate(s->handler);
	spin_unlock(&all.lock);
}

/* ---- execution units ---- */

/* A thread hands its turn over, so one that triggers itself for ever leaves room for others. */
struct eu {
	struct spin lock;
	struct dpa_eu_wait *owner;
	struct dpa_eu_wait *first, *last; /* threads that wait */
	_Atomic(uint32_t) handlers;
};

static struct eu eus[DPA_EUS];

/* ---- the choice of a unit ---- */

void dpa_eu_join(uint32_t eu)
{
	if (eu < DPA_EUS)
		atomic_fetch_add(&eus[eu].handlers, 1);
}

void dpa_eu_leave(uint32_t eu)
{
	if (eu < DPA_EUS)
		atomic_fetch_sub(&eus[eu].handlers, 1);
}

/* Reads a number at *at, and moves *at behind it; false: there is none. */
static bool take_number(const char **at, unsigned long *number)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*number = strtoul(*at, &end, 10);
	*at = end;
	return true;
}

/* Reads the units of a list up to its end, and keeps the best of them and of those before.  False:
 * it is no list. */
static bool units_choose(const char **at, uint32_t *best)
{
	do {
		unsigned long first, last;

		if (!take_number(at, &first))
			return false;
		last = first;
		if (**at == '-') {
			++*at;
			if (!take_number(at, &last))
				return false;
		}
		if (first > last || last >= DPA_EUS)
			return false;
		for (uint32_t eu = (uint32_t)first; eu <= last; eu++)
			if (*best == DPA_EUS ||
			    atomic_load(&eus[eu].handlers) < atomic_load(&eus[*best].handlers))
				*best = eu;
	} while (**at == ',' && *(*at)++);
	return **at == ';' || !**at;
}

uint32_t dpa_eu_of_group(uint32_t group)
{
	const char *text = getenv("SOFTHCA_DPA_GROUPS"), *at = text;
	uint32_t best = DPA_EUS;

	while (at && *at) {
		uint32_t other = DPA_EUS;
		unsigned long id;

		if (!take_number(&at, &id) || *at++ != '=' ||
		    !units_choose(&at, id == group ? &best : &other)) {
			log_warn("SOFTHCA_DPA_GROUPS is groups of units, as 1=0-15;2=16-31,40, "
				 "with units up to %u, not: %s",
				 DPA_EUS - 1, text);
			return DPA_EUS;
		}
		if (*at)
			at++;
	}
	return best;
}

/* ---- turns ---- */

static bool eu_ask(struct eu *eu, struct dpa_eu_wait *w)
{
	bool owner;

	spin_lock(&eu->lock);
	owner = !eu->owner;
	if (owner) {
		eu->owner = w;
	} else {
		w->next = NULL;
		if (eu->last)
			eu->last->next = w;
		else
			eu->first = w;
		eu->last = w;
	}
	atomic_store(&w->has, owner);
	spin_unlock(&eu->lock);
	return owner;
}

/* Takes w off the list; true if it was there.  The lock is held. */
static bool eu_unlist(struct eu *eu, struct dpa_eu_wait *w)
{
	struct dpa_eu_wait *before = NULL, *at = eu->first;

	while (at && at != w) {
		before = at;
		at = at->next;
	}
	if (!at)
		return false;
	if (before)
		before->next = w->next;
	else
		eu->first = w->next;
	if (eu->last == w)
		eu->last = before;
	return true;
}

/* Handlers of one unit take turns, so none of them races with another one. */
static void eu_order(const struct dpa_eu_wait *w, bool gives)
{
	struct dpa_race *race = w->thread->process->race;

	if (race && gives)
		dpa_race_publish(race, w->thread->slot, DPA_RACE_UNIT + w->eu, __ATOMIC_RELEASE);
	else if (race)
		dpa_race_take(race, w->thread->slot, DPA_RACE_UNIT + w->eu, __ATOMIC_ACQUIRE);
}

static void dpa_eu_give(struct dpa_eu_wait *w)
{
	struct dpa_eu_wait *next;
	struct eu *eu;

	if (w->eu >= DPA_EUS)
		return;
	eu_order(w, true);
	eu = &eus[w->eu];
	spin_lock(&eu->lock);
	next = eu->first;
	if (next)
		(void)eu_unlist(eu, next);
	eu->owner = next;
	/* Under the lock, because without it the thread that gets the turn may be gone. */
	if (next) {
		atomic_store(&next->has, 1);
		dpa_thread_wake(next->thread);
	}
	spin_unlock(&eu->lock);
}

/* Gives up waiting.  False: the turn has come meanwhile. */
static bool eu_give_up(struct eu *eu, struct dpa_eu_wait *w)
{
	bool listed;

	spin_lock(&eu->lock);
	listed = eu_unlist(eu, w);
	spin_unlock(&eu->lock);
	if (!listed)
		dpa_eu_give(w);
	return false;
}

static bool eu_wait_is_over(const void *arg)
{
	const struct dpa_eu_wait *w = arg;

	return atomic_load(&w->has) || atomic_load(&w->thread->end) ||
	       atomic_load(&w->thread->stop);
}

/* Waits for the handler's turn.  False: the thread is to end, or is stopped. */
static bool dpa_eu_take(struct dpa_eu_wait *w)
{
	struct eu *eu;

	if (w->eu >= DPA_EUS)
		return true;
	eu = &eus[w->eu];
	if (!eu_ask(eu, w))
		dpa_thread_await(w->thread, eu_wait_is_over, w);
	if (!atomic_load(&w->has))
		return eu_give_up(eu, w);
	eu_order(w, false);
	return true;
}

/* ---- handlers ---- */

enum handler_state { HANDLER_CREATED, HANDLER_READY, HANDLER_FINISHED };

struct dpa_handler {
	struct dpa_activated activated;
	struct dpa_handler_attr attr;
	struct dpa_thread *thread;
	struct dpa_eu_wait eu;
	uint64_t arg;
	_Atomic(uint32_t) state; /* enum handler_state */
	_Atomic(uint32_t) pending;
	bool has_eu;
	bool returned; /* its function returned, and the log has said that it must not */
};

/* ---- events ---- */

void dpa_handler_activate(struct dpa_handler *h)
{
	/* The thread first says that it sleeps, and then looks for an event once more. */
	if (!atomic_exchange(&h->pending, 1) && atomic_load(&h->thread->asleep))
		dpa_thread_wake(h->thread);
}

static void handler_activated(struct dpa_activated *a)
{
	dpa_handler_activate(container_of(a, struct dpa_handler, activated));
}

int dpa_handler_run(struct dpa_handler *h, uint64_t arg)
{
	if (dpa_process_state(h->thread->process) != DPA_RUNNING)
		return -ESHUTDOWN;
	if (atomic_load(&h->state) != HANDLER_CREATED)
		return -EALREADY;
	/* The argument is written before the thread can look at it. */
	h->arg = arg;
	atomic_store(&h->state, HANDLER_READY);
	dpa_thread_wake(h->thread);
	return 0;
}

static bool handler_has_event(const struct dpa_handler *h)
{
	return atomic_load(&h->pending) && atomic_load(&h->state) == HANDLER_READY;
}

static bool handler_must_leave(const struct dpa_thread *t)
{
	return atomic_load(&t->end) || atomic_load(&t->stop);
}

static bool handler_wait_is_over(const void *arg)
{
	const struct dpa_handler *h = arg;

	return handler_has_event(h) || handler_must_leave(h->thread);
}

/* Waits for an event; false: the thread is to end, or was stopped in the middle of a run. */
static bool handler_await(struct dpa_handler *h)
{
	while (!handler_must_leave(h->thread)) {
		if (handler_has_event(h)) {
			atomic_store(&h->pending, 0);
			return true;
		}
		dpa_thread_await(h->thread, handler_wait_is_over, h);
	}
	return false;
}

/* ---- runs ---- */

/* Decides what the end of a run means for the next run. */
static void handler_after(struct dpa_handler *h, enum dpa_outcome outcome)
{
	if (outcome == DPA_OUT_RETRIGGERED) {
		atomic_store(&h->pending, 1);
	} else if (outcome == DPA_OUT_FINISHED) {
		atomic_store(&h->state, HANDLER_FINISHED);
	} else if (outcome == DPA_OUT_RETURNED && !h->returned) {
		h->returned = true;
		log_warn("DPA: handler 0x%x returned: it has to end with "
			 "flexio_dev_thread_reschedule, which is what happens now",
			 h->attr.id);
	}
	dpa_process_after(h->thread, outcome);
}

/* Writes again what device code has been told, because it may have spoiled that. */
static void handler_tell(const struct dpa_handler *h)
{
	struct flexio_dev_thread_ctx *ctx = &dpa_slot_top(h->thread->process, h->thread->slot)->ctx;

	ctx->version = 1;
	ctx->thread_id = h->attr.id;
	ctx->thread_local_storage = h->attr.local_storage;
}

/* Sleeps until the next event, in the middle of the handler's function; other handlers may have its
 * unit meanwhile. */
static void handler_yield(struct dpa_thread *t, bool retrigger)
{
	struct dpa_handler *h = t->user;

	if (!h->attr.continuable)
		return;
	dpa_eu_give(&h->eu);
	if (retrigger)
		atomic_store(&h->pending, 1);
	h->has_eu = handler_await(h) && dpa_eu_take(&h->eu);
	if (t->process->race)
		dpa_race_begin(t->process->race, t->slot);
}

static bool handler_ends(const void *arg)
{
	const struct dpa_thread *t = arg;

	return atomic_load(&t->end);
}

static void *handler_main(struct dpa_thread *t)
{
	struct dpa_handler *h = t->user;
	enum dpa_outcome outcome;

	/* Waits until the thread that makes this one is done. */
	pthread_mutex_lock(&t->process->lock);
	pthread_mutex_unlock(&t->process->lock);
	while (handler_await(h)) {
		h->has_eu = dpa_eu_take(&h->eu);
		if (!h->has_eu)
			break;
		handler_tell(h);
		t->entry = h->attr.function;
		outcome = dpa_thread_run(t, h->attr.function, h->arg, 0, false);
		/* A thread that was stopped while it had yielded has no unit. */
		if (h->has_eu)
			dpa_eu_give(&h->eu);
		handler_after(h, outcome);
	}
	/* The thread is stopped for good, but the one that stopped it waits until this has been
	 * told to end. */
	dpa_thread_await(t, handler_ends, t);
	return NULL;
}

/* ---- handlers come and go ---- */

int dpa_handler_create(struct dpa_process *p, const struct dpa_handler_attr *attr,
		       struct dpa_handler **out)
{
	struct dpa_handler *h;
	int ret;

	if (attr->eu > DPA_EU_ANY ||
	    !dpa_image_has(&p->image, attr->function - (uintptr_t)p->region, 1, PROT_EXEC))
		return -EINVAL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->attr = *attr;
	/* The thread's main waits for the lock before it looks at the thread. */
	pthread_mutex_lock(&p->lock);
	ret = dpa_process_thread(p, attr->id, handler_main, h, &h->thread);
	if (ret == 0) {
		h->thread->yield = handler_yield;
		h->thread->stand_in = p->attr.stand_in;
		h->eu = (struct dpa_eu_wait){.thread = h->thread, .eu = attr->eu};
		dpa_eu_join(attr->eu);
	}
	pthread_mutex_unlock(&p->lock);
	if (ret) {
		free(h);
		return ret;
	}
	h->activated = (struct dpa_activated){.id = attr->id, .activate = handler_activated};
	dpa_activated_link(p, &h->activated);
	*out = h;
	return 0;
}

void dpa_handler_destroy(struct dpa_handler *h)
{
	dpa_activated_unlink(h->thread->process, &h->activated);
	dpa_process_thread_end(h->thread->process, h->thread);
	dpa_eu_leave(h->attr.eu);
	free(h);
}
