// SPDX-License-Identifier: BSD-2-Clause
#include "dpa_turns.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "host.h"

uint64_t turn_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

double turns_median(uint64_t *times, unsigned n)
{
	qsort(times, n, sizeof(*times), compare);
	times += n / 2;
	return (double)*times;
}

void run_on(const cpu_set_t *cpus)
{
	CHECK(!sched_setaffinity(0, sizeof(*cpus), cpus));
}

cpu_set_t one_of(const cpu_set_t *all, int n)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, all) && !n--)
			CPU_SET(i, &one);
	return one;
}

unsigned device_number(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	unsigned n = 0;

	CHECK(list);
	while (list[n] && strcmp(ibv_get_device_name(list[n]), name) != 0)
		n++;
	CHECK_SAY(list[n], "no device %s", name);
	ibv_free_device_list(list);
	return n;
}
