/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread context that a program hands to a function of the library.
 */
#pragma once

#include "dpa/device/image.h"

/*
 * Reads the context, as the real library does, so that a pointer to something else faults here, in
 * both variants of the library.  The library needs nothing else of it.  NULL means the calling
 * thread, because later generations of the interface hand over no context.
 */
static inline void thread_ctx_touch(struct flexio_dev_thread_ctx *ctx)
{
	if (!ctx)
		return;
	dpa_check_write(ctx, sizeof(*ctx));
	(void)*(const volatile uint32_t *)&ctx->version;
}
