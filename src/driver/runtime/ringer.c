// SPDX-License-Identifier: BSD-2-Clause
/* See ringer.h. */
#include "driver/runtime/ringer.h"

#include <sched.h>

#include "base/clock.h"
#include "base/starved.h"
#include "base/trace.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/beside.h"
#include "driver/runtime/engine_inside.h"
#include "driver/runtime/process.h"
#include "wire/inbox.h"

/* The most yields of one call: other threads may want the processor, too, and get it first. */
#define YIELDS_MAX 2u
/* The longest stay.  An answer for which the peer's engine has to be woken takes half of it; two
 * threads that find each other take a tenth. */
#define LINGER_NS 40000u
/* A stay in vain counts twice, because others may want the processor.  After so many more of these
 * than answered stays, the next stays are twice as far apart. */
#define VAIN_WEIGHT    2u
#define VAIN_TO_DOUBLE 8u
#define VAIN_MAX       48u

bool ringer_enter(void *user)
{
	struct process *p = user;
	uint32_t asleep = SLOT_ASLEEP;

	inbox_forget_last();
	return atomic_compare_exchange_strong(p->wake, &asleep, SLOT_RINGER);
}

/* ---- making way ---- */

/* Is the engine of that slot awake, and on the processor on which we are? */
static bool engine_waits_here(const struct slot *s)
{
	return s && atomic_load_explicit(&s->wake, memory_order_relaxed) == SLOT_AWAKE &&
	       atomic_load_explicit(&s->engine_at_plus_1, memory_order_relaxed) ==
		       beside_here_plus_1();
}

/* Yields to the engine of the peer, because we then find its answer, and to our own. */
static void ringer_make_way(const struct process *p)
{
	const struct slot *peer = inbox_last_raised();

	for (unsigned n = YIELDS_MAX; n && (engine_waits_here(peer) || engine_waits_here(p->slot));
	     n--) {
		trace(engine, yielded, engine_waits_here(peer) ? "peer" : "own");
		sched_yield();
	}
}

/* ---- lingering ---- */

static bool process_has_received(struct process *p)
{
	bool any = false;

	for (uint32_t i = 0; i < p->nhcas; i++)
		any |= adapter_has_received(p->hcas[i].adapter);
	return any;
}

/* False: another thread is in the device. */
static bool ringer_progress(struct process *p)
{
	if (!spin_try(&p->engine->polling))
		return false;
	(void)process_progress(p);
	spin_unlock(&p->engine->polling);
	return true;
}

/* True: something came for which the program has waited. */
static bool ringer_await(struct process *p)
{
	uint64_t until = clock_ns() + LINGER_NS;

	do {
		if (process_has_received(p))
			return true;
		cpu_relax();
		(void)ringer_progress(p);
	} while (atomic_load_explicit(p->wake, memory_order_relaxed) == SLOT_RINGER &&
		 clock_ns() < until);
	return false;
}

/* The engine has no processor of its own where the handler finds answers, and would have to look
 * for a store that does not fault.  So the pages stay armed for a while. */
static void ringer_reckons(struct engine *e)
{
	uint64_t until = clock_ns() + STARVED_MIN_NS; /* the engine knows of longer times itself */

	if (until - atomic_load_explicit(&e->answered_until_ns, memory_order_relaxed) <
	    STARVED_MIN_NS / 8)
		return;
	atomic_store_explicit(&e->answered_until_ns, until, memory_order_relaxed);
	doorbell_keep_armed(until);
}

static bool ringer_linger(struct process *p)
{
	struct engine *e = p->engine;
	bool answered;

	if (!e->few)
		return false;
	if (e->rings_to_skip) {
		e->rings_to_skip--;
		return false;
	}
	answered = ringer_await(p);
	if (answered)
		ringer_reckons(e);
	if (!answered)
		e->unanswered = min_u32(e->unanswered + VAIN_WEIGHT, VAIN_MAX);
	else if (e->unanswered)
		e->unanswered--;
	e->rings_to_skip = (1u << (e->unanswered / VAIN_TO_DOUBLE)) - 1;
	trace(engine, lingered, answered ? "answered" : "in-vain", e->rings_to_skip);
	return answered;
}

/* ---- leaving ---- */

/*
 * Changes the word first: a peer that stores something for us later wakes the engine, and we find
 * now what was stored before.  False: another thread is in the device and may have looked already,
 * or there is more to do, so the engine has to do it.
 */
static bool ringer_look(struct process *p)
{
	uint32_t ringer = SLOT_RINGER;

	/* If the word is another by now, the engine is awake. */
	if (!atomic_compare_exchange_strong(p->wake, &ringer, SLOT_ASLEEP))
		return true;
	atomic_thread_fence(memory_order_seq_cst);
	return ringer_progress(p) && !process_owes(p);
}

unsigned ringer_leave(void *user, bool entered, bool done)
{
	struct process *p = user;
	bool answered;

	/* What came before, or from queues of this process, is no answer: forgets it. */
	(void)process_has_received(p);
	ringer_make_way(p);
	if (!entered)
		return 0;
	answered = done && ringer_linger(p);
	return (answered ? DOORBELL_ANSWERED : 0) | (ringer_look(p) ? 0 : DOORBELL_UNDONE);
}
