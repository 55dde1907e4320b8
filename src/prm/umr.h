/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The UMR work request consists of a control segment, this UMR control segment, a memory key
 * context, and the list of translation entries inline, padded to 64 bytes.  mkey_mask says which
 * fields of the key's context change; the device ignores the others.
 */
#pragma once

#include <assert.h>

#include "base/endian.h"

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
