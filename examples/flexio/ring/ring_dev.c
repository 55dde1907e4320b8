// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: it answers each number with the number of steps of Collatz's from there to 1. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>

#include "ring.h"

static uint64_t steps_to_one(uint64_t n)
{
	uint64_t steps = 0;

	while (n > 1) {
		n = n & 1 ? 3 * n + 1 : n / 2;
		steps++;
	}
	return steps;
}

static uint64_t look(const uint64_t *counter)
{
	/* What the host has written is to be seen, not what lies in a cache from before. */
	__dpa_thread_window_read_inv();
	return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

static void tell(uint64_t *counter, uint64_t value)
{
	/* The entry is there before the counter says so. */
	__dpa_thread_window_writeback();
	__atomic_store_n(counter, value, __ATOMIC_RELEASE);
	__dpa_thread_window_writeback();
}

static uint64_t next_request(struct ring *r, uint64_t taken)
{
	uint64_t request;

	while (look(&r->written) == taken)
		;
	request = r->entry[taken % RING_ENTRIES];
	tell(&r->read, taken + 1);
	return request;
}

static void put_answer(struct ring *r, uint64_t put, uint64_t answer)
{
	while (put - look(&r->read) == RING_ENTRIES)
		;
	r->entry[put % RING_ENTRIES] = answer;
	tell(&r->written, put + 1);
}

/* Returns how many it has answered. */
__dpa_rpc__ uint64_t serve(uint64_t arg)
{
	const struct work *work = (const struct work *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;
	flexio_uintptr_t at;
	struct rings *rings;
	uint64_t request;

	if (flexio_dev_get_thread_ctx(&ctx) < 0 ||
	    flexio_dev_window_config(ctx, (uint16_t)work->window, work->key) !=
		    FLEXIO_DEV_STATUS_SUCCESS ||
	    flexio_dev_window_ptr_acquire(ctx, work->rings, &at) != FLEXIO_DEV_STATUS_SUCCESS)
		return WORK_FAILED;
	rings = (struct rings *)(uintptr_t)at;
	for (uint64_t n = 0;; n++) {
		request = next_request(&rings->requests, n);
		if (request == STOP)
			return n;
		put_answer(&rings->answers, n, steps_to_one(request));
	}
}
