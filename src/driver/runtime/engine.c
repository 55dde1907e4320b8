// SPDX-License-Identifier: BSD-2-Clause
/*
 * The engine: the thread that drives the device when no thread of the program does.
 *
 * It goes round in three steps, which are the three values of the slot's word (enum slot_driver):
 *
 *   look   SLOT_ENGINE   drives, until nothing has come for some microseconds
 *   guard  SLOT_PROGRAM  a thread of the program drives: looks now and then whether it still does
 *   sleep  SLOT_NOBODY   sleeps until a peer, a hook or the feeder (feeder.h) wakes it, or the next
 *                        timer is due
 *
 * Anybody may change the word to SLOT_ENGINE and wake the engine.  A thread that polls all the time
 * changes it to SLOT_PROGRAM, and so does a peer that finds SLOT_NOBODY and wakes a thread that
 * waits; both wake the engine as well, which becomes the guard.  So a thread of the program never has
 * to give anything back: it may be cancelled, stopped, or jump away by a handler, and the engine finds
 * that out within ENGINE_GUARD_MAX_NS.
 */
#include "driver/runtime/engine.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "base/thread.h"
#include "base/trace.h"
#include "dpa/place.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/drive.h"
#include "driver/runtime/feeder.h"
#include "driver/runtime/process.h"
#include "exposure/expose.h"
#include "reach/proc.h"

#define USEC 1000u

/* With fewer processors a thread that rings by a store drives in the handler (drive_after_fault), because
 * the engine would have to wait for a processor. */
#define FEW_CPUS 4

/* The engine naps if a batch of frames has left a queue with few receives: whoever posts them, such as a
 * handler of the DPA, may wait for this processor.  As long as each batch does so, a nap is twice as long as
 * the one before it, up to ENGINE_GUARD_MAX_NS; after so many naps nobody seems to post any. */
#define POST_NAPS 16u

/* The longest nap of the guard while the thread that polls waits for a processor: the guard would take it
 * away.  Two ticks of the kernel. */
#define GUARD_TURNS_NS (8000 * USEC)
/* After so many looks in a row that found nothing the engine sleeps. */
#define GUARD_LOOKS 8u

#define STACK_BYTES (512u << 10)

static bool engine_runs(struct engine *e)
{
	return atomic_load(&e->state) == ENGINE_RUNS;
}

static void engine_wake(struct slot *slot)
{
	futex_store_and_wake(&slot->driver, SLOT_ENGINE);
}

void engine_kick(struct process *p)
{
	/* Orders the caller's store of work before our load of the word.  Its partner is the fence
	 * in engine_sleep, between the store of SLOT_NOBODY and the last look for work. */
	atomic_thread_fence(memory_order_seq_cst);
	switch (engine_driver(p->slot)) {
	case SLOT_NOBODY:
		engine_wake(p->slot);
		break;
	case SLOT_PROGRAM:
		/* A thread that sleeps does not come to do the work. */
		if (atomic_load_explicit(&p->slot->waiter, memory_order_relaxed))
			engine_wake(p->slot);
		break;
	case SLOT_ENGINE:
		break;
	}
}

void engine_take_over(struct process *p)
{
	if (engine_driver(p->slot) == SLOT_PROGRAM)
		engine_wake(p->slot);
}

/* Serves doorbells that nobody announced, then does the rest. */
static bool engine_progress(struct engine *e)
{
	bool done = doorbell_any_watched() && doorbell_look(DOORBELL_WATCHED_PAGES);

	return process_progress(e->process) | done;
}

static bool program_waits(const struct engine *e)
{
	return atomic_load_explicit(&e->slot->waiter, memory_order_relaxed);
}

/* ---- look ---- */

/* The guard would be late for a timer that is near. */
static bool timer_is_near(struct engine *e, uint64_t now)
{
	uint64_t deadline = UINT64_MAX;

	(void)process_progress_until(e->process, &deadline);
	return deadline < now + ENGINE_GUARD_MAX_NS;
}

/* Frames come faster than the program posts receives: it may have no processor.  The sender waits
 * meanwhile, when its channel is full. */
static void engine_let_post(struct engine *e)
{
	uint64_t nap_ns = min_u64((uint64_t)LOOK_NS << e->post_naps, ENGINE_GUARD_MAX_NS);

	if (e->post_naps == POST_NAPS)
		return;
	e->post_naps++;
	trace(engine, sleep, "few-receives", nap_ns / USEC);
	futex_wait_for(&e->slot->driver, SLOT_ENGINE, (uint32_t)nap_ns, FUTEX_OF_ALL);
	trace(engine, wake, "few-receives");
}

/*
 * Looks for work until there has been none for a while.  It leaves a device that a thread of the
 * program drives even if there is work: the two would only take it from each other.
 */
static enum slot_driver engine_look(struct engine *e)
{
	uint64_t idle_since = clock_ns();

	while (engine_runs(e)) {
		bool done = engine_progress(e);
		uint64_t now;

		if (done && unlikely(process_few_receives(e->process)))
			engine_let_post(e);
		else if (done)
			e->post_naps = 0;
		now = clock_ns();
		if (engine_driver(e->slot) == SLOT_PROGRAM)
			return SLOT_PROGRAM;
		if (done)
			idle_since = now;
		else if (program_waits(e))
			return timer_is_near(e, now) ? SLOT_NOBODY : SLOT_PROGRAM;
		else if (now - idle_since >= e->look_ns)
			break;
		else
			cpu_relax();
	}
	return SLOT_NOBODY;
}

/* ---- guard ---- */

/* The program has left work behind. */
static void engine_distrust(struct engine *e)
{
	atomic_store_explicit(&e->distrusts_until_ns, clock_ns() + LATELY_NS, memory_order_relaxed);
}

/* How long the thread has run on a processor; 0: there is none.  The kernel's names of such clocks
 * hold the complement of the thread's number. */
static uint64_t thread_ran_ns(pid_t thread)
{
	struct timespec t;

	if (!thread || clock_gettime((clockid_t)(~(uint32_t)thread << 3 | 6), &t))
		return 0;
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Does the thread that polled last wait for a processor?  Then it polls when it has one. */
static bool poller_waits_its_turn(struct engine *e)
{
	pid_t poller = atomic_load_explicit(&e->poller, memory_order_relaxed);
	uint64_t ran_ns = thread_ran_ns(poller);

	return ran_ns && ran_ns - e->poller_ran_ns < TURN_NS && task_is_runnable(getpid(), poller);
}

/* Looks once.  True: the guard goes on, and its next nap takes *nap_ns at most. */
static bool guard_look(struct engine *e, uint32_t polls, unsigned *looks, uint64_t *nap_ns)
{
	bool done;

	*nap_ns = ENGINE_GUARD_MAX_NS;
	(void)wire_process_let_go(e->process->wire_process);
	if (atomic_load_explicit(&e->polls, memory_order_relaxed) != polls) {
		/* Threads that poll look at DIRECT pages only. */
		if (doorbell_any_watched())
			(void)doorbell_look(DOORBELL_WATCHED_PAGES);
		*looks = 0;
		return true;
	}
	done = engine_progress(e);
	if (atomic_load_explicit(&e->waiter_sleeps, memory_order_relaxed)) {
		/* If it was woken and has no processor yet, the next look finds nothing. */
		*looks += done ? GUARD_LOOKS / 2 : 1;
		return *looks < GUARD_LOOKS;
	}
	if (poller_waits_its_turn(e)) {
		*nap_ns = GUARD_TURNS_NS;
		return true;
	}
	if (done)
		engine_distrust(e);
	return false;
}

/* Leaves the device to the program for as long as that drives it, and something comes. */
static enum slot_driver engine_guard(struct engine *e)
{
	uint64_t nap_ns = TURN_NS, most_ns = ENGINE_GUARD_MAX_NS;
	unsigned looks = 0;
	bool goes_on;
	uint32_t polls;

	trace(engine, sleep, "program-drives", ENGINE_GUARD_MAX_NS / USEC);
	atomic_exchange(&e->slot->driver, SLOT_PROGRAM);
	/* A sender that came before found us awake and has not woken the thread that waits. */
	if (program_waits(e) && engine_progress(e))
		goto done;
	do {
		e->poller_ran_ns =
			thread_ran_ns(atomic_load_explicit(&e->poller, memory_order_relaxed));
		polls = atomic_load_explicit(&e->polls, memory_order_relaxed);
		futex_wait_for(&e->slot->driver, SLOT_PROGRAM, (uint32_t)nap_ns, FUTEX_OF_ALL);
		if (engine_driver(e->slot) != SLOT_PROGRAM || !engine_runs(e))
			break;
		goes_on = guard_look(e, polls, &looks, &most_ns);
		nap_ns = min_u64(2 * nap_ns, most_ns);
	} while (goes_on);
done:
	trace(engine, wake,
	      engine_driver(e->slot) == SLOT_PROGRAM ? "program-stopped-driving" : "kick");
	atomic_store(&e->slot->driver, SLOT_ENGINE);
	e->look_ns = LOOK_NS;
	return looks >= GUARD_LOOKS ? SLOT_NOBODY : SLOT_ENGINE;
}

/* ---- sleep ---- */

/* Sleeps until somebody changes the word, or the deadline.  True: a sender has woken a thread of the
 * program as well. */
static bool engine_wait(struct engine *e, uint64_t deadline)
{
	uint64_t now = clock_ns();

	trace(engine, sleep, deadline == UINT64_MAX ? "until-kick" : "until-timer",
	      deadline == UINT64_MAX || deadline < now ? 0 : (deadline - now) / USEC);
	futex_wait_until(&e->slot->driver, SLOT_NOBODY, deadline, FUTEX_OF_ALL);
	e->look_ns = clock_ns() - now < LOOK_NS ? LOOK_NS : 0;
	trace(engine, wake, engine_driver(e->slot) == SLOT_NOBODY ? "timer" : "kick");
	return engine_driver(e->slot) == SLOT_PROGRAM;
}

static enum slot_driver engine_sleep(struct engine *e)
{
	enum doorbell_sleep bells = DOORBELL_SLEEP;
	uint64_t deadline = UINT64_MAX;
	bool done, heard;

	/*
	 * While a thread of the program is inside the device its queues and timers are busy, and we
	 * should not learn the time of the next timer.
	 */
	if (!spin_try(&e->driving))
		return SLOT_PROGRAM;
	atomic_store(&e->slot->driver, SLOT_NOBODY);
	/* Orders our store before the last look for work.  Its partners are engine_kick and every
	 * sender, between their store of work and their load of the word. */
	atomic_thread_fence(memory_order_seq_cst);
	if (doorbell_any_watched())
		bells = doorbell_arm();
	heard = feeder_arm(e->feeder);
	done = process_progress_until(e->process, &deadline);
	spin_unlock(&e->driving);
	done |= wire_process_let_go(e->process->wire_process);
	if (bells == DOORBELL_POLL)
		deadline = min_u64(deadline, clock_ns() + DOORBELL_POLL_NS);
	if (unlikely(!heard))
		deadline = min_u64(deadline, clock_ns() + ENGINE_GUARD_MAX_NS);
	if (!done && bells != DOORBELL_STAY && engine_runs(e) && engine_wait(e, deadline))
		return SLOT_PROGRAM;
	atomic_store(&e->slot->driver, SLOT_ENGINE);
	if (bells == DOORBELL_STAY)
		sched_yield(); /* the thread whose store is to come may wait for this CPU */
	else if (doorbell_any_direct())
		doorbell_wake();
	return SLOT_ENGINE;
}

/* ---- the thread ---- */

static void *engine_main(void *arg)
{
	struct engine *e = arg;
	enum slot_driver next;

	/* RNR timers begin at 10 us (IBTA table 45); the default slack is 50 us. */
	prctl(PR_SET_TIMERSLACK, USEC);
	own_thread_short_slices();
	dpa_place_does_not_matter();
	expose_alive_begin(wire_process_expose(e->process->wire_process));
	atomic_store(&e->state, ENGINE_RUNS);
	futex_wake_all(&e->state, FUTEX_OF_PROCESS);
	for (next = SLOT_ENGINE; engine_runs(e);) {
		switch (next) {
		case SLOT_ENGINE:
			next = engine_look(e);
			break;
		case SLOT_PROGRAM:
			next = engine_guard(e);
			break;
		case SLOT_NOBODY:
			next = engine_sleep(e);
			break;
		}
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

bool engine_cpus_are_few(void)
{
	cpu_set_t cpus;

	return sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) < FEW_CPUS;
}

int engine_start(struct process *p)
{
	struct engine *e = aligned_alloc(_Alignof(struct engine), sizeof(*e));
	int ret;

	if (!e)
		return -ENOMEM;
	*e = (struct engine){
		.process = p,
		.slot = p->slot,
		.state = ENGINE_STARTS,
		.few_cpus = engine_cpus_are_few(),
	};
	atomic_store(&p->slot->driver, SLOT_ENGINE);
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

	drive_stop(p);
	atomic_store(&e->state, ENGINE_ENDS);
	/* The engine looks at 'state' after each of its stores to the word, and waits only while
	 * the word is what it stored. */
	engine_wake(e->slot);
	pthread_join(e->thread, NULL);
	/* The word says SLOT_ENGINE from now on. */
	doorbell_await_none();
	feeder_stop(e->feeder);
	p->engine = NULL;
	free(e);
}
