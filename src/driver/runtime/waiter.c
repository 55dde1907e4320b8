// SPDX-License-Identifier: BSD-2-Clause
/* See waiter.h. */
#include "driver/runtime/waiter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/cancel.h"
#include "driver/runtime/engine.h"
#include "driver/runtime/engine_inside.h"
#include "driver/runtime/process.h"
#include "driver/runtime/stand_in.h"
#include "registry/registry.h"
#include "wire/knock.h"

static _Thread_local bool waits __attribute__((tls_model("initial-exec")));
static _Thread_local bool told __attribute__((tls_model("initial-exec")));
static _Thread_local struct hidden door __attribute__((tls_model("initial-exec")));

bool waiter_waits(void)
{
	return waits;
}

bool waiter_was_told(void)
{
	bool was = told;

	told = false;
	return was;
}

/* Returns the descriptor to wait for, if all peers can knock.  Only the thread that is in the
 * device changes e->door. */
static int waiter_door(struct process *p)
{
	struct engine *e = p->engine;
	int fd = -1;

	if (atomic_load_explicit(&p->slot->knocks_in_vain, memory_order_relaxed) ||
	    !spin_try(&e->polling))
		return -1;
	if (knock_ready(p->slot, &e->door)) {
		door = e->door;
		fd = door.fd;
	}
	spin_unlock(&e->polling);
	return fd;
}

static int waiter_step(struct process *p, uint64_t deadline_ns, uint32_t events)
{
	const struct stand_in waiter = {
		.word = SLOT_WAITER,
		.deadline_ns = deadline_ns,
		.mark = {STAND_IN_ALL_CHANNELS, events},
	};
	int fd = waiter_door(p);
	enum stand_in_next next;

	if (fd < 0) {
		engine_yield(p);
		return -1;
	}
	next = stand_in_begin(p, &waiter);
	/* A thread that has found its event without a sleep goes on waiting in this way, too. */
	waits = next != STAND_IN_DECLINES;
	if (next == STAND_IN_EVENT)
		return WAITER_ASK;
	return next == STAND_IN_SLEEPS ? fd : -1;
}

int waiter_begin(uint64_t deadline_ns, uint32_t events)
{
	no_cancellation();
	int saved_errno = errno, fd = -1;
	struct process *p = stand_in_enter();

	waits = false;
	if (p) {
		fd = waiter_step(p, deadline_ns, events);
		stand_in_leave();
	}
	told = false;
	errno = saved_errno;
	return fd;
}

static void waiter_takes_up(struct process *p, bool knocked)
{
	if (knocked)
		knock_heard(&door);
	/* If nobody knocked, or if the knock is so old that the place was taken since, the engine
	 * has to look for what comes, because the program has something else to do. */
	if (stand_in_give_back(p, SLOT_WAITER))
		engine_yield(p);
	if (knocked)
		stand_in_works(p);
	else
		stand_in_forget(p);
	told = true;
}

void waiter_end(bool knocked)
{
	no_cancellation();
	int saved_errno = errno;
	struct process *p = stand_in_enter();

	if (p) {
		waiter_takes_up(p, knocked);
		stand_in_leave();
	}
	errno = saved_errno;
}
