// SPDX-License-Identifier: BSD-2-Clause
/*
 * The owner's word names the thread so that the target can look it up in /proc:
 *
 *     bits  0..21  number of the thread
 *          22..43  number of its process
 *          44..55  when the process began, so that another one with that number is told apart
 *          56..62  counts the thread's claims, so that a claim is told from the one before
 *              63  the mark: the target has revoked
 */
#include "reach/access.h"

#include "reach/task_state.h"
#include "base/cancel.h"
#include "base/spin.h"

#include <sched.h>
#include <unistd.h>

#define ACCESS_MARK	   (1ull << 63)
#define ACCESS_TASK_BITS   22u
#define ACCESS_BEGAN_SHIFT (2 * ACCESS_TASK_BITS)
#define ACCESS_BEGAN_BITS  12u
#define ACCESS_COUNT_SHIFT (ACCESS_BEGAN_SHIFT + ACCESS_BEGAN_BITS)
#define ACCESS_COUNT_MASK  127u

static uint64_t field(uint64_t word, unsigned shift, unsigned bits)
{
	return word >> shift & ((1ull << bits) - 1);
}

/* ---- the peer ---- */

/* The calling thread's part of its words; 0: not known yet. */
static _Thread_local uint64_t self;
static _Thread_local uint32_t claims;

static __attribute__((noinline, cold)) uint64_t self_find(void)
{
	no_cancellation();
	uint64_t began = task_began(getpid());

	self = (uint64_t)gettid() | (uint64_t)getpid() << ACCESS_TASK_BITS |
	       field(began, 0, ACCESS_BEGAN_BITS) << ACCESS_BEGAN_SHIFT;
	return self;
}

void access_fork_child(void)
{
	self = 0;
}

static bool owner_is_dead(uint64_t owner)
{
	return task_look((pid_t)field(owner, ACCESS_TASK_BITS, ACCESS_TASK_BITS),
			 (pid_t)field(owner, 0, ACCESS_TASK_BITS),
			 field(owner, ACCESS_BEGAN_SHIFT, ACCESS_BEGAN_BITS),
			 (1u << ACCESS_BEGAN_BITS) - 1) == TASK_GONE;
}

/* All are taken.  Looks at one of them, another one each time, whether its thread has died. */
static __attribute__((noinline, cold)) bool claim_dead(struct access_slot *s, uint64_t claim)
{
	uint64_t owner = atomic_load(&s->owner);

	return owner && owner_is_dead(owner) &&
	       atomic_compare_exchange_strong(&s->owner, &owner, claim);
}

bool access_claim(struct access_table *t, struct access *out)
{
	uint64_t me = likely(self) ? self : self_find();
	uint32_t first = (uint32_t)me;

	me |= (uint64_t)(++claims & ACCESS_COUNT_MASK) << ACCESS_COUNT_SHIFT;
	out->claim = me;
	for (uint32_t i = 0; i < ACCESS_SLOTS; i++) {
		struct access_slot *s = &t->slots[(first + i) % ACCESS_SLOTS];
		uint64_t free = 0;

		if (!atomic_load_explicit(&s->owner, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&s->owner, &free, me)) {
			out->slot = s;
			return true;
		}
	}
	out->slot = &t->slots[claims % ACCESS_SLOTS];
	return claim_dead(out->slot, me);
}

/* ---- the target ---- */

/* The owner's word with the mark; 0: nobody has the slot. */
static uint64_t slot_mark(struct access_slot *s)
{
	uint64_t owner = atomic_load(&s->owner);

	while (owner && !(owner & ACCESS_MARK))
		if (atomic_compare_exchange_weak(&s->owner, &owner, owner | ACCESS_MARK))
			owner |= ACCESS_MARK;
	/*
	 * A thread that a debugger has stopped at the entry of its system call has passed the
	 * sequence, and the call goes on from there.  If the slot has another owner by now, that
	 * one's call fails, and it notices why.
	 */
	if (owner)
		__atomic_store_n(&s->remote[0].iov_base, ACCESS_POISON, __ATOMIC_SEQ_CST);
	return owner;
}

/* Is the thread of that word out of the access, and will it not go on with it? */
static bool slot_is_out(struct access_slot *s, uint64_t marked)
{
	pid_t pid = (pid_t)field(marked, ACCESS_TASK_BITS, ACCESS_TASK_BITS);
	pid_t tid = (pid_t)field(marked, 0, ACCESS_TASK_BITS);

	switch (task_look(pid, tid, field(marked, ACCESS_BEGAN_SHIFT, ACCESS_BEGAN_BITS),
			  (1u << ACCESS_BEGAN_BITS) - 1)) {
	case TASK_GONE:
		atomic_compare_exchange_strong(&s->owner, &marked, 0);
		return true;
	case TASK_STOPPED:
		return true;
	case TASK_MAY_ACCESS:
		break;
	}
	return false;
}

/* The first looks cost nothing, as an access takes microseconds; then the processor is given away.
 */
static void slot_wait(struct access_slot *s, uint64_t marked)
{
	for (uint32_t round = 1; atomic_load_explicit(&s->owner, memory_order_acquire) == marked;
	     round++) {
		if (round < 256) {
			cpu_relax();
			continue;
		}
		if ((round % 64 == 0 || round >= 1024) && slot_is_out(s, marked))
			return;
		if (round < 1024)
			sched_yield();
		else
			usleep(1000);
	}
}

void access_revoke(struct access_table *t)
{
	no_cancellation();
	uint64_t marked[ACCESS_SLOTS];

	/* What the caller has made invalid comes before our looks at the owners. */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < ACCESS_SLOTS; i++)
		marked[i] = slot_mark(&t->slots[i]);
	for (uint32_t i = 0; i < ACCESS_SLOTS; i++)
		if (marked[i])
			slot_wait(&t->slots[i], marked[i]);
}
