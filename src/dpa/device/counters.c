// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters: of the processor (dpaintrin.h) and of the ports; the table of congestion control.
 */
#include "dpa/device/image.h"

#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>

/* Counts a clock of 1.8 GHz, as the device has, because programs divide by that. */
uint64_t __dpa_thread_cycles(void)
{
	return image_door()->time() * 9 / 5;
}

/* Programs cannot see how many instructions the processor has done for them.  It does them only while
 * the thread runs, so this says one for each cycle of that. */
uint64_t __dpa_thread_inst_ret(void)
{
	return image_door()->worked() * 9 / 5;
}

uint64_t __dpa_thread_time(void)
{
	return image_door()->time();
}

/* The runtime checks both arrays, and writes to one of them at each sample. */
void flexio_dev_nic_counters_config(uint32_t *values, uint32_t *counter_ids, uint32_t num_counters)
{
	image_door()->nic_config((uintptr_t)values, (uintptr_t)counter_ids, num_counters);
}

void flexio_dev_nic_counters_sample(void)
{
	image_door()->nic_sample();
}

uint64_t flexio_dev_get_pcc_table_base(uint16_t gvmi)
{
	return image_door()->pcc_table(gvmi);
}
