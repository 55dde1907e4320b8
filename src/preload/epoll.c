// SPDX-License-Identifier: BSD-2-Clause
/*
 * Interposes waiting for a set of epoll that has a completion channel among its members
 * (preload/wait.h).
 *
 * For the wait the FIFO into which peers write becomes a member, too, for one report
 * (EPOLLONESHOT).  So the kernel looks at the set once, as it would without us, and members that
 * report edges, or report once, behave as always.  Every thread takes that member out of what the
 * kernel reports, because several threads may wait for a set, and a child of fork as well.
 */
#include "preload/libc.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>

#include "base/thread.h"
#include "driver/cdev.h"
#include "preload/program_memory.h"
#include "preload/signal_mask.h"
#include "preload/tree.h"
#include "preload/wait.h"

/* The member's name.  It is the same in all processes, because they may share a set; no program has
 * a number like this by chance. */
#define FIFO_MEMBER 0x9b1f6c03d4e7a285u

struct epoll_call {
	struct wait_call call;
	int set;
	struct epoll_event *events;
	int max;
	enum { EPOLL_WAIT, EPOLL_PWAIT, EPOLL_PWAIT2 } way;
	const sigset_t *mask;
};

/* Some set has, or has had, such a member. */
static _Atomic(bool) fifo_used;

/* ---- the member ---- */

static bool member_set(int set, int fifo, uint32_t events)
{
	struct epoll_event e = {.events = events | EPOLLONESHOT, .data.u64 = FIFO_MEMBER};
	int saved_errno = errno, ret;

	ret = real(epoll_ctl)(set, EPOLL_CTL_MOD, fifo, &e);
	if (ret && errno == ENOENT && events)
		ret = real(epoll_ctl)(set, EPOLL_CTL_ADD, fifo, &e);
	errno = saved_errno;
	return !ret;
}

/* Takes the member's report out, and returns how many reports are left. */
static int member_take_out(struct epoll_event *events, int n, bool *woken)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		if (events[i].data.u64 == FIFO_MEMBER)
			*woken = true;
		else if (kept++ != i)
			events[kept - 1] = events[i];
	}
	return n < 0 ? n : kept;
}

/* ---- asking and waiting ---- */

static int epoll_really(const struct epoll_call *p, uint64_t deadline_ns, bool *woken)
{
	int ms = wait_left_ms(deadline_ns), n;
	const sigset_t *mask = p->mask ? p->mask : p->call.mask;
	struct timespec left;

	if (p->way == EPOLL_WAIT && !mask)
		n = real(epoll_wait)(p->set, p->events, p->max, ms);
	else if (p->way != EPOLL_PWAIT2)
		n = real(epoll_pwait)(p->set, p->events, p->max, ms, mask);
	else
		n = real(epoll_pwait2)(p->set, p->events, p->max, wait_left(deadline_ns, &left),
				       mask);
	return member_take_out(p->events, n, woken);
}

static void wakeup_take(const struct epoll_call *p)
{
	uint64_t signals;

	if (!tree_device_owner())
		return;
	if (p->call.mask) {
		cdev_wait_end(true);
		return;
	}
	signals_hold(&signals);
	cdev_wait_end(true);
	signals_release(&signals);
}

/* Another thread may have made the descriptor a member.  Whichever thread hears of a wake-up takes
 * what has come. */
static int epoll_until(const struct epoll_call *p, uint64_t deadline_ns)
{
	bool woken;
	int n;

	do {
		woken = false;
		n = epoll_really(p, deadline_ns, &woken);
		if (woken)
			wakeup_take(p);
	} while (!n && woken);
	return n;
}

static int epoll_ask(struct wait_call *c)
{
	return epoll_until(container_of(c, struct epoll_call, call), 0);
}

static int epoll_wait_for(struct wait_call *c, int fifo, bool *woken)
{
	struct epoll_call *p = container_of(c, struct epoll_call, call);
	int n;

	if (fifo < 0)
		return epoll_until(p, c->deadline_ns);
	atomic_store_explicit(&fifo_used, true, memory_order_relaxed);
	if (!member_set(p->set, fifo, EPOLLIN)) {
		cdev_wait_end(false);
		return epoll_until(p, c->deadline_ns);
	}
	n = epoll_really(p, c->deadline_ns, woken);
	if (!*woken)
		(void)member_set(p->set, fifo, 0);
	return n;
}

static int epoll_in_place(struct epoll_call *p)
{
	int n;

	if (!p->call.deadline_ns || !cdev_any_channel() || !wait_leads_to_channel(p->set))
		return epoll_until(p, p->call.deadline_ns);
	/* Here the kernel says what is wrong with the call. */
	n = wait_ask(&p->call);
	return n ? n : wait_in_place(&p->call);
}

/* A child of fork has no channels, but it has the set, in which a thread of the parent may wait at
 * any time. */
static bool epoll_is_ours(int set)
{
	return unlikely(atomic_load_explicit(&fifo_used, memory_order_relaxed)) ||
	       wait_leads_to_channel(set);
}

exported int epoll_wait(int set, struct epoll_event *events, int max, int timeout)
{
	struct epoll_call p = {
		.call = {.ask = epoll_ask, .wait = epoll_wait_for},
		.set = set,
		.events = events,
		.max = max,
	};

	if (!epoll_is_ours(set))
		return real(epoll_wait)(set, events, max, timeout);
	p.call.deadline_ns = timeout ? wait_until_ms(timeout) : 0;
	return epoll_in_place(&p);
}

exported int epoll_pwait(int set, struct epoll_event *events, int max, int timeout,
			 const sigset_t *mask)
{
	struct epoll_call p = {
		.call = {.ask = epoll_ask, .wait = epoll_wait_for},
		.set = set,
		.events = events,
		.max = max,
		.way = EPOLL_PWAIT,
	};
	sigset_t room;

	p.mask = mask = signal_wait_mask(mask, &room);
	if (!epoll_is_ours(set))
		return real(epoll_pwait)(set, events, max, timeout, mask);
	p.call.deadline_ns = timeout ? wait_until_ms(timeout) : 0;
	return epoll_in_place(&p);
}

exported int epoll_pwait2(int set, struct epoll_event *events, int max,
			  const struct timespec *timeout, const sigset_t *mask)
{
	struct epoll_call p = {
		.call = {.ask = epoll_ask, .wait = epoll_wait_for},
		.set = set,
		.events = events,
		.max = max,
		.way = EPOLL_PWAIT2,
	};
	struct timespec time;
	sigset_t room;

	p.mask = mask = signal_wait_mask(mask, &room);
	if (!epoll_is_ours(set) || (timeout && !program_read(&time, timeout, sizeof(time))) ||
	    !wait_until(timeout ? &time : NULL, &p.call.deadline_ns))
		return real(epoll_pwait2)(set, events, max, timeout, mask);
	if (timeout && !time.tv_sec && !time.tv_nsec)
		p.call.deadline_ns = 0;
	return epoll_in_place(&p);
}

exported int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	int ret = real(epoll_ctl)(set, op, fd, event);

	if (!ret && op == EPOLL_CTL_ADD && cdev_any_channel() && wait_leads_to_channel(fd))
		wait_set_leads_to_channel(set);
	return ret;
}
