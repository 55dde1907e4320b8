// SPDX-License-Identifier: BSD-2-Clause
/* See wait.h. */
#include "preload/libc.h"

#include "preload/wait.h"

#include <limits.h>

#include "base/clock.h"
#include "base/thread.h"
#include "driver/cdev.h"
#include "preload/tree.h"

#define SECOND_NS 1000000000u
#define MS_NS	  1000000u
#define WAIT_FDS  65536u

/* By number of the descriptor: it is a set of epoll to which a channel was added. */
static _Atomic(uint64_t) sets[WAIT_FDS / 64];

static bool set_is_known(int fd)
{
	return fd >= 0 && (unsigned)fd < WAIT_FDS &&
	       atomic_load_explicit(&sets[fd / 64], memory_order_relaxed) >> (fd % 64) & 1;
}

bool wait_leads_to_channel(int fd)
{
	return cdev_is_channel(fd) || set_is_known(fd);
}

void wait_set_leads_to_channel(int set)
{
	if (set >= 0 && (unsigned)set < WAIT_FDS)
		atomic_fetch_or_explicit(&sets[set / 64], UINT64_C(1) << (set % 64),
					 memory_order_relaxed);
}

void wait_closed(int fd)
{
	if (unlikely(set_is_known(fd)))
		atomic_fetch_and_explicit(&sets[fd / 64], ~(UINT64_C(1) << (fd % 64)),
					  memory_order_relaxed);
}

int wait_ask(struct wait_call *c)
{
	c->events = cdev_completion_events();
	return c->ask(c);
}

static int wait_on(struct wait_call *c)
{
	bool woken;
	int fifo, n;

	do {
		woken = false;
		/* A child of vfork is another process with our memory, so the device is not its
		 * own. */
		fifo = tree_device_owner() ? cdev_wait_begin(c->events) : -1;
		if (fifo != CDEV_WAIT_ASK) {
			n = c->wait(c, fifo, &woken);
			if (fifo < 0)
				return n;
			cdev_wait_end(woken);
			if (n || !woken)
				return n;
		}
		n = wait_ask(c);
	} while (!n);
	return n;
}

/* The kernel reads and writes the first word of a mask only. */
int wait_in_place(struct wait_call *c)
{
	union {
		uint64_t word;
		sigset_t set;
	} mask;
	int n;

	signals_hold(&mask.word);
	c->mask = &mask.set;
	n = wait_on(c);
	signals_release(&mask.word);
	return n;
}

bool wait_until(const struct timespec *from_now, uint64_t *deadline_ns)
{
	uint64_t now;

	*deadline_ns = WAIT_FOR_EVER;
	if (!from_now)
		return true;
	if (from_now->tv_sec < 0 || from_now->tv_nsec < 0 || from_now->tv_nsec >= SECOND_NS)
		return false;
	now = clock_ns();
	if ((uint64_t)from_now->tv_sec < (INT64_MAX - now) / SECOND_NS - 1)
		*deadline_ns =
			now + (uint64_t)from_now->tv_sec * SECOND_NS + (uint64_t)from_now->tv_nsec;
	return true;
}

uint64_t wait_until_ms(int ms)
{
	return ms < 0 ? WAIT_FOR_EVER : clock_ns() + (uint64_t)ms * MS_NS;
}

const struct timespec *wait_left(uint64_t deadline_ns, struct timespec *left)
{
	uint64_t now;

	if (deadline_ns == WAIT_FOR_EVER)
		return NULL;
	now = deadline_ns ? clock_ns() : 0;
	deadline_ns = deadline_ns > now ? deadline_ns - now : 0;
	*left = (struct timespec){(time_t)(deadline_ns / SECOND_NS),
				  (long)(deadline_ns % SECOND_NS)};
	return left;
}

int wait_left_ms(uint64_t deadline_ns)
{
	uint64_t now, ms;

	if (deadline_ns == WAIT_FOR_EVER)
		return -1;
	now = deadline_ns ? clock_ns() : 0;
	ms = deadline_ns > now ? (deadline_ns - now + MS_NS - 1) / MS_NS : 0;
	return ms < INT_MAX ? (int)ms : INT_MAX;
}
