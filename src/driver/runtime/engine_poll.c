// SPDX-License-Identifier: BSD-2-Clause
/* What threads of the program do for the engine when they poll. */
#include <sched.h>

#include "base/clock.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/engine.h"
#include "driver/runtime/engine_inside.h"
#include "driver/runtime/process.h"
#include "registry/registry.h"

/* A program that has polled in vain so often lets the engine know, so that senders are spared the
 * wake-up. */
#define POLLS_PER_NOTICE 64u
/* For so long after such a notice no thread takes the engine's place to wait for an event. */
#define NO_READER_NS 20000000u
/* After so many polls in a row that found another thread in the device the poller yields; they take
 * some 10 us where processors are few. */
#define REFUSALS 256u
/* A program that polls fewer times than this between two questions does not poll for others. */
#define POLLS_OF_OTHERS 3u

bool engine_relies_on_readers(struct process *p)
{
	return engine_trusts_pollers(p->engine, clock_ns());
}

/* There have been POLLS_PER_NOTICE more polls.  If a thread has made them in a row, it needs no
 * other thread that is woken in its place. */
static void engine_notice_poller(struct engine *e, uint64_t now)
{
	uint64_t last = atomic_exchange_explicit(&e->noticed_at, now, memory_order_relaxed);

	poller_note(&e->poller);
	if (!engine_trusts_pollers(e, now))
		return;
	if (now - last <= (uint64_t)POLLS_PER_NOTICE * ENGINE_POLL_APART_NS)
		atomic_store_explicit(&e->no_reader_before, now + NO_READER_NS,
				      memory_order_relaxed);
	else if (engine_is_stood_for(atomic_load_explicit(e->wake, memory_order_relaxed)))
		return;
	engine_kick(e->process);
}

/* Is the engine awake, or will it look before long? */
static bool engine_is_near(const struct engine *e)
{
	uint32_t word = atomic_load_explicit(e->wake, memory_order_relaxed);

	return word != SLOT_ASLEEP && (!engine_is_stood_for(word) ||
				       atomic_load_explicit(&e->watching, memory_order_relaxed));
}

/* Another thread is in the device.  If it has been there for longer than that takes, it may wait
 * for the processor on which we poll, and all would wait for the end of our slice: so we yield. */
static __attribute__((noinline)) bool engine_refused(struct engine *e)
{
	uint32_t refused = atomic_load_explicit(&e->refused, memory_order_relaxed) + 1;

	atomic_store_explicit(&e->refused, refused % REFUSALS, memory_order_relaxed);
	if (e->few && refused == REFUSALS)
		sched_yield();
	return false;
}

bool engine_poll(struct process *p)
{
	struct engine *e = p->engine;
	uint32_t polls = atomic_load_explicit(&e->polls, memory_order_relaxed) + 1;
	bool done;

	atomic_store_explicit(&e->polls, polls, memory_order_relaxed);
	if (unlikely(polls % POLLS_PER_NOTICE == 0))
		engine_notice_poller(e, clock_ns());
	if (!spin_try(&e->polling))
		return engine_refused(e);
	if (unlikely(atomic_load_explicit(&e->refused, memory_order_relaxed)))
		atomic_store_explicit(&e->refused, 0, memory_order_relaxed);
	done = unlikely(doorbell_any_direct()) && doorbell_look(DOORBELL_DIRECT_PAGES);
	done |= process_progress(p);
	spin_unlock(&e->polling);
	/* If this thread does not come back, the engine has to do what is still owed. */
	if (done && !engine_is_near(e) && process_owes(p))
		engine_kick(p);
	return done;
}

bool engine_wants_poller(struct process *p, uint32_t *polls)
{
	uint32_t now = atomic_load_explicit(&p->engine->polls, memory_order_relaxed);
	bool others = now - *polls >= POLLS_OF_OTHERS;

	*polls = now;
	return !others;
}

bool engine_poll_for_it(struct process *p, uint32_t *polls)
{
	bool done = engine_poll(p);

	*polls = atomic_load_explicit(&p->engine->polls, memory_order_relaxed);
	return done;
}
