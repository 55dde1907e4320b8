// SPDX-License-Identifier: BSD-2-Clause
/* Rounds of events, timers and work; see loop.h. */
#include "fabric/daemon/loop/loop.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define BATCH 64

int loop_open(struct loop *l)
{
	memset(l, 0, sizeof(*l));
	l->work_end = &l->work;
	l->wheel_ms = clock_ns() / 1000000;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	return l->epoll < 0 ? -errno : 0;
}

static void loop_graves_clear(struct loop *l)
{
	while (l->graves) {
		struct loop_grave *g = l->graves;

		l->graves = g->next;
		g->bury(g);
	}
}

void loop_close(struct loop *l)
{
	loop_graves_clear(l);
	if (l->epoll >= 0)
		close(l->epoll);
	l->epoll = -1;
}

int loop_watch(struct loop *l, struct source *src, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = src};

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, src->fd, &ev) ? -errno : 0;
}

bool loop_rewatch(struct loop *l, struct source *src, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = src};

	return !epoll_ctl(l->epoll, EPOLL_CTL_MOD, src->fd, &ev);
}

void loop_bury(struct loop *l, struct loop_grave *g)
{
	g->next = l->graves;
	l->graves = g;
}

void loop_queue(struct loop *l, struct loop_work *w)
{
	if (w->queued)
		return;
	w->queued = true;
	w->next = NULL;
	*l->work_end = w;
	l->work_end = &w->next;
	w->round = l->round;
}

static void loop_work_take(struct loop *l, struct loop_work **at)
{
	struct loop_work *w = *at;

	*at = w->next;
	if (!w->next)
		l->work_end = at;
	w->queued = false;
}

void loop_unqueue(struct loop *l, struct loop_work *w)
{
	struct loop_work **at = &l->work;

	if (!w->queued)
		return;
	while (*at != w)
		at = &(*at)->next;
	loop_work_take(l, at);
}

/*
 * Work that work queues now runs in the next round, after the descriptors that are ready by then.
 */
static void loop_work_run(struct loop *l)
{
	l->round++;
	while (l->work && l->work->round != l->round) {
		struct loop_work *w = l->work;

		loop_work_take(l, &l->work);
		w->run(l, w);
	}
}

static int loop_wait_ms(struct loop *l, int timeout_ms)
{
	int timer;

	if (l->work)
		return 0;
	timer = loop_timers_wait(l);
	if (timer < 0)
		return timeout_ms;
	return timeout_ms < 0 || timer < timeout_ms ? timer : timeout_ms;
}

int loop_round(struct loop *l, int timeout_ms)
{
	struct epoll_event events[BATCH];
	int n = epoll_wait(l->epoll, events, BATCH, loop_wait_ms(l, timeout_ms));
	int ret = n < 0 ? -errno : n;

	for (int i = 0; i < n; i++) {
		struct source *src = events[i].data.ptr;

		src->ready(l, src, events[i].events);
	}
	loop_timers_run(l);
	loop_work_run(l);
	loop_graves_clear(l);
	return ret;
}
