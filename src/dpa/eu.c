// SPDX-License-Identifier: BSD-2-Clause
/* See eu.h. */
#include "dpa/eu.h"

#include "base/spin.h"
#include "dpa/process.h"

/* Its turn is handed over, so that one who triggers itself for ever leaves room for the others. */
struct eu {
	struct spin lock;
	struct dpa_eu_wait *owner;
	struct dpa_eu_wait *first, *last; /* who waits */
};

static struct eu eus[DPA_EUS];

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

/* The lock is held.  True if it was in the list. */
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

void dpa_eu_give(struct dpa_eu_wait *w)
{
	struct dpa_eu_wait *next;
	struct eu *eu;

	if (w->eu >= DPA_EUS)
		return;
	eu = &eus[w->eu];
	spin_lock(&eu->lock);
	next = eu->first;
	if (next)
		(void)eu_unlist(eu, next);
	eu->owner = next;
	/* Under the lock: without it, who has a turn may be gone. */
	if (next) {
		atomic_store(&next->has, 1);
		dpa_thread_wake(next->thread);
	}
	spin_unlock(&eu->lock);
}

/* No turn any more, if it has not come meanwhile. */
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

bool dpa_eu_take(struct dpa_eu_wait *w)
{
	struct dpa_thread *t = w->thread;
	struct eu *eu;

	if (w->eu >= DPA_EUS)
		return true;
	eu = &eus[w->eu];
	if (eu_ask(eu, w))
		return true;
	for (;;) {
		uint32_t word = atomic_load(&t->word);

		if (atomic_load(&w->has))
			return true;
		if (atomic_load(&t->end) || atomic_load(&t->stop))
			return eu_give_up(eu, w);
		dpa_futex_wait(&t->word, word, UINT64_MAX);
	}
}
