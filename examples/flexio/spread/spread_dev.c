// SPDX-License-Identifier: BSD-2-Clause
/* The part that runs on the DPA: each handler sends the frames of its queue back to where they came from. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <string.h>

#include "spread.h"

#define OPCODE_RESPONDER_SEND 2u
#define SEGMENTS	      4u /* of a work request of one block */

enum { AT_TO = 0, AT_FROM = 6, AT_PROTOCOL = 23, AT_SOURCE_PORT = 34, IP_UDP = 17 };

/* The device turns an entry's owner bit over each time it comes round. */
static struct flexio_dev_cqe64 *next_completion(uint64_t ring, uint64_t taken)
{
	struct flexio_dev_cqe64 *cqe = (struct flexio_dev_cqe64 *)(uintptr_t)ring + taken % ENTRIES;

	if (flexio_dev_cqe_get_owner(cqe) != (taken / ENTRIES & 1))
		return NULL;
	/* What is in the entry is read after its owner. */
	__dpa_thread_memory_fence(__DPA_R, __DPA_R);
	return cqe;
}

/* Waits until there is room for one more request: until then the ring and the data are the device's. */
static void await_room(struct lane *l)
{
	while (l->requests - l->sent == ENTRIES) {
		const struct flexio_dev_cqe64 *cqe = next_completion(l->send_cq_ring, l->sent);

		if (!cqe)
			continue;
		l->sent++;
		flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)l->send_cq_record,
					 (uint32_t)l->sent);
	}
}

/* Control, Ethernet and data segments. */
static void send_frame(struct flexio_dev_thread_ctx *ctx, struct lane *l, const uint8_t *frame,
		       uint32_t bytes)
{
	union flexio_dev_sqe_seg *segment = (union flexio_dev_sqe_seg *)(uintptr_t)l->send_ring +
					    l->requests % ENTRIES * SEGMENTS;

	flexio_dev_swqe_seg_ctrl_set(segment, (uint32_t)l->requests, (uint32_t)l->sqn,
				     MLX5_CTRL_SEG_CE_CQE_ALWAYS, FLEXIO_CTRL_SEG_SEND_EN);
	flexio_dev_swqe_seg_eth_set(segment + 1, 0, 0, 0, NULL);
	flexio_dev_swqe_seg_mem_ptr_data_set(segment + 2, bytes, (uint32_t)l->send_key,
					     (uintptr_t)frame);
	memset(segment + 3, 0, sizeof(*segment));
	l->requests++;
	/* The request is there before the bell. */
	__dpa_thread_memory_fence(__DPA_W, __DPA_W);
	flexio_dev_qp_sq_ring_db(ctx, (uint16_t)l->requests, (uint32_t)l->sqn);
}

static void take_frame(struct flexio_dev_thread_ctx *ctx, struct lane *l,
		       struct flexio_dev_cqe64 *cqe)
{
	/* The place of the receive in its queue is the place of its data, too. */
	uint32_t slot = flexio_dev_cqe_get_wqe_counter(cqe) % ENTRIES;
	uint32_t bytes = flexio_dev_cqe_get_byte_cnt(cqe);
	const uint8_t *frame = (const uint8_t *)(uintptr_t)l->receive_data + slot * FRAME_BYTES;
	uint8_t *out;

	if (flexio_dev_cqe_get_opcode(cqe) != OPCODE_RESPONDER_SEND || bytes > FRAME_BYTES) {
		__atomic_fetch_add(&l->errors, 1, __ATOMIC_RELEASE);
		return;
	}
	await_room(l);
	out = (uint8_t *)(uintptr_t)l->send_data + l->requests % ENTRIES * FRAME_BYTES;
	memcpy(out, frame, bytes);
	memcpy(out + AT_TO, frame + AT_FROM, 6);
	memcpy(out + AT_FROM, frame + AT_TO, 6);
	if (bytes > AT_SOURCE_PORT + 1 && frame[AT_PROTOCOL] == IP_UDP)
		l->flows |= 1ull << (frame[AT_SOURCE_PORT + 1] & 63);
	send_frame(ctx, l, out, bytes);
	__atomic_fetch_add(&l->frames, 1, __ATOMIC_RELEASE);
}

/* Each activation begins here, for one queue.  It takes all that has come, asks for the next event, and ends. */
__dpa_global__ void on_frame(uint64_t arg)
{
	struct lane *l = (struct lane *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;
	struct flexio_dev_cqe64 *cqe;

	flexio_dev_get_thread_ctx(&ctx);
	while ((cqe = next_completion(l->receive_cq_ring, l->received))) {
		take_frame(ctx, l, cqe);
		l->received++;
		flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)l->receive_cq_record,
					 (uint32_t)l->received);
		/* The receive lies in its queue as before: the counter alone posts it again, after
		 * its data was read. */
		__dpa_thread_memory_fence(__DPA_RW, __DPA_W);
		flexio_dev_dbr_rq_inc_pi((uint32_t *)(uintptr_t)l->receive_record);
	}
	flexio_dev_cq_arm(ctx, (uint32_t)l->received, (uint32_t)l->receive_cqn);
	flexio_dev_thread_reschedule();
}

/* For the host, which cannot read the DPA's memory by itself. */
__dpa_rpc__ uint64_t read_counter(uint64_t at)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)at, __ATOMIC_ACQUIRE);
}
