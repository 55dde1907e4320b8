// SPDX-License-Identifier: BSD-2-Clause
/* The peer's side of access.h: it claims slots.  revoke.c has the target's side. */
#include "reach/access.h"

#include "reach/proc.h"
#include "base/thread.h"
#include "base/clock.h"

#include <unistd.h>

/* A thread that could not find out its owner's word tries again only this often. */
#define ACCESS_SELF_NS 100000000u
/* If the table is full, a process looks only this often for a slot whose owner has died. */
#define ACCESS_LOOK_NS 1000000u

_Thread_local uint64_t access_self;
_Thread_local uint32_t access_claims;
static _Thread_local uint64_t self_failed_ns; /* 0: never */

static __attribute__((noinline, cold)) uint64_t self_find(void)
{
	no_cancellation();
	uint64_t began;

	if (self_failed_ns && clock_ns() - self_failed_ns < ACCESS_SELF_NS)
		return 0;
	began = task_began(getpid());
	/* Without the time of the start the target would take us for another process that has our
	 * number. */
	if (!began) {
		self_failed_ns = clock_ns();
		return 0;
	}
	access_self = (uint64_t)gettid() | (uint64_t)getpid() << OWNER_TASK_BITS |
		      (began & OWNER_BEGAN_MASK) << OWNER_BEGAN_SHIFT;
	return access_self;
}

void access_fork_child(void)
{
	access_self = 0;
	self_failed_ns = 0;
	proc_file_fork_child();
}

/* A look costs as much as some accesses, and a table may stay full. */
static bool may_look(const struct access_table *t)
{
	static _Atomic(uint64_t) looked_ns[16];
	_Atomic(uint64_t) *mine = &looked_ns[(uintptr_t)t / sizeof(*t) % 16];
	uint64_t now = clock_ns(), last = atomic_load_explicit(mine, memory_order_relaxed);

	return now - last >= ACCESS_LOOK_NS && atomic_compare_exchange_strong(mine, &last, now);
}

/* All slots are taken.  Looks whether the thread of one of them has died, of another one each time. */
static __attribute__((noinline, cold)) struct access_slot *claim_dead(struct access_table *t,
								      uint64_t claim)
{
	no_cancellation();
	static _Atomic(uint32_t) next;
	struct access_slot *s;
	uint64_t owner, ran_ms;

	if (!may_look(t))
		return NULL;
	s = &t->slots[atomic_fetch_add(&next, 1) % ACCESS_SLOTS];
	owner = atomic_load(&s->owner);
	if (!owner || owner_look(owner, &ran_ms) != TASK_GONE ||
	    !atomic_compare_exchange_strong(&s->owner, &owner, claim))
		return NULL;
	fence_after_rmw();
	return s;
}

bool access_claim_another(struct access_table *t, struct access *out)
{
	uint64_t me = likely(access_self) ? access_self : self_find(), claim;
	struct access_slot *s;

	if (unlikely(!me))
		return false;
	claim = access_next_word(me);
	for (uint32_t i = 0; i < ACCESS_SLOTS; i++) {
		s = &t->slots[((uint32_t)me + i) % ACCESS_SLOTS];
		if (access_slot_take(s, claim)) {
			access_claimed(t, s, out);
			return true;
		}
	}
	s = claim_dead(t, claim);
	if (s)
		access_claimed(t, s, out);
	return s;
}
