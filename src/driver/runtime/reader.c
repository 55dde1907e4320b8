// SPDX-License-Identifier: BSD-2-Clause
/* See reader.h. */
#include "driver/runtime/reader.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cancel.h"
#include "base/futex.h"
#include "base/signals.h"
#include "driver/runtime/engine.h"
#include "driver/runtime/process.h"
#include "driver/runtime/stand_in.h"
#include "registry/registry.h"

struct reader {
	struct stand_in place;
	const int *cancel;
	_Atomic(uint32_t) *wake;
	uint64_t signals; /* the signals that the program has blocked */
};

/*
 * Sleeps at the word, and holds nothing: the process's state may go away meanwhile, and then the
 * memory of the word is gone, or holds something else.  A thread that is cancelled leaves the word
 * as it is.  It can be cancelled only at the two points, so never in a handler that interrupts the
 * sleep.  A thread that was asked to end before the word was SLOT_READER ends at the first point;
 * one that is asked later is woken (reader_cancelled).
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

/* Lets the engine do what was left for this thread, and take what comes. */
static void reader_gives_up(struct reader *r)
{
	struct process *p;

	signals_hold(&r->signals);
	p = stand_in_enter();
	if (p) {
		engine_kick(p);
		engine_yield(p);
		stand_in_leave();
	}
	signals_release(&r->signals);
}

/* True: the thread has to sleep at the word. */
static bool reader_step(struct reader *r, bool woken)
{
	struct process *p = stand_in_enter();
	bool sleeps = false;

	if (!p)
		return false;
	r->wake = p->wake;
	if (woken) {
		stand_in_works(p);
		r->place.mark.events = stand_in_events(r->place.mark.row);
	}
	if (!woken || !r->place.has_event(r->place.fd))
		sleeps = stand_in_begin(p, &r->place) == STAND_IN_SLEEPS;
	stand_in_leave();
	return sleeps;
}

int reader_wait(int fd, bool (*has_event)(int fd), struct stand_in_mark mark, const int *cancel)
{
	struct reader r = {.place = {SLOT_READER, has_event, fd, UINT64_MAX, mark},
			   .cancel = cancel};
	int saved_errno = errno, ret = 0;
	bool woken = false, sleeps;

	for (;;) {
		/* A handler that jumps away must not leave locks of the device behind. */
		signals_hold(&r.signals);
		sleeps = reader_step(&r, woken);
		signals_release(&r.signals);
		if (!sleeps)
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

/* Wakes the thread that stands for the engine. */
static void reader_wake(void)
{
	struct process *p = stand_in_enter();

	if (!p)
		return;
	/* The event was stored before; this fence orders that store before our load of the word. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(p->wake, memory_order_relaxed) == SLOT_READER)
		futex_store_and_wake(p->wake, SLOT_POLLED);
	stand_in_leave();
}

void reader_rouse(const void *channel)
{
	stand_in_note_event(channel);
	if (!stand_in_looks())
		reader_wake();
}

void reader_cancelled(void)
{
	no_cancellation();
	uint64_t signals;

	signals_hold(&signals);
	reader_wake();
	signals_release(&signals);
}
