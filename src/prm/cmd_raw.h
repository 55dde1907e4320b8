/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands for the parts of raw packet queues: transport domains, TISs and send queues, receive
 * queues, tables of them and TIRs.  The work queue in the queues' contexts is that of cmd_rmp.h.
 */
#pragma once

#include "prm/cmd_rmp.h"

/* Inputs of CREATE and MODIFY, and the answer of QUERY, hold each context at this place. */
#define RAW_CONTEXT	   0x20u	      /* byte */
#define RAW_CURRENT_STATE  PRM_FIELD(0x40, 4) /* MODIFY_RQ, MODIFY_SQ: the state that it has now */
#define RAW_MODIFY_BITMASK PRM_FIELD(0x80, 64)

/* ---- transport interface send ---- */

#define TISC_BYTES	    0xa0u
#define TIS_BYTES	    (RAW_CONTEXT + TISC_BYTES)
#define QUERY_TIS_CONTEXT   0x10u /* byte */
#define QUERY_TIS_OUT_BYTES (QUERY_TIS_CONTEXT + TISC_BYTES)
#define TISC_TLS	    PRM_FIELD(0x001, 1)
#define TISC_PRIO	    PRM_FIELD(0x00c, 4)
#define TISC_DOMAIN	    PRM_FIELD(0x128, 24)
#define TISC_UNDERLAY	    PRM_FIELD(0x148, 24)
#define TISC_PD		    PRM_FIELD(0x168, 24)
#define MODIFY_TIS_PRIO	    0x1u

/* ---- queues ---- */

enum raw_state { RAW_STATE_RST = 0x0, RAW_STATE_RDY = 0x1, RAW_STATE_ERR = 0x3 };

#define SQC_BYTES	 0xf0u
#define SQ_BYTES	 (RAW_CONTEXT + SQC_BYTES)
#define SQC_RESERVED_KEY PRM_FIELD(0x000, 1)
#define SQC_CD_MASTER	 PRM_FIELD(0x001, 1)
#define SQC_FRE		 PRM_FIELD(0x002, 1)
#define SQC_FLUSH	 PRM_FIELD(0x003, 1) /* in error, posted requests complete with one */
#define SQC_MULTI_PACKET PRM_FIELD(0x004, 1)
#define SQC_INLINE_MODE	 PRM_FIELD(0x005, 3)
#define SQC_STATE	 PRM_FIELD(0x008, 4)
#define SQC_REG_UMR	 PRM_FIELD(0x00c, 1)
#define SQC_SWP		 PRM_FIELD(0x00d, 1)
#define SQC_HAIRPIN	 PRM_FIELD(0x00e, 1)
#define SQC_NON_WIRE	 PRM_FIELD(0x00f, 1)
#define SQC_USER_INDEX	 PRM_FIELD(0x028, 24)
#define SQC_CQN		 PRM_FIELD(0x048, 24)
#define SQC_PACING	 PRM_FIELD(0x0f0, 16)
#define SQC_TIS_COUNT	 PRM_FIELD(0x100, 16)
#define SQC_TIS		 PRM_FIELD(0x168, 24)
#define SQC_WQ		 0x30u /* byte */
#define WQ_UAR_PAGE	 PRM_FIELD(0x068, 24)

#define RQC_BYTES	  0xf0u
#define RQ_BYTES	  (RAW_CONTEXT + RQC_BYTES)
#define RQC_RESERVED_KEY  PRM_FIELD(0x000, 1)
#define RQC_DELAY_DROP	  PRM_FIELD(0x001, 1)
#define RQC_SCATTER_FCS	  PRM_FIELD(0x002, 1)
#define RQC_KEEP_VLAN	  PRM_FIELD(0x003, 1) /* 0: the tag goes into the completion */
#define RQC_MEMORY	  PRM_FIELD(0x004, 4) /* enum rqc_memory */
#define RQC_STATE	  PRM_FIELD(0x008, 4)
#define RQC_FLUSH	  PRM_FIELD(0x00d, 1)
#define RQC_HAIRPIN	  PRM_FIELD(0x00e, 1)
#define RQC_USER_INDEX	  PRM_FIELD(0x028, 24)
#define RQC_CQN		  PRM_FIELD(0x048, 24)
#define RQC_RMP		  PRM_FIELD(0x088, 24)
#define RQC_WQ		  0x30u /* byte */
#define MODIFY_RQ_VLAN	  0x2u
#define MODIFY_RQ_COUNTER 0x8u

enum rqc_memory { RQC_INLINE = 0x0, RQC_OF_RMP = 0x1 };

/* ---- tables of receive queues ---- */

#define RQTC_FIXED_BYTES 0xf0u
#define RQT_FIXED_BYTES	 (RAW_CONTEXT + RQTC_FIXED_BYTES)
#define RQTC_LIST_TYPE	 PRM_FIELD(0x0a5, 3)
#define RQTC_MAX	 PRM_FIELD(0x0b0, 16)
#define RQTC_ACTUAL	 PRM_FIELD(0x0d0, 16)
#define RQTC_ENTRY(n)	 PRM_FIELD(0x788 + 32 * (n), 24)
#define RQTC_ENTRY_BYTES 4u
#define MODIFY_RQT_LIST	 0x1u

/* ---- transport interface receive ---- */

#define TIRC_BYTES	  0xf0u
#define TIR_BYTES	  (RAW_CONTEXT + TIRC_BYTES)
#define TIRC_INDIRECT	  PRM_FIELD(0x020, 4) /* enum tirc_dispatch */
#define TIRC_TLS	  PRM_FIELD(0x024, 1)
#define TIRC_MERGE	  PRM_FIELD(0x094, 4)
#define TIRC_RQN	  PRM_FIELD(0x0e8, 24)
#define TIRC_SYMMETRIC	  PRM_FIELD(0x100, 1)
#define TIRC_TUNNELED	  PRM_FIELD(0x102, 1)
#define TIRC_RQT	  PRM_FIELD(0x108, 24)
#define TIRC_HASH	  PRM_FIELD(0x120, 4) /* enum tirc_hash */
#define TIRC_SELF_BLOCK	  PRM_FIELD(0x126, 2)
#define TIRC_DOMAIN	  PRM_FIELD(0x128, 24)
#define TIRC_HASH_KEY	  0x28u /* byte */
#define TIRC_OUTER_L3	  PRM_FIELD(0x280, 1)
#define TIRC_OUTER_L4	  PRM_FIELD(0x281, 1)
#define TIRC_OUTER_FIELDS PRM_FIELD(0x282, 30)
#define TIRC_INNER	  PRM_FIELD(0x2a0, 32)

enum tirc_dispatch { TIRC_DIRECT = 0x0, TIRC_BY_TABLE = 0x1 };
enum tirc_hash { TIRC_HASH_NONE = 0x0, TIRC_HASH_TOEPLITZ = 0x2 };
enum tirc_self_block { TIRC_BLOCK_UNICAST = 0x1, TIRC_BLOCK_MULTICAST = 0x2 };
enum tirc_field {
	TIRC_SRC_IP = 1 << 0,
	TIRC_DST_IP = 1 << 1,
	TIRC_SRC_PORT = 1 << 2,
	TIRC_DST_PORT = 1 << 3,
};
/* In the answer of CREATE: the address by which steering entries lead to the TIR. */
#define TIR_OUT_ICM_63_40 PRM_FIELD(0x08, 24)
#define TIR_OUT_ICM_39_32 PRM_FIELD(0x40, 8)
#define TIR_OUT_ICM_31_0  PRM_FIELD(0x60, 32)

#define MODIFY_TIR_HASH	   0x04u
#define MODIFY_TIR_SELF_LB 0x10u
