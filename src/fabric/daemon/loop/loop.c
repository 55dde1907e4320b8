// SPDX-License-Identifier: BSD-2-Clause
/* Rounds of events, timers and work. */
#include "fabric/daemon/loop/loop.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/*
 * Timers: a wheel of four levels with a slot for each value of a byte of the time in milliseconds.
 * A timer lies on the level of the highest byte in which its time differs from the present, so the
 * slots ahead on a level are those after the present one, and the next that is filled says when
 * there is something to do.  Slots of upper levels are spread over those below when their time
 * begins.
 */

#define NS_OF_MS   1000000u
#define LEVEL_BITS 8u
#define WHEEL_BITS (LOOP_LEVELS * LEVEL_BITS)

static uint32_t timer_byte(uint64_t ms, uint32_t level)
{
	return (uint32_t)(ms >> level * LEVEL_BITS) & (LOOP_SLOTS - 1);
}

static void timer_put(struct loop *l, struct loop_timer *t, uint64_t earliest_ms)
{
	uint64_t due = (t->due_ns + NS_OF_MS - 1) / NS_OF_MS;
	uint32_t level = 0, slot;
	struct loop_timer **head;

	if (due < earliest_ms)
		due = earliest_ms;
	while (level < LOOP_LEVELS && (due ^ l->wheel_ms) >> (level + 1) * LEVEL_BITS)
		level++;
	/* After the last slot of the top level comes its first; when the timer is found there, it
	 * is put anew. */
	if (level == LOOP_LEVELS) {
		level--;
		slot = 0;
	} else {
		slot = timer_byte(due, level);
	}
	head = &l->wheel[level][slot];
	l->filled[level][slot / 64] |= 1ull << slot % 64;
	t->prev = head;
	t->next = *head;
	if (t->next)
		t->next->prev = &t->next;
	*head = t;
}

static void timer_take(struct loop_timer *t)
{
	*t->prev = t->next;
	if (t->next)
		t->next->prev = t->prev;
	t->prev = NULL;
}

void loop_timer_arm(struct loop *l, struct loop_timer *t, uint64_t due_ns)
{
	if (t->prev)
		timer_take(t);
	else
		l->ntimers++;
	t->due_ns = due_ns;
	/* The present slot is being emptied, or has been, so the timer goes into the next one. */
	timer_put(l, t, l->wheel_ms + 1);
}

void loop_timer_cancel(struct loop *l, struct loop_timer *t)
{
	if (!t->prev)
		return;
	timer_take(t);
	l->ntimers--;
}

/* Returns the first slot of a level from 'from' on that holds a timer, or LOOP_SLOTS. */
static uint32_t level_next(struct loop *l, uint32_t level, uint32_t from)
{
	while (from < LOOP_SLOTS) {
		uint64_t word = l->filled[level][from / 64] >> from % 64;

		if (!word) {
			from = (from / 64 + 1) * 64;
			continue;
		}
		from += (uint32_t)__builtin_ctzll(word);
		if (l->wheel[level][from])
			return from;
		l->filled[level][from / 64] &= ~(1ull << from % 64);
	}
	return LOOP_SLOTS;
}

/* Returns when the next slot begins that holds something; UINT64_MAX: none does. */
static uint64_t wheel_next_ms(struct loop *l)
{
	if (!l->ntimers)
		return UINT64_MAX;
	/* A slot of a lower level comes before all slots of higher levels. */
	for (uint32_t level = 0; level < LOOP_LEVELS; level++) {
		uint32_t slot = level_next(l, level, timer_byte(l->wheel_ms, level) + 1);

		if (slot < LOOP_SLOTS) {
			uint64_t above = l->wheel_ms >> (level + 1) * LEVEL_BITS;

			return (above << LEVEL_BITS | slot) << level * LEVEL_BITS;
		}
	}
	return ((l->wheel_ms >> WHEEL_BITS) + 1) << WHEEL_BITS;
}

static void slot_spread(struct loop *l, uint32_t level, uint32_t slot)
{
	struct loop_timer *t = l->wheel[level][slot];

	l->wheel[level][slot] = NULL;
	while (t) {
		struct loop_timer *next = t->next;

		timer_put(l, t, l->wheel_ms);
		t = next;
	}
}

/* Fires the slot of this millisecond, after it has spread all higher slots that begin with it. */
static void wheel_step(struct loop *l, uint64_t ms)
{
	struct loop_timer **head = &l->wheel[0][timer_byte(ms, 0)];

	l->wheel_ms = ms;
	for (uint32_t level = LOOP_LEVELS - 1; level; level--)
		if (!(ms & ((1ull << level * LEVEL_BITS) - 1)))
			slot_spread(l, level, timer_byte(ms, level));
	while (*head) {
		struct loop_timer *t = *head;

		loop_timer_cancel(l, t);
		t->fire(l, t);
	}
}

void loop_timers_run(struct loop *l)
{
	uint64_t now = loop_now(l) / NS_OF_MS;
	uint64_t next;

	while ((next = wheel_next_ms(l)) <= now)
		wheel_step(l, next);
	if (now > l->wheel_ms)
		l->wheel_ms = now;
}

int loop_timers_wait(struct loop *l)
{
	uint64_t next = wheel_next_ms(l), now;

	if (next == UINT64_MAX)
		return -1;
	now = loop_now(l);
	if (next * NS_OF_MS <= now)
		return 0;
	next = (next * NS_OF_MS - now + NS_OF_MS - 1) / NS_OF_MS;
	return next > INT_MAX ? INT_MAX : (int)next;
}

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
