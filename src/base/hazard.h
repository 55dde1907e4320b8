/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hazard pointers (Michael, 2004): objects that are looked up without a lock and freed by other
 * threads.
 *
 * A reader is a thread between hazard_enter and hazard_leave.  It looks at tables, and holds each
 * object that it finds there (hazard_take) until it leaves.  The control path takes an object out
 * of the table, waits for the readers that hold it (hazard_wait), and frees it.  It does not wait
 * for readers of other objects: with more threads than processors, one of those may have lost its
 * processor for milliseconds.  So grace periods (liburcu) do not serve here: the program waited
 * 21 ms for each ibv_dereg_mr beside four threads that sent.
 *
 * Sections nest, also in a signal handler that interrupts one.  Nobody waits for readers inside a
 * section.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/fence.h"
#include "base/checkers.h"

/* The number of objects that a section may hold.  One that needs more counts as a holder of all. */
#define HAZARD_HELD 32u

/* The state of a thread: the number of its section in the low bits, the depth above. */
#define HAZARD_SECTION 0xffffu
#define HAZARD_DEPTH   (HAZARD_SECTION + 1)

/* What one thread holds.  Only the thread itself writes its state and list. */
struct hazard_record {
	_Atomic(uint32_t) state;
	_Atomic(uint32_t) full;	 /* the last section that had no room */
	_Atomic(int32_t) thread; /* the owner's; 0: nobody's */
	/* Address and, in the low 16 bits, the section; what others have written is free. */
	_Atomic(uint64_t) held[HAZARD_HELD];
} __attribute__((aligned(64)));

/* The calling thread's record; NULL: it has never entered a section. */
extern _Thread_local struct hazard_record *hazard_self __attribute__((tls_model("initial-exec")));

#ifdef TSAN_WATCHES
void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
extern char hazard_tsan_token; /* the sanitizer does not see the order that fence_heavy makes */
#endif

/* Gives the calling thread a record. */
struct hazard_record *hazard_register(void) __attribute__((cold));
/* Finds room for an object whose place in the list is taken. */
void hazard_hold_elsewhere(struct hazard_record *r, uint64_t mark, unsigned at)
	__attribute__((cold));

static inline void hazard_enter(void)
{
	struct hazard_record *r = likely(hazard_self) ? hazard_self : hazard_register();
	uint32_t state = atomic_load_explicit(&r->state, memory_order_relaxed);

	if (state < HAZARD_DEPTH)
		state = (state + 1) & HAZARD_SECTION;
	atomic_store_explicit(&r->state, state + HAZARD_DEPTH, memory_order_relaxed);
	fence_light();
}

static inline void hazard_leave(void)
{
	struct hazard_record *r = hazard_self;

#ifdef TSAN_WATCHES
	__tsan_release(&hazard_tsan_token);
#endif
	atomic_store_explicit(&r->state,
			      atomic_load_explicit(&r->state, memory_order_relaxed) - HAZARD_DEPTH,
			      memory_order_release);
}

/* Is the calling thread in a section? */
static inline bool hazard_inside(void)
{
	const struct hazard_record *r = hazard_self;

	return r && atomic_load_explicit(&r->state, memory_order_relaxed) >= HAZARD_DEPTH;
}

/*
 * Holds the object until the section ends.  Whoever frees it has to find it held.  So after true,
 * which says that it was not held before, the caller looks whether it is still where it was found,
 * unless it has a lock that the other takes.  Outside a section nothing is held.
 */
static inline bool hazard_hold(const void *object)
{
	struct hazard_record *r = hazard_self;
	unsigned at = (unsigned)((uintptr_t)object >> 6) % HAZARD_HELD;
	uint64_t mark, old;

	if (unlikely(!r))
		return false;
	mark = (uint64_t)(uintptr_t)object << 16 |
	       (uint16_t)atomic_load_explicit(&r->state, memory_order_relaxed);
	old = atomic_load_explicit(&r->held[at], memory_order_relaxed);
	if (old == mark)
		return false;
	if (likely((uint16_t)(old ^ mark)))
		atomic_store_explicit(&r->held[at], mark, memory_order_relaxed);
	else
		hazard_hold_elsewhere(r, mark, at);
	fence_light();
	return true;
}

/* Holds and returns the object at a place of a table; NULL: there is none. */
#define hazard_take(place)                                                                  \
	({                                                                                  \
		__auto_type at_ = (place);                                                  \
		__auto_type found_ = atomic_load_explicit(at_, memory_order_acquire);       \
                                                                                            \
		while (found_ && hazard_hold((const void *)found_) &&                       \
		       unlikely(atomic_load_explicit(at_, memory_order_acquire) != found_)) \
			found_ = atomic_load_explicit(at_, memory_order_acquire);           \
		found_;                                                                     \
	})

/* Waits until no reader holds the object of that many bytes, or one inside it.  No table leads to
 * it any more. */
void hazard_wait(const void *object, size_t bytes);
/* Waits until all sections have ended that are open now.  For what readers do not hold. */
void hazard_wait_all(void);

/* The child of a fork has one thread only. */
void hazard_fork_child(void);
