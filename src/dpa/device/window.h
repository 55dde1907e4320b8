/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the generations of the window calls share.
 */
#pragma once

#include "dpa/device/image.h"

#include <libflexio-dev/flexio_dev.h>

static inline flexio_dev_status_t window_status(uint32_t status)
{
	return status == DPA_SUCCESS ? FLEXIO_DEV_STATUS_SUCCESS : FLEXIO_DEV_STATUS_FAILED;
}

/* The library stores the answer: the runtime stores to no address that the program chose. */
static inline flexio_dev_status_t window_acquire(uint32_t slot, uint64_t haddr,
						 flexio_uintptr_t *daddr)
{
	uint64_t found = 0;
	uint32_t status = image_door()->window_acquire(slot, haddr, &found);

	dpa_check_write(daddr, sizeof(*daddr));
	if (status == DPA_SUCCESS)
		*daddr = found;
	return window_status(status);
}
