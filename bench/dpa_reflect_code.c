// SPDX-License-Identifier: BSD-2-Clause
/* Device code of dpa_reflect: each frame goes back with its addresses exchanged, from where it lies. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <string.h>

#define REFLECT_DEVICE
#include "dpa_reflect.h"

/* In vain, before the handler asks for the next event and ends. */
#define LOOKS 32u

#ifdef UNCHECKED
#define reflect reflect_unchecked
#endif

static void addresses_exchange(uint8_t *frame)
{
	uint8_t mac[6];

	memcpy(mac, frame, 6);
	memcpy(frame, frame + 6, 6);
	memcpy(frame + 6, mac, 6);
}

static void send_request(struct reflector *r, uint8_t *frame, uint32_t bytes)
{
	union flexio_dev_sqe_seg *s =
		(union flexio_dev_sqe_seg *)(uintptr_t)r->send_ring + r->pi % SLOTS * 4;

	flexio_dev_swqe_seg_ctrl_set(s, (uint32_t)r->pi, (uint32_t)r->sqn,
				     MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR, FLEXIO_CTRL_SEG_SEND_EN);
	flexio_dev_swqe_seg_eth_set(s + 1, 0, 0, 0, NULL);
	flexio_dev_swqe_seg_mem_ptr_data_set(s + 2, bytes, (uint32_t)r->key, (uintptr_t)frame);
	r->pi++;
}

static struct flexio_dev_cqe64 *completion_next(const struct reflector *r)
{
	struct flexio_dev_cqe64 *cqe =
		(struct flexio_dev_cqe64 *)(uintptr_t)r->cq_ring + r->ci % SLOTS;

	if (flexio_dev_cqe_get_owner(cqe) != (r->ci / SLOTS & 1))
		return NULL;
	__dpa_thread_memory_fence(__DPA_R, __DPA_R);
	return cqe;
}

/* All that have come, and one bell for them. */
static uint32_t reflect_batch(struct flexio_dev_thread_ctx *ctx, struct reflector *r)
{
	struct flexio_dev_cqe64 *cqe;
	uint32_t n = 0;

	while ((cqe = completion_next(r))) {
		uint32_t slot = flexio_dev_cqe_get_wqe_counter(cqe) % SLOTS;
		uint8_t *frame = (uint8_t *)(uintptr_t)r->data + slot * FRAME_BYTES;

		addresses_exchange(frame);
		send_request(r, frame, flexio_dev_cqe_get_byte_cnt(cqe));
		r->ci++;
		n++;
	}
	if (!n)
		return 0;
	__dpa_thread_memory_fence(__DPA_W, __DPA_W);
	flexio_dev_qp_sq_ring_db(ctx, (uint16_t)r->pi, (uint32_t)r->sqn);
	flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)r->cq_record, (uint32_t)r->ci);
	/* Their receives lie in the queue as before, after the sends have been executed. */
	__atomic_store_n((uint32_t *)(uintptr_t)r->receive_record,
			 cpu_to_be32((uint32_t)r->ci + SLOTS), __ATOMIC_RELEASE);
	return n;
}

__dpa_global__ void reflect(uint64_t arg)
{
	struct reflector *r = (struct reflector *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	for (uint32_t idle = 0; idle < LOOKS; idle++)
		if (reflect_batch(ctx, r))
			idle = 0;
	flexio_dev_cq_arm(ctx, (uint32_t)r->ci, (uint32_t)r->cqn);
	flexio_dev_thread_reschedule();
}
