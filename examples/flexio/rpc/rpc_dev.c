// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: prime numbers below a bound, counted by trial division. */
#include <libflexio-dev/flexio_dev.h>

static int is_prime(uint32_t number)
{
	if (number < 2)
		return 0;
	for (uint32_t d = 2; (uint64_t)d * d <= number; d++)
		if (number % d == 0)
			return 0;
	return 1;
}

/* The host calls it by flexio_process_call().  What it returns is the call's result. */
__dpa_rpc__ uint64_t count_primes(uint32_t from, uint32_t to)
{
	uint64_t found = 0;

	for (uint32_t number = from; number < to; number++)
		found += (uint64_t)is_prime(number);
	flexio_dev_print("%lu primes from %u to %u\n", found, from, to);
	return found;
}
