// SPDX-License-Identifier: BSD-2-Clause
/* What bench/dpa_calls runs on the DPA. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <stdint.h>

#include "dpa_calls.h"

/* One program has the code twice; its functions then need two names each. */
#ifdef UNCHECKED
#define nothing		 nothing_unchecked
#define loads_and_stores loads_and_stores_unchecked
#define event		 event_unchecked
#endif

#define CQE_BYTES     64u
#define CQE_TIMESTAMP 48u /* big-endian, nanoseconds here */

__dpa_rpc__ uint64_t nothing(uint64_t arg)
{
	return arg + 1;
}

__dpa_rpc__ uint64_t loads_and_stores(uint64_t daddr, uint64_t words, uint64_t rounds)
{
	volatile uint64_t *word = (volatile uint64_t *)(uintptr_t)daddr;
	uint64_t sum = 0;

	while (rounds--)
		for (uint64_t i = 0; i < words; i++) {
			sum += word[i];
			word[i] = sum;
		}
	return sum;
}

/* When the completion came that is next in the queue. */
static uint64_t completed_ns(const struct event_queue *q)
{
	uint64_t cqe = q->ring + q->ci % (1u << LOG_CQ) * CQE_BYTES;

	return __builtin_bswap64(*(const uint64_t *)(uintptr_t)(cqe + CQE_TIMESTAMP));
}

/* Says when it began; then takes what has come, and waits for more. */
__dpa_global__ void event(uint64_t arg)
{
	uint64_t now = __dpa_thread_time();
	struct event_queue *q = (struct event_queue *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;
	struct event_times *times;
	flexio_uintptr_t host;

	flexio_dev_get_thread_ctx(&ctx);
	if (!q->window_is_set) {
		flexio_dev_window_config(ctx, (uint16_t)q->window, q->mkey);
		q->window_is_set = 1;
	}
	flexio_dev_window_ptr_acquire(ctx, q->host, &host);
	times = (struct event_times *)(uintptr_t)host;
	times->completed_ns = completed_ns(q);
	q->ci++;
	flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)q->record, (uint32_t)q->ci);
	flexio_dev_cq_arm(ctx, (uint32_t)q->ci, (uint32_t)q->cqn);
	__atomic_store_n(&times->began_ns, now, __ATOMIC_RELEASE);
	flexio_dev_thread_reschedule();
}
