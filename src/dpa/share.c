// SPDX-License-Identifier: BSD-2-Clause
/* See share.h. */
#include "dpa/share.h"

#include "base/spin.h"
#include "dpa/handler.h"

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
