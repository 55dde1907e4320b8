// SPDX-License-Identifier: BSD-2-Clause
/* Device code of several_host.c. */
#include <libflexio-dev/flexio_dev_ver.h>
#define FLEXIO_DEV_VER_USED FLEXIO_DEV_VER(24, 10, 0)
#include <libflexio-dev/flexio_dev.h>
#include <dpaintrin.h>

static uint64_t counter;

/* Each process has its own. */
uint64_t count_up(uint64_t by);
__dpa_rpc__ uint64_t count_up(uint64_t by)
{
	counter += by;
	return counter;
}

/* Reads a word through each of the thread's two windows, and swaps them. */
uint64_t through_both(uint64_t window, uint32_t first_key, uint64_t first, uint32_t second_key,
		      uint64_t second);
__dpa_rpc__ uint64_t through_both(uint64_t window, uint32_t first_key, uint64_t first,
				  uint32_t second_key, uint64_t second)
{
	flexio_uintptr_t at[2];
	uint64_t words[2];

	if (flexio_dev_window_config(FLEXIO_DEV_WINDOW_ENTITY_0, (uint16_t)window, first_key) ||
	    flexio_dev_window_config(FLEXIO_DEV_WINDOW_ENTITY_1, (uint16_t)window, second_key) ||
	    flexio_dev_window_ptr_acquire(FLEXIO_DEV_WINDOW_ENTITY_0, first, &at[0]) ||
	    flexio_dev_window_ptr_acquire(FLEXIO_DEV_WINDOW_ENTITY_1, second, &at[1]))
		return 0;
	words[0] = *(volatile uint64_t *)at[0];
	words[1] = *(volatile uint64_t *)at[1];
	*(volatile uint64_t *)at[0] = words[1];
	*(volatile uint64_t *)at[1] = words[0];
	__dpa_thread_window_writeback();
	return words[0] + words[1];
}
