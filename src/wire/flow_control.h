/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Control of congestion across processes.  One process controls the flows of a port of its host,
 * for all processes there.  It says so in its own slot, for processes that come later, and in the
 * slots of those that exist.  A process with such a word in its slot is observed (wire/tap.h), so
 * its requests make packets, and it sends as fast as the rows of its flows say.
 *
 * The controlling process may die; a process that finds the dead one's word in its own slot takes
 * the word back.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "registry/registry.h"

struct wire_process;

/* A new process calls it to find out who controls its ports. */
void flow_control_join(struct wire_process *h);

/*
 * Makes this process control the flows of a port of its host.  'changed' hears of rows in which
 * something has happened, in whichever thread makes progress, under a lock of the wire.  -EBUSY:
 * another process controls them, or this one does with another function.
 */
int flow_control_begin(struct wire_process *h, unsigned port,
		       void (*changed)(void *user, uint16_t slot, uint32_t row),
		       void *user) must_check;
/* When it has returned, nobody calls 'changed' any more, and flows are as fast as they were
 * before. */
void flow_control_end(struct wire_process *h, unsigned port);
/* Calls 'changed' for rows that have changed. */
void flow_control_look(struct wire_process *h);

/* The process that a word of flows_by names, if it lives; NULL: it has ended. */
static inline struct slot *flow_control_slot(struct slot *slots, uint64_t by)
{
	struct slot *s = &slots[by % REGISTRY_SLOTS];

	return atomic_load_explicit(&s->alive, memory_order_acquire) == by >> 32 ? s : NULL;
}

/* Frees this slot of the word of a process that has ended. */
void flow_control_forget(struct slot *own, unsigned port, uint64_t by);
