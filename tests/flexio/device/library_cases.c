// SPDX-License-Identifier: BSD-2-Clause
/* The device library on the DPA. */
#include <pthread.h>

#include "process.h"

#define THREADS 16u
#define ROUNDS	2000u

static void spinlocks(void)
{
	call_from_threads(count_locked, THREADS, ROUNDS, 0);
	CHECK(CALL(count_locked, (uint64_t)0) == THREADS * ROUNDS);
	/* the first try takes it, the second does not */
	CHECK(CALL(try_lock, (uint64_t)0) == 1);
}

static void atomics(void)
{
	const uint64_t total = THREADS * ROUNDS;

	call_from_threads(count_atomic, THREADS, ROUNDS, 0);
	CHECK(CALL(count_atomic, (uint64_t)0) == (total | total << 32));
}

static void *take(void *arg)
{
	uint64_t *wrong = arg;

	*wrong = CALL(take_messages, (uint64_t)10000);
	return NULL;
}

static void fences_order(void)
{
	pthread_t taker;
	uint64_t wrong = 1;

	CHECK(CALL(fences, (uint64_t)77) == 77);
	CHECK(!pthread_create(&taker, NULL, take, &wrong));
	CALL(pass_messages, (uint64_t)10000);
	CHECK(!pthread_join(taker, NULL));
	CHECK(wrong == 0);
}

/* Of one process and of the next. */
static void values_at_the_start(void)
{
	CHECK(CALL(initial_values, (uint64_t)0) == 0);
	CHECK(CALL(initial_values, (uint64_t)0) == 2);
	process_close();
	process_open();
	CHECK(CALL(initial_values, (uint64_t)0) == 0);
}

static void clocks(void)
{
	CHECK(CALL(clocks_grow, (uint64_t)100000) == 1);
}

static void fixed(void)
{
	CHECK(CALL(fixed_point, (uint64_t)0) == 1);
}

static void libc(void)
{
	CHECK(CALL(library, (uint64_t)0) == 0);
}

static void error_number(void)
{
	CHECK(CALL(read_errno, (uint64_t)0) == 0);
}

const struct test_case library_cases[] = {
	{"spin locks exclude, trylock says who has it P284", spinlocks},
	{"atomic counters of 32 and 64 bits P292", atomics},
	{"fences compile in all shapes and order messages P285", fences_order},
	{"variables begin with their values in each process P294", values_at_the_start},
	{"clocks grow P286", clocks},
	{"fixed point P287", fixed},
	{"strings and memory P293", libc},
	{"errno is read and reset O281", error_number},
	{0},
};
