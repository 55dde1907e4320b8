// SPDX-License-Identifier: BSD-2-Clause
/*
 * Device code that names a generation before 24.10 has the calls of 24.01, and the later names that
 * do not collide with them.
 */
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

flexio_dev_status_t windows(struct flexio_dev_thread_ctx *dtctx, uint32_t n);
flexio_dev_status_t windows(struct flexio_dev_thread_ctx *dtctx, uint32_t n)
{
	const enum flexio_window_entity second = FLEXIO_DEV_WINDOW_ENTITY_1;
	flexio_uintptr_t address;

	if (flexio_dev_window_config(dtctx, 1, n) || flexio_dev_multi_window_config(second, 1, n) ||
	    flexio_dev_multi_window_mkey_config(second, n))
		return FLEXIO_DEV_STATUS_FAILED;
	if (flexio_dev_multi_window_ptr_acquire(second, n, &address) ||
	    flexio_dev_multi_window_copy_to_host(second, n, &n, sizeof(n)))
		return FLEXIO_DEV_STATUS_FAILED;
	return flexio_dev_window_ptr_acquire(dtctx, n, &address);
}

flexio_dev_status_t queues(struct flexio_dev_thread_ctx *dtctx, uint32_t n);
flexio_dev_status_t queues(struct flexio_dev_thread_ctx *dtctx, uint32_t n)
{
	flexio_dev_status_t (*send)(struct flexio_dev_thread_ctx *, uint32_t) = flexio_dev_zcqe_gen;
	union flexio_dev_sqe_seg segment;
	struct flexio_dev_cqe64 cqe = {.op_own = 0x4, .err_syndrome = 0};

	if (send(dtctx, n) || flexio_dev_zcqe_gen(dtctx, n) || flexio_dev_msix_send(dtctx, n))
		return FLEXIO_DEV_STATUS_FAILED;
	if (flexio_dev_cqe_get_type(&cqe) != 1 || flexio_dev_cqe_get_hw_err_synd(&cqe))
		return FLEXIO_DEV_STATUS_FAILED;
	return flexio_dev_swqe_seg_ctrl_set(&segment, 1, n, FLEXIO_CTRL_SEG_CE_CQE_ALWAYS,
					    FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD);
}
