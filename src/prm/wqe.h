/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work queue entries as ConnectX reads them from the rings of a QP or SRQ.  All fields are
 * big-endian.  A send WQE is a control segment followed by segments that the opcode and the QP's
 * transport imply; its length is in 16-byte units (ds), its place in the ring in 64-byte blocks.
 */
#pragma once

#include <assert.h>
#include <stddef.h>

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

/*
 * The UMR work request consists of a control segment, this UMR control segment, a memory key
 * context, and the list of translation entries inline, padded to 64 bytes.  mkey_mask says which
 * fields of the key's context change; the device ignores the others.
 */

struct umr_ctrl {
	uint8_t flags;
	uint8_t reserved0[3];
	be16 klm_octowords;
	be16 bsf_octowords; /* or the offset into the translation list, bits 15:0 */
	be64 mkey_mask;
	be32 offset_47_16;
	uint8_t reserved1[28];
};

/* umr_ctrl.flags */
#define UMR_INLINE	       0x80u /* the entries follow in the WQE */
#define UMR_CHECK_NOT_FREE     0x40u /* change the key only if it is not free */
#define UMR_CHECK_FREE	       0x20u /* change the key only if it is free */
#define UMR_TRANSLATION_OFFSET 0x10u /* the WQE writes only a part of the list */
#define UMR_CHECK_QPN	       0x08u /* change the key only if it belongs to this QP */

#define UMR_FLAGS 0xf8u

/* umr_ctrl.mkey_mask */
#define UMR_MASK_LEN		     (1ull << 0)
#define UMR_MASK_PAGE_SIZE	     (1ull << 1)
#define UMR_MASK_START_ADDR	     (1ull << 6)
#define UMR_MASK_PD		     (1ull << 7)
#define UMR_MASK_REMOTE_INVALIDATE   (1ull << 8)
#define UMR_MASK_SIG_ERR	     (1ull << 9)
#define UMR_MASK_BSF_ENABLE	     (1ull << 12)
#define UMR_MASK_MKEY		     (1ull << 13)
#define UMR_MASK_QPN		     (1ull << 14)
#define UMR_MASK_ACCESS_LOCAL_READ   (1ull << 17)
#define UMR_MASK_ACCESS_LOCAL_WRITE  (1ull << 18)
#define UMR_MASK_ACCESS_REMOTE_READ  (1ull << 19)
#define UMR_MASK_ACCESS_REMOTE_WRITE (1ull << 20)
#define UMR_MASK_ACCESS_ATOMIC	     (1ull << 21)
#define UMR_MASK_SMALL_FENCE	     (1ull << 23)
#define UMR_MASK_RELAXED_WRITE	     (1ull << 25)
#define UMR_MASK_FREE		     (1ull << 29)
#define UMR_MASK_RELAXED_READ	     (1ull << 47)

/* The rights that a bind of a window sets.  A key also has the right to be read locally. */
#define UMR_MASK_ACCESS_WINDOW                                       \
	(UMR_MASK_ACCESS_LOCAL_WRITE | UMR_MASK_ACCESS_REMOTE_READ | \
	 UMR_MASK_ACCESS_REMOTE_WRITE | UMR_MASK_ACCESS_ATOMIC)
#define UMR_MASK_ACCESS (UMR_MASK_ACCESS_WINDOW | UMR_MASK_ACCESS_LOCAL_READ)

struct umr_mkey_context {
	uint8_t free;
	uint8_t reserved1;
	uint8_t access;
	uint8_t sf;
	be32 qpn_mkey; /* qpn 31:8, variant of the key 7:0 */
	be32 reserved2;
	be32 flags_pd;
	be64 start_addr;
	be64 len;
	be32 bsf_octword_size;
	be32 reserved3[4];
	be32 translations_octword_size;
	uint8_t reserved4[3];
	uint8_t log_page_size;
	be32 reserved5;
};

#define MKEY_CTX_FREE		     0x40u /* umr_mkey_context.free */
#define MKEY_CTX_ACCESS_LOCAL_READ   0x04u /* umr_mkey_context.access */
#define MKEY_CTX_ACCESS_LOCAL_WRITE  0x08u
#define MKEY_CTX_ACCESS_REMOTE_READ  0x10u
#define MKEY_CTX_ACCESS_REMOTE_WRITE 0x20u
#define MKEY_CTX_ACCESS_ATOMIC	     0x40u
#define MKEY_CTX_BSF_ENABLE	     (1u << 30) /* umr_mkey_context.flags_pd */
#define MKEY_CTX_REMOTE_INVALIDATE   (1u << 24)
#define MKEY_CTX_PD		     0xffffffu
#define MKEY_CTX_LOG_PAGE_SIZE	     0x1fu /* umr_mkey_context.log_page_size */

/* A translation entry: byte_count bytes at va under another key. */
struct umr_klm {
	be32 byte_count;
	be32 mkey;
	be64 va;
};

/* A list that begins with this header instead of a KLM describes a repeating cycle of pieces. */
struct umr_stride_header {
	be32 byte_count; /* of one cycle */
	be32 op;	 /* UMR_STRIDED, which is no valid key */
	be32 repeat_count;
	be16 reserved;
	be16 entries; /* number of entries that follow */
};

#define UMR_STRIDED 0x400u

struct umr_stride {
	be16 stride; /* bytes from one cycle to the next */
	be16 byte_count;
	be32 mkey;
	be64 va;
};

static_assert(sizeof(struct umr_ctrl) == 48, "UMR control segment");
static_assert(sizeof(struct umr_mkey_context) == 64, "memory key context segment");
static_assert(sizeof(struct umr_klm) == 16, "KLM");
static_assert(sizeof(struct umr_stride_header) == 16, "strided list");
static_assert(sizeof(struct umr_stride) == 16, "entry of a strided list");

/*
 * What Ethernet queues add to WQEs and CQEs: the segment in front of a frame's data, and the bits
 * of a receive CQE that describe the frame.
 */

/*
 * Follows the control segment.  The segment itself holds the first inline_hdr_sz bytes of the
 * frame, from inline_hdr_start on.  They may go on beyond the struct, padded to whole units.
 */
struct wqe_eth {
	be32 reserved0;
	uint8_t cs_flags;
	uint8_t swp_flags; /* which kinds the headers are whose offsets the program gives */
	be16 mss;	   /* TSO: payload bytes of each frame */
	be32 reserved2;
	be16 inline_hdr_sz;
	uint8_t inline_hdr_start[2];
};

#define WQE_ETH_L3_CSUM 0x40u /* fill in the IPv4 header checksum */
#define WQE_ETH_L4_CSUM 0x80u /* fill in the TCP or UDP checksum */
/* The same for what is in a tunnel. */
#define WQE_ETH_L3_INNER_CSUM 0x10u
#define WQE_ETH_L4_INNER_CSUM 0x20u
#define WQE_ETH_CSUM	      0xf0u /* any of them */
#define WQE_ETH_TRAILER_ALIGN 0x02u /* ignored */

static_assert(sizeof(struct wqe_eth) == 16, "Ethernet segment");
static_assert(offsetof(struct wqe_eth, inline_hdr_start) == 14, "inline header");

/* hds_ip_ext of a receive CQE: the headers that are present and sound. */
#define CQE_ETH_L2_OK 0x01u
#define CQE_ETH_L3_OK 0x02u
#define CQE_ETH_L4_OK 0x04u

/* l4_hdr_type_etc: VLAN tag stripped 0, L3 type 3:2, L4 type 6:4. */
#define CQE_ETH_CVLAN_STRIPPED 0x01u
#define CQE_ETH_L3_SHIFT       2
#define CQE_ETH_L4_SHIFT       4
enum cqe_eth_l3 { CQE_ETH_L3_NONE, CQE_ETH_L3_IPV6, CQE_ETH_L3_IPV4 };
enum cqe_eth_l4 { CQE_ETH_L4_NONE, CQE_ETH_L4_TCP, CQE_ETH_L4_UDP };

/* rss_hash_type: what the device hashed.  Zero: it hashed nothing, and there is no hash result. */
#define CQE_RSS_IPV4	 0x01u
#define CQE_RSS_IPV6	 0x02u
#define CQE_RSS_L4_SHIFT 4
enum cqe_rss_l4 { CQE_RSS_L4_NONE, CQE_RSS_L4_TCP, CQE_RSS_L4_UDP };

#define FLOW_TAG_MASK 0xffffffu /* in sop_drop_qpn of a receive CQE */
