/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two locks for the data path.
 *
 * struct spin: the holder keeps it for a bounded number of instructions, never across a system
 * call.  After some rounds a waiter yields, because on a machine with few CPUs the holder may be
 * descheduled.
 *
 * struct baton: "exactly one thread processes this queue".  States of the word:
 *   0 IDLE     nobody holds it            -> HELD by baton_enter
 *   1 HELD     one thread works           -> PENDING by another's baton_enter,
 *                                            IDLE by the holder's baton_leave
 *   2 PENDING  the holder must look again -> HELD by the holder's baton_leave,
 *                                            which then says "go round again"
 * A thread that adds work calls baton_enter afterwards; if that fails, it has told the holder and
 * goes away.  Nothing is lost and nobody waits.
 */
#pragma once

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

struct spin {
	_Atomic(unsigned) word;
};

static inline bool spin_try(struct spin *s)
{
	return atomic_exchange_explicit(&s->word, 1, memory_order_acquire) == 0;
}

static inline void spin_lock(struct spin *s)
{
	unsigned round = 0;

	while (!spin_try(s)) {
		while (atomic_load_explicit(&s->word, memory_order_relaxed)) {
			if (++round % 256)
				cpu_relax();
			else
				sched_yield();
		}
	}
}

static inline void spin_unlock(struct spin *s)
{
	atomic_store_explicit(&s->word, 0, memory_order_release);
}

enum baton_state { BATON_IDLE, BATON_HELD, BATON_PENDING };

struct baton {
	_Atomic(unsigned) word;
};

/*
 * True: the caller now holds the baton and must process, then call baton_leave.  The exchange is a
 * read-modify-write even when the word stays PENDING, so that the holder's next look sees what the
 * caller stored before.
 */
static inline bool baton_enter(struct baton *b)
{
	unsigned old = atomic_load_explicit(&b->word, memory_order_relaxed);
	unsigned next;

	do {
		next = old == BATON_IDLE ? BATON_HELD : BATON_PENDING;
	} while (!atomic_compare_exchange_weak(&b->word, &old, next));
	return next == BATON_HELD;
}

/* False: the caller still holds the baton and must process once more. */
static inline bool baton_leave(struct baton *b)
{
	unsigned old = BATON_HELD;

	if (atomic_compare_exchange_strong(&b->word, &old, BATON_IDLE))
		return true;
	atomic_store(&b->word, BATON_HELD);
	return false;
}

/* Takes the baton, waiting for its holder (control path: modify, destroy). */
static inline void baton_take(struct baton *b)
{
	unsigned round = 0;
	unsigned old = BATON_IDLE;

	while (!atomic_compare_exchange_weak(&b->word, &old, BATON_HELD)) {
		old = BATON_IDLE;
		if (++round % 256)
			cpu_relax();
		else
			sched_yield();
	}
}
