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
 *     (fence)                                 counts the revocation (full fence, fence_far)
 *     looks at the count, then at the key     looks who has claimed a slot
 *     looks at the count again, and accesses  waits until those have ended their access
 *
 * So either the peer sees that the key is invalid, or the target sees the claim.  The peer's second
 * look is in the restartable sequence of the access itself (base/rseq.h): a thread that is stopped
 * before its access does not make it when it goes on.  So the target waits only for threads that
 * are in the middle of an access, never for one that is stopped; a stopped thread keeps its slot
 * until it goes on or dies.
 *
 * Each thread has a home, a slot that its number selects.  A thread that comes again keeps its home
 * as its own: it claims it by a plain store, because the target makes the fence for it
 * (base/fence.h).  A thread whose home is another thread's takes one of the slots that are there
 * for all, by an exchange.
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
#include "reach/owner.h"

#define ACCESS_SLOTS  64u /* the slots for all threads */
#define ACCESS_HOMES  64u
#define ACCESS_PIECES 32u /* of the target's memory in one system call */

struct access_slot {
	/* 0: free; else see owner.h */
	cacheline_aligned _Atomic(uint64_t) owner;
	/* The peer's system call reads this list when it begins.  The target puts an address that
	 * no memory has into the first entry, so that the call fails. */
	struct iovec remote[ACCESS_PIECES];
};

struct access_table {
	cacheline_aligned _Atomic(uint64_t) revocations; /* revocations that were begun */
	/* The homes come first. */
	struct access_slot slots[ACCESS_HOMES + ACCESS_SLOTS];
};

/* A slot that a thread holds. */
struct access {
	struct access_slot *slot;
	const _Atomic(uint64_t) *revocations; /* of the table */
	uint64_t seen;			      /* their number after the claim */
	uint64_t after;			      /* what the owner's word becomes with the release */
};

/* The address that a revoked system call finds in its list. */
#define ACCESS_POISON ((void *)(UINTPTR_MAX - 4095))

/* The calling thread's part of the owners' words that it stores; 0: it is not known, so the thread
 * makes no accesses. */
extern _Thread_local uint64_t access_self;
extern _Thread_local uint32_t access_claims; /* claims that it has made */

/* The slower part of access_claim: the thread is new to this table, or its home is not free. */
bool access_claim_new(struct access_table *t, struct access *out) must_check;

static inline uint64_t access_next_word(uint64_t me)
{
	return me | OWNER_IN | (uint64_t)(++access_claims & OWNER_COUNT_MASK) << OWNER_COUNT_SHIFT;
}

/* Notes the count of revocations after the claim.  The looks at what the target may have made
 * invalid come after this. */
static inline void access_claimed(struct access_table *t, struct access *out)
{
	out->revocations = &t->revocations;
	out->seen = atomic_load_explicit(&t->revocations, memory_order_acquire);
}

/* Claims a slot for the calling thread.  False: all are taken by threads that live. */
static inline must_check bool access_claim(struct access_table *t, struct access *out)
{
	uint64_t me = access_self;
	struct access_slot *home = &t->slots[(uint32_t)me % ACCESS_HOMES];

	/* If the word is the thread's own, the thread is at home here, and was ready for
	 * fence_far. */
	if (unlikely(!me || atomic_load_explicit(&home->owner, memory_order_relaxed) != me))
		return access_claim_new(t, out);
	out->slot = home;
	out->after = me;
	atomic_store_explicit(&home->owner, access_next_word(me), memory_order_relaxed);
	fence_far_light(); /* the target's fence_far is its partner */
	access_claimed(t, out);
	return true;
}

/* Releases the slot.  A target that waits for the release sees all that the thread has stored
 * before. */
static inline void access_release(const struct access *a)
{
	atomic_store_explicit(&a->slot->owner, a->after, memory_order_release);
}

/* Has the target revoked since the claim? */
static inline bool access_is_revoked(const struct access *a)
{
	return atomic_load_explicit(a->revocations, memory_order_acquire) != a->seen;
}

/*
 * The target has made something invalid.  When this returns, no access that was allowed before is
 * in progress, and none will be made.  It takes time, so the caller must hold no lock of the data
 * path and be no reader; a caller that does uses revoke.h.  A target gives up a peer that
 * keeps a slot for longer than any access takes, or that sleeps for a second where we cannot see
 * it; see revoke.c.
 */
void access_revoke(struct access_table *t);

/* A forked child calls this: the thread has another number there, and the process is another
 * one. */
void access_fork_child(void);
