// SPDX-License-Identifier: BSD-2-Clause
/* Device code of tests/flexio/emulation: the device behind an emulated PCI function. */
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <stddef.h>
#include <stdint.h>

#include "emulation.h"

__dpa_rpc__ uint64_t peek(uint64_t addr)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)addr, __ATOMIC_SEQ_CST);
}

__dpa_rpc__ uint64_t poke(uint64_t addr, uint64_t value)
{
	__atomic_store_n((uint64_t *)(uintptr_t)addr, value, __ATOMIC_SEQ_CST);
	return 0;
}

__dpa_rpc__ uint64_t arm_context(uint64_t cqn, uint64_t handle)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	return flexio_dev_db_ctx_arm(ctx, (uint32_t)cqn, (uint32_t)handle);
}

__dpa_rpc__ uint64_t trigger_context(uint64_t cqn, uint64_t handle)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	return flexio_dev_db_ctx_force_trigger(ctx, (uint32_t)cqn, (uint32_t)handle);
}

__dpa_rpc__ uint64_t doorbell_value(uint64_t handle)
{
	return flexio_dev_read_db_value(handle);
}

__dpa_rpc__ uint64_t interrupt(uint64_t cqn)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	return flexio_dev_msix_send(ctx, (uint32_t)cqn);
}

/* The entry is the device's as long as its owner bit is that of the round before. */
static int bell_has_entry(const struct bell *b)
{
	const struct flexio_dev_cqe64 *ring = (const struct flexio_dev_cqe64 *)(uintptr_t)b->ring;

	return (flexio_dev_cqe_get_owner(
			(struct flexio_dev_cqe64 *)(uintptr_t)&ring[b->ci & (b->entries - 1)]) &
		1) == !!(b->ci & b->entries);
}

__dpa_global__ void serve(uint64_t arg)
{
	struct bell *b = (struct bell *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	__atomic_fetch_add(&b->activations, 1, __ATOMIC_SEQ_CST);
	while (bell_has_entry(b)) {
		b->ci++;
		flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)b->record, (uint32_t)b->ci);
		__atomic_fetch_add(&b->taken, 1, __ATOMIC_SEQ_CST);
		if (b->answers)
			flexio_dev_msix_send(ctx, (uint32_t)b->answers);
		if (b->rearms)
			flexio_dev_db_ctx_arm(ctx, (uint32_t)b->cqn, (uint32_t)b->context);
	}
	flexio_dev_cq_arm(ctx, (uint32_t)b->ci, (uint32_t)b->cqn);
	flexio_dev_thread_reschedule();
}
