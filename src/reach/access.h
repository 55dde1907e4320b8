/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who is reaching into this process's memory at the moment, and how that is ended.
 *
 * A process, the target, keeps a table of slots in memory that its peers map.  A thread of a peer
 * claims a slot, looks whether the key allows the access, makes it, and releases the slot.  Whoever
 * withdraws a key makes it invalid first and then revokes:
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
 * A thread that comes again has a slot of its own, its home, by the number of the thread, and keeps
 * it.  To claim it is a store, and its fence is one of the target's (base/fence.h).  A thread whose
 * home is somebody else's takes one of the slots that are there for all, by an exchange.
 *
 * The target reads nothing from here but the owners' words, and checks them: a peer that writes
 * nonsense wastes slots.
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

#define ACCESS_SLOTS  64u /* for all */
#define ACCESS_HOMES  64u
#define ACCESS_PIECES 32u /* of the target's memory in one system call */

struct access_slot {
	/* 0: free; else see owner.h */
	cacheline_aligned _Atomic(uint64_t) owner;
	/* What the peer's system call reads when it begins; the target puts an address into the
	 * first that no memory has. */
	struct iovec remote[ACCESS_PIECES];
};

struct access_table {
	cacheline_aligned _Atomic(uint64_t) revocations; /* so many were begun */
	_Atomic(uint32_t) held;				 /* nobody enters */
	/* The homes come first. */
	struct access_slot slots[ACCESS_HOMES + ACCESS_SLOTS];
};

/* A slot that a thread holds. */
struct access {
	struct access_slot *slot;
	const _Atomic(uint64_t) *revocations; /* of the table, */
	uint64_t seen;			      /* and what it said after the claim */
	uint64_t after;			      /* the owner's word once it is released */
};

/* An address that a revoked system call finds in its list. */
#define ACCESS_POISON ((void *)(UINTPTR_MAX - 4095))

/* The calling thread's part of its words; 0: not known, and then there are no accesses. */
extern _Thread_local uint64_t access_self;
extern _Thread_local uint32_t access_claims; /* so many it has made */

/* The rest of access_claim: the thread is new to this table, or its home is not free. */
bool access_claim_new(struct access_table *t, struct access *out) must_check;

static inline uint64_t access_next_word(uint64_t me)
{
	return me | OWNER_IN | (uint64_t)(++access_claims & OWNER_COUNT_MASK) << OWNER_COUNT_SHIFT;
}

/* The looks at what the target may have made invalid come after this. */
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

	/* A word that is the thread's own says that it is at home, and was ready for fence_far. */
	if (unlikely(!me || atomic_load_explicit(&home->owner, memory_order_relaxed) != me))
		return access_claim_new(t, out);
	out->slot = home;
	out->after = me;
	atomic_store_explicit(&home->owner, access_next_word(me), memory_order_relaxed);
	fence_far_light(); /* the target has the other side of it */
	access_claimed(t, out);
	return true;
}

/* Releases it.  Whatever the thread has stored before is seen by whoever waits for that. */
static inline void access_release(const struct access *a)
{
	atomic_store_explicit(&a->slot->owner, a->after, memory_order_release);
}

/* Claims one for an access that a key allows: false, too, while the target holds them all. */
static inline must_check bool access_enter(struct access_table *t, struct access *out)
{
	if (unlikely(!access_claim(t, out)))
		return false;
	if (likely(!atomic_load_explicit(&t->held, memory_order_relaxed)))
		return true;
	access_release(out);
	return false;
}

/* Has the target revoked since the claim? */
static inline bool access_is_revoked(const struct access *a)
{
	return atomic_load_explicit(a->revocations, memory_order_acquire) != a->seen;
}

/*
 * The target has made something invalid: when this returns, no access that was allowed before it is
 * being made or will be.  Takes time: the caller holds no lock of the data path and is in no RCU
 * section; who is uses revoke.h.  A peer that keeps
 * a slot for longer than any access takes, or sleeps for a second where we cannot see it, is given
 * up; see revoke.c.
 */
void access_revoke(struct access_table *t);

/* The same for all that enter, until the second call, whatever keys say: the target's pages
 * move. */
void access_hold(struct access_table *t);
void access_go_on(struct access_table *t);

/* In a forked child: the thread has another number there, and the process is another one. */
void access_fork_child(void);
