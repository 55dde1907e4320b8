// SPDX-License-Identifier: BSD-2-Clause
/* How long the engine stays awake: for streams, and where it has to share its processor. */
#include <string.h>

#include "check.h"
#include "driver/runtime/engine_inside.h"

#define USEC 1000u
#define MSEC 1000000u

/* The processors of the test say nothing about those of the engine here. */
static void engine_on(struct engine *e, _Atomic(uint32_t) *waker_plus_1, bool few)
{
	memset(e, 0, sizeof(*e));
	e->waker_plus_1 = waker_plus_1;
	engine_window_init(e);
	e->spin_min_ns = few ? 0 : 4 * USEC;
}

/* It is awake, and stays for a while after each piece of work. */
static void engine_stays(struct engine *e, _Atomic(uint32_t) *waker_plus_1, uint64_t now)
{
	engine_on(e, waker_plus_1, false);
	engine_window_close(e, 2);
	CHECK(engine_window_open(e, now));
}

/* The engine looks so often, a microsecond apart, and finds work each time; returns the time then. */
static uint64_t engine_works(struct engine *e, uint64_t now, unsigned pieces, unsigned apart)
{
	for (unsigned n = 0; n < pieces * apart; n++) {
		now += USEC;
		engine_looked(e, now, n % apart == 0);
	}
	return now;
}

static void test_streams(void)
{
	_Atomic(uint32_t) waker = 0;
	uint64_t now = MSEC, first;
	struct engine e;

	engine_on(&e, &waker, false);
	engine_window_close(&e, 1);
	first = engine_window_open(&e, now);
	CHECK(first == e.spin_min_ns);
	for (unsigned n = 0; n < 10; n++)
		engine_window_close(&e, 2);
	CHECK(engine_window_open(&e, now) == e.spin_max_ns);
	for (unsigned n = 0; n < 10; n++)
		engine_window_close(&e, 1);
	CHECK(engine_window_open(&e, now) == first);
}

/* It leaves at once, but for one time of several. */
static void test_few(void)
{
	_Atomic(uint32_t) waker = 0;
	unsigned stays = 0;
	struct engine e;

	engine_on(&e, &waker, true);
	for (unsigned n = 0; n < 160; n++)
		stays += engine_window_open(&e, MSEC + n) > 0;
	CHECK(stays > 0 && stays <= 16);
}

/* Before it moves to the one who wakes it, it stays for the next piece. */
static void test_before_it_moves(void)
{
	_Atomic(uint32_t) waker = 0;
	struct engine e;
	unsigned stays = 0;

	engine_on(&e, &waker, true);
	while (!e.place.moved) {
		/* No machine has so many processors, so it is from another one. */
		waker = UINT32_MAX;
		engine_woken(&e);
		CHECK(!engine_is_scarce(&e, MSEC));
		stays += engine_window_open(&e, MSEC) > 0;
	}
	CHECK(stays > 1);
}

/* It was away for long.  If it had little to do before that, it asks for less from now on. */
static void test_away(unsigned apart, bool goes_on)
{
	_Atomic(uint32_t) waker = 0;
	uint64_t now = MSEC;
	struct engine e;

	engine_stays(&e, &waker, now);
	now = engine_works(&e, now, 200, apart) + 4 * MSEC;
	engine_looked(&e, now, true);
	CHECK(engine_is_scarce(&e, now) == !goes_on);
	CHECK((engine_window_open(&e, now) > 0) == goes_on);
}

/* What it did before it was away last says nothing of now. */
static void test_turns(void)
{
	_Atomic(uint32_t) waker = 0;
	uint64_t now = MSEC;
	struct engine e;

	engine_stays(&e, &waker, now);
	now = engine_works(&e, now, 1000, 1) + 4 * MSEC;
	engine_looked(&e, now, true);
	CHECK(!engine_is_scarce(&e, now));
	now = engine_works(&e, now, 10, 20) + 4 * MSEC;
	engine_looked(&e, now, true);
	CHECK(engine_is_scarce(&e, now));
	CHECK(!engine_is_scarce(&e, e.starved_until_ns));
}

/* It gets no more than a look at a time, which says nothing of how much work there is. */
static void test_one_look(unsigned pieces)
{
	_Atomic(uint32_t) waker = 0;
	uint64_t now = MSEC;
	struct engine e;

	engine_stays(&e, &waker, now);
	now = engine_works(&e, now, pieces, 1) + 4 * MSEC;
	engine_looked(&e, now, true);
	CHECK(engine_is_scarce(&e, now));
	now = e.starved_until_ns;
	CHECK(engine_window_open(&e, now));
	engine_looked(&e, now + 4 * MSEC, true);
	engine_looked(&e, now + 8 * MSEC, true);
	CHECK(engine_is_scarce(&e, now + 8 * MSEC));
}

int main(void)
{
	test_streams();
	test_few();
	test_before_it_moves();
	test_away(1, true);
	test_away(10, false);
	test_turns();
	test_one_look(0);
	test_one_look(1);
	return 0;
}
