// SPDX-License-Identifier: BSD-2-Clause
/* Rings of event queues: see eq.h. */
#include "driver/devx/eq.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "base/trace.h"
#include "usermem/usermem.h"

#define EQ_INDEX_MASK 0xffffffu

static struct {
	struct spin lock;
	struct eq_ring *first;
} rings;

/* Lock held. */
static void eq_fire(struct eq_ring *eq)
{
	const uint64_t one = 1;

	eq->armed = false;
	trace(eq, fired, eq->number, eq->pi);
	if (hidden_ours(&eq->vector))
		(void)!syscall(SYS_write, eq->vector.fd, &one, sizeof(one));
}

/* Lock held. */
static void eq_notify(struct eq_ring *eq)
{
	if (eq->pi != eq->ci &&
	    (eq->armed || atomic_load_explicit(&eq->shares, memory_order_relaxed)))
		eq_fire(eq);
}

/* The program says the index, so this checks that it has not consumed what has not come. */
void eq_consumed(struct eq_ring *eq, uint32_t ci, bool arms)
{
	spin_lock(&eq->lock);
	ci &= EQ_INDEX_MASK;
	if (((eq->pi - ci) & EQ_INDEX_MASK) <= eq->entries)
		eq->ci = ci;
	eq->armed |= arms;
	if (arms)
		eq_notify(eq);
	spin_unlock(&eq->lock);
}

static void eq_overrun(struct eq_ring *eq)
{
	if (!eq->overrun)
		log_warn("EQ 0x%x: overrun, %u entries and none consumed", eq->number, eq->entries);
	eq->overrun = true;
}

void eq_push(struct eq_ring *eq, const uint8_t eqe[EQE_BYTES])
{
	_Alignas(uint64_t) uint8_t entry[EQE_BYTES];
	uint8_t *at;

	__builtin_memcpy(entry, eqe, sizeof(entry));
	spin_lock(&eq->lock);
	if (((eq->pi - eq->ci) & EQ_INDEX_MASK) >= eq->entries && !eq->overrun_ignore) {
		eq_overrun(eq);
		goto unlock;
	}
	prm_set(entry, EQE_OWNER, !!(eq->pi & eq->entries));
	at = eq->entry + (size_t)(eq->pi & (eq->entries - 1)) * EQE_BYTES;
	if (!usermem_publish(at, entry, sizeof(entry)))
		goto unlock;
	eq->pi = (eq->pi + 1) & EQ_INDEX_MASK;
	eq_notify(eq);
unlock:
	spin_unlock(&eq->lock);
}

void eq_push_all(const struct ufile *f, enum eqe_type type, const uint8_t eqe[EQE_BYTES])
{
	spin_lock(&rings.lock);
	for (struct eq_ring *eq = rings.first; eq; eq = eq->next)
		if (eq->file == f && eq->events[type / 64 % 4] >> type % 64 & 1)
			eq_push(eq, eqe);
	spin_unlock(&rings.lock);
}

void eq_bell(uint32_t region, uint32_t number, uint32_t ci)
{
	spin_lock(&rings.lock);
	for (struct eq_ring *eq = rings.first; eq; eq = eq->next)
		if (eq->region == region && eq->number == number)
			eq_consumed(eq, ci, false);
	spin_unlock(&rings.lock);
}

void eq_link(struct eq_ring *eq)
{
	spin_lock(&rings.lock);
	for (struct eq_ring *o = rings.first; o; o = o->next)
		if (o->file == eq->file && o->region == eq->region)
			o->shares = eq->shares = true;
	eq->next = rings.first;
	rings.first = eq;
	spin_unlock(&rings.lock);
}

void eq_unlink(struct eq_ring *eq)
{
	struct eq_ring **at = &rings.first;

	spin_lock(&rings.lock);
	while (*at && *at != eq)
		at = &(*at)->next;
	if (*at)
		*at = eq->next;
	spin_unlock(&rings.lock);
}
