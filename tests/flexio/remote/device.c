// SPDX-License-Identifier: BSD-2-Clause
/* Device code of tests/flexio/remote. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <string.h>

#include "remote.h"

#define PATIENCE 100000
#define DRAFTS	 32

__dpa_rpc__ uint64_t peek(uint64_t addr)
{
	return __atomic_load_n((uint64_t *)(uintptr_t)addr, __ATOMIC_SEQ_CST);
}

__dpa_rpc__ uint64_t poke(uint64_t addr, uint64_t value)
{
	__atomic_store_n((uint64_t *)(uintptr_t)addr, value, __ATOMIC_SEQ_CST);
	return 0;
}

__dpa_rpc__ uint64_t fill(uint64_t addr, uint64_t bytes, uint64_t seed)
{
	uint8_t *at = (uint8_t *)(uintptr_t)addr;

	for (uint64_t i = 0; i < bytes; i++)
		at[i] = PATTERN(seed, i);
	return 0;
}

/* How many bytes from the beginning on are the pattern's. */
__dpa_rpc__ uint64_t same(uint64_t addr, uint64_t bytes, uint64_t seed)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)addr;
	uint64_t i = 0;

	while (i < bytes && at[i] == PATTERN(seed, i))
		i++;
	return i;
}

/* ---- requests ---- */

#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
#define SEND_UC	   FLEXIO_CTRL_SEG_SEND_UC
#define SEND_UD	   FLEXIO_CTRL_SEG_SEND_UD, 0, 3
#define ADD	   FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD, 0, 4
#define WAITS_WORD FLEXIO_CTRL_SEG_WAIT_ON_DATA, 0, 3
#else
#define SEND_UC	   FLEXIO_CTRL_SEG_SEND_RC
#define SEND_UD	   FLEXIO_CTRL_SEG_SEND_RC, 0, 2
#define ADD	   FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP, MLX5_CTRL_SEG_OPCODE_ATOMIC_FETCH_AND_ADD, 4
#define WAITS_WORD FLEXIO_CTRL_SEG_NOP, MLX5_CTRL_SEG_OPCODE_WAIT, 1
#endif

static const struct {
	flexio_ctrl_seg_t kind;
	uint8_t opcode; /* another one than that kind's; 0: none */
	uint8_t segments;
} kinds[] = {
	[POST_NOP] = {FLEXIO_CTRL_SEG_NOP, 0, 1},
	[POST_SEND] = {FLEXIO_CTRL_SEG_SEND_RC, 0, 2},
	[POST_SEND_IMM] = {FLEXIO_CTRL_SEG_SEND_RC, MLX5_CTRL_SEG_OPCODE_SEND_WITH_IMMEDIATE, 2},
	[POST_SEND_UC] = {SEND_UC, 0, 2},
	[POST_SEND_UD] = {SEND_UD},
	[POST_WRITE] = {FLEXIO_CTRL_SEG_RDMA_WRITE, 0, 3},
	[POST_WRITE_IMM] = {FLEXIO_CTRL_SEG_RDMA_WRITE_IMM, 0, 3},
	[POST_READ] = {FLEXIO_CTRL_SEG_RDMA_READ, 0, 3},
	[POST_SWAP] = {FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP, 0, 4},
	[POST_ADD] = {ADD},
	[POST_COPY] = {FLEXIO_CTRL_SEG_LDMA, 0, 4},
	[POST_TRANSPOSE] = {FLEXIO_CTRL_SEG_TRANSPOSE, 0, 4},
	[POST_FRAME] = {FLEXIO_CTRL_SEG_SEND_EN, 0, 3},
	[POST_SEGMENTS] = {FLEXIO_CTRL_SEG_LSO, 0, 4},
	[POST_WAIT] = {FLEXIO_CTRL_SEG_NOP, MLX5_CTRL_SEG_OPCODE_WAIT, 1},
	[POST_WAIT_WORD] = {WAITS_WORD},
	[POST_ENABLE] = {FLEXIO_CTRL_SEG_NOP, MLX5_CTRL_SEG_OPCODE_SEND_EN, 1},
	[POST_FRAMES] = {FLEXIO_CTRL_SEG_SEND_EN, MLX5_CTRL_SEG_OPCODE_ENHANCED_MPSW, 3},
};

/* A request may wrap at the end of the ring: segments are counted from its beginning. */
static union flexio_dev_sqe_seg *segment(const struct post *p, unsigned n)
{
	uint64_t at = (p->pi << LOG_SQE_NUM_SEGS) + n;

	return (union flexio_dev_sqe_seg *)(uintptr_t)p->ring +
	       (at & ((DEPTH << LOG_SQE_NUM_SEGS) - 1));
}

/* The first two bytes of the headers stand in the segment, the others in further ones. */
static unsigned post_frame(const struct post *p, unsigned n)
{
	uint8_t *header = (uint8_t *)(uintptr_t)p->header;

	memset(segment(p, n), 0, 16);
	flexio_dev_swqe_seg_eth_set(segment(p, n++), (uint16_t)p->checksums, (uint16_t)p->mss,
				    (uint16_t)p->header_bytes, p->header_bytes ? header : NULL);
	for (unsigned i = 2; i < p->header_bytes; i += 16)
		memcpy(segment(p, n++), header + i,
		       p->header_bytes - i < 16 ? p->header_bytes - i : 16);
	return n;
}

/* The segments in front of the data; where the data goes on. */
static unsigned post_headers(const struct post *p)
{
	uint64_t at = p->remote;
	unsigned n = 1;

	switch (p->kind) {
	case POST_SEND_UD:
		for (; n < (p->compact ? 2 : 4); n++)
			memcpy(segment(p, n), p->address + 2 * (n - 1), 16);
		return n;
	case POST_TRANSPOSE:
		flexio_dev_swqe_seg_transpose_set(segment(p, n++), (uint8_t)p->element,
						  (uint8_t)p->columns, (uint8_t)p->rows);
		return n;
	case POST_COPY:
		memset(segment(p, n++), 0, 16);
		return n;
	case POST_FRAME:
	case POST_FRAMES:
	case POST_SEGMENTS:
		return post_frame(p, n);
	case POST_WAIT:
	case POST_ENABLE:
		memcpy(segment(p, n++),
		       (uint32_t[]){0, 0, cpu_to_be32((uint32_t)p->rows),
				    cpu_to_be32((uint32_t)p->columns)},
		       16);
		return n;
	case POST_WAIT_WORD:
		memcpy(segment(p, n++),
		       (uint64_t[]){cpu_to_be64(p->element << 32 | p->rkey), cpu_to_be64(at)}, 16);
		memcpy(segment(p, n++),
		       (uint64_t[]){cpu_to_be64(p->compare), cpu_to_be64(p->swap_add)}, 16);
		return n;
	case POST_SWAP:
	case POST_ADD:
		flexio_dev_swqe_seg_rdma_set(segment(p, n++), (uint32_t)p->rkey, at);
		flexio_dev_swqe_seg_atomic_set(segment(p, n++), p->swap_add, p->compare);
		return n;
	case POST_WRITE:
	case POST_WRITE_IMM:
	case POST_READ:
		flexio_dev_swqe_seg_rdma_set(segment(p, n++), (uint32_t)p->rkey, at);
		return n;
	default:
		return n;
	}
}

/* Up to 12 bytes in the segment, and 16 more in each further one. */
static unsigned post_inlined(const struct post *p, unsigned n)
{
	const uint8_t *data = (const uint8_t *)(uintptr_t)p->data;
	uint32_t first[3] = {0};

#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
	memcpy(first, data, p->bytes < 12 ? p->bytes : 12);
	flexio_dev_swqe_seg_inline_data_set(segment(p, n++), (uint32_t)p->bytes, first);
#else
	for (unsigned i = 0; i < 12 && i < p->bytes; i++)
		first[i / 4] |= (uint32_t)data[i] << (24 - 8 * (i % 4));
	flexio_dev_swqe_seg_inline_data_set(segment(p, n++), (uint32_t)p->bytes | 0x80000000u,
					    first);
#endif
	for (unsigned i = 12; i < p->bytes; i += 16)
		memcpy(segment(p, n++), data + i, p->bytes - i < 16 ? p->bytes - i : 16);
	return n;
}

/* All pieces of the data, or all frames, one behind the other in memory. */
static unsigned post_pieces(const struct post *p, unsigned n)
{
	uint64_t pieces = p->kind == POST_FRAMES ? p->frames : p->pieces ? p->pieces : 1;
	uint64_t all = p->kind == POST_FRAMES ? p->bytes * pieces : p->bytes, at = p->data;

	for (uint64_t i = 0; i < pieces; i++) {
		uint64_t bytes = piece_bytes(all, pieces, i);

		flexio_dev_swqe_seg_mem_ptr_data_set(segment(p, n++), (uint32_t)bytes,
						     (uint32_t)p->key, at);
		at += bytes;
	}
	return n;
}

static unsigned post_data(const struct post *p, unsigned n)
{
	if (p->kind == POST_NOP || p->kind >= POST_WAIT)
		return n;
	if (p->inlined)
		return post_inlined(p, n);
	n = post_pieces(p, n);
	if (p->kind == POST_COPY || p->kind == POST_TRANSPOSE)
		flexio_dev_swqe_seg_mem_ptr_data_set(segment(p, n++), (uint32_t)p->bytes,
						     (uint32_t)p->rkey, p->remote);
	return n;
}

#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
#define send_ring(pi, qpn)	  flexio_dev_qp_sq_ring_db((pi), (qpn))
#define completion_immediate(cqe) ((cqe)->immediate)
#else
static void send_ring(uint16_t pi, uint32_t qpn)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	flexio_dev_qp_sq_ring_db(ctx, pi, qpn);
}
#define completion_immediate(cqe) ((cqe)->rsvd36[0])
#endif

/* Puts the request into the ring and rings. */
__dpa_rpc__ uint64_t post(uint64_t addr)
{
	struct post *p = (void *)(uintptr_t)addr;
	union flexio_dev_sqe_seg *ctrl = segment(p, 0);
	uint8_t opcode = p->opcode ? (uint8_t)p->opcode : kinds[p->kind].opcode;
	unsigned segments;

	flexio_dev_swqe_seg_ctrl_set(ctrl, (uint32_t)p->pi, (uint32_t)p->qpn, (uint32_t)p->ce,
				     kinds[p->kind].kind);
	segments = post_data(p, post_headers(p));
	if (opcode)
		ctrl->ctrl.idx_opcode =
			cpu_to_be32((be32_to_cpu(ctrl->ctrl.idx_opcode) & ~0xffu) | opcode);
	/* the older generation has no name for it, and the later one for memory alone */
	if (p->kind == POST_WAIT_WORD)
		ctrl->ctrl.idx_opcode =
			cpu_to_be32((be32_to_cpu(ctrl->ctrl.idx_opcode) & 0xffffffu) |
				    (uint32_t)(p->variant ? p->variant : 1) << 24);
	if (segments != kinds[p->kind].segments)
		ctrl->ctrl.qpn_ds = cpu_to_be32((uint32_t)p->qpn << 8 | segments);
	ctrl->ctrl.general_id = cpu_to_be32((uint32_t)p->imm);
	p->pi += (segments + 3) / 4;
	__dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
	if (!p->silent)
		send_ring((uint16_t)p->pi, (uint32_t)p->qpn);
	return 0;
}

/* ---- completions and receives ---- */

/* In nanoseconds; neither generation has an accessor for it. */
static uint64_t completion_time(const struct flexio_dev_cqe64 *cqe)
{
	return be64_to_cpu(((const uint64_t *)(uintptr_t)cqe)[6]);
}

/* Takes the next completion within a while; 0: there is none. */
__dpa_rpc__ uint64_t take(uint64_t addr)
{
	struct reader *r = (void *)(uintptr_t)addr;
	struct flexio_dev_cqe64 *cqe =
		(struct flexio_dev_cqe64 *)(uintptr_t)r->ring + (r->ci & (r->depth - 1));

	for (unsigned i = 0; flexio_dev_cqe_get_owner(cqe) != (r->ci / r->depth & 1); i++)
		if (i == PATIENCE)
			return 0;
	__dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
	r->opcode = flexio_dev_cqe_get_opcode(cqe);
	if (r->opcode == 15) /* a ring that was never written */
		return 0;
	r->syndrome = r->opcode >= 13 ? flexio_dev_cqe_get_err_synd(cqe) & 0xff : 0;
	r->bytes = flexio_dev_cqe_get_byte_cnt(cqe);
	r->imm = be32_to_cpu(completion_immediate(cqe));
	r->counter = flexio_dev_cqe_get_wqe_counter(cqe);
	r->qpn = flexio_dev_cqe_get_qpn(cqe);
	r->user_index = flexio_dev_cqe_get_user_index(cqe);
	r->time = completion_time(cqe);
	flexio_dev_dbr_cq_set_ci((uint32_t *)(uintptr_t)r->record, (uint32_t)++r->ci);
	return 1;
}

/* Lengths stand in the second half of eight bytes for each, behind the entry that says how many there are. */
static uint64_t packed_bytes(uint64_t entry, unsigned i)
{
	return be32_to_cpu(((const uint32_t *)(uintptr_t)entry)[2 * i + 1]);
}

/* Reads completions that stand together, all of which have come; 1: they do not. */
__dpa_rpc__ uint64_t unpack(uint64_t addr)
{
	struct packed *p = (void *)(uintptr_t)addr;
	struct flexio_dev_cqe64 *cqe = (void *)(uintptr_t)p->ring;
	const uint8_t *last = (const uint8_t *)(uintptr_t)p->ring + 63;
	unsigned whole = 0;

	p->counter = flexio_dev_cqe_get_wqe_counter(cqe);
	if (p->enhanced) {
		/* one whole entry, and then one with the rest, whose number less one is where the opcode is */
		p->bytes[whole++] = flexio_dev_cqe_get_byte_cnt(cqe);
		if ((last[0] >> 2 & 3) == 3 || (last[64] >> 2 & 3) != 3 ||
		    (last[64] >> 4) + 2u != p->count)
			return 1;
	} else if ((last[0] >> 2 & 3) != 3 || flexio_dev_cqe_get_byte_cnt(cqe) != p->count) {
		return 1;
	}
	for (unsigned i = whole; i < p->count; i++)
		p->bytes[i] = packed_bytes(p->ring + 64, i - whole);
	return 0;
}

/* An entry of a list begins with the index of the next one. */
static union flexio_dev_sqe_seg *receive_entry(const struct posts *p)
{
	uint64_t at = p->pi & (DEPTH - 1);
	union flexio_dev_sqe_seg *entry =
		(union flexio_dev_sqe_seg *)(uintptr_t)p->ring + (p->list ? 2 * at : at);

	if (p->list)
		flexio_dev_swqe_seg_shared_receive_set(entry++, (uint16_t)((at + 1) & (DEPTH - 1)),
						       0);
	return entry;
}

__dpa_rpc__ uint64_t receive(uint64_t addr)
{
	struct posts *p = (void *)(uintptr_t)addr;

	for (uint64_t i = 0; i < p->count; i++) {
		flexio_dev_swqe_seg_mem_ptr_data_set(receive_entry(p), (uint32_t)p->bytes,
						     (uint32_t)p->key, p->data);
		p->data += p->step;
		p->pi++;
		__dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
		flexio_dev_dbr_rq_inc_pi((uint32_t *)(uintptr_t)p->record);
	}
	return 0;
}

/* A handler that counts how often it runs. */
__dpa_global__ void woken(uint64_t addr)
{
	__atomic_fetch_add((uint64_t *)(uintptr_t)addr, 1, __ATOMIC_SEQ_CST);
	flexio_dev_thread_reschedule();
}

/* Takes one completion if there is one; whether it says success or there is none. */
static int sent_well(const struct reader *r)
{
	return !take((uintptr_t)r) || !r->opcode;
}

/*
 * Many frames, each with a number of its own again and again, and a bell.  The request is there before what it is to
 * send, which comes word by word, and only the last draft of that is right.  Only a full ring makes the next one wait:
 * so whoever sends has bells in front of it that it has not heard yet, and behind those a request that is not ready.
 * How many were sent, or UINT64_MAX.
 */
__dpa_rpc__ uint64_t stream(uint64_t addr, uint64_t reader, uint64_t count)
{
	struct post *p = (void *)(uintptr_t)addr;
	struct reader *r = (void *)(uintptr_t)reader;
	uint64_t data = p->data;

	p->silent = 1;
	for (uint64_t i = 0; i < count; i++) {
		volatile uint64_t *payload;

		while (i - r->ci == DEPTH)
			if (!sent_well(r))
				return UINT64_MAX;
		p->data = data + (i & (DEPTH - 1)) * p->bytes;
		post(addr);
		payload = (uint64_t *)(uintptr_t)p->data + 2; /* behind the header */
		for (uint64_t left = DRAFTS; left--;)
			for (unsigned n = 0; n < p->bytes / 8 - 2; n++)
				payload[n] = left << 32 | i;
		__dpa_thread_fence(__DPA_MEMORY, __DPA_W, __DPA_W);
		send_ring((uint16_t)p->pi, (uint32_t)p->qpn);
	}
	while (r->ci < count)
		if (!sent_well(r))
			return UINT64_MAX;
	return r->ci;
}

/* Writes and reads in turns, each awaited; the syndrome of the first that fails, 0: none. */
__dpa_rpc__ uint64_t flood(uint64_t addr, uint64_t reader, uint64_t count)
{
	struct post *p = (void *)(uintptr_t)addr;
	struct reader *r = (void *)(uintptr_t)reader;

	for (uint64_t i = 0; i < count; i++) {
		p->kind = i & 1 ? POST_READ : POST_WRITE;
		post(addr);
		while (!take(reader))
			;
		if (r->opcode)
			return r->syndrome;
	}
	return 0;
}
