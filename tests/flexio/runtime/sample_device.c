// SPDX-License-Identifier: BSD-2-Clause
/* Device code of sample_host.c. */
#include <libflexio-dev/flexio_dev.h>
#include <stdint.h>

uint64_t calculate(uint64_t a, uint64_t b);
__dpa_rpc__ uint64_t calculate(uint64_t a, uint64_t b)
{
	const uint64_t sum = a + b;

	flexio_dev_print("Calculate: %lu + %lu = %lu\n", a, b, sum);
	return sum;
}
