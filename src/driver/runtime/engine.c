// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine thread.
 *
 * It goes through three stages, in this order, until there is work again:
 *
 *   look    AWAKE: makes progress and spins for some microseconds.  The window grows while work
 *           keeps arriving inside it and shrinks while none does.
 *   nap     POLLED: a thread of the program polls and drives the device itself.  The engine only
 *           checks now and then (nap.h) that the count of polls still moves.  If it finds
 *           that work lay there instead (the program polls now and then and mostly spins on its
 *           memory), it takes no naps for a while.
 *   sleep   ASLEEP: waits on the futex until a peer, a hook or the feeder (feeder.h) wakes it, or
 *           the next timer is due.
 *
 * The word is 'wake' of our slot; its protocol with senders is in registry/registry.h.  Moves:
 *   AWAKE -> POLLED, AWAKE -> ASLEEP, any -> AWAKE   by the engine
 *   ASLEEP -> AWAKE and wake                         by senders, engine_kick (so the feeder)
 *   POLLED -> AWAKE and wake                         by engine_yield, engine_stop
 *   ASLEEP -> RINGER, RINGER -> ASLEEP               by a thread that rings (ringer.h)
 *   RINGER -> AWAKE and wake                         by engine_kick, engine_stop, the engine
 *   POLLED, ASLEEP -> READER, WAITER and back        by a thread that waits (stand_in.h)
 *   READER, WAITER -> POLLED and wake                by senders, reader_rouse (READER)
 *   ASLEEP -> POLLED and wake                        by a thread that looks first (stand_in.c)
 *   READER, WAITER -> AWAKE and wake                 by engine_kick, engine_stop, the engine
 */
#include "driver/runtime/engine.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/spin.h"
#include "base/thread.h"
#include "base/trace.h"
#include "dpa/place.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/beside.h"
#include "driver/runtime/engine_inside.h"
#include "driver/runtime/feeder.h"
#include "driver/runtime/process.h"
#include "driver/runtime/stand_in.h"
#include "exposure/expose.h"
#include "wire/knock.h"

#define USEC 1000u

#define LOOKS_AT_REGISTERS 4u

/* After so many naps in which nothing comes, the engine sleeps behind its stand-in. */
#define NAPS_FOR_A_STAND_IN 8u
#define DISTRUST_MIN_NS	    (10000 * USEC)
#define DISTRUST_MAX_NS	    (1000000 * USEC)

/* Where processors are scarce, work that a request of the program may take along waits so long for
 * such a request. */
#define PATIENT_NS (50 * USEC)
/* The engine looks so often at links whose descriptors nobody can wait for. */
#define UNHEARD_NS  (1000 * USEC)
#define STACK_BYTES (512u << 10)

static bool engine_runs(struct engine *e)
{
	return atomic_load(&e->state) == ENGINE_RUNS;
}

/* Ends the engine's wait, whether it waits at the word or naps. */
static void engine_rouse(struct engine *e)
{
	futex_store_and_wake(e->wake, SLOT_AWAKE);
	nap_end(&e->nap);
}

void engine_kick(struct process *p)
{
	uint32_t word;

	/* Orders the caller's store of work before our load of the word.  Its partner is the fence
	 * in engine_sleep, between the store of ASLEEP and the last look for work. */
	atomic_thread_fence(memory_order_seq_cst);
	word = atomic_load_explicit(p->wake, memory_order_relaxed);
	if (word == SLOT_ASLEEP)
		futex_store_and_wake(p->wake, SLOT_AWAKE);
	else if (engine_is_stood_for(word) || word == SLOT_RINGER)
		engine_rouse(p->engine);
}

void engine_look_soon(struct process *p)
{
	engine_kick(p);
	if (atomic_load_explicit(p->wake, memory_order_relaxed) == SLOT_POLLED)
		nap_shorten(&p->engine->nap);
}

void engine_yield(struct process *p)
{
	if (atomic_load_explicit(p->wake, memory_order_relaxed) == SLOT_POLLED)
		engine_rouse(p->engine);
}

/* Stores the engine's own state.  It wakes a reader whose place it takes, because that thread must
 * not sleep on.  A thread that waits for descriptors wakes for its event, whoever makes that. */
static void engine_store_word(struct engine *e, uint32_t state)
{
	if (unlikely(atomic_exchange(e->wake, state) == SLOT_READER))
		futex_wake_all(e->wake, FUTEX_OF_ALL);
}

/* Several looks at the registers cost less than one at all the rest, and find a doorbell sooner. */
static bool look_for_doorbells(void)
{
	for (unsigned n = doorbell_any_direct() ? LOOKS_AT_REGISTERS : 1; n; n--)
		if (doorbell_look(DOORBELL_WATCHED_PAGES))
			return true;
	return false;
}

/* Serves doorbells that nobody announced, then does the rest. */
static bool engine_progress(struct engine *e)
{
	bool done = doorbell_any_watched() && look_for_doorbells();

	return process_progress(e->process) | done;
}

/* The naps ended because nobody polled.  If work lay there by then, the engine distrusts naps. */
static void judge_naps(struct engine *e, uint64_t now)
{
	if (!engine_progress(e)) {
		e->distrust_ns = DISTRUST_MIN_NS;
		return;
	}
	atomic_store_explicit(&e->trust_at, now + e->distrust_ns, memory_order_relaxed);
	e->distrust_ns = min_u64(2 * e->distrust_ns, DISTRUST_MAX_NS);
}

/*
 * Nothing has come for long: the engine sleeps behind the thread that sleeps in its place, until a
 * sender wakes both, somebody takes the place away, or the next timer is due.  False: the engine
 * waits for more than the word.
 */
static bool engine_dozes(struct engine *e, uint32_t word)
{
	uint64_t deadline = UINT64_MAX;
	bool done;

	if (e->feeder || doorbell_any_watched() || doorbell_any_direct())
		return false;
	/* Stored before the last look; the lock shows it to a thread that is in the device
	 * meanwhile (engine_is_near). */
	atomic_store(&e->watching, false);
	if (spin_try(&e->polling)) {
		done = process_progress_until(e->process, &deadline);
		spin_unlock(&e->polling);
		done |= wire_process_let_go(e->process->wire_process);
		if (!done)
			futex_wait_until(e->wake, word, deadline, FUTEX_OF_ALL);
	}
	atomic_store(&e->watching, true);
	return true;
}

/* A thread sleeps in our place that may not come back when it is woken, because a handler of a
 * signal may have made it jump away.  Timers are ours in any case.  False: the watch has to end. */
static bool engine_looks_for_stand_in(struct engine *e, uint32_t word, unsigned *naps)
{
	(void)engine_progress(e);
	if (++*naps < NAPS_FOR_A_STAND_IN)
		return true;
	*naps = 0;
	nap_start(&e->nap);
	return engine_dozes(e, word);
}

/* Naps while threads of the program work in our place; polls: their count. */
static void engine_naps(struct engine *e, uint32_t polls)
{
	/* A thread that has run for half of the last nap does not wait in turn with others. */
	if (poller_mark(&e->poller, polls) >= e->nap.took_ns / 2)
		nap_keep_short(&e->nap);
	/* The partners change what we look at, and then shorten the nap: stand_in_takes and
	 * engine_look_soon. */
	nap_announce(&e->nap);
	if (engine_is_stood_for(atomic_load(e->wake)) || doorbell_any_watched())
		nap_keep_short(&e->nap);
	nap_take(&e->nap);
}

/* Threads of the program work in our place, or one sleeps there: looks now and then whether they
 * still do, except while one sleeps there for long. */
static void engine_watch(struct engine *e)
{
	bool moved = true, goes_on, woken;
	uint32_t seen, polls, word;
	unsigned naps = 0;

	/* The partner of this store and the load is stand_in_give_back, which changes the word and
	 * then looks whether we watch. */
	atomic_store(&e->watching, true);
	word = atomic_load(e->wake);
	woken = word != SLOT_POLLED && !engine_is_stood_for(word);
	nap_start(&e->nap);
	while (moved && !woken && engine_runs(e)) {
		seen = atomic_load_explicit(&e->polls, memory_order_relaxed);
		engine_naps(e, seen);
		/* Threads that poll look at DIRECT pages only. */
		if (doorbell_any_watched())
			(void)doorbell_look(DOORBELL_WATCHED_PAGES);
		(void)wire_process_let_go(e->process->wire_process);
		polls = atomic_load_explicit(&e->polls, memory_order_relaxed) - seen;
		moved = polls;
		if (moved)
			naps = 0;
		word = atomic_load_explicit(e->wake, memory_order_relaxed);
		/* Each long nap wants another look at the poller, which takes a call of the
		 * kernel. */
		goes_on = word == SLOT_POLLED && (!moved || nap_was_long(&e->nap)) &&
			  engine_poller_goes_on(e, polls);
		/* The poller has had no processor.  Nobody needs to be awake for it, as it polls
		 * when it has one. */
		if (!moved && goes_on) {
			(void)engine_progress(e);
			moved = true;
			nap_may_be_long(&e->nap);
		} else if (!goes_on) {
			nap_keep_short(&e->nap);
		}
		if (engine_is_stood_for(word)) {
			moved |= engine_looks_for_stand_in(e, word, &naps);
			word = atomic_load(e->wake);
		}
		woken = (word != SLOT_POLLED && !engine_is_stood_for(word)) || nap_is_over(&e->nap);
	}
	atomic_store_explicit(&e->watching, false, memory_order_relaxed);
	engine_store_word(e, SLOT_AWAKE);
	trace(engine, wake, woken ? "kick" : "program-stopped-polling");
	/* A thread that was woken and waits for a processor does not show that the engine can rely
	 * on none. */
	if (!woken && word == SLOT_POLLED &&
	    !atomic_load_explicit(&e->stand_in_sleeps, memory_order_relaxed))
		judge_naps(e, clock_ns());
}

/* A poller is at work, so the engine leaves the device to it until it stops. */
static void engine_nap(struct engine *e)
{
	trace(engine, sleep, "program-polls", NAP_MAX_NS / USEC);
	nap_allow(&e->nap);
	engine_store_word(e, SLOT_POLLED);
	engine_watch(e);
}

/* Sleeps until somebody changes the word, or the deadline.  True: a thread has taken our place
 * meanwhile. */
static bool engine_wait(struct engine *e, uint64_t deadline)
{
	uint64_t now = trace_is_on(engine, sleep) ? clock_ns() : 0;
	uint32_t word;

	trace(engine, sleep, deadline == UINT64_MAX ? "until-kick" : "until-timer",
	      deadline == UINT64_MAX || deadline < now ? 0 : (deadline - now) / USEC);
	futex_wait_until(e->wake, SLOT_ASLEEP, deadline, FUTEX_OF_ALL);
	engine_woken(e);
	word = atomic_load(e->wake);
	trace(engine, wake, word == SLOT_ASLEEP ? "timer" : "kick");
	return engine_is_stood_for(word) || word == SLOT_POLLED;
}

/* Looks before the sleep.  Where processors are scarce it sends no acknowledgement by itself, which
 * would wake the peer, too. */
static bool engine_last_look(struct engine *e, uint64_t *deadline_ns)
{
	if (!engine_is_scarce(e, e->seen_ns) || !process_owes_patiently(e->process))
		return process_progress_until(e->process, deadline_ns);
	*deadline_ns = clock_ns() + PATIENT_NS;
	return process_deliver(e->process);
}

static void engine_sleep(struct engine *e)
{
	enum doorbell_sleep bells = DOORBELL_SLEEP;
	uint64_t deadline = UINT64_MAX;
	bool done, heard;

	/*
	 * While another thread is inside the device its queues and timers are busy, and we should
	 * not learn the time of the next timer.  It polls, so this is a nap.
	 */
	if (!spin_try(&e->polling)) {
		engine_nap(e);
		return;
	}
	nap_allow(&e->nap);
	engine_store_word(e, SLOT_ASLEEP);
	/* Orders our store of ASLEEP before the last look for work.  Its partners are engine_kick
	 * and every sender, between their store of work and their load of the word. */
	atomic_thread_fence(memory_order_seq_cst);
	if (doorbell_any_watched())
		bells = doorbell_arm();
	heard = feeder_arm(e->feeder);
	done = engine_last_look(e, &deadline);
	spin_unlock(&e->polling);
	done |= wire_process_let_go(e->process->wire_process);
	if (bells == DOORBELL_POLL)
		deadline = min_u64(deadline, clock_ns() + DOORBELL_POLL_NS);
	if (unlikely(!heard))
		deadline = min_u64(deadline, clock_ns() + UNHEARD_NS);
	if (!done && bells != DOORBELL_STAY && engine_runs(e) && engine_wait(e, deadline)) {
		engine_watch(e);
		return;
	}
	engine_store_word(e, SLOT_AWAKE);
	if (bells == DOORBELL_STAY)
		sched_yield(); /* the thread whose store is to come may wait for this CPU */
	else if (doorbell_any_direct())
		doorbell_wake();
}

/*
 * Looks for work until there has been none for the spin window.  True: a thread of the program
 * polls, so leave even if there is work: the two would only take it from each other.
 */
static bool engine_look(struct engine *e)
{
	uint64_t idle_since = clock_ns(), window_ns = engine_window_open(e, idle_since);
	uint32_t at = beside_here_plus_1();
	unsigned batches = 0;
	bool idle = true;

	if (atomic_load_explicit(e->at_plus_1, memory_order_relaxed) != at)
		atomic_store_explicit(e->at_plus_1, at, memory_order_relaxed);

	while (engine_runs(e)) {
		bool done = engine_progress(e);
		uint64_t now = clock_ns();

		engine_looked(e, now, done);
		if (engine_is_polled_for(e, now))
			return true;
		if (done && engine_is_scarce(e, now) && process_owes_patiently(e->process))
			break;
		if (done) {
			batches += idle;
			idle_since = now;
		} else if (now - idle_since >= window_ns) {
			break;
		} else {
			cpu_relax();
		}
		idle = !done;
	}
	engine_window_close(e, batches);
	return false;
}

static void *engine_main(void *arg)
{
	struct engine *e = arg;

	/* RNR timers begin at 10 us (IBTA table 45); the default slack is 50 us. */
	prctl(PR_SET_TIMERSLACK, USEC);
	own_thread_short_slices();
	dpa_place_does_not_matter();
	expose_alive_begin(wire_process_expose(e->process->wire_process));
	atomic_store(&e->state, ENGINE_RUNS);
	futex_wake_all(&e->state, FUTEX_OF_PROCESS);
	while (engine_runs(e)) {
		if (engine_look(e))
			engine_nap(e);
		else
			engine_sleep(e);
	}
	expose_alive_end(wire_process_expose(e->process->wire_process));
	return NULL;
}

/* The thread touches memory of the program, so it may fault. */
static int engine_spawn(struct engine *e)
{
	const struct own_thread_attr attr = {
		.name = OWN_THREAD_ENGINE,
		.stack_bytes = STACK_BYTES,
		.faults = true,
	};

	return own_thread_start(&e->thread, &attr, engine_main, e);
}

static void kick_process(void *user)
{
	engine_kick(user);
}

int engine_start(struct process *p)
{
	struct engine *e = aligned_alloc(_Alignof(struct engine), sizeof(*e));
	int ret;

	if (!e)
		return -ENOMEM;
	*e = (struct engine){
		.process = p,
		.wake = p->wake,
		.waker_plus_1 = &p->slot->waker_plus_1,
		.at_plus_1 = &p->slot->engine_at_plus_1,
		.distrust_ns = DISTRUST_MIN_NS,
		.state = ENGINE_STARTS,
		.place.leaves = p->engine_leaves,
		.door = HIDDEN_NONE,
		.patience.elsewhere = true,
	};
	engine_window_init(e);
	patience_init();
	atomic_store(e->wake, SLOT_AWAKE);
	p->engine = e;
	ret = feeder_start(p->wire_process, kick_process, p, &e->feeder);
	if (ret)
		goto free_engine;
	ret = engine_spawn(e);
	if (ret)
		goto stop_feeder;
	/* Peers reach into our memory by that thread, so it has to be there before they hear of any
	 * memory. */
	while (!engine_runs(e))
		futex_wait_until(&e->state, ENGINE_STARTS, UINT64_MAX, FUTEX_OF_PROCESS);
	return 0;

stop_feeder:
	feeder_stop(e->feeder);
free_engine:
	p->engine = NULL;
	free(e);
	return ret;
}

void engine_stop(struct process *p)
{
	struct engine *e = p->engine;

	stand_in_await_none();
	atomic_store(&e->state, ENGINE_ENDS);
	/* The engine looks at 'state' after each of its stores to the word, and waits only while
	 * the word is what it stored. */
	engine_rouse(e);
	pthread_join(e->thread, NULL);
	/* The word says AWAKE from now on, so nobody enters the engine's place any more. */
	doorbell_await_none();
	feeder_stop(e->feeder);
	knock_close(p->slot, &e->door);
	p->engine = NULL;
	free(e);
}
