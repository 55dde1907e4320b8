/* SPDX-License-Identifier: BSD-2-Clause */
/* A slot's inbox says which other slots have something for it.  Any process sets bits; the slot's
 * own process clears them.  See struct slot for the wake-up protocol. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "registry/registry.h"

#define INBOX_WORDS (REGISTRY_SLOTS / 64)

/* Tells slot "to" that slot "from" has stored something for it, and wakes a thread there if
 * none drives. */
void inbox_raise(struct slot *to, uint16_t from);

/* Does the same for a slot that controls flows: rows of slot "from" have changed. */
void inbox_raise_flows(struct slot *to, uint16_t from);
/* Does the same for a slot that drives an emulated function, or is its device: the function was
 * rung, or has sent an interrupt. */
void inbox_raise_emulated(struct slot *to);
/* Does the same for our own slot: the daemon has sent a datagram of queue pair 1 (wire/gsi.h). */
void inbox_raise_gsi(struct slot *own);
/* Bits of the summary. */
#define INBOX_FLOWS    (UINT64_C(1) << 63)
#define INBOX_EMULATED (UINT64_C(1) << 62)
#define INBOX_GSI      (UINT64_C(1) << 61)
#define INBOX_MARKS    (INBOX_FLOWS | INBOX_EMULATED | INBOX_GSI)

static inline bool inbox_marked(const struct slot *s, uint64_t marks)
{
	return unlikely(atomic_load_explicit(&s->inbox_summary, memory_order_relaxed) & marks);
}

static inline bool inbox_empty(const struct slot *s)
{
	return !atomic_load_explicit(&s->inbox_summary, memory_order_relaxed);
}

/* These bits stay set because the inbox's owner looks into those channels anyway.  A sender that
 * finds its bit set stores nothing, so the line stays shared. */
struct inbox_kept {
	uint64_t words[INBOX_WORDS];
	uint64_t summary;
};

void inbox_keep(struct slot *s, struct inbox_kept *kept, uint16_t from);
/* The caller must look into the channel once more afterwards. */
void inbox_unkeep(struct slot *s, struct inbox_kept *kept, uint16_t from);

/*
 * Moves the bits of the inbox to words, except those that are kept.  Bit n of the result says that
 * words[n] is set, and not 0.  One thread at a time calls this, and it must look into the channels
 * named in words afterwards.
 */
uint64_t inbox_collect(struct slot *s, const struct inbox_kept *kept, uint64_t words[INBOX_WORDS]);
