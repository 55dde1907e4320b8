/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says who is reaching into this process's memory at the moment, and lets the process end that.
 *
 * A process, the target, keeps a table of slots in memory that its peers map.  A thread of a peer
 * claims a slot, looks whether the key allows the access, makes it, and releases the slot.  A
 * target that withdraws a key makes it invalid first and then revokes:
 *
 *     peer                                    target
 *     claims a slot                           makes the key invalid
 *     (full fence)                            counts the revocation (full fence)
 *     looks at the count, then at the key     looks who has claimed a slot
 *     looks at the count again, and accesses  waits until those have ended their access
 *
 * So either the peer sees that the key is invalid, or the target sees the claim.  The peer's second
 * look is in the restartable sequence of the access itself (base/rseq.h): a thread that is stopped
 * before its access does not make it when it goes on.  So the target waits only for threads that
 * are in the middle of an access, never for one that is stopped; a stopped thread keeps its slot
 * until it goes on or dies.
 *
 * A thread looks for a free slot from the one on that its number selects, so threads seldom meet.
 *
 * The target reads only the owners' words of the table, and checks them, so a peer that writes
 * nonsense merely wastes slots.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/compiler.h"
#include "base/fence.h"
#include "base/spin.h"
#include "reach/proc.h"

/*
 * The owner's word of a slot names the thread so that the target can look it up in /proc:
 *
 *     bits  0..21  number of the thread
 *          22..43  number of its process
 *          44..55  when the process began, so that another one with that number is told apart
 *          56..63  counts the thread's claims, so that a claim is told from the one before
 */

#define OWNER_TASK_BITS	  22u
#define OWNER_BEGAN_SHIFT (2 * OWNER_TASK_BITS)
#define OWNER_BEGAN_BITS  12u
#define OWNER_BEGAN_MASK  ((1ull << OWNER_BEGAN_BITS) - 1)
#define OWNER_COUNT_SHIFT (OWNER_BEGAN_SHIFT + OWNER_BEGAN_BITS)
#define OWNER_COUNT_MASK  255u

static inline uint64_t owner_field(uint64_t owner, unsigned shift, unsigned bits)
{
	return owner >> shift & ((1ull << bits) - 1);
}

static inline pid_t owner_pid(uint64_t owner)
{
	return (pid_t)owner_field(owner, OWNER_TASK_BITS, OWNER_TASK_BITS);
}

static inline pid_t owner_tid(uint64_t owner)
{
	return (pid_t)owner_field(owner, 0, OWNER_TASK_BITS);
}

/* The word's process, and when it began. */
static inline uint64_t owner_process(uint64_t owner)
{
	return owner_field(owner, OWNER_TASK_BITS, OWNER_TASK_BITS + OWNER_BEGAN_BITS);
}

/* What the word's thread does.  Every word names a thread: a word of nonsense names one that has
 * ended.  Opens files.  For a thread that runs, *ran_ms says how long, see task_look. */
static inline enum task_state owner_look(uint64_t owner, uint64_t *ran_ms)
{
	return task_look(owner_pid(owner), owner_tid(owner),
			 owner_field(owner, OWNER_BEGAN_SHIFT, OWNER_BEGAN_BITS), OWNER_BEGAN_MASK,
			 ran_ms);
}

#define ACCESS_SLOTS  128u
#define ACCESS_PIECES 32u /* of the target's memory in one system call */

struct access_slot {
	/* 0: free; else the word above */
	cacheline_aligned _Atomic(uint64_t) owner;
	/* The peer's system call reads this list when it begins.  The target puts an address that
	 * no memory has into the first entry, so that the call fails. */
	struct iovec remote[ACCESS_PIECES];
};

struct access_table {
	cacheline_aligned _Atomic(uint64_t) revocations; /* revocations that were begun */
	struct access_slot slots[ACCESS_SLOTS];
};

/* A slot that a thread holds. */
struct access {
	struct access_slot *slot;
	const _Atomic(uint64_t) *revocations; /* of the table */
	uint64_t seen;			      /* their number after the claim */
};

/* The address that a revoked system call finds in its list. */
#define ACCESS_POISON ((void *)(UINTPTR_MAX - 4095))

/* The calling thread's part of the owners' words that it stores; 0: it is not known, so the thread
 * makes no accesses. */
extern _Thread_local uint64_t access_self;
extern _Thread_local uint32_t access_claims; /* claims that it has made */

/* The slower part of access_claim: the thread does not know its word, or the slot that its number
 * selects is not free. */
bool access_claim_another(struct access_table *t, struct access *out) must_check;

static inline uint64_t access_next_word(uint64_t me)
{
	return me | (uint64_t)(++access_claims & OWNER_COUNT_MASK) << OWNER_COUNT_SHIFT;
}

/* Notes the count of revocations after the claim.  The looks at what the target may have made
 * invalid come after this. */
static inline void access_claimed(struct access_table *t, struct access_slot *s, struct access *out)
{
	out->slot = s;
	out->revocations = &t->revocations;
	out->seen = atomic_load_explicit(&t->revocations, memory_order_acquire);
}

/* Takes the slot if it is free. */
static inline bool access_slot_take(struct access_slot *s, uint64_t claim)
{
	uint64_t free = 0;

	if (atomic_load_explicit(&s->owner, memory_order_relaxed) ||
	    !atomic_compare_exchange_strong(&s->owner, &free, claim))
		return false;
	/* This comes before the caller's looks at what the target may have made invalid. */
	fence_after_rmw();
	return true;
}

/* Claims a slot for the calling thread.  False: all are taken by threads that live. */
static inline must_check bool access_claim(struct access_table *t, struct access *out)
{
	uint64_t me = access_self;
	struct access_slot *s = &t->slots[(uint32_t)me % ACCESS_SLOTS];

	if (unlikely(!me || !access_slot_take(s, access_next_word(me))))
		return access_claim_another(t, out);
	access_claimed(t, s, out);
	return true;
}

/* Releases the slot.  A target that waits for the release sees all that the thread has stored
 * before. */
static inline void access_release(const struct access *a)
{
	atomic_store_explicit(&a->slot->owner, 0, memory_order_release);
}

/* Has the target revoked since the claim? */
static inline bool access_is_revoked(const struct access *a)
{
	return atomic_load_explicit(a->revocations, memory_order_acquire) != a->seen;
}

/*
 * The target has made something invalid.  When this returns, no access that was allowed before is
 * in progress, and none will be made.  It takes time, so the caller must hold no lock of the data
 * path and be no reader; a caller that does asks for it (access_revoke_ask).  A target gives up a
 * peer that keeps a slot for longer than any access takes, or that sleeps for a second where we
 * cannot see it; see revoke.c.
 */
void access_revoke(struct access_table *t);

/* A forked child calls this: the thread has another number there, and the process is another
 * one. */
void access_fork_child(void);

/*
 * Revoking for callers that may not wait: a thread in the middle of the data path asks
 * for a revocation, does something else, and comes back to see whether it is over.
 */

/* A thread that we have found in an access. */
struct access_wait {
	struct access_slot *slot;
	uint64_t owner;
	bool misbehaves;  /* several threads of its process have not let go in time */
	bool seen;	  /* we have seen it run before */
	uint64_t seen_ms; /* its processor time then */
	uint64_t ran_ms;  /* since the first look */
	uint64_t unknown_ns;
};

/* All threads that were in an access when the revocation began, and none that came later. */
struct access_revocation {
	uint32_t n; /* threads that may still be in the access */
	uint64_t looked_ns, look_again_ns;
	uint64_t ran_ms; /* of all threads together */
	struct access_wait waits[ACCESS_SLOTS];
};

/* Private memory of the target; zeros at first. */
struct access_revoker {
	_Atomic(uint64_t) asked, over; /* tickets */
	struct spin busy;	       /* of the members below; nobody waits for it */
	/* The last ticket that 'now' serves; 0: no revocation is under way. */
	uint64_t begun;
	struct access_revocation now;
};

/* Call it when something has been made invalid.  Returns a ticket to ask with. */
uint64_t access_revoke_ask(struct access_revoker *v);
/* True if the revocation is over, in the sense of access_revoke.  Takes some microseconds; the
 * caller calls it again if it is false. */
bool access_revoke_over(struct access_revoker *v, struct access_table *t, uint64_t ticket);
