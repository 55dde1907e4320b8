// SPDX-License-Identifier: BSD-2-Clause
/* A thread that leaves its processor may run afterwards where it might before. */
#include "dpa/place.h"

#include <sched.h>
#include <time.h>

#include "check.h"

#define LIMIT_S 60

static void allowed(cpu_set_t *set)
{
	CHECK(sched_getaffinity(0, sizeof(*set), set) == 0);
}

/* Where the kernel puts it next is its own affair: so once is enough. */
static void test_leave(void)
{
	time_t end = time(NULL) + LIMIT_S;
	cpu_set_t before, after;
	uint32_t here;

	allowed(&before);
	do {
		CHECK(time(NULL) < end);
		here = dpa_place_here();
		CHECK(dpa_place_leave(here));
		allowed(&after);
		CHECK(CPU_EQUAL(&before, &after));
	} while (dpa_place_here() == here);
}

static void test_leave_nowhere(void)
{
	uint32_t here = dpa_place_here();
	cpu_set_t all, one, after;

	allowed(&all);
	CPU_ZERO(&one);
	CPU_SET(here, &one);
	CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	CHECK(!dpa_place_leave(here));
	allowed(&after);
	CHECK(CPU_EQUAL(&one, &after) && dpa_place_here() == here);
	CHECK(!dpa_place_leave(DPA_NOWHERE) && !dpa_place_leave(DPA_BETWEEN));
	CHECK(sched_setaffinity(0, sizeof(all), &all) == 0);
}

int main(void)
{
	cpu_set_t set;

	allowed(&set);
	if (CPU_COUNT(&set) < 2) {
		printf("one processor: nobody leaves it\n");
		return 0;
	}
	test_leave();
	test_leave_nowhere();
	return 0;
}
