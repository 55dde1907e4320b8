// SPDX-License-Identifier: BSD-2-Clause
/*
 * Windows: memory of the host within reach of a device thread.  This interface uses one of its
 * slots.
 */
#include "dpa/device/image.h"
#include "dpa/device/window.h"

#include <libflexio-dev/flexio_dev.h>

flexio_dev_status_t flexio_dev_window_config(struct flexio_dev_thread_ctx *dtctx,
					     uint16_t window_config_id, uint32_t mkey)
{
	thread_ctx_touch(dtctx);
	return window_status(image_door()->window_config(0, window_config_id, mkey));
}

flexio_dev_status_t flexio_dev_window_mkey_config(struct flexio_dev_thread_ctx *dtctx,
						  uint32_t mkey)
{
	thread_ctx_touch(dtctx);
	return window_status(image_door()->window_mkey(0, mkey));
}

flexio_dev_status_t flexio_dev_window_ptr_acquire(struct flexio_dev_thread_ctx *dtctx,
						  uint64_t haddr, flexio_uintptr_t *daddr)
{
	thread_ctx_touch(dtctx);
	return window_acquire(0, haddr, daddr);
}

flexio_dev_status_t flexio_dev_window_copy_from_host(struct flexio_dev_thread_ctx *dtctx,
						     void *daddr, uint64_t haddr, uint32_t size)
{
	thread_ctx_touch(dtctx);
	return window_status(image_door()->window_copy(0, 0, haddr, (uintptr_t)daddr, size));
}

flexio_dev_status_t flexio_dev_window_copy_to_host(struct flexio_dev_thread_ctx *dtctx,
						   uint64_t haddr, const void *daddr, uint32_t size)
{
	thread_ctx_touch(dtctx);
	return window_status(image_door()->window_copy(0, 1, haddr, (uintptr_t)daddr, size));
}
