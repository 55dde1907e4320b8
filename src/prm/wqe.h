/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queue entries as ConnectX reads them from the rings of a QP or SRQ.  All fields are
 * big-endian.  A send WQE is a control segment followed by segments that the opcode and the QP's
 * transport imply; its length is in 16-byte units (ds), its place in the ring in 64-byte blocks.
 */
#pragma once

#include <assert.h>

#include "base/compiler.h"
#include "base/endian.h"

#define WQE_BLOCK     64u   /* send ring granularity, bytes */
#define WQE_UNIT      16u   /* unit of ds */
#define WQE_MAX_BYTES 1024u /* max_sq_desc_sz */

enum wqe_opcode {
	WQE_OP_NOP = 0x00,
	WQE_OP_SEND_INVAL = 0x01,
	WQE_OP_RDMA_WRITE = 0x08,
	WQE_OP_RDMA_WRITE_IMM = 0x09,
	WQE_OP_SEND = 0x0a,
	WQE_OP_SEND_IMM = 0x0b,
	WQE_OP_TSO = 0x0e,
	WQE_OP_WAIT = 0x0f,
	WQE_OP_RDMA_READ = 0x10,
	WQE_OP_ATOMIC_CS = 0x11,
	WQE_OP_ATOMIC_FA = 0x12,
	WQE_OP_ATOMIC_MASKED_CS = 0x14,
	WQE_OP_ATOMIC_MASKED_FA = 0x15,
	WQE_OP_RECEIVE_EN = 0x16,
	WQE_OP_SEND_EN = 0x17,
	WQE_OP_BIND_MW = 0x18,
	WQE_OP_LOCAL_INVAL = 0x1b,
	WQE_OP_SET_PSV = 0x20,
	WQE_OP_UMR = 0x25,
	WQE_OP_ENHANCED_MPSW = 0x29, /* Ethernet: each data segment is a frame */
	WQE_OP_MMO = 0x2f,
	WQE_OP_LOCAL_MMO = 0x32, /* for device code */
};

/* The name for traces. */
static inline const char *wqe_opcode_name(uint8_t opcode)
{
	static const char *const names[] = {
		[WQE_OP_NOP] = "NOP",
		[WQE_OP_SEND_INVAL] = "SEND_INVAL",
		[WQE_OP_RDMA_WRITE] = "RDMA_WRITE",
		[WQE_OP_RDMA_WRITE_IMM] = "RDMA_WRITE_IMM",
		[WQE_OP_SEND] = "SEND",
		[WQE_OP_SEND_IMM] = "SEND_IMM",
		[WQE_OP_TSO] = "TSO",
		[WQE_OP_WAIT] = "WAIT",
		[WQE_OP_RDMA_READ] = "RDMA_READ",
		[WQE_OP_ATOMIC_CS] = "ATOMIC_CS",
		[WQE_OP_ATOMIC_FA] = "ATOMIC_FA",
		[WQE_OP_ATOMIC_MASKED_CS] = "ATOMIC_MASKED_CS",
		[WQE_OP_ATOMIC_MASKED_FA] = "ATOMIC_MASKED_FA",
		[WQE_OP_RECEIVE_EN] = "RECEIVE_EN",
		[WQE_OP_SEND_EN] = "SEND_EN",
		[WQE_OP_BIND_MW] = "BIND_MW",
		[WQE_OP_LOCAL_INVAL] = "LOCAL_INVAL",
		[WQE_OP_SET_PSV] = "SET_PSV",
		[WQE_OP_UMR] = "UMR",
		[WQE_OP_ENHANCED_MPSW] = "ENHANCED_MPSW",
		[WQE_OP_MMO] = "MMO",
		[WQE_OP_LOCAL_MMO] = "LOCAL_MMO",
	};
	const char *name = (unsigned)opcode < array_size(names) ? names[opcode] : NULL;

	return name ? name : "reserved";
}

struct wqe_ctrl {
	be32 opmod_idx_opcode; /* opmod 31:24, block index 23:8, opcode 7:0 */
	be32 qpn_ds;	       /* qpn 31:8, ds 6:0: libmlx5 makes WQEs of 64 units */
	uint8_t signature;
	uint8_t dci_stream_hi;
	uint8_t dci_stream_lo;
	uint8_t fm_ce_se;
	be32 imm; /* immediate data, invalidated key or UMR mkey */
};

/* Bits of fm_ce_se. */
#define WQE_CTRL_SOLICITED 0x02u
/* Completion mode, two bits.  0: a CQE only on an error. */
#define WQE_CTRL_CE_MASK	       0x0cu
#define WQE_CTRL_CE_FIRST_ERROR	       0x04u /* only on the first error of the queue */
#define WQE_CTRL_CE_ALWAYS	       0x08u
#define WQE_CTRL_CE_EVENT	       0x0cu /* always, and with an event */
#define WQE_CTRL_FENCE_MASK	       0xe0u
#define WQE_CTRL_FENCE_INITIATOR_SMALL 0x20u
#define WQE_CTRL_FENCE_STRONG	       0x60u /* wait for all reads, atomics and UMRs before this */
#define WQE_CTRL_FENCE		       0x80u /* IBV_SEND_FENCE */

struct wqe_raddr {
	be64 va;
	be32 rkey;
	be32 reserved;
};

struct wqe_atomic {
	be64 swap_add;
	be64 compare;
};

/* Behind the remote address of WQE_OP_ATOMIC_MASKED_*: operands of 4 or 8 bytes.  A set bit of a
 * boundary is the highest one of a field, which no carry leaves. */
#define WQE_OPMOD_ATOMIC_4 0x08u
#define WQE_OPMOD_ATOMIC_8 0x09u

struct wqe_data {
	be32 byte_count; /* 0 means WQE_DATA_ZERO in a data pointer segment */
	be32 lkey;
	be64 addr;
};

#define WQE_DATA_ZERO	    0x80000000u
#define WQE_DATA_INLINE	    0x80000000u
#define WQE_DATA_INLINE_LEN 0x000003ffu
#define WQE_DATA_LKEY_END   0x00000100u /* ends a receive scatter list */

/* Datagram segment: the address vector of UD (48 bytes, or the first 16 without GRH). */
struct wqe_av {
	be64 dc_key_or_qkey;  /* UD: qkey in the upper 32 bits */
	be32 dqp_dct;	      /* bit 31: extended (48-byte) form; 23:0 destination */
	uint8_t stat_rate_sl; /* rate 7:4, sl 3:0; RoCE: udp_sport or rlid below */
	uint8_t fl_mlid;      /* bit 7: loop back; source path bits */
	be16 rlid;	      /* destination LID, or UDP source port on RoCE */
	uint8_t reserved0[4];
	uint8_t rmac[6]; /* RoCE destination MAC */
	uint8_t tclass;
	uint8_t hop_limit;
	be32 grh_gid_fl; /* bit 30: GRH present; gid index 27:20; flow label 19:0 */
	uint8_t rgid[16];
};

#define WQE_AV_EXTENDED 0x80000000u
#define WQE_AV_GRH	0x40000000u

/* The segment in front of the scatter list of an SRQ WQE; it links the free list. */
struct wqe_srq_next {
	uint8_t reserved0[2];
	be16 next_wqe_index;
	uint8_t signature;
	uint8_t reserved1[11];
};

/* XRC: the destination SRQ, right after the control segment. */
struct wqe_xrc {
	be32 xrc_srqn;
	uint8_t reserved[12];
};

/* A memory-to-memory operation.  Its WQE has a control segment, this, and data segments for source
 * and destination. */
struct wqe_mmo {
	be32 control;
	be32 opaque_lkey; /* where operations other than the copy leave a report */
	be64 opaque_addr;
};

#define WQE_OPMOD_MMO_DMA	0x01u
#define WQE_OPMOD_MMO_TRANSPOSE 0x00u /* of WQE_OP_LOCAL_MMO */

/* Stands in place of wqe_mmo: the shape of the source, whose rows lie one behind the other. */
struct wqe_transpose {
	uint8_t reserved0[3];
	uint8_t element_bytes;
	uint8_t reserved1;
	uint8_t columns; /* 6:0 */
	uint8_t reserved2;
	uint8_t rows; /* 6:0 */
	uint8_t reserved3[8];
};

#define WQE_TRANSPOSE_MASK 0x7fu

/* Stands behind the control segment.  WAIT waits for completions of a queue (WQE_OPMOD_WAIT_INDEX);
 * SEND_EN enables a send queue up to a block. */
struct wqe_sync {
	be32 reserved[2];
	be32 index;
	be32 number; /* the queue's */
};

/* Stands in a WAIT for a word of memory or for the time. */
struct wqe_wait {
	be32 operation; /* enum wqe_wait_condition */
	be32 lkey;	/* key of the memory */
	be64 addr;
	be64 value;
	be64 mask;
};

#define WQE_OPMOD_WAIT_INDEX 0x00u
#define WQE_OPMOD_WAIT_DATA  0x01u
#define WQE_OPMOD_WAIT_TIME  0x02u

/* How the value must compare with the word; cyclic: both are serial numbers of the mask's width. */
enum wqe_wait_condition {
	WQE_WAIT_ALWAYS = 0,
	WQE_WAIT_EQUAL = 1,
	WQE_WAIT_BIGGER = 2,
	WQE_WAIT_SMALLER = 3,
	WQE_WAIT_CYCLIC_BIGGER = 4,
	WQE_WAIT_CYCLIC_SMALLER = 5,
	WQE_WAIT_INVERT = 0x10, /* the opposite */
};

/* SET_PSV: stands behind the control segment. */
struct wqe_set_psv {
	be32 psv_index; /* 23:0 */
	be16 syndrome;
	uint8_t reserved[2];
	be64 transient_signature;
};

#define PSV_INDEX_MASK 0xffffffu

static_assert(sizeof(struct wqe_set_psv) == 16, "PSV segment");
static_assert(sizeof(struct wqe_ctrl) == 16, "control segment");
static_assert(sizeof(struct wqe_raddr) == 16, "remote address segment");
static_assert(sizeof(struct wqe_atomic) == 16, "atomic segment");
static_assert(sizeof(struct wqe_data) == 16, "data segment");
static_assert(sizeof(struct wqe_av) == 48, "address vector");
static_assert(sizeof(struct wqe_srq_next) == 16, "SRQ next segment");
static_assert(sizeof(struct wqe_mmo) == 16, "memory-to-memory segment");
static_assert(sizeof(struct wqe_transpose) == 16, "transpose segment");
static_assert(sizeof(struct wqe_sync) == 16, "synchronisation segment");
static_assert(sizeof(struct wqe_wait) == 32, "wait segment");

static inline uint8_t wqe_opcode(const struct wqe_ctrl *c)
{
	return (uint8_t)be32_get(c->opmod_idx_opcode);
}

static inline uint8_t wqe_opmod(const struct wqe_ctrl *c)
{
	return (uint8_t)(be32_get(c->opmod_idx_opcode) >> 24);
}

/* The stream of a DCI that the request belongs to. */
static inline uint16_t wqe_stream(const struct wqe_ctrl *c)
{
	return (uint16_t)(c->dci_stream_hi << 8 | c->dci_stream_lo);
}

static inline uint16_t wqe_index(const struct wqe_ctrl *c)
{
	return (uint16_t)(be32_get(c->opmod_idx_opcode) >> 8);
}

static inline uint32_t wqe_ds(const struct wqe_ctrl *c)
{
	return be32_get(c->qpn_ds) & 0x7f;
}

static inline uint32_t wqe_qpn(const struct wqe_ctrl *c)
{
	return be32_get(c->qpn_ds) >> 8;
}

/* Doorbell record of a QP: two big-endian counters, which software writes. */
#define DBREC_BYTES 8u
enum { DBREC_RECV = 0, DBREC_SEND = 1 };
/* Doorbell record of a CQ. */
enum { DBREC_CQ_CI = 0, DBREC_CQ_ARM = 1 };
#define DBREC_CQ_ARM_SOLICITED (1u << 24)
#define DBREC_CQ_ARM_SN(w)     (((w) >> 28) & 3)
#define DBREC_CQ_ARM_CI(w)     ((w)&0xffffffu)
/* The device writes this into the arm record at creation, because the first real value is zero. */
#define DBREC_CQ_ARM_NEVER 0xffffffffu
