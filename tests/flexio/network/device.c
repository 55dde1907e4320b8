// SPDX-License-Identifier: BSD-2-Clause
/* Device code of tests/flexio/network. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <string.h>

#include "network.h"

__dpa_rpc__ uint64_t peek(uint64_t addr)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)addr, __ATOMIC_SEQ_CST);
}

__dpa_rpc__ uint64_t poke(uint64_t addr, uint64_t value)
{
	__atomic_store_n((uint64_t *)(uintptr_t)addr, value, __ATOMIC_SEQ_CST);
	return 0;
}

/* The host's byte order has it reversed. */
static void record_set(uint64_t record, uint32_t value)
{
	__atomic_store_n((uint32_t *)(uintptr_t)record, cpu_to_be32(value), __ATOMIC_RELEASE);
}

static union flexio_dev_sqe_seg *block_of(uint64_t ring, uint64_t pi)
{
	return (union flexio_dev_sqe_seg *)(uintptr_t)ring +
	       (pi & (DEPTH - 1)) * (1u << LOG_SQE_NUM_SEGS);
}

static void request_put(const struct request *r, uint64_t pi)
{
	union flexio_dev_sqe_seg *s = block_of(r->ring, pi);

	memset(s, 0, 64);
	if (r->kind == REQUEST_MESSAGE) {
		flexio_dev_swqe_seg_ctrl_set(s, (uint32_t)pi, (uint32_t)r->sqn, (uint32_t)r->ce,
					     FLEXIO_CTRL_SEG_SEND_RC);
		flexio_dev_swqe_seg_mem_ptr_data_set(s + 1, (uint32_t)r->bytes, (uint32_t)r->key,
						     r->data);
		return;
	}
	if (r->kind == REQUEST_WRITE) {
		flexio_dev_swqe_seg_ctrl_set(s, (uint32_t)pi, (uint32_t)r->sqn, (uint32_t)r->ce,
					     FLEXIO_CTRL_SEG_RDMA_WRITE);
		flexio_dev_swqe_seg_rdma_set(s + 1, (uint32_t)r->remote_key, r->remote);
		flexio_dev_swqe_seg_mem_ptr_data_set(s + 2, (uint32_t)r->bytes, (uint32_t)r->key,
						     r->data);
		return;
	}
	flexio_dev_swqe_seg_ctrl_set(s, (uint32_t)pi, (uint32_t)r->sqn, (uint32_t)r->ce,
				     r->kind == REQUEST_NOP ? FLEXIO_CTRL_SEG_NOP
							    : FLEXIO_CTRL_SEG_SEND_EN);
	if (r->kind == REQUEST_NOP)
		return;
	flexio_dev_swqe_seg_eth_set(s + 1, 0, 0, 0, NULL);
	flexio_dev_swqe_seg_mem_ptr_data_set(s + 2, (uint32_t)r->bytes, (uint32_t)r->key, r->data);
}

/* All of them, and one bell. */
__dpa_rpc__ uint64_t send_requests(uint64_t addr)
{
	struct request *r = (void *)(uintptr_t)addr;
	struct flexio_dev_thread_ctx *ctx;
	flexio_uintptr_t ring;

	flexio_dev_get_thread_ctx(&ctx);
	if (r->window_key) {
		if (flexio_dev_window_config(ctx, (uint16_t)r->window, (uint32_t)r->window_key) ||
		    flexio_dev_window_ptr_acquire(ctx, r->ring, &ring))
			return 1;
		r->ring = ring;
	}
	for (uint64_t i = 0; i < r->count; i++)
		request_put(r, r->pi++);
	__dpa_thread_window_writeback();
	__dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
	return flexio_dev_qp_sq_ring_db(ctx, (uint16_t)r->pi, (uint32_t)r->sqn);
}

static void addresses_exchange(uint8_t *frame)
{
	uint8_t mac[6];

	memcpy(mac, frame, 6);
	memcpy(frame, frame + 6, 6);
	memcpy(frame + 6, mac, 6);
}

static void frame_send_back(struct flexio_dev_thread_ctx *ctx, struct network *n,
			    struct flexio_dev_cqe64 *cqe)
{
	uint32_t slot = flexio_dev_cqe_get_wqe_counter(cqe) & (DEPTH - 1);
	struct flexio_dev_wqe_rcv_data_seg *rwqe =
		(struct flexio_dev_wqe_rcv_data_seg *)(uintptr_t)n->rq_ring + slot;
	uint8_t *data = (uint8_t *)(uintptr_t)n->sq_data + (n->pi & (DEPTH - 1)) * SLOT_BYTES;
	struct request r = {
		.sqn = n->sqn,
		.ring = n->sq_ring,
		.data = (uintptr_t)data,
		.bytes = flexio_dev_cqe_get_byte_cnt(cqe),
		.key = n->key,
	};

	memcpy(data, flexio_dev_rwqe_get_addr(rwqe), r.bytes);
	addresses_exchange(data);
	if (r.bytes == n->edits)
		data[r.bytes - 1] = EDITED;
	request_put(&r, n->pi++);
	__dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
	if (n->elsewhere != 2)
		flexio_dev_qp_sq_ring_db(ctx, (uint16_t)n->pi, (uint32_t)n->sqn);
	else if (flexio_dev_cross_device_ring_db((flexio_uar_device_id)n->device, (uint32_t)n->sqn,
						 (uint32_t)n->pi))
		__atomic_add_fetch(&n->errors, 1, __ATOMIC_SEQ_CST);
	n->last_bytes = r.bytes;
	n->last_counter = flexio_dev_cqe_get_wqe_counter(cqe);
	n->last_user = flexio_dev_cqe_get_user_index(cqe);
	n->last_sound = flexio_dev_cqe_get_csum_ok(cqe);
}

flexio_dev_event_handler_t reflect;
__dpa_global__ void reflect(uint64_t arg)
{
	struct network *n = (void *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;
	struct flexio_dev_cqe64 *cqe;

	flexio_dev_get_thread_ctx(&ctx);
	if (n->elsewhere == 1 &&
	    flexio_dev_outbox_config_uar_extension(ctx, (flexio_uar_device_id)n->device))
		__atomic_add_fetch(&n->errors, 1, __ATOMIC_SEQ_CST);
	for (;;) {
		cqe = (struct flexio_dev_cqe64 *)(uintptr_t)n->cq_ring + (n->ci & (DEPTH - 1));
		if (flexio_dev_cqe_get_owner(cqe) != (n->ci >> LOG_DEPTH & 1))
			break;
		__dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
		if (flexio_dev_cqe_get_opcode(cqe) == 2) {
			frame_send_back(ctx, n, cqe);
			flexio_dev_dbr_rq_inc_pi((uint32_t *)(uintptr_t)n->rq_record);
			__atomic_add_fetch(&n->frames, 1, __ATOMIC_SEQ_CST);
		} else {
			__atomic_add_fetch(&n->errors, 1, __ATOMIC_SEQ_CST);
		}
		record_set(n->cq_record, (uint32_t)++n->ci & 0xffffff);
	}
	if (n->elsewhere == 2 &&
	    flexio_dev_outbox_config_uar_extension(ctx, (flexio_uar_device_id)n->device))
		__atomic_add_fetch(&n->errors, 1, __ATOMIC_SEQ_CST);
	flexio_dev_cq_arm(ctx, (uint32_t)n->ci, (uint32_t)n->cqn);
	flexio_dev_thread_reschedule();
}

/* ---- a handler that never rests ---- */

static uint64_t word(const uint64_t *at)
{
	return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}

/* Rings whatever has, or had, these numbers, and arms it. */
static void ring_numbers(struct flexio_dev_thread_ctx *ctx, uint64_t pi, uint64_t sqn, uint64_t qpn,
			 uint64_t cqn)
{
	flexio_dev_qp_sq_ring_db(ctx, (uint16_t)pi, (uint32_t)sqn);
	flexio_dev_qp_sq_ring_db(ctx, (uint16_t)pi, (uint32_t)qpn);
	flexio_dev_cq_arm(ctx, (uint32_t)pi, (uint32_t)cqn);
}

static void hammer_once(struct flexio_dev_thread_ctx *ctx, struct hammer *h)
{
	struct request frame = {
		.sqn = word(&h->sqn),
		.ring = h->sq_ring,
		.ce = 2,
		.data = h->data,
		.bytes = h->bytes,
		.key = h->key,
	};
	struct request write = frame;

	write.sqn = word(&h->qpn);
	write.ring = h->qp_ring;
	write.kind = REQUEST_WRITE;
	write.remote = h->remote;
	write.remote_key = h->key;
	request_put(&frame, h->pi);
	request_put(&write, h->pi);
	h->pi++;
	flexio_dev_dbr_rq_inc_pi((uint32_t *)(uintptr_t)h->rq_record);
	__dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
	ring_numbers(ctx, h->pi, frame.sqn, write.sqn, word(&h->cqn));
	ring_numbers(ctx, h->pi, word(&h->old_sqn), word(&h->old_qpn), word(&h->old_cqn));
	flexio_dev_qp_sq_ring_db(ctx, (uint16_t)h->pi, (uint32_t)word(&h->first));
	for (uint64_t i = 1; i <= HAMMER_AHEAD; i++)
		ring_numbers(ctx, h->pi, frame.sqn + i, write.sqn + i, word(&h->cqn) + i);
}

__dpa_global__ void hammer(uint64_t arg)
{
	struct hammer *h = (void *)(uintptr_t)arg;
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	for (unsigned i = 0; i < HAMMER_BATCH && !word(&h->stop); i++) {
		hammer_once(ctx, h);
		__atomic_add_fetch(&h->turns, 1, __ATOMIC_SEQ_CST);
	}
	if (word(&h->stop)) {
		__atomic_store_n(&h->finished, 1, __ATOMIC_SEQ_CST);
		flexio_dev_thread_finish();
	}
	flexio_dev_thread_retrigger();
}

/* How many bytes from there on have that value. */
__dpa_rpc__ uint64_t same_bytes(uint64_t addr, uint64_t bytes, uint64_t value)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)addr;
	uint64_t n = 0;

	while (n < bytes && __atomic_load_n(at + n, __ATOMIC_RELAXED) == value)
		n++;
	return n;
}

static uint32_t port_counters[2], port_values[2];

/* What the port has received, and above that what it has sent. */
__dpa_rpc__ uint64_t port_bytes(uint64_t unused)
{
	(void)unused;
	port_counters[0] = FLEXIO_DEV_NIC_COUNTER_PORT0_RX_BYTES;
	port_counters[1] = FLEXIO_DEV_NIC_COUNTER_PORT0_TX_BYTES;
	flexio_dev_nic_counters_config(port_values, port_counters, 2);
	flexio_dev_nic_counters_sample();
	return port_values[0] | (uint64_t)port_values[1] << 32;
}
