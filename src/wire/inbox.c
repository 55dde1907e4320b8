/* SPDX-License-Identifier: BSD-2-Clause */
/* See inbox.h. */
#include "wire/inbox.h"

#include "base/futex.h"
#include "wire/wakeup_fifo.h"

/* The bits of the summary that stand for words; others set other bits there, too. */
#define INBOX_SUMMARY ((UINT64_C(1) << INBOX_WORDS) - 1)

/* Sets the bit.  It loads before it writes, so that the line stays shared while the owner is busy
 * with earlier packets. */
static bool set_bit(_Atomic(uint64_t) *word, uint64_t bit)
{
	if (atomic_load_explicit(word, memory_order_relaxed) & bit)
		return false;
	atomic_fetch_or(word, bit);
	return true;
}

static uint64_t bit_of(unsigned n)
{
	return UINT64_C(1) << (n % 64);
}

static void wake_up(struct slot *to)
{
	switch (atomic_load_explicit(&to->driver, memory_order_relaxed)) {
	case SLOT_NOBODY:
		/* The engine is woken in any case, because the thread may not come back. */
		if (!atomic_load_explicit(&to->waiter, memory_order_relaxed)) {
			futex_store_and_wake(&to->driver, SLOT_ENGINE);
			break;
		}
		futex_store_and_wake(&to->driver, SLOT_PROGRAM);
		waiter_wake(to);
		break;
	case SLOT_PROGRAM:
		if (atomic_load_explicit(&to->waiter, memory_order_relaxed))
			waiter_wake(to);
		break;
	default:
		break;
	}
}

void inbox_raise_flows(struct slot *to, uint16_t from)
{
	/* The fence does what that in inbox_raise does, for rows instead of rings. */
	atomic_thread_fence(memory_order_seq_cst);
	set_bit(&to->flow_inbox[from / 64], bit_of(from));
	set_bit(&to->inbox_summary, INBOX_FLOWS);
	wake_up(to);
}

static void raise_mark(struct slot *to, uint64_t mark)
{
	atomic_thread_fence(memory_order_seq_cst);
	set_bit(&to->inbox_summary, mark);
	wake_up(to);
}

void inbox_raise_emulated(struct slot *to)
{
	raise_mark(to, INBOX_EMULATED);
}

void inbox_raise_gsi(struct slot *own)
{
	raise_mark(own, INBOX_GSI);
}

void inbox_raise(struct slot *to, uint16_t from)
{
	/*
	 * The fence orders the store of a ring's cursor before the loads of the bits and of the
	 * slot's words 'driver' and 'waiter'.  If we still see a bit set, the owner empties the
	 * inbox later and looks at the ring later still; or the bit is kept, and the owner looks at
	 * the ring anyway.  Partners: the read-modify-writes in inbox_collect; the engine, which
	 * stores SLOT_NOBODY and then looks for work.  Setting a bit is a full fence itself.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	set_bit(&to->inbox[from / 64], bit_of(from));
	set_bit(&to->inbox_summary, bit_of(from / 64));
	wake_up(to);
}

void inbox_keep(struct slot *s, struct inbox_kept *kept, uint16_t from)
{
	kept->words[from / 64] |= bit_of(from);
	kept->summary |= bit_of(from / 64);
	set_bit(&s->inbox[from / 64], bit_of(from));
	set_bit(&s->inbox_summary, bit_of(from / 64));
}

void inbox_unkeep(struct slot *s, struct inbox_kept *kept, uint16_t from)
{
	kept->words[from / 64] &= ~bit_of(from);
	if (!kept->words[from / 64])
		kept->summary &= ~bit_of(from / 64);
	/* The summary's bit is cleared by the next collection. */
	atomic_fetch_and(&s->inbox[from / 64], ~bit_of(from));
}

uint64_t inbox_collect(struct slot *s, const struct inbox_kept *kept, uint64_t words[INBOX_WORDS])
{
	uint64_t summary = atomic_load_explicit(&s->inbox_summary, memory_order_relaxed);
	uint64_t filled = 0;

	/*
	 * Clears the summary first: a bit that is set between the two steps sets the summary again.
	 * The operations are sequentially consistent, so that the owner looks at the rings after it
	 * has cleared the bits.
	 */
	if (summary & ~kept->summary & INBOX_SUMMARY)
		atomic_fetch_and(&s->inbox_summary, kept->summary | ~INBOX_SUMMARY);
	for (summary &= INBOX_SUMMARY; summary; summary &= summary - 1) {
		unsigned w = (unsigned)__builtin_ctzll(summary);

		if (!(atomic_load_explicit(&s->inbox[w], memory_order_relaxed) & ~kept->words[w]))
			continue;
		words[w] = atomic_fetch_and(&s->inbox[w], kept->words[w]) & ~kept->words[w];
		if (words[w])
			filled |= bit_of(w);
	}
	return filled;
}
