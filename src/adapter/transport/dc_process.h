/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process of an initiator, as its requests name it (pkt_dc.process): the slot, and which of the
 * slot's successive owners it is.
 */
#pragma once

#include <assert.h>

#include "registry/registry.h"

#define DC_PROCESS_SLOT_BITS 10u

static_assert(REGISTRY_SLOTS == 1u << DC_PROCESS_SLOT_BITS, "a process names its slot");

static inline uint32_t dc_process_name(uint32_t slot, uint32_t generation)
{
	return generation << DC_PROCESS_SLOT_BITS | slot;
}

/* The slot's present owner. */
static inline uint32_t dc_process(const struct slot *slots, uint32_t slot)
{
	return dc_process_name(slot,
			       atomic_load_explicit(&slots[slot].alive, memory_order_acquire));
}

/* True while the process lives; once it is false, it stays false. */
static inline bool dc_process_lives(const struct slot *slots, uint32_t process)
{
	uint32_t slot = process % REGISTRY_SLOTS;
	uint32_t generation = atomic_load_explicit(&slots[slot].alive, memory_order_acquire);

	return generation && dc_process_name(slot, generation) == process;
}
