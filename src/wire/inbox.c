/* SPDX-License-Identifier: BSD-2-Clause */
/* See inbox.h. */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wire/inbox.h"

/* Looks before it writes: the line stays shared while the owner is busy with earlier packets. */
static void set_bit(_Atomic(uint64_t) *word, uint64_t bit)
{
	if (!(atomic_load_explicit(word, memory_order_relaxed) & bit))
		atomic_fetch_or(word, bit);
}

void inbox_raise(struct slot *to, uint16_t from)
{
	uint32_t asleep = SLOT_ASLEEP;

	/*
	 * Before: the store of a ring's cursor.  After: the look at the bit.  If the bit is still
	 * seen set, the owner's emptying of the inbox comes later and its look at the ring later
	 * still.  Partner: the exchanges in inbox_collect.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	set_bit(&to->inbox[from / 64], UINT64_C(1) << (from % 64));
	set_bit(&to->inbox_summary, UINT64_C(1) << (from / 64));
	/* Before: the bits.  After: the look at the wake word.  Partner: the engine, which stores
	 * ASLEEP and then looks at the inbox. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&to->wake, memory_order_relaxed) == SLOT_ASLEEP &&
	    atomic_compare_exchange_strong(&to->wake, &asleep, SLOT_AWAKE))
		syscall(SYS_futex, &to->wake, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool inbox_collect(struct slot *s, uint64_t words[INBOX_WORDS])
{
	/* Summary first: a bit set between the two exchanges sets the summary again.  Sequentially
	 * consistent, so that what is in the rings is looked at after the bits were cleared. */
	uint64_t summary = atomic_exchange(&s->inbox_summary, 0);

	for (unsigned w = 0; w < INBOX_WORDS; w++)
		words[w] = summary >> w & 1 ? atomic_exchange(&s->inbox[w], 0) : 0;
	return summary != 0;
}
