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
#include "base/run.h"
#include "base/spin.h"

#include <sched.h>
#include <unistd.h>

#define ACCESS_MARK	   (1ull << 63)
#define ACCESS_TASK_BITS   22u
#define ACCESS_BEGAN_SHIFT (2 * ACCESS_TASK_BITS)
#define ACCESS_BEGAN_BITS  12u
#define ACCESS_COUNT_SHIFT (ACCESS_BEGAN_SHIFT + ACCESS_BEGAN_BITS)
#define ACCESS_COUNT_MASK  127u

/* A thread that is marked makes one system call of 256 KiB at most, or one piece of a copy: that
 * takes no such time of a processor. */
#define ACCESS_LONGEST_MS 1000u
#define ACCESS_LOOK_MS	  20u /* counts at most of the time between two looks */
#define ACCESS_OUTLAWS	  16u

static uint64_t field(uint64_t word, unsigned shift, unsigned bits)
{
	return word >> shift & ((1ull << bits) - 1);
}

static pid_t owner_pid(uint64_t owner)
{
	return (pid_t)field(owner, ACCESS_TASK_BITS, ACCESS_TASK_BITS);
}

static pid_t owner_tid(uint64_t owner)
{
	return (pid_t)field(owner, 0, ACCESS_TASK_BITS);
}

/* ---- the peer ---- */

/* The calling thread's part of its words; 0: not known, and then there are no accesses. */
static _Thread_local uint64_t self;
static _Thread_local uint32_t claims;

static __attribute__((noinline, cold)) uint64_t self_find(void)
{
	no_cancellation();
	uint64_t began = task_began(getpid());

	/* Without it the target would take us for another process that has our number. */
	if (!began)
		return 0;
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
	return task_look(owner_pid(owner), owner_tid(owner),
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

	if (unlikely(!me))
		return false;
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

/*
 * Claims of threads that have held a slot, and run, for longer than any access takes: a handler of
 * a signal keeps them, or they do not keep the rules.  Nobody waits for such a claim again, nor for
 * a process that has made several.  Private memory: peers cannot write here.
 */
#define ACCESS_OUTLAW_CLAIMS 3

static _Atomic(uint64_t) outlaws[ACCESS_OUTLAWS];
static _Atomic(uint32_t) outlaws_met;

/* The process of that word, and when it began. */
static uint64_t outlaw_name(uint64_t owner)
{
	return field(owner, ACCESS_TASK_BITS, ACCESS_TASK_BITS + ACCESS_BEGAN_BITS);
}

static bool outlaw_is(uint64_t owner)
{
	uint32_t claims_met = 0;

	for (uint32_t i = 0; i < ACCESS_OUTLAWS; i++) {
		uint64_t claim = atomic_load_explicit(&outlaws[i], memory_order_relaxed);

		if (claim == owner)
			return true;
		claims_met += claim && outlaw_name(claim) == outlaw_name(owner);
	}
	return claims_met >= ACCESS_OUTLAW_CLAIMS;
}

static void outlaw_remember(uint64_t owner)
{
	atomic_store(&outlaws[atomic_fetch_add(&outlaws_met, 1) % ACCESS_OUTLAWS], owner);
}

/* A wait for a thread that is marked. */
struct slot_wait {
	uint64_t marked;
	uint64_t seen_ms; /* of its processor time at the last look; 0: none yet */
	uint64_t ran_ms;  /* since the first look */
};

/*
 * Has it run for too long?  Of the time between two looks little counts: if we, or the whole
 * machine, did not run meanwhile, the thread's time may say nothing about what it did.
 */
static bool slot_ran_out(struct slot_wait *w)
{
	uint64_t now = task_ran_ms(owner_pid(w->marked), owner_tid(w->marked));

	if (w->seen_ms && now > w->seen_ms)
		w->ran_ms += min_u64(now - w->seen_ms, ACCESS_LOOK_MS);
	w->seen_ms = now;
	if (w->ran_ms < ACCESS_LONGEST_MS)
		return false;
	outlaw_remember(w->marked);
	return true;
}

/* Is the thread of that word out of the access, and will it not go on with it? */
static bool slot_is_out(struct access_slot *s, struct slot_wait *w)
{
	uint64_t marked = w->marked;

	switch (task_look(owner_pid(marked), owner_tid(marked),
			  field(marked, ACCESS_BEGAN_SHIFT, ACCESS_BEGAN_BITS),
			  (1u << ACCESS_BEGAN_BITS) - 1)) {
	case TASK_GONE:
		atomic_compare_exchange_strong(&s->owner, &marked, 0);
		return true;
	case TASK_STOPPED:
		return true;
	case TASK_MAY_ACCESS:
		break;
	}
	return slot_ran_out(w);
}

/* The first looks cost nothing, as an access takes microseconds; then the processor is given away.
 */
static void slot_wait(struct access_slot *s, uint64_t marked)
{
	struct slot_wait w = {.marked = marked};

	/* Who revokes makes no access. */
	if (owner_tid(marked) == gettid() || outlaw_is(marked))
		return;
	for (uint32_t round = 1; atomic_load_explicit(&s->owner, memory_order_acquire) == marked;
	     round++) {
		if (round < 256) {
			cpu_relax();
			continue;
		}
		if ((round % 64 == 0 || round >= 1024) && slot_is_out(s, &w))
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
