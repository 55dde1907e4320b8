// SPDX-License-Identifier: BSD-2-Clause
/* The target's side: finds who is in our memory, and when he has left.  The peers' side is
 * access.c. */
#include "reach/access.h"

#include "base/thread.h"
#include "base/clock.h"
#include "base/fence.h"
#include "base/run.h"
#include "base/spin.h"

#include <sched.h>
#include <unistd.h>

/*
 * A thread in an access makes one system call of 1 MiB at most, or copies one piece.  That takes
 * much less processor time than this: we give a thread up that has run for RUNS_ONE_MS, if all
 * threads that we wait for have run for RUNS_ALL_MS together.
 */
#define RUNS_ALL_MS 1000u
#define RUNS_ONE_MS 100u
/* How long we wait for a thread that does not run and does not let us see where it sleeps. */
#define UNKNOWN_NS 1000000000u
/* The limits on either time for a process of which we have given several claims up. */
#define OUTLAW_RUNS_MS 30u
#define MISBEHAVING_NS 20000000u
/* At most this much of the time between two looks counts.  If we, or the whole machine, did not run
 * meanwhile, the time may say nothing about what the thread did. */
#define LOOK_MOST_MS 20u

#define LOOK_FIRST_NS 20000u
#define LOOK_NS	      1000000u

/* ---- claims that were given up ---- */

/*
 * Claims of threads that have held a slot for longer than any access takes, because a handler of a
 * signal keeps them there or because they break the rules.  Nobody waits for such a claim again,
 * and we wait less long for a process that has made several.  The list is private memory, so peers
 * cannot write it.
 */
#define MISBEHAVING	   ACCESS_SLOTS
#define MISBEHAVING_CLAIMS 3

static _Atomic(uint64_t) misbehaving[MISBEHAVING];
static _Atomic(uint32_t) misbehaving_met;

static void misbehaving_remember(uint64_t owner)
{
	atomic_store(&misbehaving[atomic_fetch_add(&misbehaving_met, 1) % MISBEHAVING], owner);
}

static bool is_misbehaving(uint64_t owner)
{
	for (uint32_t i = 0; i < MISBEHAVING; i++)
		if (atomic_load_explicit(&misbehaving[i], memory_order_relaxed) == owner)
			return true;
	return false;
}

static bool process_misbehaves(uint64_t owner)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MISBEHAVING; i++) {
		uint64_t claim = atomic_load_explicit(&misbehaving[i], memory_order_relaxed);

		n += claim && owner_process(claim) == owner_process(owner);
	}
	return n >= MISBEHAVING_CLAIMS;
}

/* ---- who is in an access ---- */

/* Returns the owner's word if its thread is in an access; else 0. */
static uint64_t slot_revoke(struct access_slot *s)
{
	uint64_t owner = atomic_load(&s->owner);

	if (!owner)
		return 0;
	/*
	 * Fails a call that still has to begin.  A thread that a debugger has stopped at the entry
	 * of its system call has passed the sequence, and the call goes on from there.  If the slot
	 * has another owner by now, that owner's call fails, and it notices why.
	 */
	__atomic_store_n(&s->remote[0].iov_base, ACCESS_POISON, __ATOMIC_SEQ_CST);
	return owner;
}

static void revocation_begin(struct access_revocation *r, struct access_table *t)
{
	bool any_misbehaving = atomic_load_explicit(&misbehaving_met, memory_order_relaxed);
	pid_t me = gettid();

	r->n = 0;
	r->ran_ms = 0;
	atomic_fetch_add(&t->revocations, 1);
	/* The fence keeps what the caller has made invalid in front of our looks at the owners. */
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t i = 0; i < ACCESS_SLOTS; i++) {
		uint64_t owner = slot_revoke(&t->slots[i]);

		/* A thread that revokes is not in an access itself. */
		if (!owner || owner_tid(owner) == me || (any_misbehaving && is_misbehaving(owner)))
			continue;
		r->waits[r->n++] = (struct access_wait){
			.slot = &t->slots[i],
			.owner = owner,
			.misbehaves = any_misbehaving && process_misbehaves(owner),
		};
	}
	r->looked_ns = r->n ? clock_ns() : 0;
	r->look_again_ns = r->looked_ns + LOOK_FIRST_NS;
}

static bool ran_out(struct access_revocation *r, struct access_wait *w, uint64_t now_ms)
{
	uint64_t since = w->seen && now_ms > w->seen_ms ? now_ms - w->seen_ms : 0;

	since = min_u64(since, LOOK_MOST_MS);
	w->seen = true;
	w->seen_ms = now_ms;
	w->ran_ms += since;
	r->ran_ms += since;
	if (w->misbehaves)
		return w->ran_ms >= OUTLAW_RUNS_MS;
	return w->ran_ms >= RUNS_ONE_MS && r->ran_ms >= RUNS_ALL_MS;
}

static bool unknown_for_too_long(struct access_wait *w, uint64_t since_ns)
{
	w->unknown_ns += since_ns;
	return w->unknown_ns >= (w->misbehaves ? MISBEHAVING_NS : UNKNOWN_NS);
}

/* True if the thread will not go on with its access, or if we give it up. */
static bool slot_is_out(struct access_revocation *r, struct access_wait *w, uint64_t since_ns)
{
	uint64_t owner = w->owner, ran_ms = 0;
	bool given_up = false;

	switch (owner_look(owner, &ran_ms)) {
	case TASK_GONE:
		atomic_compare_exchange_strong(&w->slot->owner, &owner, 0);
		return true;
	case TASK_STOPPED:
	case TASK_ASLEEP:
		return true;
	case TASK_RUNS:
		given_up = ran_out(r, w, ran_ms);
		break;
	case TASK_IN_CALL:
		break;
	case TASK_UNKNOWN:
		given_up = unknown_for_too_long(w, since_ns);
		break;
	}
	if (given_up)
		misbehaving_remember(w->owner);
	return given_up;
}

static bool slot_is_left(const struct access_wait *w)
{
	return atomic_load_explicit(&w->slot->owner, memory_order_acquire) != w->owner;
}

static bool revocation_is_over(struct access_revocation *r)
{
	for (uint32_t i = 0; i < r->n;)
		if (slot_is_left(&r->waits[i]))
			r->waits[i] = r->waits[--r->n];
		else
			i++;
	return !r->n;
}

/* Looks at the threads in /proc, but only now and then, because that opens files. */
static void revocation_look(struct access_revocation *r)
{
	uint64_t now = clock_ns();
	uint64_t since_ns = min_u64(now - r->looked_ns, LOOK_MOST_MS * 1000000u);

	if (now < r->look_again_ns)
		return;
	for (uint32_t i = 0; i < r->n;)
		if (slot_is_out(r, &r->waits[i], since_ns))
			r->waits[i] = r->waits[--r->n];
		else
			i++;
	r->looked_ns = now;
	r->look_again_ns = now + LOOK_NS;
}

/* ---- without waiting ---- */

#define REVOKER_LOOKS 64u /* looks at the slots first, as most accesses end at once */

uint64_t access_revoke_ask(struct access_revoker *v)
{
	return atomic_fetch_add(&v->asked, 1) + 1;
}

/* Runs one revocation at a time, which counts for everybody who asked before it began. */
static void revoker_go_on(struct access_revoker *v, struct access_table *t)
{
	uint32_t looks = 0;
	bool over;

	if (!v->begun) {
		v->begun = atomic_load(&v->asked);
		revocation_begin(&v->now, t);
	}
	while (!(over = revocation_is_over(&v->now)) && ++looks < REVOKER_LOOKS)
		cpu_relax();
	if (!over) {
		revocation_look(&v->now);
		over = !v->now.n;
	}
	if (over) {
		atomic_store(&v->over, v->begun);
		v->begun = 0;
	}
}

bool access_revoke_over(struct access_revoker *v, struct access_table *t, uint64_t ticket)
{
	no_cancellation();

	/* Try twice, because a revocation that began before we asked does not count for us. */
	for (int i = 0; i < 2 && atomic_load(&v->over) < ticket; i++) {
		if (!spin_try(&v->busy))
			return false;
		if (atomic_load(&v->over) < ticket)
			revoker_go_on(v, t);
		spin_unlock(&v->busy);
	}
	return atomic_load(&v->over) >= ticket;
}

/* ---- waiting ---- */

/* The first looks cost nothing, as an access takes microseconds; after them we give the processor
 * away. */
void access_revoke(struct access_table *t)
{
	no_cancellation();
	struct access_revocation r;

	revocation_begin(&r, t);
	for (uint32_t round = 0; !revocation_is_over(&r); round++) {
		if (round < 256) {
			cpu_relax();
			continue;
		}
		revocation_look(&r);
		if (round < 1024)
			sched_yield();
		else
			usleep(1000);
	}
}
