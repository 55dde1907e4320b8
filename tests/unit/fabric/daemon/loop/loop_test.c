// SPDX-License-Identifier: BSD-2-Clause
/* The daemon's loop: order of work, and timers against a plain list of due times. */
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "check.h"
#include "fabric/daemon/loop/loop.h"

#define MS 1000000ull

static struct loop loop;

static void open_still(void)
{
	CHECK(!loop_open(&loop));
	loop.still_ns = (loop.wheel_ms + 1) * MS;
}

struct timed {
	struct loop_timer timer;
	uint64_t due_ns; /* 0: not armed */
	bool again;
};

#define TIMERS 200u

static struct timed timed[TIMERS];
static uint32_t nfired, narmed;

static void fire(struct loop *l, struct loop_timer *t)
{
	struct timed *m = container_of(t, struct timed, timer);

	CHECK(m->due_ns && m->due_ns <= loop_now(l));
	m->due_ns = 0;
	narmed--;
	nfired++;
	/* One that is armed by what fires may not fire in the same turn without end. */
	if (m->again) {
		m->again = false;
		m->due_ns = loop_now(l);
		narmed++;
		loop_timer_arm(l, t, m->due_ns);
	}
}

static uint64_t random_delay_ns(void)
{
	/* All levels of the wheel and beyond: up to 2^35 ms. */
	uint64_t ms = (uint64_t)rand() * (uint64_t)rand() & ((1ull << (unsigned)rand() % 36) - 1);

	return ms * MS + (uint64_t)rand() % MS;
}

static void arm_one(struct timed *m)
{
	if (!m->due_ns)
		narmed++;
	m->due_ns = loop.still_ns + random_delay_ns();
	m->timer.fire = fire;
	loop_timer_arm(&loop, &m->timer, m->due_ns);
}

static uint64_t earliest(void)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = 0; i < TIMERS; i++)
		if (timed[i].due_ns && timed[i].due_ns < first)
			first = timed[i].due_ns;
	return first;
}

/* None early, and none later than the millisecond after it is due. */
static void check_none_late(void)
{
	for (uint32_t i = 0; i < TIMERS; i++)
		CHECK(!timed[i].due_ns || timed[i].due_ns + 2 * MS > loop.still_ns);
}

static void test_timers_random(void)
{
	open_still();
	/* The turn of the byte above the top level is near. */
	loop.still_ns = ((loop.wheel_ms | 0xffffffffu) - 5000) * MS;
	loop_timers_run(&loop);
	srand(5);
	for (uint32_t step = 0; step < 100000; step++) {
		struct timed *m = &timed[(uint32_t)rand() % TIMERS];
		uint64_t first;
		int wait;

		switch (rand() % 4) {
		case 0:
			if (m->due_ns)
				narmed--;
			m->due_ns = 0;
			loop_timer_cancel(&loop, &m->timer);
			break;
		case 1:
			first = earliest();
			wait = loop_timers_wait(&loop);
			CHECK((wait < 0) == (first == UINT64_MAX));
			if (wait < 0)
				break;
			CHECK(loop.still_ns + (uint64_t)wait * MS <= first + 2 * MS);
			loop.still_ns += (uint64_t)wait * MS;
			loop_timers_run(&loop);
			check_none_late();
			break;
		case 2:
			loop.still_ns += random_delay_ns() >> 8;
			loop_timers_run(&loop);
			check_none_late();
			break;
		default:
			m->again = !(rand() % 4);
			arm_one(m);
		}
		CHECK(loop.ntimers == narmed);
	}
	CHECK(nfired > 1000);
	for (uint32_t i = 0; i < TIMERS; i++)
		loop_timer_cancel(&loop, &timed[i].timer);
	CHECK(!loop.ntimers && loop_timers_wait(&loop) == -1);
	loop_close(&loop);
}

struct canceller {
	struct loop_timer timer, *other;
};

static void fire_cancel(struct loop *l, struct loop_timer *t)
{
	loop_timer_cancel(l, container_of(t, struct canceller, timer)->other);
	nfired++;
}

/* Two of the same millisecond, each of which cancels the other. */
static void test_timer_cancels(void)
{
	struct canceller a = {.timer.fire = fire_cancel}, b = {.timer.fire = fire_cancel};

	open_still();
	a.other = &b.timer;
	b.other = &a.timer;
	nfired = 0;
	loop_timer_arm(&loop, &a.timer, loop.still_ns + 3 * MS);
	loop_timer_arm(&loop, &b.timer, loop.still_ns + 3 * MS);
	loop.still_ns += 10 * MS;
	loop_timers_run(&loop);
	CHECK(nfired == 1 && !loop.ntimers);
	loop_close(&loop);
}

static struct loop_work work[4];
static char ran[16];
static uint32_t nran;

static void run_work(struct loop *l, struct loop_work *w)
{
	uint32_t n = (uint32_t)(w - work);

	ran[nran++] = (char)('0' + n);
	if (n == 1)
		loop_unqueue(l, &work[2]);
	if (n == 3 && nran < 8)
		loop_queue(l, w);
}

/* Work comes in its order, once a round; what it queues is the next round's. */
static void test_work_order(void)
{
	open_still();
	for (uint32_t i = 0; i < 4; i++) {
		work[i].run = run_work;
		loop_queue(&loop, &work[i]);
		loop_queue(&loop, &work[i]);
	}
	/* The wait is none, because there is work. */
	CHECK(loop_round(&loop, -1) == 0);
	CHECK(!strcmp(ran, "013"));
	loop_queue(&loop, &work[0]);
	while (loop.work)
		CHECK(loop_round(&loop, -1) == 0);
	CHECK(!strcmp(ran, "01330333"));
	loop_close(&loop);
}

struct watched {
	struct source src;
	struct loop_grave grave;
	uint32_t events, buried;
};

static void bury(struct loop_grave *g)
{
	container_of(g, struct watched, grave)->buried++;
}

static void ready(struct loop *l, struct source *src, uint32_t events)
{
	struct watched *w = container_of(src, struct watched, src);

	w->events |= events;
	CHECK(!w->buried);
	loop_bury(l, &w->grave);
	CHECK(loop_rewatch(l, src, 0));
}

static void test_sources(void)
{
	struct watched w = {.src.ready = ready, .grave.bury = bury};
	int fds[2];

	open_still();
	CHECK(!pipe(fds));
	w.src.fd = fds[0];
	CHECK(!loop_watch(&loop, &w.src, EPOLLIN));
	CHECK(loop_round(&loop, 0) == 0);
	CHECK(write(fds[1], "x", 1) == 1);
	CHECK(loop_round(&loop, -1) == 1);
	CHECK(w.events == EPOLLIN && w.buried == 1);
	CHECK(loop_round(&loop, 0) == 0);
	close(fds[0]);
	close(fds[1]);
	loop_close(&loop);
}

/* The wait for events ends when a timer is due. */
static void test_round_wakes(void)
{
	struct timed m = {.timer.fire = fire};

	CHECK(!loop_open(&loop));
	m.due_ns = clock_ns() + 20 * MS;
	narmed = 1;
	nfired = 0;
	loop_timer_arm(&loop, &m.timer, m.due_ns);
	while (!nfired)
		CHECK(loop_round(&loop, -1) == 0);
	loop_close(&loop);
}

int main(void)
{
	test_timers_random();
	test_timer_cancels();
	test_work_order();
	test_sources();
	test_round_wakes();
	return 0;
}
