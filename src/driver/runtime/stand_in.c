// SPDX-License-Identifier: BSD-2-Clause
/* See stand_in.h. */
#include "driver/runtime/stand_in.h"

#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/hazard.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/engine.h"
#include "driver/runtime/engine_inside.h"
#include "driver/runtime/process.h"
#include "registry/registry.h"

/* Other threads that wait for events count so long after they found the place taken.  A thread that
 * waits for longer hears of its next event up to a nap of the engine later. */
#define CROWDED_NS 1000000000u

/* Whoever waits for less time than this does not look before it sleeps. */
#define GAZE_LEFT_NS 1000000u

/* A thread that has polled within this time may do so again. */
#define POLLED_LATELY_NS 20000000u

/* The number of threads between stand_in_enter and stand_in_leave, where the process does not go
 * away. */
static _Atomic(unsigned) inside;

/* The number of events that were made in this process: of all channels, and of channels whose
 * addresses fall on one row.  The memory stays when a channel goes. */
#define EVENT_ROWS 64u
static _Atomic(uint32_t) events[EVENT_ROWS];

static _Thread_local bool looking __attribute__((tls_model("initial-exec")));

struct process *stand_in_enter(void)
{
	struct process *p;

	atomic_fetch_add(&inside, 1);
	p = process_current();
	if (!p)
		atomic_fetch_sub(&inside, 1);
	return p;
}

void stand_in_leave(void)
{
	atomic_fetch_sub(&inside, 1);
}

void stand_in_await_none(void)
{
	while (atomic_load(&inside))
		sched_yield();
}

void stand_in_fork_child(void)
{
	patience_fork_child();
	atomic_store(&inside, 0);
}

static unsigned event_row(const void *channel)
{
	return STAND_IN_ALL_CHANNELS + 1 + (unsigned)((uintptr_t)channel / 64 % (EVENT_ROWS - 1));
}

uint32_t stand_in_events(unsigned row)
{
	return atomic_load_explicit(&events[row], memory_order_acquire);
}

struct stand_in_mark stand_in_mark(const void *channel)
{
	unsigned row = event_row(channel);

	return (struct stand_in_mark){row, stand_in_events(row)};
}

void stand_in_note_event(const void *channel)
{
	atomic_fetch_add_explicit(&events[event_row(channel)], 1, memory_order_release);
	atomic_fetch_add_explicit(&events[STAND_IN_ALL_CHANNELS], 1, memory_order_release);
}

bool stand_in_looks(void)
{
	return looking;
}

/* Is the calling thread in the device already?  It may be a handler that waits and has interrupted
 * the thread where that holds locks. */
static bool in_device(void)
{
	return hazard_inside();
}

static bool stand_in_look(struct process *p, uint64_t *deadline_ns)
{
	bool done;

	looking = true;
	done = process_progress_until(p, deadline_ns);
	looking = false;
	return done;
}

/* More than one thread waits for events. */
static void engine_note_crowd(struct engine *e)
{
	atomic_store_explicit(&e->crowded_until_ns, clock_ns() + CROWDED_NS, memory_order_relaxed);
}

/* Do others wait for events, too?  The thread that has the place leaves with its own event, so the
 * engine has to look for those of the others. */
static bool engine_is_missed(const struct engine *e)
{
	uint64_t until_ns = atomic_load_explicit(&e->crowded_until_ns, memory_order_relaxed);

	return until_ns && clock_ns() < until_ns;
}

/* Learns how long the thread slept, without the time that the kernel needed to wake it. */
static void stand_in_learn(struct process *p)
{
	uint64_t slept = p->engine->stand_in_slept_ns;
	uint64_t roused = atomic_load_explicit(&p->slot->roused_ns, memory_order_relaxed);

	if (!spin_try(&p->engine->gazing))
		return;
	patience_learn(&p->engine->patience, (roused >= slept ? roused : clock_ns()) - slept);
	spin_unlock(&p->engine->gazing);
}

void stand_in_forget(struct process *p)
{
	if (!spin_try(&p->engine->gazing))
		return;
	p->engine->patience.brisk = false;
	spin_unlock(&p->engine->gazing);
}

void stand_in_works(struct process *p)
{
	struct engine *e = p->engine;

	atomic_store_explicit(&e->stand_in_sleeps, false, memory_order_relaxed);
	engine_note_poll(e);
	if (!in_device() && spin_try(&e->polling)) {
		stand_in_learn(p);
		(void)process_progress(p);
		spin_unlock(&e->polling);
	}
	if (unlikely(engine_is_missed(e)))
		engine_yield(p);
}

/* Does the engine wait for nothing but the word? */
static bool engine_can_be_replaced(const struct engine *e)
{
	return !e->feeder && !doorbell_any_watched() && !doorbell_any_direct() &&
	       clock_ns() >= atomic_load_explicit(&e->no_reader_before, memory_order_relaxed);
}

/* The thread sleeps as it would without us, so the engine must not count on its polling. */
static enum stand_in_next stand_in_declines(struct process *p, uint32_t word)
{
	if (engine_is_stood_for(word))
		engine_note_crowd(p->engine);
	engine_yield(p);
	return STAND_IN_DECLINES;
}

/*
 * An engine that sleeps at the word hears of the next sender; one that naps does not.  The engine
 * says that it naps ('watching') before it looks at the word; we look at that after we have changed
 * the word (engine_watch).
 */
bool stand_in_give_back(struct process *p, uint32_t word)
{
	struct engine *e = p->engine;
	uint32_t asleep = SLOT_ASLEEP;

	atomic_store_explicit(&e->stand_in_sleeps, false, memory_order_relaxed);
	/* If the word is another by now, somebody has made sure that the engine looks. */
	if (!atomic_compare_exchange_strong(p->wake, &word, SLOT_ASLEEP))
		return false;
	if (atomic_load(&e->watching))
		return atomic_compare_exchange_strong(p->wake, &asleep, SLOT_POLLED);
	if (process_owes(p))
		engine_kick(p);
	return false;
}

/*
 * Has another thread polled lately, and does it run, or wait for a processor?  Where processors are
 * few, a wake-up of this thread would take one from that thread, which takes what comes when it has
 * one.  The engine, which naps then, looks now and then.
 */
static bool another_polls(const struct engine *e)
{
	uint64_t noticed_ns = atomic_load_explicit(&e->noticed_at, memory_order_relaxed);

	return e->few && noticed_ns && clock_ns() < noticed_ns + POLLED_LATELY_NS &&
	       poller_is_another(&e->poller);
}

/* Takes the engine's place, and then looks for work a last time.  The partners are senders, between
 * their store of work and their load of the word.  True: there was some work. */
static bool stand_in_takes(struct process *p, const struct stand_in *s, enum stand_in_next *next)
{
	uint32_t word = atomic_load_explicit(p->wake, memory_order_relaxed);
	uint64_t deadline_ns = UINT64_MAX;
	struct engine *e = p->engine;
	bool done, event;

	*next = STAND_IN_DECLINES;
	if (!engine_is_stood_for(word) && another_polls(e))
		return false;
	if ((word != SLOT_POLLED && word != SLOT_ASLEEP) || !engine_can_be_replaced(e) ||
	    !spin_try(&e->polling)) {
		*next = stand_in_declines(p, word);
		return false;
	}
	engine_note_poll(e);
	if (!atomic_compare_exchange_strong(p->wake, &word, s->word)) {
		spin_unlock(&e->polling);
		*next = stand_in_declines(p, word);
		return false;
	}
	nap_shorten(&e->nap);
	atomic_store_explicit(&e->stand_in_sleeps, true, memory_order_relaxed);
	done = stand_in_look(p, &deadline_ns);
	e->stand_in_slept_ns = clock_ns();
	spin_unlock(&e->polling);
	event = s->has_event && s->has_event(s->fd);
	/* An engine that naps would be late for a timer that is near; one that sleeps knows of the
	 * timer. */
	if (!event && !done &&
	    (word == SLOT_ASLEEP || deadline_ns == UINT64_MAX ||
	     deadline_ns >= clock_ns() + NAP_MAX_NS)) {
		*next = STAND_IN_SLEEPS;
		return false;
	}
	(void)stand_in_give_back(p, s->word);
	if (event)
		*next = STAND_IN_EVENT;
	else if (!done)
		*next = stand_in_declines(p, word);
	return done && !event;
}

/* ---- a look before the sleep ---- */

struct stand_in_gaze {
	struct process *process;
	struct stand_in_mark mark;
};

static bool gaze_is_over(const void *arg)
{
	const struct stand_in_gaze *g = arg;

	return stand_in_events(g->mark.row) != g->mark.events;
}

static bool gaze_works(void *user)
{
	struct process *p = ((struct stand_in_gaze *)user)->process;
	struct engine *e = p->engine;
	bool done;

	if (!spin_try(&e->polling))
		return false;
	/* Not stand_in_look: a reader may have taken the place meanwhile, and sleeps there. */
	done = process_progress(p);
	spin_unlock(&e->polling);
	return done;
}

/* Senders wake an engine that sleeps, although we look, and leave an engine that naps alone.  So we
 * make an engine that sleeps nap, once for a stream of events. */
static bool engine_is_made_to_nap(struct process *p)
{
	uint32_t word = atomic_load_explicit(p->wake, memory_order_relaxed);

	/* In one call, as we may lose the processor at any time.  Whoever else has changed the word
	 * meanwhile is woken by it, or looks. */
	if (word == SLOT_ASLEEP)
		futex_store_and_wake(p->wake, SLOT_POLLED);
	return word == SLOT_ASLEEP || word == SLOT_POLLED;
}

static bool stand_in_may_gaze(struct process *p, const struct stand_in *s)
{
	struct engine *e = p->engine;

	/* A look must not make a wait of some microseconds longer. */
	if (s->deadline_ns != UINT64_MAX && s->deadline_ns < clock_ns() + GAZE_LEFT_NS)
		return false;
	/* Another thread that waits for events needs the processor, too, where those are few. */
	if (e->few && engine_is_missed(e))
		return false;
	return patience_is_there(&e->patience) && engine_can_be_replaced(e) && !another_polls(e) &&
	       engine_is_made_to_nap(p);
}

/* Finds what comes within some microseconds without a sleep, if the last wait was that short.
 * True: there is an event, unless another thread has taken it. */
static bool stand_in_gazes(struct process *p, const struct stand_in *s)
{
	struct engine *e = p->engine;
	struct stand_in_gaze g = {p, s->mark};
	const struct patience_meanwhile meanwhile = {gaze_works, &g};
	bool found;

	if (!spin_try(&e->gazing)) {
		engine_note_crowd(e);
		return false;
	}
	/* We show the engine, which watches, one poll only: many polls would make an event-driven
	 * program a poller. */
	engine_note_poll(e);
	found = stand_in_may_gaze(p, s) &&
		patience_look(&e->patience, gaze_is_over, &g, &meanwhile);
	spin_unlock(&e->gazing);
	return found;
}

enum stand_in_next stand_in_begin(struct process *p, const struct stand_in *s)
{
	enum stand_in_next next;

	if (unlikely(in_device()))
		return STAND_IN_DECLINES;
	if (stand_in_gazes(p, s))
		return STAND_IN_EVENT;
	while (stand_in_takes(p, s, &next))
		;
	return next;
}
