/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A slot's inbox: which other slots have something for it.  Set by anyone, emptied by the slot's
 * own process.  See struct slot for the wake-up protocol.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/registry.h"

#define INBOX_WORDS (REGISTRY_SLOTS / 64)

/* Tells slot "to" that slot "from" has stored something for it; wakes its engine if asleep. */
void inbox_raise(struct slot *to, uint16_t from);

static inline bool inbox_empty(const struct slot *s)
{
	return !atomic_load_explicit(&s->inbox_summary, memory_order_relaxed);
}

/*
 * Bits that stay set because their owner looks into those channels anyway.  A sender that finds its
 * bit set stores nothing, and the line stays shared.
 */
struct inbox_kept {
	uint64_t words[INBOX_WORDS];
	uint64_t summary;
};

void inbox_keep(struct slot *s, struct inbox_kept *kept, uint16_t from);
/* Afterwards the channel must be looked into once more. */
void inbox_unkeep(struct slot *s, struct inbox_kept *kept, uint16_t from);

/*
 * Empties the inbox, but for what is kept, into words; false if there was nothing.  Called by one
 * thread at a time, which must look into the channels named afterwards.
 */
bool inbox_collect(struct slot *s, const struct inbox_kept *kept, uint64_t words[INBOX_WORDS]);
