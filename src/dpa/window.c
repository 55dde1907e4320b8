// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/window.h. */
#include "dpa/window.h"

#include <errno.h>
#include <string.h>

#include "dpa/process.h"

/* ---- windows ---- */

int dpa_window_add(struct dpa_process *p, const struct dpa_keys *keys, void *device, uint32_t pdn)
{
	static _Atomic(uint32_t) serial;
	int ret = -ENOSPC;

	pthread_mutex_lock(&p->heap_lock);
	for (uint32_t id = 1; ret < 0 && id < DPA_WINDOWS; id++) {
		struct dpa_window *w = &p->windows[id];

		if (atomic_load(&w->serial))
			continue;
		w->keys = keys;
		w->device = device;
		w->pdn = pdn;
		atomic_store(&w->serial, atomic_fetch_add(&serial, 1) | 1u << 31);
		ret = (int)id;
	}
	pthread_mutex_unlock(&p->heap_lock);
	return ret;
}

void dpa_window_remove(struct dpa_process *p, uint32_t id)
{
	atomic_store(&p->windows[id].serial, 0);
}

/* ---- what threads set ---- */

/* NULL: nothing is set, or the window has gone. */
static struct dpa_window_slot *slot_of(struct dpa_thread *t, uint32_t slot)
{
	struct dpa_window_slot *s = slot < DPA_WINDOW_SLOTS ? &t->window[slot] : NULL;

	return s && s->window && atomic_load(&s->window->serial) == s->serial ? s : NULL;
}

static bool slot_set_key(struct dpa_window_slot *s, uint32_t key)
{
	const struct dpa_window *w = s->window;
	uint64_t base = 0;
	bool linear;

	if (!w->keys->find(w->device, key, w->pdn, &linear, &base))
		return false;
	s->key = key;
	s->linear = linear;
	s->base = base;
	return true;
}

bool dpa_window_config(struct dpa_thread *t, uint32_t slot, uint32_t id, uint32_t key)
{
	struct dpa_window_slot s = {0};

	if (slot >= DPA_WINDOW_SLOTS || !id || id >= DPA_WINDOWS)
		return false;
	s.window = &t->process->windows[id];
	s.serial = atomic_load(&s.window->serial);
	if (!s.serial || !slot_set_key(&s, key))
		return false;
	t->window[slot] = s;
	return true;
}

bool dpa_window_key(struct dpa_thread *t, uint32_t slot, uint32_t key)
{
	struct dpa_window_slot *s = slot_of(t, slot);

	return s && slot_set_key(s, key);
}

bool dpa_window_acquire(struct dpa_thread *t, uint32_t slot, uint64_t haddr, uint64_t *daddr)
{
	const struct dpa_window_slot *s = slot_of(t, slot);

	if (!s || !s->linear)
		return false;
	*daddr = s->base + haddr;
	if (t->weak)
		*daddr += dpa_weak_distance(t->weak, slot, *daddr);
	return true;
}

static bool slot_allows(const struct dpa_window_slot *s, uint64_t host, uint64_t bytes, bool write)
{
	return s->window->keys->allows(s->window->device, s->key, s->window->pdn, host - s->base,
				       bytes, write);
}

/* Finds how far behind the host's memory its copy lies, of which this is an address. */
static bool slot_distance(const struct dpa_thread *t, uint32_t slot,
			  const struct dpa_window_slot *s, const struct dpa_window_access *a,
			  uint64_t *distance)
{
	*distance = dpa_weak_distance(t->weak, slot, 0);
	if (slot_allows(s, a->addr - *distance, a->bytes, a->write))
		return true;
	*distance = dpa_weak_other_distance(*distance);
	return slot_allows(s, a->addr - *distance, a->bytes, a->write);
}

bool dpa_window_access(struct dpa_thread *t, const struct dpa_window_access *a,
		       const struct dpa_trail *trail)
{
	for (uint32_t i = 0; i < DPA_WINDOW_SLOTS; i++) {
		const struct dpa_window_slot *s = slot_of(t, i);
		uint64_t distance;

		if (!s || !s->linear)
			continue;
		if (!t->weak && slot_allows(s, a->addr, a->bytes, a->write))
			return true;
		if (t->weak && slot_distance(t, i, s, a, &distance))
			return dpa_weak_access(t->weak, a->addr, distance, a->bytes, a->write,
					       trail);
	}
	return false;
}

bool dpa_window_copy(struct dpa_thread *t, uint32_t slot, bool to_host, uint64_t haddr, void *mine,
		     uint64_t bytes)
{
	const struct dpa_window_slot *s = slot_of(t, slot);

	/* Copies are made by the host's memory itself. */
	if (s && s->linear && t->weak)
		dpa_weak_settle(t->weak,
				s->base + haddr + dpa_weak_distance(t->weak, slot, s->base + haddr),
				bytes);
	return s && s->window->keys->copy(s->window->device, s->key, s->window->pdn, haddr, mine,
					  bytes, to_host);
}

void dpa_windows_forget(struct dpa_thread *t)
{
	memset(t->window, 0, sizeof(t->window));
	if (t->weak)
		dpa_weak_forget(t->weak);
}
