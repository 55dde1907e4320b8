// SPDX-License-Identifier: BSD-2-Clause
/*
 * Windows in the shape of generation 24.10: the calls name the slot.  The runtime refuses slots
 * that do not exist.
 */
#define FLEXIO_DEV_VER_USED FLEXIO_DEV_VER(24, 10, 0)
#include <libflexio-dev/flexio_dev_ver.h>
#include <libflexio-dev/flexio_dev.h>

#include "dpa/device/image.h"
#include "dpa/device/window.h"

flexio_dev_status_t flexio_dev_multi_window_config(enum flexio_window_entity window_entity,
						   uint16_t window_config_id, uint32_t mkey)
{
	return window_status(image_door()->window_config(window_entity, window_config_id, mkey));
}

flexio_dev_status_t flexio_dev_multi_window_mkey_config(enum flexio_window_entity window_entity,
							uint32_t mkey)
{
	return window_status(image_door()->window_mkey(window_entity, mkey));
}

flexio_dev_status_t flexio_dev_multi_window_ptr_acquire(enum flexio_window_entity window_entity,
							uint64_t haddr, flexio_uintptr_t *daddr)
{
	return window_acquire(window_entity, haddr, daddr);
}

flexio_dev_status_t flexio_dev_multi_window_copy_from_host(enum flexio_window_entity window_entity,
							   void *daddr, uint64_t haddr,
							   uint32_t size)
{
	return window_status(
		image_door()->window_copy(window_entity, 0, haddr, (uintptr_t)daddr, size));
}

flexio_dev_status_t flexio_dev_multi_window_copy_to_host(enum flexio_window_entity window_entity,
							 uint64_t haddr, const void *daddr,
							 uint32_t size)
{
	return window_status(
		image_door()->window_copy(window_entity, 1, haddr, (uintptr_t)daddr, size));
}
