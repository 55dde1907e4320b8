// SPDX-License-Identifier: BSD-2-Clause
/* See eu.h. */
#include "dpa/eu.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/spin.h"
#include "dpa/process.h"

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

bool dpa_eu_take(struct dpa_eu_wait *w)
{
	struct eu *eu;

	if (w->eu >= DPA_EUS)
		return true;
	eu = &eus[w->eu];
	if (eu_ask(eu, w))
		return true;
	dpa_thread_await(w->thread, eu_wait_is_over, w);
	return atomic_load(&w->has) || eu_give_up(eu, w);
}
