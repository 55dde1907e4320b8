// SPDX-License-Identifier: BSD-2-Clause
/* Device code that does not say its generation has calls of both shapes, also in one file. */
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

flexio_dev_status_t earlier(struct flexio_dev_thread_ctx *dtctx, uint32_t n);
flexio_dev_status_t earlier(struct flexio_dev_thread_ctx *dtctx, uint32_t n)
{
	flexio_uintptr_t address;
	flexio_dev_status_t (*ring)(struct flexio_dev_thread_ctx *, uint16_t, uint32_t) =
		flexio_dev_qp_sq_ring_db;

	if (flexio_dev_window_config(dtctx, 1, n) || flexio_dev_window_mkey_config(NULL, n))
		return FLEXIO_DEV_STATUS_FAILED;
	if (flexio_dev_window_ptr_acquire(dtctx, n, &address))
		return FLEXIO_DEV_STATUS_FAILED;
	if (ring(dtctx, 1, n) || flexio_dev_eq_update_ci(dtctx, 1, n))
		return FLEXIO_DEV_STATUS_FAILED;
	if (flexio_dev_cq_arm(NULL, 1, n) || flexio_dev_zcqe_gen(dtctx, n))
		return FLEXIO_DEV_STATUS_FAILED;
	return flexio_dev_msix_send(dtctx, n);
}

flexio_dev_status_t later(enum flexio_window_entity window, uint32_t n);
flexio_dev_status_t later(enum flexio_window_entity window, uint32_t n)
{
	const enum flexio_window_entity second = FLEXIO_DEV_WINDOW_ENTITY_1;
	flexio_uintptr_t address;
	union flexio_dev_sqe_seg segment;
	struct flexio_dev_cqe64 cqe = {.op_own = 0x4, .err_syndrome = 0};

	if (flexio_dev_window_config(FLEXIO_DEV_WINDOW_ENTITY_0, 1, n) ||
	    flexio_dev_window_mkey_config(second, n))
		return FLEXIO_DEV_STATUS_FAILED;
	if (flexio_dev_window_ptr_acquire(window, n, &address))
		return FLEXIO_DEV_STATUS_FAILED;
	flexio_dev_qp_sq_ring_db(1, n);
	flexio_dev_eq_update_ci(1, n);
	flexio_dev_cq_arm(1, n);
	flexio_dev_msix_send(n);
	flexio_dev_zcqe_gen(n);
	if (flexio_dev_cqe_get_type(&cqe) != 1 || flexio_dev_cqe_get_vendor_err_synd(&cqe))
		return FLEXIO_DEV_STATUS_FAILED;
	if (flexio_dev_swqe_seg_ctrl_set(&segment, 1, n, FLEXIO_CTRL_SEG_CE_CQE_ON_CQE_ERROR,
					 FLEXIO_CTRL_SEG_TYPE_SEND_EN))
		return FLEXIO_DEV_STATUS_FAILED;
	return flexio_dev_swqe_seg_ctrl_set(&segment, 1, n, MLX5_CTRL_SEG_CE_CQE_ALWAYS,
					    FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD);
}
