// SPDX-License-Identifier: BSD-2-Clause
/* See drive.h. */
#include "driver/runtime/drive.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread.h"
#include "base/clock.h"
#include "base/futex.h"
#include "base/hazard.h"
#include "base/descriptor.h"
#include "base/trace.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/engine.h"
#include "driver/runtime/process.h"
#include "wire/wakeup_fifo.h"

/* A thread has polled in vain so often since it last waited for an event: does it poll all the time? */
#define POLLS_PER_NOTICE 64u
/* A thread that rings stays in the handler for TURN_NS, because a program that has sent something often waits
 * for the answer, and where processors are few the engine has none to receive it.  After a stay in vain the
 * thread does not stay for one ring, then 3, and so on up to so many. */
#define RINGS_SKIPPED_MAX 63u
/* A program that polls fewer times than this between two questions does not poll for others. */
#define POLLS_OF_OTHERS 3u

/* The process stays while a thread is between process_enter and process_leave. */
static _Atomic(unsigned) inside;

/* The number of events that were made in this process: of all channels, and of channels whose
 * addresses fall on one row. */
#define EVENT_ROWS 64u
static _Atomic(uint32_t) events[EVENT_ROWS];

/* Until when no waiter is registered because a thread polls, and threads that wait are a crowd. */
static _Atomic(uint64_t) polled_until_ns, crowd_until_ns;

/* The FIFO into which peers write. */
static struct {
	struct spin lock; /* only ever tried */
	struct hidden at;
} fifo = {.at = {-1, 0, -1}};

#define THREAD_LOCAL static _Thread_local __attribute__((tls_model("initial-exec")))
/* The thread's polls in vain since it last waited or noticed, and what it had done by its last notice. */
THREAD_LOCAL struct {
	uint32_t polls;
	uint64_t at_ns;
	struct rusage used; /* if the thread was asked for */
} in_vain;
THREAD_LOCAL bool waits, told, looking;
THREAD_LOCAL uint32_t registered; /* what this thread has stored in slot->waiter */
THREAD_LOCAL struct hidden own_fifo;
THREAD_LOCAL uint64_t slept_at_ns; /* when the thread went to sleep last */
THREAD_LOCAL bool waits_are_short;
THREAD_LOCAL int32_t number; /* the thread's; 0: not known yet */

/* Polling makes no system call, so the thread remembers its number. */
static int32_t thread_number(void)
{
	if (unlikely(!number))
		number = gettid();
	return number;
}

static struct process *process_enter(void)
{
	struct process *p;

	atomic_fetch_add(&inside, 1);
	p = process_current();
	if (!p)
		atomic_fetch_sub(&inside, 1);
	return p;
}

static void process_leave(void)
{
	atomic_fetch_sub(&inside, 1);
}

/* Returns false if another thread drives.  *done: there was some work. */
static bool try_progress(struct process *p, uint64_t *deadline_ns, bool *done)
{
	*done = false;
	if (!spin_try(&p->engine->driving))
		return false;
	*done = process_progress_until(p, deadline_ns);
	spin_unlock(&p->engine->driving);
	return true;
}

/* Drives once, as a thread that polls, unless another thread does. */
static bool drive_once(struct process *p, uint64_t *deadline_ns)
{
	bool done;

	engine_note_poll(p->engine);
	(void)try_progress(p, deadline_ns, &done);
	return done;
}

/* ---- polls and doorbells ---- */

static uint64_t ran_ns(const struct rusage *used)
{
	return (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000000u +
	       (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) * 1000u;
}

/*
 * Has this thread done little else between its last POLLS_PER_NOTICE polls?  The clock tells that without
 * a system call if the thread has a processor.  One that takes turns with others at a processor is told
 * by how long it has run, and from one that sleeps between its polls by how often it has slept.
 */
static bool polls_all_the_time(uint64_t now)
{
	const uint64_t most = (uint64_t)POLLS_PER_NOTICE * TURN_NS;
	struct rusage last = in_vain.used;
	uint64_t last_at = in_vain.at_ns;

	in_vain.at_ns = now;
	if (now - last_at <= most)
		return true;
	if (getrusage(RUSAGE_THREAD, &in_vain.used))
		return false;
	return ran_ns(&in_vain.used) - ran_ns(&last) <= most &&
	       in_vain.used.ru_nvcsw - last.ru_nvcsw < POLLS_PER_NOTICE / 4;
}

/* A thread that polls all the time says so, and wakes the engine once, so that it becomes the guard and
 * senders are spared the wake-up. */
static __attribute__((noinline)) void notice_poller(struct process *p)
{
	uint64_t now = clock_ns();

	in_vain.polls = 0;
	if (!polls_all_the_time(now) || !engine_trusts_program(p->engine, now))
		return;
	atomic_store_explicit(&p->engine->poller, thread_number(), memory_order_relaxed);
	atomic_store_explicit(&polled_until_ns, now + LATELY_NS, memory_order_relaxed);
	if (engine_driver(p->slot) != SLOT_PROGRAM)
		futex_store_and_wake(&p->slot->driver, SLOT_PROGRAM);
}

bool drive_poll(struct process *p)
{
	struct engine *e = p->engine;
	bool done;

	engine_note_poll(e);
	if (unlikely(++in_vain.polls == POLLS_PER_NOTICE))
		notice_poller(p);
	if (!spin_try(&e->driving))
		return false;
	done = unlikely(doorbell_any_direct()) && doorbell_look(DOORBELL_DIRECT_PAGES);
	done |= process_progress(p);
	spin_unlock(&e->driving);
	/* If this thread does not come back, the engine has to do what is still owed. */
	if (done && engine_driver(e->slot) == SLOT_NOBODY && process_owes(p))
		engine_kick(p);
	return done;
}

bool drive_wants_poller(struct process *p, uint32_t *polls)
{
	uint32_t now = atomic_load_explicit(&p->engine->polls, memory_order_relaxed);
	bool others = now - *polls >= POLLS_OF_OTHERS;

	*polls = now;
	return !others;
}

bool drive_poll_for_it(struct process *p, uint32_t *polls)
{
	bool done = drive_poll(p);

	*polls = atomic_load_explicit(&p->engine->polls, memory_order_relaxed);
	return done;
}

/* Drives until something has been received that the program may wait for, or TURN_NS are over. */
static bool await_answer(struct process *p)
{
	uint64_t until = clock_ns() + TURN_NS;
	bool done;

	do {
		if (process_has_received(p))
			return true;
		(void)try_progress(p, NULL, &done);
		cpu_relax();
	} while (engine_driver(p->slot) == SLOT_PROGRAM && clock_ns() < until);
	return process_has_received(p);
}

/* The more stays are in vain, the more seldom the thread stays. */
static void linger_if_answered(struct process *p)
{
	struct engine *e = p->engine;

	if (e->rings_to_skip) {
		e->rings_to_skip--;
		return;
	}
	(void)process_has_received(p); /* what came before is no answer */
	if (await_answer(p))
		e->in_vain = 0;
	else
		e->in_vain = min_u32(2 * e->in_vain + 1, RINGS_SKIPPED_MAX);
	e->rings_to_skip = e->in_vain;
	trace(engine, lingered, e->in_vain ? "in-vain" : "answered", e->rings_to_skip);
}

bool drive_after_fault(void *user)
{
	struct process *p = user;
	struct engine *e = p->engine;
	uint32_t nobody = SLOT_NOBODY, program = SLOT_PROGRAM;
	bool done;

	/* The caller holds signals back, so this thread comes back to store the word again. */
	if (e->few_cpus &&
	    atomic_compare_exchange_strong(&p->slot->driver, &nobody, SLOT_PROGRAM)) {
		linger_if_answered(p);
		if (!atomic_compare_exchange_strong(&p->slot->driver, &program, SLOT_NOBODY))
			return true; /* the engine is awake */
		/* What a peer stores from now on wakes the engine. */
		atomic_thread_fence(memory_order_seq_cst);
	}
	return try_progress(p, NULL, &done) && !process_owes(p);
}

void drive_before_wait(struct process *p, bool by_read)
{
	if (!by_read || !engine_trusts_program(p->engine, clock_ns()))
		engine_take_over(p);
}

/* ---- events ---- */

static unsigned event_row(const void *channel)
{
	return DRIVE_ALL_CHANNELS + 1 + (unsigned)((uintptr_t)channel / 64 % (EVENT_ROWS - 1));
}

uint32_t drive_events(unsigned row)
{
	return atomic_load_explicit(&events[row], memory_order_acquire);
}

struct drive_mark drive_mark(const void *channel)
{
	unsigned row = event_row(channel);

	return (struct drive_mark){row, drive_events(row)};
}

/* Wakes the thread that sleeps at the word, if one does. */
static void wake_reader(struct process *p)
{
	/* The event was stored before; this fence orders that store before our load of the word. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&p->slot->waiter, memory_order_relaxed) & SLOT_WAITS_AT_WORD)
		waiter_wake(p->slot);
}

static void wake_own_reader(void)
{
	struct process *p = process_enter();

	if (!p)
		return;
	wake_reader(p);
	process_leave();
}

void drive_note_event(const void *channel)
{
	atomic_fetch_add_explicit(&events[event_row(channel)], 1, memory_order_release);
	atomic_fetch_add_explicit(&events[DRIVE_ALL_CHANNELS], 1, memory_order_release);
	/* The thread that looks before it sleeps sees its events itself. */
	if (!looking)
		wake_own_reader();
}

void drive_cancelled(void)
{
	no_cancellation();
	uint64_t signals;

	signals_hold(&signals);
	wake_own_reader();
	signals_release(&signals);
}

/* ---- waits ---- */

enum wait_next {
	WAIT_AS_USUAL, /* the engine makes the event */
	WAIT_SLEEP,    /* the thread is registered */
	WAIT_EVENT,    /* there is an event of a channel in the mark's row */
};

static bool time_is_before(const _Atomic(uint64_t) *until_ns)
{
	uint64_t until = atomic_load_explicit(until_ns, memory_order_relaxed);

	return until && clock_ns() < until;
}

/* Does the engine wait for nothing but the word, and does no other thread poll? */
static bool may_register(const struct process *p)
{
	/* A handler that waits may have interrupted its thread where that holds locks. */
	return !hazard_inside() && !p->engine->feeder && !doorbell_any_watched() &&
	       !doorbell_any_direct() && !time_is_before(&polled_until_ns);
}

static bool register_waiter(struct process *p, uint32_t kind)
{
	uint32_t nobody = 0;

	registered = kind | (uint32_t)thread_number();
	if (atomic_compare_exchange_strong(&p->slot->waiter, &nobody, registered))
		return true;
	/* The registered thread leaves with its own event, and then nobody is woken for ours. */
	atomic_store_explicit(&crowd_until_ns, clock_ns() + LATELY_NS, memory_order_relaxed);
	return false;
}

/* False: somebody has woken this thread, or is about to. */
static bool unregister_waiter(struct process *p)
{
	uint32_t own = registered;

	return atomic_compare_exchange_strong(&p->slot->waiter, &own, 0);
}

/* Waits without a sleep until *made is no longer what is known, if the last wait was short.  True: it is
 * not. */
static bool look_for_event(struct process *p, const _Atomic(uint32_t) *made, uint32_t known)
{
	uint64_t until;
	bool event;

	if (!waits_are_short || engine_driver(p->slot) != SLOT_PROGRAM)
		return false;
	until = clock_ns() + LOOK_NS;
	do {
		(void)drive_once(p, NULL);
		event = atomic_load_explicit(made, memory_order_acquire) != known;
		cpu_relax();
	} while (!event && clock_ns() < until);
	waits_are_short = event;
	return event;
}

/* Registers, then looks for work a last time.  The partners are senders, between their store of work
 * and their load of slot->waiter. */
static enum wait_next wait_begin(struct process *p, uint32_t kind, const struct drive_mark *mark)
{
	uint64_t deadline_ns;
	bool done, event;

	in_vain.polls = 0;
	if (!may_register(p))
		goto as_usual;
	if (look_for_event(p, &events[mark->row], mark->events))
		return WAIT_EVENT;
	do {
		if (!register_waiter(p, kind))
			goto as_usual;
		deadline_ns = UINT64_MAX;
		looking = true;
		done = drive_once(p, &deadline_ns);
		looking = false;
		event = drive_events(mark->row) != mark->events;
		if (!done && !event && deadline_ns >= clock_ns() + ENGINE_GUARD_MAX_NS) {
			atomic_store_explicit(&p->engine->waiter_sleeps, true,
					      memory_order_relaxed);
			slept_at_ns = clock_ns();
			return WAIT_SLEEP;
		}
		(void)unregister_waiter(p);
	} while (done && !event);
	if (event)
		return WAIT_EVENT;
as_usual:
	engine_take_over(p);
	return WAIT_AS_USUAL;
}

/* woken: by a peer, or by another thread of the process. */
static void wait_end(struct process *p, bool woken)
{
	atomic_store_explicit(&p->engine->waiter_sleeps, false, memory_order_relaxed);
	waits_are_short = clock_ns() - slept_at_ns < LOOK_NS;
	if (!unregister_waiter(p))
		woken = true;
	if (woken)
		(void)drive_once(p, NULL);
	/* The program has something else to do now. */
	if (!woken || time_is_before(&crowd_until_ns))
		engine_take_over(p);
}

bool drive_waits(void)
{
	return waits;
}

bool drive_was_told(void)
{
	bool was = told;

	told = false;
	return was;
}

/* Returns the descriptor of the FIFO if all peers can write there, or -1. */
static int fifo_open(struct process *p)
{
	bool ready;

	if (atomic_load_explicit(&p->slot->wakeups_failed, memory_order_relaxed) ||
	    !spin_try(&fifo.lock))
		return -1;
	ready = wakeup_fifo_open(p->slot, &fifo.at);
	own_fifo = fifo.at;
	spin_unlock(&fifo.lock);
	return ready ? own_fifo.fd : -1;
}

static int wait_at_fifo(struct process *p, uint32_t known)
{
	const struct drive_mark mark = {DRIVE_ALL_CHANNELS, known};
	enum wait_next next;
	int fd = fifo_open(p);

	if (fd < 0) {
		engine_take_over(p);
		return -1;
	}
	next = wait_begin(p, SLOT_WAITS_AT_FIFO, &mark);
	/* A thread that has found its event without a sleep goes on waiting in this way. */
	waits = next != WAIT_AS_USUAL;
	if (next == WAIT_EVENT)
		return DRIVE_ASK;
	return next == WAIT_SLEEP ? fd : -1;
}

int drive_wait_begin(uint32_t known)
{
	no_cancellation();
	int saved_errno = errno, fd = -1;
	struct process *p = process_enter();

	waits = told = false;
	if (p) {
		fd = wait_at_fifo(p, known);
		process_leave();
	}
	errno = saved_errno;
	return fd;
}

void drive_wait_end(bool woken)
{
	no_cancellation();
	int saved_errno = errno;
	struct process *p = process_enter();

	if (p) {
		if (woken)
			wakeup_fifo_drain(&own_fifo);
		wait_end(p, woken);
		told = true;
		process_leave();
	}
	errno = saved_errno;
}

/* ---- reads ---- */

/*
 * Sleeps at the word, and holds nothing: the process's state may go away meanwhile, and then the
 * memory of the word is gone, or holds something else.  A thread that is cancelled leaves the word as
 * it is.  It can be cancelled only at the two points, so never in a handler that interrupts the
 * sleep.  A thread that was asked to end before it sleeps ends at the first point; one that is asked
 * later is woken (drive_cancelled).
 */
static int read_sleep(_Atomic(uint32_t) *word, const int *cancel)
{
	int ret, held;

	cancel_restore(cancel);
	pthread_testcancel();
	ret = syscall(SYS_futex, word, FUTEX_WAIT, registered, NULL, NULL, 0) < 0 ? -errno : 0;
	pthread_testcancel();
	held = cancel_hold();
	(void)held;
	return ret == -EINTR ? ret : 0;
}

static enum wait_next read_begin(const struct drive_mark *mark, _Atomic(uint32_t) **word)
{
	enum wait_next next = WAIT_AS_USUAL;
	struct process *p = process_enter();

	if (p) {
		*word = &p->slot->waiter;
		next = wait_begin(p, SLOT_WAITS_AT_WORD, mark);
		process_leave();
	}
	return next;
}

static void read_end(bool woken)
{
	struct process *p = process_enter();

	if (!p)
		return;
	wait_end(p, woken);
	process_leave();
}

bool drive_look(const _Atomic(uint32_t) *made, uint32_t known)
{
	int saved_errno = errno;
	struct process *p;
	uint64_t signals;
	bool event;

	if (!waits_are_short)
		return false;
	p = process_enter();
	if (!p)
		return false;
	signals_hold(&signals);
	in_vain.polls = 0;
	event = may_register(p) && look_for_event(p, made, known);
	signals_release(&signals);
	process_leave();
	errno = saved_errno;
	return event;
}

int drive_read(int fd, bool (*has_event)(int fd), struct drive_mark mark, const int *cancel)
{
	int saved_errno = errno, ret = 0;
	_Atomic(uint32_t) *word;
	enum wait_next next;
	uint64_t signals;

	do {
		/* A handler that jumps away must not leave locks of the device behind. */
		signals_hold(&signals);
		next = read_begin(&mark, &word);
		signals_release(&signals);
		if (next == WAIT_SLEEP) {
			ret = read_sleep(word, cancel);
			signals_hold(&signals);
			read_end(!ret);
			signals_release(&signals);
		}
		mark.events = drive_events(mark.row);
	} while (!ret && next != WAIT_AS_USUAL && !has_event(fd));
	errno = saved_errno;
	return ret;
}

/* ---- beginning and end ---- */

void drive_stop(struct process *p)
{
	while (atomic_load(&inside))
		sched_yield();
	wake_reader(p);
	wakeup_fifo_close(p->slot, &fifo.at);
}

void drive_fork_child(void)
{
	atomic_store(&inside, 0);
	number = 0;
	fifo.lock = (struct spin){0};
	fifo.at = HIDDEN_NONE;
}
