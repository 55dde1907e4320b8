/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread context that a program hands to a function of the library.
 */
#pragma once

#include "dpa/device/image.h"

/*
 * Reads the context, as the real library does: one that is no context at all faults here, in both
 * variants of the library. Nothing else is expected of it. NULL means the calling thread: later
 * generations of the interface hand over none.
 */
static inline void thread_ctx_touch(struct flexio_dev_thread_ctx *ctx)
{
	if (!ctx)
		return;
	dpa_check_write(ctx, sizeof(*ctx));
	(void)*(const volatile uint32_t *)&ctx->version;
}
