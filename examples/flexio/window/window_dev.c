// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: it reads and writes memory of the host. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>

#include "window.h"

/* The address by which this thread reaches one of the host's, or NULL. */
static void *host_memory(struct flexio_dev_thread_ctx *ctx, uint64_t haddr)
{
	flexio_uintptr_t daddr;

	if (flexio_dev_window_ptr_acquire(ctx, haddr, &daddr) != FLEXIO_DEV_STATUS_SUCCESS)
		return NULL;
	return (void *)(uintptr_t)daddr;
}

/* Plain loads and stores: the words of the text begin with a capital letter. */
static void capitalize(volatile char *text, uint64_t bytes)
{
	char before = ' ';

	for (uint64_t i = 0; i < bytes; i++) {
		char c = text[i];

		if (before == ' ' && c >= 'a' && c <= 'z')
			text[i] = (char)(c - 'a' + 'A');
		before = c;
	}
}

/* Copies, a piece at a time, from what one key gives to what another one gives: a thread has one window,
 * and a window one key at a time. */
static uint64_t copy(struct flexio_dev_thread_ctx *ctx, const struct work *work)
{
	char piece[64];
	uint64_t sum = 0;

	for (uint64_t at = 0; at < work->bytes; at += sizeof(piece)) {
		uint64_t left = work->bytes - at;
		uint32_t bytes = (uint32_t)(left < sizeof(piece) ? left : sizeof(piece));

		if (flexio_dev_window_mkey_config(ctx, work->text_key) ||
		    flexio_dev_window_copy_from_host(ctx, piece, work->text + at, bytes) ||
		    flexio_dev_window_mkey_config(ctx, work->copy_key) ||
		    flexio_dev_window_copy_to_host(ctx, work->copy + at, piece, bytes))
			return WORK_FAILED;
		for (uint32_t i = 0; i < bytes; i++)
			sum += (unsigned char)piece[i];
	}
	return sum;
}

/* Its argument is the address of a struct work, in memory of the DPA; its result the sum of the text's bytes. */
__dpa_rpc__ uint64_t capitalize_and_copy(uint64_t arg)
{
	const struct work *work = (const struct work *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;
	uint64_t sum;
	char *text;

	if (flexio_dev_get_thread_ctx(&ctx) < 0 ||
	    flexio_dev_window_config(ctx, (uint16_t)work->window, work->text_key))
		return WORK_FAILED;
	/* What the host has written is to be seen, not what lies in a cache from before. */
	__dpa_thread_window_read_inv();
	text = host_memory(ctx, work->text);
	if (!text)
		return WORK_FAILED;
	capitalize(text, work->bytes);
	sum = copy(ctx, work);
	/* The host is to see it when the call returns. */
	__dpa_thread_window_writeback();
	return sum;
}
