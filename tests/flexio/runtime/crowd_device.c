// SPDX-License-Identifier: BSD-2-Clause
/* Device code of crowd_host.c: many handlers, most of which never come to an end. */
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

#include "crowd.h"

/* Prevents "missing prototype" warnings. */
void spin(uint64_t count_daddr);
void count(uint64_t count_daddr);
uint64_t ring(uint64_t crowd_daddr, uint64_t first, uint64_t end);
uint64_t least(uint64_t crowd_daddr, uint64_t first, uint64_t end);

static void add_one(uint64_t count_daddr)
{
	__atomic_fetch_add((uint64_t *)count_daddr, 1, __ATOMIC_SEQ_CST);
}

__dpa_global__ void spin(uint64_t count_daddr)
{
	volatile uint64_t forever = 1;

	add_one(count_daddr);
	while (forever)
		;
	flexio_dev_thread_reschedule();
}

__dpa_global__ void count(uint64_t count_daddr)
{
	add_one(count_daddr);
	flexio_dev_thread_reschedule();
}

/* An event for each of them. */
__dpa_rpc__ uint64_t ring(uint64_t crowd_daddr, uint64_t first, uint64_t end)
{
	struct crowd *c = (struct crowd *)crowd_daddr;
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	for (uint64_t i = first; i < end; i++)
		flexio_dev_msix_send(ctx, (uint32_t)c->cqn[i]);
	return 0;
}

/* How often the one was activated that was activated the fewest times. */
__dpa_rpc__ uint64_t least(uint64_t crowd_daddr, uint64_t first, uint64_t end)
{
	struct crowd *c = (struct crowd *)crowd_daddr;
	uint64_t fewest = UINT64_MAX;

	for (uint64_t i = first; i < end; i++) {
		uint64_t n = __atomic_load_n(&c->activations[i], __ATOMIC_SEQ_CST);

		fewest = n < fewest ? n : fewest;
	}
	return fewest;
}
