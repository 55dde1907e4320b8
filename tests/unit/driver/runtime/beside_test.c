// SPDX-License-Identifier: BSD-2-Clause
/* A thread that is woken from another processor again and again goes there, if it may, and keeps what it was allowed. */
#include "driver/runtime/beside.h"

#include <pthread.h>

#include "check.h"

/* Two processors that there are. */
static uint32_t first, second;

static void find_processors(void)
{
	cpu_set_t all;
	uint32_t found = 0;

	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	for (uint32_t i = 0; i < CPU_SETSIZE && found < 2; i++)
		if (CPU_ISSET(i, &all))
			*(found++ ? &second : &first) = i;
	if (found < 2)
		SKIP("there is one processor only");
}

static void allow_only(uint32_t processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	CHECK(!sched_setaffinity(0, sizeof(set), &set));
}

static bool is_allowed(uint32_t processor, int count)
{
	cpu_set_t set;

	CHECK(!sched_getaffinity(0, sizeof(set), &set));
	return CPU_ISSET(processor, &set) && CPU_COUNT(&set) == count;
}

/* So many times in a row, of which the last moved it; or 0. */
static unsigned wake_until_moved(struct beside *b, uint32_t from, unsigned most)
{
	for (unsigned n = 1; n <= most; n++) {
		bool soon = beside_moves_soon(b);

		if (beside_woken(b, from + 1))
			return 0;
		if (!b->moved)
			continue;
		CHECK(soon && !beside_moves_soon(b));
		return n;
	}
	return 0;
}

/* A program that is bound to a processor has its threads there. */
static void *bound(void *unused)
{
	struct beside b = {0};

	(void)unused;
	allow_only(first);
	CHECK(wake_until_moved(&b, second, 100) > 1);
	CHECK(is_allowed(first, 1) && sched_getcpu() == (int)first);
	return NULL;
}

/* One that may run on both stays allowed to. */
static void *within(void *unused)
{
	struct beside b = {0};
	cpu_set_t both;

	(void)unused;
	CPU_ZERO(&both);
	CPU_SET(first, &both);
	CPU_SET(second, &both);
	CHECK(!sched_setaffinity(0, sizeof(both), &both));
	(void)wake_until_moved(&b, second, 100);
	(void)wake_until_moved(&b, first, 100);
	CHECK(is_allowed(first, 2) && is_allowed(second, 2));
	return NULL;
}

static void *on_one_processor(void *unused)
{
	struct beside b = {.leaves = true};

	(void)unused;
	allow_only(first);
	CHECK(beside_woken(&b, first + 1)); /* from here */
	CHECK(!beside_woken(&b, 0));	    /* by nobody */
	CHECK(wake_until_moved(&b, second, 100) > 1);
	CHECK(is_allowed(first, 2) && is_allowed(second, 2));
	/* What the program allows meanwhile holds: nothing of before is added to it. */
	allow_only(second);
	CHECK(beside_woken(&b, second + 1));
	CHECK(wake_until_moved(&b, first, 100) > 1);
	CHECK(is_allowed(first, 2) && is_allowed(second, 2));
	return NULL;
}

/* One that does not stay where it went asks for it less and less. */
static void *elsewhere_again(void *unused)
{
	struct beside b = {.leaves = true};
	unsigned before = 0;

	(void)unused;
	for (unsigned turn = 0; turn < 5; turn++) {
		unsigned n;

		allow_only(first);
		n = wake_until_moved(&b, second, 1000);
		CHECK(n > before);
		before = n;
	}
	return NULL;
}

static void *no_such_processor(void *unused)
{
	struct beside b = {.leaves = true};

	(void)unused;
	allow_only(first);
	CHECK(wake_until_moved(&b, CPU_SETSIZE - 1, 100));
	CHECK(wake_until_moved(&b, UINT32_MAX - 1, 1000));
	CHECK(is_allowed(first, 1));
	return NULL;
}

static void in_a_thread(void *(*run)(void *))
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, run, NULL));
	CHECK(!pthread_join(thread, NULL));
}

int main(void)
{
	find_processors();
	in_a_thread(bound);
	in_a_thread(within);
	in_a_thread(on_one_processor);
	in_a_thread(elsewhere_again);
	in_a_thread(no_such_processor);
	return 0;
}
