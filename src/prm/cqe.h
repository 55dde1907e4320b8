/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The 64-byte completion queue entry, or the second half of a 128-byte CQE.  It is big-endian.  The
 * owner bit in the last byte makes it visible, so the device stores that last, with release order.
 */
#pragma once

#include <assert.h>
#include <stddef.h>

#include "base/compiler.h"
#include "base/endian.h"

#define CQE_BYTES 64u

enum cqe_opcode {
	CQE_OP_REQ = 0x0,
	CQE_OP_RESP_WRITE_IMM = 0x1,
	CQE_OP_RESP_SEND = 0x2,
	CQE_OP_RESP_SEND_IMM = 0x3,
	CQE_OP_RESP_SEND_INV = 0x4,
	CQE_OP_RESIZE = 0x5,
	CQE_OP_NO_PACKET = 0x6,
	CQE_OP_SIG_ERR = 0xc,
	CQE_OP_REQ_ERR = 0xd,
	CQE_OP_RESP_ERR = 0xe,
	CQE_OP_INVALID = 0xf,
};

/* Error CQE syndromes. */
enum cqe_syndrome {
	CQE_SYN_LOCAL_LENGTH = 0x01,
	CQE_SYN_LOCAL_QP_OP = 0x02,
	CQE_SYN_LOCAL_PROT = 0x04,
	CQE_SYN_WR_FLUSH = 0x05,
	CQE_SYN_MW_BIND = 0x06,
	CQE_SYN_BAD_RESP = 0x10,
	CQE_SYN_LOCAL_ACCESS = 0x11,
	CQE_SYN_REM_INVAL_REQ = 0x12,
	CQE_SYN_REM_ACCESS = 0x13,
	CQE_SYN_REM_OP = 0x14,
	CQE_SYN_RETRY_EXC = 0x15,
	CQE_SYN_RNR_RETRY_EXC = 0x16,
	CQE_SYN_REM_ABORTED = 0x22,
};

/* The name for traces. */
static inline const char *cqe_syndrome_name(uint8_t syndrome)
{
	static const char *const names[] = {
		[CQE_SYN_LOCAL_LENGTH] = "LOCAL_LENGTH", [CQE_SYN_LOCAL_QP_OP] = "LOCAL_QP_OP",
		[CQE_SYN_LOCAL_PROT] = "LOCAL_PROT",	 [CQE_SYN_WR_FLUSH] = "WR_FLUSH",
		[CQE_SYN_MW_BIND] = "MW_BIND",		 [CQE_SYN_BAD_RESP] = "BAD_RESP",
		[CQE_SYN_LOCAL_ACCESS] = "LOCAL_ACCESS", [CQE_SYN_REM_INVAL_REQ] = "REM_INVAL_REQ",
		[CQE_SYN_REM_ACCESS] = "REM_ACCESS",	 [CQE_SYN_REM_OP] = "REM_OP",
		[CQE_SYN_RETRY_EXC] = "RETRY_EXC",	 [CQE_SYN_RNR_RETRY_EXC] = "RNR_RETRY_EXC",
		[CQE_SYN_REM_ABORTED] = "REM_ABORTED",
	};
	const char *name = (unsigned)syndrome < array_size(names) ? names[syndrome] : NULL;

	return name ? name : "unknown";
}

/*
 * The device makes the CQEs that it writes most of whole words, the form in which they go to the
 * ring: a processor that loads words from parts that it has just stored waits for the stores.
 */
struct cqe64 {
	union {
		struct {
			uint8_t outer_l3_tunneled;
			uint8_t reserved0;
			be16 wqe_id;
			uint8_t lro[8];
			be32 rss_hash_result;
			uint8_t rss_hash_type;
			uint8_t ml_path; /* destination path bits 6:0; bit 7: GRH (with tunnelling)
					  */
			uint8_t reserved1[2];
			be16 checksum;
			be16 slid;
			be32 flags_rqpn; /* sl 27:24; GRH/address type 29:28; remote qpn 23:0 */
			uint8_t hds_ip_ext;
			uint8_t l4_hdr_type_etc;
			be16 vlan_info;
			be32 srqn_uidx;
			be32 imm_inval_pkey;
			uint8_t app;
			uint8_t app_op;
			be16 app_info;
			be32 byte_cnt;
			be64 timestamp;
			be32 sop_drop_qpn; /* WQE opcode 31:24, qpn 23:0 */
			be16 wqe_counter;
			uint8_t signature;
			uint8_t op_own; /* opcode 7:4, solicited 1, owner 0 */
		};
		uint64_t word[8];
	};
};

/* op_own: set in each CQE in error, as in public dumps of them. */
#define CQE_SOLICITED 0x2

/* op_own 3:2 of a CQE that stands for several (adapter/queue/cq_internal.h). */
#define CQE_FORMAT_COMPRESSED 0x0cu
#define CQE_MINIS	      8u /* in place of one CQE */

/* What a compressed CQE says of receives; requests have a form of their own. */
enum cqe_mini_format {
	CQE_MINI_HASH = 0,
	CQE_MINI_CSUM = 1,
	CQE_MINI_FLOW_TAG = 2,
	CQE_MINI_CSUM_STRIDX = 3,
	CQE_MINI_L3L4 = 4,
};

struct cqe_mini {
	union {
		be32 hash;
		struct {
			union {
				be16 checksum;
				struct {
					uint8_t reserved0;
					uint8_t header_type;
				};
			};
			be16 stride_index;
		};
		struct {
			be16 wqe_counter;
			uint8_t opcode;
			uint8_t reserved1;
		};
	};
	be32 byte_cnt;
};

enum cqe_word {
	CQE_WORD_ADDRESS = 2, /* path bits, LID */
	CQE_WORD_PEER = 3,    /* flags_rqpn */
	CQE_WORD_INDEX = 4,   /* srqn_uidx, imm_inval_pkey */
	CQE_WORD_BYTES = 5,   /* byte_cnt */
	CQE_WORD_TIME = 6,
	CQE_WORD_LAST = 7, /* sop_drop_qpn, wqe_counter, signature, op_own */
};

static inline uint64_t cqe_last_word(uint32_t sop_drop_qpn, uint16_t wqe_counter, uint8_t op_own)
{
	return word_of(be32_of(sop_drop_qpn), be32_of((uint32_t)wqe_counter << 16 | op_own));
}

struct cqe64_err {
	uint8_t reserved0[32];
	be32 srqn;
	uint8_t reserved1[18];
	uint8_t vendor_err_synd;
	uint8_t syndrome;
	be32 s_wqe_opcode_qpn;
	be16 wqe_counter;
	uint8_t signature;
	uint8_t op_own;
};

/* CQE_OP_SIG_ERR: a key's data does not have the signature that it should have. */
struct cqe64_sig_err {
	uint8_t reserved0[16];
	be32 expected_trans_sig; /* T10-DIF guard 31:16, application tag 15:0; CRC32; CRC64 63:32 */
	be32 actual_trans_sig;
	be32 expected_ref_tag; /* or CRC64 31:0 */
	be32 actual_ref_tag;
	be16 syndrome;	  /* one of CQE_SIG_ERR_* */
	uint8_t sig_type; /* 0: a block's signature, 1: a transaction's */
	uint8_t domain;	  /* 0: wire, 1: memory */
	be32 mkey;
	be64 offset;
	uint8_t reserved1[8];
	be32 sop_drop_qpn;
	be16 wqe_counter;
	uint8_t signature;
	uint8_t op_own;
};

#define CQE_SIG_ERR_REF_TAG 0x0800u
#define CQE_SIG_ERR_APP_TAG 0x1000u
#define CQE_SIG_ERR_GUARD   0x2000u

#define CQE_FLAGS_GRH	   (1u << 28) /* flags_rqpn: GRH present */
#define CQE_FLAGS_SL_SHIFT 24
/* On Ethernet this stands in place of the SL, and says what the 40 bytes in front of a datagram
 * are.  Bit 3 says that a UDP header followed; Linux looks at bits 0 and 1 alone. */
enum cqe_roce_header { CQE_ROCE_GRH = 0, CQE_ROCE_IPV6 = 9, CQE_ROCE_IPV4 = 10 };

static_assert(sizeof(struct cqe64) == CQE_BYTES, "CQE");
static_assert(sizeof(struct cqe_mini) * CQE_MINIS == CQE_BYTES, "compressed CQEs");
static_assert(sizeof(struct cqe64_err) == CQE_BYTES, "error CQE");
static_assert(sizeof(struct cqe64_sig_err) == CQE_BYTES, "signature error CQE");
static_assert(offsetof(struct cqe64_sig_err, mkey) == 36, "mkey");
static_assert(offsetof(struct cqe64, flags_rqpn) == 0x18, "flags_rqpn");
static_assert(offsetof(struct cqe64, srqn_uidx) == 0x20, "srqn_uidx");
static_assert(offsetof(struct cqe64, byte_cnt) == 0x2c, "byte_cnt");
static_assert(offsetof(struct cqe64, wqe_counter) == 0x3c, "wqe_counter");
static_assert(offsetof(struct cqe64, timestamp) == CQE_WORD_TIME * 8, "timestamp");
static_assert(offsetof(struct cqe64, slid) == CQE_WORD_ADDRESS * 8 + 6, "slid");
static_assert(offsetof(struct cqe64, ml_path) == CQE_WORD_ADDRESS * 8 + 1, "ml_path");
static_assert(offsetof(struct cqe64_err, syndrome) == 0x37, "syndrome");
