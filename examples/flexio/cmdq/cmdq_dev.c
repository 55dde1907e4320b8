// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: a task of the command queue, and two functions that look at the results. */
#include <libflexio-dev/flexio_dev.h>

#include "cmdq.h"

static int is_prime(uint64_t number)
{
	if (number < 2)
		return 0;
	for (uint64_t d = 2; d * d <= number; d++)
		if (number % d == 0)
			return 0;
	return 1;
}

/* A task has one argument of 64 bits: here the address of what it is to do.  It returns nothing, so
 * that its result goes there too. */
__dpa_global__ void count_primes(uint64_t arg)
{
	struct task *task = (struct task *)(uintptr_t)arg;
	uint64_t found = 0;

	for (uint64_t number = task->from; number < task->to; number++)
		found += (uint64_t)is_prime(number);
	task->primes = found;
	task->runs++;
}

/* The host cannot read DPA memory by itself: it asks. */
__dpa_rpc__ uint64_t sum_of_primes(uint64_t tasks, uint64_t count)
{
	const struct task *task = (const struct task *)(uintptr_t)tasks;
	uint64_t sum = 0;

	while (count--)
		sum += task++->primes;
	return sum;
}

/* How many tasks ran exactly once. */
__dpa_rpc__ uint64_t ran_once(uint64_t tasks, uint64_t count)
{
	const struct task *task = (const struct task *)(uintptr_t)tasks;
	uint64_t found = 0;

	while (count--)
		found += task++->runs == 1;
	return found;
}
