/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A slot's inbox: which other slots have something for it.  Anyone sets bits, the slot's own
 * process clears them.  See struct slot for the wake-up protocol.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "registry/registry.h"

#define INBOX_WORDS (REGISTRY_SLOTS / 64)

/* Tells slot "to" that slot "from" has stored something for it; wakes its engine if asleep. */
void inbox_raise(struct slot *to, uint16_t from);

/* Whom the calling thread told last, since it forgot; or NULL. */
struct slot *inbox_last_raised(void);
void inbox_forget_last(void);

/* The same for a slot that controls flows: rows of slot "from" have changed. */
void inbox_raise_flows(struct slot *to, uint16_t from);
/* A bit of the summary. */
#define INBOX_FLOWS (UINT64_C(1) << 63)

static inline bool inbox_flows(const struct slot *s)
{
	return unlikely(atomic_load_explicit(&s->inbox_summary, memory_order_relaxed) &
			INBOX_FLOWS);
}

static inline bool inbox_empty(const struct slot *s)
{
	return !atomic_load_explicit(&s->inbox_summary, memory_order_relaxed);
}

/*
 * Bits that stay set because the inbox's owner looks into those channels anyway.  A sender that
 * finds its bit set stores nothing, so the line stays shared.
 */
struct inbox_kept {
	uint64_t words[INBOX_WORDS];
	uint64_t summary;
};

void inbox_keep(struct slot *s, struct inbox_kept *kept, uint16_t from);
/* The caller must look into the channel once more afterwards. */
void inbox_unkeep(struct slot *s, struct inbox_kept *kept, uint16_t from);

/*
 * Moves the bits of the inbox, but for those kept, to words.  Bit n of the result: words[n] is set,
 * and has some.  One thread at a time calls it, and must look into the named channels afterwards.
 */
uint64_t inbox_collect(struct slot *s, const struct inbox_kept *kept, uint64_t words[INBOX_WORDS]);
