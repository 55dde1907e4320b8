// SPDX-License-Identifier: BSD-2-Clause
/* See flow_control.h. */
#include "wire/flow_control.h"

#include <errno.h>

#include "wire/inbox.h"
#include "wire/process.h"

/* A new word each time that control begins, so that flows of an earlier time have another word. */
static uint64_t flow_control_word(const struct wire_process *h)
{
	return (uint64_t)atomic_load(&h->slot->alive) << 32 |
	       (uint32_t)(h->flows_begun * REGISTRY_SLOTS) | h->attr.slot;
}

/* Puts the flows of the slot's port under control.  False: another process controls them
 * already. */
static bool slot_take(struct slot *s, unsigned port, uint64_t by)
{
	uint64_t nobody = 0;

	if (!atomic_compare_exchange_strong(&s->flows_by[port], &nobody, by))
		return nobody == by;
	atomic_fetch_add(&s->observers, 1);
	return true;
}

void flow_control_forget(struct slot *own, unsigned port, uint64_t by)
{
	if (atomic_compare_exchange_strong(&own->flows_by[port], &by, 0))
		atomic_fetch_sub(&own->observers, 1);
}

/* The next slot, from 'slot' on, that a process on our host has; REGISTRY_SLOTS: there is none. */
static uint32_t next_beside(const struct wire_process *h, uint32_t slot)
{
	const struct registry *r = h->attr.registry;
	uint32_t host = atomic_load(&r->slot_host_plus_1[h->attr.slot]);

	for (; slot < REGISTRY_SLOTS; slot++) {
		uint64_t used = atomic_load(&r->slots_used[slot / 64]) >> slot % 64;

		if (!used)
			slot |= 63;
		else if (used & 1 && atomic_load(&r->slot_host_plus_1[slot]) == host)
			break;
	}
	return min_u32(slot, REGISTRY_SLOTS);
}

/* The word of the process that says in its slot that it controls the port, or 0. */
static uint64_t port_controller(const struct wire_process *h, unsigned port)
{
	struct slot *slots = h->attr.slots;

	for (uint32_t s = next_beside(h, 0); s < REGISTRY_SLOTS; s = next_beside(h, s + 1))
		if (atomic_load(&slots[s].flows_controlled) >> port & 1)
			return atomic_load(&slots[s].flows_by[port]);
	return 0;
}

void flow_control_join(struct wire_process *h)
{
	for (unsigned port = 0; port < SLOT_PORTS; port++) {
		uint64_t by = port_controller(h, port);

		if (by)
			(void)slot_take(h->slot, port, by);
	}
}

int flow_control_begin(struct wire_process *h, unsigned port,
		       void (*changed)(void *user, uint16_t slot, uint32_t row), void *user)
{
	struct slot *slots = h->attr.slots;
	int ret = -EBUSY;
	uint64_t by;

	spin_lock(&h->flows_lock);
	if (!h->flows && !port_controller(h, port)) {
		h->flows = changed;
		h->flows_user = user;
		h->flows_begun++;
		ret = 0;
	}
	spin_unlock(&h->flows_lock);
	if (ret)
		return ret;
	by = flow_control_word(h);
	(void)slot_take(h->slot, port, by);
	/* Say so first, then look for the others: a process that starts in between sees our word,
	 * or we see the process. */
	atomic_fetch_or(&h->slot->flows_controlled, 1u << port);
	for (uint32_t s = next_beside(h, 0); s < REGISTRY_SLOTS; s = next_beside(h, s + 1)) {
		uint64_t old = atomic_load(&slots[s].flows_by[port]);

		if (old && !flow_control_slot(slots, old))
			flow_control_forget(&slots[s], port, old);
		(void)slot_take(&slots[s], port, by);
	}
	return 0;
}

void flow_control_end(struct wire_process *h, unsigned port)
{
	struct slot *slots = h->attr.slots;
	uint64_t by = flow_control_word(h);

	atomic_fetch_and(&h->slot->flows_controlled, ~(1u << port));
	for (uint32_t s = next_beside(h, 0); s < REGISTRY_SLOTS; s = next_beside(h, s + 1))
		flow_control_forget(&slots[s], port, by);
	spin_lock(&h->flows_lock);
	h->flows = NULL;
	spin_unlock(&h->flows_lock);
}

static void slot_look(struct wire_process *h, uint16_t slot)
{
	struct slot *s = &h->attr.slots[slot];

	for (uint32_t w = 0; w < SLOT_FLOWS / 64; w++) {
		uint64_t rows = atomic_exchange(&s->flows_happened[w], 0);

		for (; rows && h->flows; rows &= rows - 1)
			h->flows(h->flows_user, slot, w * 64 + (uint32_t)__builtin_ctzll(rows));
	}
}

void flow_control_look(struct wire_process *h)
{
	spin_lock(&h->flows_lock);
	/* Clear the summary first, as in inbox_collect. */
	atomic_fetch_and(&h->slot->inbox_summary, ~INBOX_FLOWS);
	for (uint32_t w = 0; w < INBOX_WORDS; w++) {
		uint64_t slots = atomic_exchange(&h->slot->flow_inbox[w], 0);

		for (; slots; slots &= slots - 1)
			slot_look(h, (uint16_t)(w * 64 + (uint32_t)__builtin_ctzll(slots)));
	}
	spin_unlock(&h->flows_lock);
}
