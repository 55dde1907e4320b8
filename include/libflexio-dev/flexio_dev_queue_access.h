/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flex IO device interface: doorbells, completions and work requests.
 *
 * Source of names, types and values: DOCA Driver APIs 2.6.0 Reference Manual, section 2.4.
 *
 * Nothing here waits or orders memory: what the adapter is to see is stored, then fenced
 * (__dpa_thread_memory_writeback() and the like of dpaintrin.h), then its doorbell is rung.  A ring
 * and its counters belong to one thread at a time.
 */
#ifndef _FLEXIO_DEV_QUEUE_ACCESS_H_
#define _FLEXIO_DEV_QUEUE_ACCESS_H_

#include <stddef.h>
#include <stdint.h>

#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_dpa_arch.h>
#include <libflexio-dev/flexio_dev_endianity.h>
#include <libflexio-dev/flexio_dev_queue_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What congestion control does next with a queue. */
typedef enum flexio_dev_cc_db_next_act {
	CC_DB_NEXT_ACT_SINGLE = 0x0,
	CC_DB_NEXT_ACT_MULTIPLE = 0x1,
	CC_DB_NEXT_ACT_FW = 0x2,
} flexio_dev_cc_db_next_act_t;

/** Kinds of work requests, for flexio_dev_swqe_seg_ctrl_set(). */
typedef enum flexio_ctrl_seg {
	/** Send on an Ethernet queue: control, Ethernet and one data segment. */
	FLEXIO_CTRL_SEG_SEND_EN = 0,
	/** Send: control and one data segment. */
	FLEXIO_CTRL_SEG_SEND_RC = 1,
#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
	FLEXIO_CTRL_SEG_SEND_UC = 1,
	/** Send of a datagram: control, address vector and one data segment. */
	FLEXIO_CTRL_SEG_SEND_UD = 2,
	FLEXIO_CTRL_SEG_LDMA = 3,
	FLEXIO_CTRL_SEG_RDMA_WRITE = 4,
	FLEXIO_CTRL_SEG_RDMA_READ = 5,
	FLEXIO_CTRL_SEG_LSO = 6,
	FLEXIO_CTRL_SEG_NOP = 7,
	FLEXIO_CTRL_SEG_RDMA_WRITE_IMM = 8,
	FLEXIO_CTRL_SEG_TRANSPOSE = 9,
	FLEXIO_CTRL_SEG_WAIT_ON_DATA = 10,
	FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP = 11,
	FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD = 12,
#else
	/** Copy within the adapter: control, its own, and two data segments. */
	FLEXIO_CTRL_SEG_LDMA = 2,
	/** Write: control, remote address and one data segment. */
	FLEXIO_CTRL_SEG_RDMA_WRITE = 3,
	/** Read: as write. */
	FLEXIO_CTRL_SEG_RDMA_READ = 4,
	/** Compare and swap: control, remote address, operands and one data segment. */
	FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP = 5,
	/** Large send: control, Ethernet with headers in the work request, and data. */
	FLEXIO_CTRL_SEG_LSO = 6,
	/** Nothing: control alone. */
	FLEXIO_CTRL_SEG_NOP = 7,
	/** Write with immediate: as write; the caller sets general_id. */
	FLEXIO_CTRL_SEG_RDMA_WRITE_IMM = 8,
	/** Transpose a matrix: control, shape, and two data segments. */
	FLEXIO_CTRL_SEG_TRANSPOSE = 9,
	/* Names of later generations, behind the numbers of this one. */
	FLEXIO_CTRL_SEG_SEND_UC = 1,
	FLEXIO_CTRL_SEG_SEND_UD = 10,
	FLEXIO_CTRL_SEG_WAIT_ON_DATA = 11,
	FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD = 12,
#endif
} flexio_ctrl_seg_t;

/** Opcodes of work requests, bits 0 to 7 of idx_opcode. */
enum {
	MLX5_CTRL_SEG_OPCODE_NOP = 0x00,
	MLX5_CTRL_SEG_OPCODE_SND_INV = 0x01,
	MLX5_CTRL_SEG_OPCODE_RDMA_WRITE = 0x08,
	MLX5_CTRL_SEG_OPCODE_RDMA_WRITE_WITH_IMMEDIATE = 0x09,
	MLX5_CTRL_SEG_OPCODE_SEND = 0x0a,
	MLX5_CTRL_SEG_OPCODE_SEND_WITH_IMMEDIATE = 0x0b,
	MLX5_CTRL_SEG_OPCODE_LSO = 0x0e,
	MLX5_CTRL_SEG_OPCODE_WAIT = 0x0f,
	MLX5_CTRL_SEG_OPCODE_RDMA_READ = 0x10,
	MLX5_CTRL_SEG_OPCODE_ATOMIC_COMPARE_AND_SWAP = 0x11,
	MLX5_CTRL_SEG_OPCODE_ATOMIC_FETCH_AND_ADD = 0x12,
	MLX5_CTRL_SEG_OPCODE_ATOMIC_MASKED_COMPARE_AND_SWAP = 0x14,
	MLX5_CTRL_SEG_OPCODE_ATOMIC_MASKED_FETCH_AND_ADD = 0x15,
	MLX5_CTRL_SEG_OPCODE_RECEIVE_EN = 0x16,
	MLX5_CTRL_SEG_OPCODE_SEND_EN = 0x17,
	MLX5_CTRL_SEG_OPCODE_SET_PSV = 0x20,
	MLX5_CTRL_SEG_OPCODE_GET_PSV = 0x21,
	MLX5_CTRL_SEG_OPCODE_CHECK_PSV = 0x22,
	MLX5_CTRL_SEG_OPCODE_DUMP = 0x23,
	MLX5_CTRL_SEG_OPCODE_UMR = 0x25,
	MLX5_CTRL_SEG_OPCODE_RGET_PSV = 0x26,
	MLX5_CTRL_SEG_OPCODE_RCHECK_PSV = 0x27,
	MLX5_CTRL_SEG_OPCODE_TAG_MATCHING = 0x28,
	MLX5_CTRL_SEG_OPCODE_ENHANCED_MPSW = 0x29,
	MLX5_CTRL_SEG_OPCODE_QOS_REMAP = 0x2a,
	MLX5_CTRL_SEG_OPCODE_FLOW_TABLE_ACCESS = 0x2c,
	MLX5_CTRL_SEG_OPCODE_ACCESS_ASO = 0x2d,
	MLX5_CTRL_SEG_OPCODE_MMO = 0x2f,
	MLX5_CTRL_SEG_OPCODE_LOAD_REMOTE_MICRO_APP = 0x30,
	MLX5_CTRL_SEG_OPCODE_STORE_REMOTE_MICRO_APP = 0x31,
	MLX5_CTRL_SEG_OPCODE_LOCAL_MMO = 0x32,
};

/** Variants of MLX5_CTRL_SEG_OPCODE_LOCAL_MMO, bits 24 to 31 of idx_opcode. */
enum {
	MLX5_CTRL_SEGMENT_OPC_MOD_LOCAL_MMO_TRANSPOSE = 0x0,
	MLX5_CTRL_SEGMENT_OPC_MOD_LOCAL_MMO_LOCAL_DMA = 0x1,
};

/**
 * flexio_dev_qp_sq_ring_db() - tell the adapter of work requests in a send queue.
 * @dtctx: the thread's context
 * @pi: counter of the block of 64 bytes behind the last work request
 * @qnum: number of the send queue or queue pair
 *
 * The doorbells go through the thread's outbox.  One at a queue of another UAR is dropped.  Each
 * returns FLEXIO_DEV_STATUS_SUCCESS.
 */
flexio_dev_status_t flexio_dev_qp_sq_ring_db(struct flexio_dev_thread_ctx *dtctx, uint16_t pi,
					     uint32_t qnum);

/**
 * flexio_dev_cq_arm() - let the next completion activate the CQ's thread, or make an event.
 * @dtctx: the thread's context
 * @ci: counter of the completions that were consumed; if the CQ holds more, activation or event
 *	follow at once
 * @qnum: number of the CQ
 */
flexio_dev_status_t flexio_dev_cq_arm(struct flexio_dev_thread_ctx *dtctx, uint32_t ci,
				      uint32_t qnum);

/**
 * flexio_dev_eq_update_ci() - tell the adapter that events were consumed.
 * @dtctx: the thread's context
 * @ci: counter of the events that were consumed
 * @qnum: number of the EQ; the call does not arm it
 */
flexio_dev_status_t flexio_dev_eq_update_ci(struct flexio_dev_thread_ctx *dtctx, uint32_t ci,
					    uint32_t qnum);

/**
 * flexio_dev_msix_send() - write an empty completion to a CQ, which raises the MSI-X vector, or
 * activates the thread, that is attached to it.
 * @dtctx: the thread's context
 * @cqn: number of the CQ
 */
flexio_dev_status_t flexio_dev_msix_send(struct flexio_dev_thread_ctx *dtctx, uint32_t cqn);

/**
 * flexio_dev_db_ctx_arm() - let the next doorbell of an emulated device make a completion.
 * @dtctx: the thread's context
 * @qnum: number of the queue
 * @emu_ctx_id: number of the emulation context
 */
flexio_dev_status_t flexio_dev_db_ctx_arm(struct flexio_dev_thread_ctx *dtctx, uint32_t qnum,
					  uint32_t emu_ctx_id);

/**
 * flexio_dev_db_ctx_force_trigger() - make the completion of an emulation context now.
 * @dtctx: the thread's context
 * @cqn: number of the CQ
 * @emu_ctx_id: number of the emulation context
 */
flexio_dev_status_t flexio_dev_db_ctx_force_trigger(struct flexio_dev_thread_ctx *dtctx,
						    uint32_t cqn, uint32_t emu_ctx_id);

/**
 * flexio_dev_cc_ring_db() - set the rate of a flow of congestion control.
 * @dtctx: the thread's context
 * @ccq_id: number of the flow
 * @rate: 20 fraction bits of the port's speed
 * @rtt_req: 1: a round trip is to be measured
 * @next_act: which events of the flow come next
 *
 * flexio_dev_pcc.h says what flows and events are.
 */
flexio_dev_status_t flexio_dev_cc_ring_db(struct flexio_dev_thread_ctx *dtctx, uint16_t ccq_id,
					  uint32_t rate, uint32_t rtt_req,
					  flexio_dev_cc_db_next_act_t next_act);

/**
 * flexio_dev_cqe_get_owner() - owner bit of a completion.
 * @cqe: the completion
 *
 * Returns 0 or 1: the pass over the ring in which the adapter wrote the completion, beginning with
 * 0.  The caller orders its later reads behind this one by __dpa_thread_memory_fence(__DPA_R,
 * __DPA_R).
 */
static inline uint8_t flexio_dev_cqe_get_owner(struct flexio_dev_cqe64 *cqe)
{
	return cqe->op_own & 0x1;
}

/**
 * flexio_dev_cqe_get_opcode() - kind of a completion.
 * @cqe: the completion
 *
 * Returns 0 send queue, 1 write with immediate, 2 receive, 3 receive with immediate, 4 receive with
 * invalidation, 13 error of the send queue, 14 error of the receive queue.
 */
static inline uint8_t flexio_dev_cqe_get_opcode(struct flexio_dev_cqe64 *cqe)
{
	return (uint8_t)(cqe->op_own >> 4);
}

/** flexio_dev_cqe_get_byte_cnt() - bytes that @cqe says were received or read. */
static inline uint32_t flexio_dev_cqe_get_byte_cnt(struct flexio_dev_cqe64 *cqe)
{
	return be32_to_cpu(cqe->byte_cnt);
}

/** flexio_dev_cqe_get_qpn() - number of the queue of @cqe, 24 bits. */
static inline uint32_t flexio_dev_cqe_get_qpn(struct flexio_dev_cqe64 *cqe)
{
	return be32_to_cpu(cqe->qpn) & 0xffffff;
}

/** flexio_dev_cqe_get_user_index() - user index of the queue of @cqe, 24 bits. */
static inline uint32_t flexio_dev_cqe_get_user_index(struct flexio_dev_cqe64 *cqe)
{
	return be32_to_cpu(cqe->srqn_uidx) & 0xffffff;
}

/** flexio_dev_cqe_get_wqe_counter() - counter of @cqe's request, not modulo the ring's size. */
static inline uint16_t flexio_dev_cqe_get_wqe_counter(struct flexio_dev_cqe64 *cqe)
{
	return be16_to_cpu(cqe->wqe_counter);
}

#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)

/** flexio_dev_cqe_get_csum_ok() - checksum field of @cqe. */
static inline uint16_t flexio_dev_cqe_get_csum_ok(struct flexio_dev_cqe64 *cqe)
{
	return be16_to_cpu(cqe->csum_ok);
}

/** flexio_dev_cqe_get_err_synd() - syndrome of the error @cqe. */
static inline uint8_t flexio_dev_cqe_get_err_synd(struct flexio_dev_cqe64 *cqe)
{
	return cqe->err_synd;
}

/** flexio_dev_cqe_get_vendor_err_synd() - the vendor's syndrome of the error @cqe. */
static inline uint8_t flexio_dev_cqe_get_vendor_err_synd(struct flexio_dev_cqe64 *cqe)
{
	return cqe->vendor_err_synd;
}

/** flexio_dev_cqe_get_hw_err_synd() - the hardware's syndrome of the error @cqe. */
static inline uint8_t flexio_dev_cqe_get_hw_err_synd(struct flexio_dev_cqe64 *cqe)
{
	return cqe->hw_err_synd;
}

#else

/** flexio_dev_cqe_get_csum_ok() - which checksums of @cqe are right: bits 0 to 2 layers 2 to 4. */
static inline uint8_t flexio_dev_cqe_get_csum_ok(struct flexio_dev_cqe64 *cqe)
{
	return cqe->csum_ok;
}

/** flexio_dev_cqe_get_err_synd() - syndrome of @cqe in bits 0 to 7, the vendor's in 8 to 15. */
static inline uint32_t flexio_dev_cqe_get_err_synd(struct flexio_dev_cqe64 *cqe)
{
	return be32_to_cpu(cqe->err_syndrome);
}

/** flexio_dev_cqe_get_vendor_err_synd() - vendor's syndrome of @cqe, by the later name. */
static inline uint8_t flexio_dev_cqe_get_vendor_err_synd(struct flexio_dev_cqe64 *cqe)
{
	return (uint8_t)(flexio_dev_cqe_get_err_synd(cqe) >> 8);
}

/** flexio_dev_cqe_get_hw_err_synd() - hardware's syndrome of the error @cqe, by the later name. */
static inline uint8_t flexio_dev_cqe_get_hw_err_synd(struct flexio_dev_cqe64 *cqe)
{
	return (uint8_t)(be32_to_cpu(cqe->err_syndrome) >> 24);
}

#endif

/** flexio_dev_cqe_get_type() - format of @cqe: 0 no data in it, 1 and 2 data, 3 compressed. */
static inline uint8_t flexio_dev_cqe_get_type(struct flexio_dev_cqe64 *cqe)
{
	return (cqe->op_own >> 2) & 0x3;
}

/** flexio_dev_eqe_get_cqn() - number of the CQ of @eqe, 24 bits. */
static inline uint32_t flexio_dev_eqe_get_cqn(struct flexio_dev_eqe *eqe)
{
	return be32_to_cpu(eqe->event_data.cqn) & 0xffffff;
}

/** flexio_dev_eqe_get_owner() - owner bit of @eqe, as of a completion. */
static inline uint8_t flexio_dev_eqe_get_owner(struct flexio_dev_eqe *eqe)
{
	return *(volatile uint8_t *)&eqe->owner & 0x1;
}

/** flexio_dev_rwqe_get_addr() - address of the buffer of @rwqe. */
static inline void *flexio_dev_rwqe_get_addr(struct flexio_dev_wqe_rcv_data_seg *rwqe)
{
	return (void *)(uintptr_t)be64_to_cpu(rwqe->addr);
}

/* Opcode, its variant, and number of segments of a kind of work request, in one number. */
#define __FLEXIO_DEV_KIND(opcode, variant, segments) \
	((uint32_t)(opcode) | (uint32_t)(variant) << 24 | (uint32_t)(segments) << 8)

static inline uint32_t __flexio_dev_kind(flexio_ctrl_seg_t kind)
{
	switch (kind) {
	case FLEXIO_CTRL_SEG_SEND_EN:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_SEND, 0, 3);
	case FLEXIO_CTRL_SEG_SEND_RC:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_SEND, 0, 2);
	case FLEXIO_CTRL_SEG_LDMA:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_LOCAL_MMO,
					 MLX5_CTRL_SEGMENT_OPC_MOD_LOCAL_MMO_LOCAL_DMA, 4);
	case FLEXIO_CTRL_SEG_RDMA_WRITE:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_RDMA_WRITE, 0, 3);
	case FLEXIO_CTRL_SEG_RDMA_READ:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_RDMA_READ, 0, 3);
	case FLEXIO_CTRL_SEG_ATOMIC_COMPARE_AND_SWAP:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_ATOMIC_COMPARE_AND_SWAP, 0, 4);
	case FLEXIO_CTRL_SEG_LSO:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_LSO, 0, 4);
	case FLEXIO_CTRL_SEG_RDMA_WRITE_IMM:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_RDMA_WRITE_WITH_IMMEDIATE, 0, 3);
	case FLEXIO_CTRL_SEG_TRANSPOSE:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_LOCAL_MMO,
					 MLX5_CTRL_SEGMENT_OPC_MOD_LOCAL_MMO_TRANSPOSE, 4);
	case FLEXIO_CTRL_SEG_SEND_UD:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_SEND, 0, 3);
	case FLEXIO_CTRL_SEG_WAIT_ON_DATA:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_WAIT, 1, 3);
	case FLEXIO_CTRL_SEG_ATOMIC_FETCH_AND_ADD:
		return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_ATOMIC_FETCH_AND_ADD, 0, 4);
	case FLEXIO_CTRL_SEG_NOP:
		break;
	}
	return __FLEXIO_DEV_KIND(MLX5_CTRL_SEG_OPCODE_NOP, 0, 1);
}

/**
 * flexio_dev_swqe_seg_ctrl_set() - fill in a control segment.
 * @swqe: the segment
 * @sq_pi: counter of the block of 64 bytes in which the work request begins
 * @sq_number: number of the queue
 * @ce: enum cq_ce_mode
 * @ctrl_seg_type: kind of the work request; it gives the number of segments too, which a caller
 *	with more of them changes in qpn_ds
 *
 * This and the other setters return FLEXIO_DEV_STATUS_SUCCESS.
 */
static inline flexio_dev_status_t flexio_dev_swqe_seg_ctrl_set(union flexio_dev_sqe_seg *swqe,
							       uint32_t sq_pi, uint32_t sq_number,
							       uint32_t ce,
							       flexio_ctrl_seg_t ctrl_seg_type)
{
	const uint32_t kind = __flexio_dev_kind(ctrl_seg_type);

	swqe->ctrl.idx_opcode = cpu_to_be32((kind & 0xff0000ffu) | (sq_pi & 0xffff) << 8);
	swqe->ctrl.qpn_ds = cpu_to_be32(sq_number << 8 | ((kind >> 8) & 0xff));
	swqe->ctrl.signature_fm_ce_se = cpu_to_be32(ce << 2);
	swqe->ctrl.general_id = 0;
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_swqe_seg_eth_set() - fill in an Ethernet segment.
 * @swqe: the segment
 * @cs_swp_flags: flexio_dev_wqe_eth_seg_cs_swp_flags_t
 * @mss: payload bytes of each packet of a large send; otherwise 0
 * @inline_hdr_bsz: bytes of headers in the work request, these two included
 * @inline_hdrs: the first two of them; NULL: they are left as they are
 */
static inline flexio_dev_status_t flexio_dev_swqe_seg_eth_set(union flexio_dev_sqe_seg *swqe,
							      uint16_t cs_swp_flags, uint16_t mss,
							      uint16_t inline_hdr_bsz,
							      uint8_t inline_hdrs[2])
{
	swqe->eth.rsvd0 = 0;
	swqe->eth.cs_swp_flags = cpu_to_be16(cs_swp_flags);
	swqe->eth.mss = cpu_to_be16(mss);
	swqe->eth.rsvd2 = 0;
	swqe->eth.inline_hdr_bsz = cpu_to_be16(inline_hdr_bsz);
	if (inline_hdrs) {
		swqe->eth.inline_hdrs[0] = inline_hdrs[0];
		swqe->eth.inline_hdrs[1] = inline_hdrs[1];
	}
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_swqe_seg_rdma_set() - fill in the segment of a remote address.
 * @swqe: the segment
 * @rkey: key of the remote memory
 * @raddr: its address
 */
static inline flexio_dev_status_t flexio_dev_swqe_seg_rdma_set(union flexio_dev_sqe_seg *swqe,
							       uint32_t rkey, uint64_t raddr)
{
	swqe->rdma.raddr = cpu_to_be64(raddr);
	swqe->rdma.rkey = cpu_to_be32(rkey);
	swqe->rdma.rsvd0 = 0;
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_swqe_seg_mem_ptr_data_set() - fill in the segment of data in memory.
 * @swqe: the segment
 * @data_sz: bytes
 * @lkey: key of the memory
 * @data_addr: its address
 */
static inline flexio_dev_status_t
flexio_dev_swqe_seg_mem_ptr_data_set(union flexio_dev_sqe_seg *swqe, uint32_t data_sz,
				     uint32_t lkey, uint64_t data_addr)
{
	swqe->mem_ptr_send_data.byte_count = cpu_to_be32(data_sz);
	swqe->mem_ptr_send_data.lkey = cpu_to_be32(lkey);
	swqe->mem_ptr_send_data.addr = cpu_to_be64(data_addr);
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_swqe_seg_inline_data_set() - fill in a segment of data in the work request.
 * @swqe: the segment
 * @data_sz: bytes.  In generation 24.01 the caller sets bit 31, without which the adapter takes the
 *	data for a key and an address; later ones set it here
 * @data: three numbers of 32 bits, of which the bytes are sent.  Generation 24.01 stores them
 *	big-endian, later ones as they lie in memory
 */
static inline flexio_dev_status_t
flexio_dev_swqe_seg_inline_data_set(union flexio_dev_sqe_seg *swqe, uint32_t data_sz,
				    uint32_t *data)
{
	int i;

#if FLEXIO_DEV_VER_USED >= FLEXIO_DEV_VER(24, 10, 0)
	swqe->inline_send_data.byte_count = cpu_to_be32(data_sz | 0x80000000u);
	for (i = 0; i < 3; i++)
		swqe->inline_send_data.data_and_padding[i] = data[i];
#else
	swqe->inline_send_data.byte_count = cpu_to_be32(data_sz);
	for (i = 0; i < 3; i++)
		swqe->inline_send_data.data_and_padding[i] = cpu_to_be32(data[i]);
#endif
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_swqe_seg_atomic_set() - fill in the operands of an atomic operation.
 * @swqe: the segment
 * @swap_or_add_data: what is stored or added
 * @compare_data: what a compare and swap compares with
 */
static inline flexio_dev_status_t flexio_dev_swqe_seg_atomic_set(union flexio_dev_sqe_seg *swqe,
								 uint64_t swap_or_add_data,
								 uint64_t compare_data)
{
	swqe->atomic.swap_or_add_data = cpu_to_be64(swap_or_add_data);
	swqe->atomic.compare_data = cpu_to_be64(compare_data);
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_swqe_seg_shared_receive_set() - fill in the first segment of an entry of a linked list
 * of receive buffers.
 * @swqe: the segment
 * @next_wqe_index: the entry that follows
 * @signature: signature
 */
static inline flexio_dev_status_t
flexio_dev_swqe_seg_shared_receive_set(union flexio_dev_sqe_seg *swqe, uint16_t next_wqe_index,
				       uint8_t signature)
{
	struct flexio_dev_wqe_shared_receive_seg seg = {{0}, 0, 0, {0}};

	seg.next_wqe_index = cpu_to_be16(next_wqe_index);
	seg.signature = signature;
	swqe->shared_receive = seg;
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_swqe_seg_transpose_set() - fill in the shape of a matrix to transpose.
 * @swqe: the segment
 * @element_size: bytes of an element
 * @num_of_cols: columns, up to 127
 * @num_of_rows: rows, up to 127
 */
static inline flexio_dev_status_t flexio_dev_swqe_seg_transpose_set(union flexio_dev_sqe_seg *swqe,
								    uint8_t element_size,
								    uint8_t num_of_cols,
								    uint8_t num_of_rows)
{
	struct flexio_dev_wqe_transpose_seg seg = {{0}, 0, 0, 0, 0, 0, {0}};

	seg.element_size = element_size;
	seg.num_of_cols = num_of_cols & 0x7f;
	seg.num_of_rows = num_of_rows & 0x7f;
	swqe->transpose = seg;
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_dbr_rq_inc_pi() - give the adapter one more entry of a receive queue.
 * @rq_dbr: the queue's doorbell record, whose first word counts entries, big-endian, 16 bits
 */
static inline flexio_dev_status_t flexio_dev_dbr_rq_inc_pi(uint32_t *rq_dbr)
{
	const uint32_t pi = be32_to_cpu(rq_dbr[0]);

	*(volatile uint32_t *)&rq_dbr[0] = cpu_to_be32((pi + 1) & 0xffff);
	return FLEXIO_DEV_STATUS_SUCCESS;
}

/**
 * flexio_dev_dbr_cq_set_ci() - tell the adapter which completions were consumed.
 * @cq_dbr: the CQ's doorbell record, whose first word counts them, big-endian, 24 bits
 * @ci: counter of the completions that were consumed
 */
static inline flexio_dev_status_t flexio_dev_dbr_cq_set_ci(uint32_t *cq_dbr, uint32_t ci)
{
	*(volatile uint32_t *)&cq_dbr[0] = cpu_to_be32(ci & 0xffffff);
	return FLEXIO_DEV_STATUS_SUCCESS;
}

#ifdef __cplusplus
}
#endif

#include <libflexio-dev/flexio_dev_queue_2410.h>
#include <libflexio-dev/flexio_dev_queue_2501.h>

#endif
