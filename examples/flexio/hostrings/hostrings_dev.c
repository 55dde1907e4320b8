// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: it sends each frame on its next trip, by rings in memory of the host. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <stddef.h>
#include <string.h>

#include "hostrings.h"

#define OPCODE_RESPONDER_SEND 2u

/* Where this thread reaches the area; NULL: it does not. */
static struct area *area_of(struct flexio_dev_thread_ctx *ctx, const struct work *w)
{
	flexio_uintptr_t at;

	if (flexio_dev_window_config(ctx, (uint16_t)w->window, (uint32_t)w->key) !=
		    FLEXIO_DEV_STATUS_SUCCESS ||
	    flexio_dev_window_ptr_acquire(ctx, w->area, &at) != FLEXIO_DEV_STATUS_SUCCESS)
		return NULL;
	return (struct area *)(uintptr_t)at;
}

/* A request names the frame by the host's address, because the key is of the host's memory. */
static void put_request(struct area *a, struct work *w, uint32_t slot)
{
	union flexio_dev_sqe_seg *segment = (union flexio_dev_sqe_seg *)a->requests[slot];

	flexio_dev_swqe_seg_ctrl_set(segment, (uint32_t)w->requests, (uint32_t)w->sqn,
				     MLX5_CTRL_SEG_CE_CQE_ON_CQE_ERROR, FLEXIO_CTRL_SEG_SEND_EN);
	flexio_dev_swqe_seg_eth_set(segment + 1, 0, 0, 0, NULL);
	flexio_dev_swqe_seg_mem_ptr_data_set(segment + 2, FRAME_BYTES, (uint32_t)w->key,
					     w->area + offsetof(struct area, sent) +
						     slot * sizeof(struct frame));
	memset(segment + 3, 0, sizeof(*segment));
	w->requests++;
}

static void ring(struct flexio_dev_thread_ctx *ctx, const struct work *w)
{
	/* Request and frame are in the host's memory before the bell. */
	__dpa_thread_window_writeback();
	flexio_dev_qp_sq_ring_db(ctx, (uint16_t)w->requests, (uint32_t)w->sqn);
}

static void take_frame(struct flexio_dev_thread_ctx *ctx, struct area *a, struct work *w,
		       struct flexio_dev_cqe64 *cqe)
{
	const struct frame *in = &a->received[flexio_dev_cqe_get_wqe_counter(cqe) % ENTRIES];
	uint32_t slot = (uint32_t)w->requests % ENTRIES;
	struct frame *out = &a->sent[slot];

	if (flexio_dev_cqe_get_opcode(cqe) != OPCODE_RESPONDER_SEND ||
	    flexio_dev_cqe_get_byte_cnt(cqe) != FRAME_BYTES) {
		a->errors++;
		return;
	}
	a->arrivals++;
	if (in->trips == TRIPS) {
		/* The host looks for this, and then at what was counted before. */
		__atomic_fetch_add(&a->finished, 1, __ATOMIC_RELEASE);
		return;
	}
	*out = *in;
	out->trips++;
	put_request(a, w, slot);
	ring(ctx, w);
}

/* The next completion, or NULL. */
static struct flexio_dev_cqe64 *next_completion(struct area *a, const struct work *w)
{
	struct flexio_dev_cqe64 *cqe =
		(struct flexio_dev_cqe64 *)a->receive_cq[w->completions % ENTRIES];

	/* What the device has written is to be seen, not what lies in a cache from before. */
	__dpa_thread_window_read_inv();
	if (flexio_dev_cqe_get_owner(cqe) != (w->completions / ENTRIES & 1))
		return NULL;
	__dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
	return cqe;
}

__dpa_global__ void on_frame(uint64_t arg)
{
	struct work *w = (struct work *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;
	struct flexio_dev_cqe64 *cqe;
	struct area *a;

	flexio_dev_get_thread_ctx(&ctx);
	a = area_of(ctx, w);
	while (a && (cqe = next_completion(a, w))) {
		take_frame(ctx, a, w, cqe);
		w->completions++;
		flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)w->cq_record,
					 (uint32_t)w->completions);
		/* The receive lies in its ring as before: the record alone posts it again. */
		__dpa_thread_fence(__DPA_MEMORY, __DPA_RW, __DPA_W);
		flexio_dev_dbr_rq_inc_pi(a->receive_record);
		__dpa_thread_window_writeback();
	}
	flexio_dev_cq_arm(ctx, (uint32_t)w->completions, (uint32_t)w->cqn);
	flexio_dev_thread_reschedule();
}

/* The first requests are the host's, who has no bell for this queue; 0: they could be rung for. */
__dpa_rpc__ uint64_t start(uint64_t arg)
{
	struct work *w = (struct work *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	w->requests = FRAMES;
	return (uint64_t)flexio_dev_qp_sq_ring_db(ctx, FRAMES, (uint32_t)w->sqn);
}
