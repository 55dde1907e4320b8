// SPDX-License-Identifier: BSD-2-Clause
/*
 * Outboxes, and the doorbells that threads ring through them.  Numbers are cut to the bits that a
 * doorbell register has for them.
 */
#include "dpa/device/image.h"

#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>

#define BITS(value, n) ((uint32_t)(value) & ((1u << (n)) - 1))

flexio_dev_status_t flexio_dev_outbox_config(struct flexio_dev_thread_ctx *dtctx,
					     uint16_t outbox_config_id)
{
	thread_ctx_touch(dtctx);
	return image_door()->outbox_config(outbox_config_id) == DPA_SUCCESS
		       ? FLEXIO_DEV_STATUS_SUCCESS
		       : FLEXIO_DEV_STATUS_FAILED;
}

/* The call does not tell of a failure, and does not take an outbox that does not exist. */
void flexio_dev_outbox_config_fast(struct flexio_dev_thread_ctx *dtctx, uint16_t outbox_config_id)
{
	thread_ctx_touch(dtctx);
	(void)image_door()->outbox_config(outbox_config_id);
}

flexio_dev_status_t flexio_dev_outbox_config_uar_extension(struct flexio_dev_thread_ctx *dtctx,
							   flexio_uar_device_id device_id)
{
	thread_ctx_touch(dtctx);
	return image_door()->outbox_uar(device_id) == DPA_SUCCESS ? FLEXIO_DEV_STATUS_SUCCESS
								  : FLEXIO_DEV_STATUS_FAILED;
}

flexio_dev_status_t flexio_dev_qp_sq_ring_db(struct flexio_dev_thread_ctx *dtctx, uint16_t pi,
					     uint32_t qnum)
{
	thread_ctx_touch(dtctx);
	image_door()->sq_ring(pi, BITS(qnum, 24));
	return FLEXIO_DEV_STATUS_SUCCESS;
}

flexio_dev_status_t flexio_dev_cq_arm(struct flexio_dev_thread_ctx *dtctx, uint32_t ci,
				      uint32_t qnum)
{
	thread_ctx_touch(dtctx);
	image_door()->cq_arm(BITS(ci, 24), BITS(qnum, 24));
	return FLEXIO_DEV_STATUS_SUCCESS;
}

flexio_dev_status_t flexio_dev_eq_update_ci(struct flexio_dev_thread_ctx *dtctx, uint32_t ci,
					    uint32_t qnum)
{
	thread_ctx_touch(dtctx);
	image_door()->eq_update(BITS(ci, 26), BITS(qnum, 24));
	return FLEXIO_DEV_STATUS_SUCCESS;
}

flexio_dev_status_t flexio_dev_msix_send(struct flexio_dev_thread_ctx *dtctx, uint32_t cqn)
{
	thread_ctx_touch(dtctx);
	image_door()->msix_send(BITS(cqn, 24));
	return FLEXIO_DEV_STATUS_SUCCESS;
}

flexio_dev_status_t flexio_dev_db_ctx_arm(struct flexio_dev_thread_ctx *dtctx, uint32_t qnum,
					  uint32_t emu_ctx_id)
{
	thread_ctx_touch(dtctx);
	image_door()->emu_arm(BITS(qnum, 24), BITS(emu_ctx_id, 26));
	return FLEXIO_DEV_STATUS_SUCCESS;
}

flexio_dev_status_t flexio_dev_db_ctx_force_trigger(struct flexio_dev_thread_ctx *dtctx,
						    uint32_t cqn, uint32_t emu_ctx_id)
{
	thread_ctx_touch(dtctx);
	image_door()->emu_trigger(BITS(cqn, 24), BITS(emu_ctx_id, 26));
	return FLEXIO_DEV_STATUS_SUCCESS;
}

flexio_dev_status_t flexio_dev_cc_ring_db(struct flexio_dev_thread_ctx *dtctx, uint16_t ccq_id,
					  uint32_t rate, uint32_t rtt_req,
					  flexio_dev_cc_db_next_act_t next_act)
{
	thread_ctx_touch(dtctx);
	image_door()->cc_ring(ccq_id, rate, BITS(rtt_req, 1), BITS(next_act, 2));
	return FLEXIO_DEV_STATUS_SUCCESS;
}

flexio_dev_status_t flexio_dev_cross_device_ring_db(flexio_uar_device_id device_id, uint32_t qpn,
						    uint32_t pi)
{
	return image_door()->sq_ring_at(device_id, BITS(pi, 16), BITS(qpn, 24)) == DPA_SUCCESS
		       ? FLEXIO_DEV_STATUS_SUCCESS
		       : FLEXIO_DEV_STATUS_FAILED;
}

uint32_t flexio_dev_read_db_value(uint64_t emu_ctx_id)
{
	return image_door()->emu_value(BITS(emu_ctx_id, 26));
}

void flexio_dev_cc_ring_db_low64bit(uint64_t value)
{
	/* The fields of OUTBOX_V_CC_DB: queue, rate, request for the round-trip time, next action. */
	image_door()->cc_ring(BITS(value >> 48, 16), (uint32_t)value, BITS(value >> 32, 1),
			      BITS(value >> 34, 2));
}

void flexio_dev_cc_ring_db_high64bit(uint64_t value)
{
	image_door()->cc_ring_high(value);
}
