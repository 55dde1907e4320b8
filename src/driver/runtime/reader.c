// SPDX-License-Identifier: BSD-2-Clause
/* See reader.h. */
#include "driver/runtime/reader.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "base/futex.h"
#include "driver/doorbell/doorbell.h"
#include "driver/runtime/engine.h"
#include "driver/runtime/engine_inside.h"
#include "driver/runtime/process.h"
#include "driver/runtime/signals.h"
#include "registry/registry.h"

/* So many threads are between reader_enter and reader_leave, where the process does not go away. */
static _Atomic(unsigned) inside;

/* This thread looks for work, and sees by itself what events that makes. */
static _Thread_local bool looking __attribute__((tls_model("initial-exec")));

enum reader_next {
	READER_READS,  /* as without us */
	READER_SLEEPS, /* the word is SLOT_READER */
	READER_AGAIN,
};

struct reader {
	int fd;
	bool (*has_event)(int fd);
	const int *cancel;
	_Atomic(uint32_t) *wake;
	uint64_t signals; /* that the program has blocked */
};

/* The process, which stays until reader_leave; or NULL. */
static struct process *reader_enter(void)
{
	struct process *p;

	atomic_fetch_add(&inside, 1);
	p = process_current();
	if (!p)
		atomic_fetch_sub(&inside, 1);
	return p;
}

static void reader_leave(void)
{
	atomic_fetch_sub(&inside, 1);
}

void reader_await_none(void)
{
	while (atomic_load(&inside))
		sched_yield();
}

void reader_fork_child(void)
{
	atomic_store(&inside, 0);
}

/* Is what the engine waits for nothing but the word? */
static bool engine_can_be_replaced(const struct engine *e)
{
	return !e->feeder && !doorbell_any_watched() && !doorbell_any_direct() &&
	       clock_ns() >= atomic_load_explicit(&e->no_reader_before, memory_order_relaxed);
}

static bool reader_look(struct process *p, uint64_t *deadline_ns)
{
	bool done;

	looking = true;
	done = process_progress_until(p, deadline_ns);
	looking = false;
	return done;
}

/* It was woken for what a sender has left.  True: there is nothing to wait for. */
static bool reader_works(struct process *p, const struct reader *r)
{
	struct engine *e = p->engine;

	atomic_store_explicit(&e->reader_sleeps, false, memory_order_relaxed);
	engine_note_poll(e);
	if (spin_try(&e->polling)) {
		(void)reader_look(p, NULL);
		spin_unlock(&e->polling);
	}
	return r->has_event(r->fd);
}

/* It sleeps in read as without us, where it does not poll. */
static enum reader_next reader_declines(struct process *p)
{
	engine_yield(p);
	return READER_READS;
}

/*
 * The engine's place, and a last look for work after it was taken; the partners are senders, between their
 * store of work and their load of the word.
 */
static enum reader_next reader_takes_place(struct process *p, struct reader *r)
{
	uint32_t word = atomic_load_explicit(p->wake, memory_order_relaxed), reader = SLOT_READER;
	uint64_t deadline_ns = UINT64_MAX;
	struct engine *e = p->engine;
	bool done, event;

	if ((word != SLOT_POLLED && word != SLOT_ASLEEP) || !engine_can_be_replaced(e) ||
	    !spin_try(&e->polling))
		return reader_declines(p);
	engine_note_poll(e);
	if (!atomic_compare_exchange_strong(p->wake, &word, SLOT_READER)) {
		spin_unlock(&e->polling);
		return reader_declines(p);
	}
	atomic_store_explicit(&e->reader_sleeps, true, memory_order_relaxed);
	done = reader_look(p, &deadline_ns);
	spin_unlock(&e->polling);
	event = r->has_event(r->fd);
	/* An engine that naps is late for a timer that is near; one that sleeps knows of it. */
	if (!event && !done &&
	    (word == SLOT_ASLEEP || deadline_ns == UINT64_MAX ||
	     deadline_ns >= clock_ns() + ENGINE_NAP_MAX_NS))
		return READER_SLEEPS;
	atomic_store_explicit(&e->reader_sleeps, false, memory_order_relaxed);
	/* If it is another by now, somebody has seen to it that the engine looks. */
	(void)atomic_compare_exchange_strong(p->wake, &reader, word);
	if (word == SLOT_ASLEEP && process_owes(p))
		engine_kick(p);
	if (event)
		return READER_READS;
	return done ? READER_AGAIN : reader_declines(p);
}

/*
 * Nothing is held, and the process may go away: then there is no such memory, or something else in it.  A thread that
 * is cancelled leaves the word as it is.  That happens at the two points alone, so never in a handler that interrupts
 * the sleep: who was asked to end before the word was SLOT_READER ends at the first, later ones are woken
 * (reader_cancelled).
 */
static int reader_sleep(const struct reader *r)
{
	int ret, held;

	cancel_restore(r->cancel);
	pthread_testcancel();
	ret = syscall(SYS_futex, r->wake, FUTEX_WAIT, SLOT_READER, NULL, NULL, 0) < 0 ? -errno : 0;
	pthread_testcancel();
	held = cancel_hold();
	(void)held;
	return ret == -EINTR ? ret : 0;
}

/* The engine again: what was left for this thread, and what comes. */
static void reader_gives_up(struct reader *r)
{
	struct process *p;

	signals_hold(&r->signals);
	p = reader_enter();
	if (p) {
		engine_kick(p);
		engine_yield(p);
		reader_leave();
	}
	signals_release(&r->signals);
}

static enum reader_next reader_step(struct reader *r, bool woken)
{
	enum reader_next next = READER_READS;
	struct process *p = reader_enter();

	if (!p)
		return next;
	r->wake = p->wake;
	if (!woken || !reader_works(p, r))
		do
			next = reader_takes_place(p, r);
		while (next == READER_AGAIN);
	reader_leave();
	return next;
}

int reader_wait(int fd, bool (*has_event)(int fd), const int *cancel)
{
	struct reader r = {.fd = fd, .has_event = has_event, .cancel = cancel};
	int saved_errno = errno, ret = 0;
	enum reader_next next;
	bool woken = false;

	for (;;) {
		/* A handler that jumps away must not leave locks of the device behind. */
		signals_hold(&r.signals);
		next = reader_step(&r, woken);
		signals_release(&r.signals);
		if (next != READER_SLEEPS)
			break;
		ret = reader_sleep(&r);
		if (ret)
			break;
		woken = true;
	}
	if (ret)
		reader_gives_up(&r);
	errno = saved_errno;
	return ret;
}

void reader_rouse(void)
{
	struct process *p;

	if (looking)
		return;
	p = reader_enter();
	if (!p)
		return;
	/* The event has been stored. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(p->wake, memory_order_relaxed) == SLOT_READER)
		futex_store_and_wake(p->wake, SLOT_POLLED);
	reader_leave();
}

void reader_cancelled(void)
{
	no_cancellation();
	uint64_t signals;

	signals_hold(&signals);
	reader_rouse();
	signals_release(&signals);
}
