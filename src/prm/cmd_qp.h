/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of queue pairs, of DC targets, of receive memory pools, and of the parts of raw packet
 * queues. */
#pragma once

#include "prm/cmd.h"

/* Commands of queue pairs: CREATE_QP, the transitions, QUERY_QP; the QP context and the address
 * path in it. */

#define CREATE_QP_IN_BYTES 0x110u
#define CREATE_QP_CONTEXT  0x18u /* byte */
#define CREATE_QP_OFFSET   PRM_FIELD(0x800, 64)
#define CREATE_QP_UMEM	   PRM_FIELD(0x840, 32)

/* All transitions have one layout; an extension of the context may make some longer. */
#define MODIFY_QP_IN_BYTES  0x110u
#define MODIFY_QP_EXT_BYTES 0x140u
#define MODIFY_QP_EXT	    PRM_FIELD(0x040, 1)	 /* qpc_ext: the extension follows */
#define MODIFY_QP_OPT	    PRM_FIELD(0x080, 32) /* enum qp_opt */
#define MODIFY_QP_CONTEXT   0x18u		 /* byte */
#define MODIFY_QP_OPT_95_32 PRM_FIELD(0x840, 64) /* enum qp_opt_ext */

#define QPC_EXT		   0x110u /* byte */
#define QPC_EXT_MMO	   PRM_FIELD(0x002, 1)
#define QPC_EXT_DCI_STREAM PRM_FIELD(0x010, 16)

#define SHORT_QP_IN_BYTES  CMD_IN_BYTES /* 2ERR, 2RST, QUERY */
#define QUERY_QP_OUT_BYTES 0x110u
#define QUERY_QP_CONTEXT   0x18u /* byte */

/* Names the optional attributes that a transition takes. */
enum qp_opt {
	QP_OPT_ALT_PATH = 1 << 0,
	QP_OPT_RRE = 1 << 1,
	QP_OPT_RAE = 1 << 2,
	QP_OPT_RWE = 1 << 3,
	QP_OPT_PKEY_INDEX = 1 << 4,
	QP_OPT_QKEY = 1 << 5,
	QP_OPT_RNR_TIMEOUT = 1 << 6,
	QP_OPT_PRIMARY_PATH = 1 << 7,
	QP_OPT_SRA_MAX = 1 << 8,
	QP_OPT_RRA_MAX = 1 << 9,
	QP_OPT_PM_STATE = 1 << 10,
	QP_OPT_DRAIN_SIGERR = 1 << 11, /* of INIT2INIT */
	QP_OPT_RETRY_COUNT = 1 << 12,
	QP_OPT_RNR_RETRY = 1 << 13,
	QP_OPT_ACK_TIMEOUT = 1 << 14,
	QP_OPT_LAG_TX_AFFINITY = 1 << 15,
	QP_OPT_PRIMARY_PORT = 1 << 16,
};

enum qp_opt_ext {
	QP_OPT_EXT_DCI_STREAM = 1 << 0,
	QP_OPT_EXT_QOS_GROUP = 1 << 1,
	QP_OPT_EXT_UDP_SPORT = 1 << 2,
	QP_OPT_EXT_MMO = 1 << 3, /* of INIT2INIT */
};

enum qpc_state {
	QPC_STATE_RST = 0x0,
	QPC_STATE_INIT = 0x1,
	QPC_STATE_RTR = 0x2,
	QPC_STATE_RTS = 0x3,
	QPC_STATE_SQERR = 0x4,
	QPC_STATE_SQD = 0x5,
	QPC_STATE_ERR = 0x6,
	QPC_STATE_SQ_DRAINING = 0x7,
};

enum qpc_service {
	QPC_SERVICE_RC = 0x0,
	QPC_SERVICE_UC = 0x1,
	QPC_SERVICE_UD = 0x2,
	QPC_SERVICE_XRC = 0x3,
	QPC_SERVICE_DCI = 0x5,
};

enum qpc_rq_type { QPC_RQ_REGULAR = 0x0, QPC_RQ_SRQ = 0x1, QPC_RQ_NONE = 0x3 };

enum qpc_pm_state { QPC_PM_ARMED = 0x0, QPC_PM_REARM = 0x1, QPC_PM_MIGRATED = 0x3 };

#define QPC_BYTES	    0xe8u
#define QPC_STATE	    PRM_FIELD(0x000, 4)
#define QPC_LAG_TX_PORT	    PRM_FIELD(0x004, 4)
#define QPC_SERVICE	    PRM_FIELD(0x008, 8)
#define QPC_ISOLATE	    PRM_FIELD(0x012, 1) /* has its own virtual lane or traffic class */
#define QPC_PM_STATE	    PRM_FIELD(0x013, 2)
#define QPC_OFFLOAD	    PRM_FIELD(0x018, 4)
#define QPC_WQ_SIGNATURE    PRM_FIELD(0x020, 1)
#define QPC_BLOCK_LB_MC	    PRM_FIELD(0x021, 1)
#define QPC_DRAIN_SIGERR    PRM_FIELD(0x025, 1)
#define QPC_PD		    PRM_FIELD(0x028, 24)
#define QPC_MTU		    PRM_FIELD(0x040, 3)
#define QPC_LOG_MSG_MAX	    PRM_FIELD(0x043, 5)
#define QPC_LOG_RQ_SIZE	    PRM_FIELD(0x049, 4)
#define QPC_LOG_RQ_STRIDE   PRM_FIELD(0x04d, 3) /* log2 of the stride in units of 16 bytes */
#define QPC_NO_SQ	    PRM_FIELD(0x050, 1)
#define QPC_LOG_SQ_SIZE	    PRM_FIELD(0x051, 4)
#define QPC_UAR_PAGE	    PRM_FIELD(0x068, 24)
#define QPC_USER_INDEX	    PRM_FIELD(0x088, 24)
#define QPC_LOG_PAGE_SIZE   PRM_FIELD(0x0a3, 5)
#define QPC_REMOTE_QPN	    PRM_FIELD(0x0a8, 24)
#define QPC_PRIMARY_PATH    0x18u /* byte */
#define QPC_ALT_PATH	    0x44u /* byte */
#define QPC_LOG_SRA_MAX	    PRM_FIELD(0x388, 3)
#define QPC_RETRY_COUNT	    PRM_FIELD(0x38d, 3)
#define QPC_RNR_RETRY	    PRM_FIELD(0x390, 3)
#define QPC_NEXT_SEND_PSN   PRM_FIELD(0x3c8, 24)
#define QPC_LOG_DCI_STREAMS PRM_FIELD(0x3e3, 5)
#define QPC_LOG_DCI_ERRORED PRM_FIELD(0x403, 5)
#define QPC_CQN_SEND	    PRM_FIELD(0x3e8, 24)
#define QPC_LAST_ACKED_PSN  PRM_FIELD(0x448, 24)
#define QPC_LOG_RRA_MAX	    PRM_FIELD(0x488, 3)
#define QPC_HW_SQ_COUNTER   PRM_FIELD(0x5a0, 16) /* the first block that was not executed */
#define QPC_SW_SQ_COUNTER   PRM_FIELD(0x5b0, 16) /* the last doorbell's */
#define QPC_RRE		    PRM_FIELD(0x490, 1)
#define QPC_RWE		    PRM_FIELD(0x491, 1)
#define QPC_RAE		    PRM_FIELD(0x492, 1)
#define QPC_PAGE_OFFSET	    PRM_FIELD(0x494, 6)
#define QPC_SLAVE_RECEIVE   PRM_FIELD(0x49d, 1) /* a master enables posted receives */
#define QPC_SLAVE_SEND	    PRM_FIELD(0x49e, 1) /* a master enables posted sends */
#define QPC_MASTER	    PRM_FIELD(0x49f, 1) /* waits, and enables others' requests */
#define QPC_MIN_RNR_NAK	    PRM_FIELD(0x4a3, 5)
#define QPC_NEXT_RECV_PSN   PRM_FIELD(0x4a8, 24)
#define QPC_XRCD	    PRM_FIELD(0x4c8, 24)
#define QPC_CQN_RECV	    PRM_FIELD(0x4e8, 24)
#define QPC_DBR_ADDR	    PRM_FIELD(0x500, 64)
#define QPC_QKEY	    PRM_FIELD(0x540, 32)
#define QPC_RQ_TYPE	    PRM_FIELD(0x565, 3)
#define QPC_SRQN	    PRM_FIELD(0x568, 24)
#define QPC_HW_SQ_WQEBB	    PRM_FIELD(0x5a0, 16)
#define QPC_SW_SQ_WQEBB	    PRM_FIELD(0x5b0, 16)
#define QPC_DBR_UMEM	    PRM_FIELD(0x720, 32)

/* Address path. */
#define ADS_LOOPBACK	PRM_FIELD(0x000, 1)
#define ADS_PKEY_INDEX	PRM_FIELD(0x010, 16)
#define ADS_GRH		PRM_FIELD(0x028, 1)
#define ADS_MLID	PRM_FIELD(0x029, 7) /* source path bits */
#define ADS_RLID	PRM_FIELD(0x030, 16)
#define ADS_ACK_TIMEOUT PRM_FIELD(0x040, 5)
#define ADS_SRC_INDEX	PRM_FIELD(0x048, 8)
#define ADS_STAT_RATE	PRM_FIELD(0x054, 4)
#define ADS_HOP_LIMIT	PRM_FIELD(0x058, 8)
#define ADS_TCLASS	PRM_FIELD(0x064, 8)
#define ADS_FLOW_LABEL	PRM_FIELD(0x06c, 20)
#define ADS_RGID	0x10u /* byte */
#define ADS_UDP_SPORT	PRM_FIELD(0x110, 16)
#define ADS_ETH_PRIO	PRM_FIELD(0x121, 3)
#define ADS_SL		PRM_FIELD(0x124, 4)
#define ADS_PORT	PRM_FIELD(0x128, 8)
#define ADS_RMAC	PRM_FIELD(0x130, 48)

/* CREATE_DCT and QUERY_DCT: the targets of dynamically connected transport. */

#define CREATE_DCT_IN_BYTES 0x50u
#define CREATE_DCT_CONTEXT  0x10u /* byte */
#define QUERY_DCT_OUT_BYTES 0x50u
#define QUERY_DCT_CONTEXT   0x10u /* byte */

#define DCTC_BYTES	 0x40u
#define DCTC_STATE	 PRM_FIELD(0x004, 4) /* 0: active */
#define DCTC_USER_INDEX	 PRM_FIELD(0x028, 24)
#define DCTC_CQN	 PRM_FIELD(0x048, 24)
#define DCTC_RRE	 PRM_FIELD(0x06c, 1)
#define DCTC_RWE	 PRM_FIELD(0x06d, 1)
#define DCTC_RAE	 PRM_FIELD(0x06e, 1)
#define DCTC_MIN_RNR_NAK PRM_FIELD(0x093, 5)
#define DCTC_SRQN	 PRM_FIELD(0x0a8, 24)
#define DCTC_PD		 PRM_FIELD(0x0c8, 24)
#define DCTC_TCLASS	 PRM_FIELD(0x0e0, 8)
#define DCTC_FLOW_LABEL	 PRM_FIELD(0x0ec, 20)
#define DCTC_ACCESS_KEY	 PRM_FIELD(0x100, 64)
#define DCTC_MTU	 PRM_FIELD(0x145, 3)
#define DCTC_PORT	 PRM_FIELD(0x148, 8)
#define DCTC_PKEY_INDEX	 PRM_FIELD(0x150, 16)
#define DCTC_SRC_INDEX	 PRM_FIELD(0x168, 8)
#define DCTC_HOP_LIMIT	 PRM_FIELD(0x178, 8)

/* Commands of receive memory pools (shared receive queues): CREATE_RMP, MODIFY_RMP, QUERY_RMP; the
 * context, and the work queue in it. */

#define CREATE_RMP_IN_BYTES 0x110u
#define CREATE_RMP_CONTEXT  0x20u /* byte */

#define MODIFY_RMP_IN_BYTES 0x110u
#define MODIFY_RMP_STATE    PRM_FIELD(0x40, 4)
#define MODIFY_RMP_BITMASK  PRM_FIELD(0x80, 64)
#define MODIFY_RMP_CONTEXT  0x20u /* byte */
#define MODIFY_RMP_LWM	    0x1u

#define QUERY_RMP_OUT_BYTES 0x110u
#define QUERY_RMP_CONTEXT   0x20u /* byte */

#define RMPC_BYTES     0xf0u
#define RMPC_STATE     PRM_FIELD(0x08, 4)
#define RMPC_BASIC_WQE PRM_FIELD(0x20, 1) /* cyclic, and the WQEs have no next segment */
#define RMPC_WQ	       0x30u		  /* byte */

enum rmpc_state { RMPC_STATE_RDY = 0x1, RMPC_STATE_ERR = 0x3 };

#define WQ_TYPE	       PRM_FIELD(0x000, 4) /* enum wq_type */
#define WQ_SIGNATURE   PRM_FIELD(0x004, 1)
#define WQ_PAGE_OFFSET PRM_FIELD(0x02b, 5)
#define WQ_LWM	       PRM_FIELD(0x030, 16)
#define WQ_PD	       PRM_FIELD(0x048, 24)
#define WQ_DBR_ADDR    PRM_FIELD(0x080, 64)
#define WQ_LOG_STRIDE  PRM_FIELD(0x10c, 4)
#define WQ_LOG_SIZE    PRM_FIELD(0x11b, 5)
#define WQ_DBR_UMEM    PRM_FIELD(0x140, 32)
#define WQ_UMEM	       PRM_FIELD(0x160, 32)
#define WQ_OFFSET      PRM_FIELD(0x180, 64)

enum wq_type { WQ_LINKED_LIST = 0x0, WQ_CYCLIC = 0x1 };

/*
 * Commands for the parts of raw packet queues: transport domains, TISs and send queues, receive
 * queues, tables of them and TIRs.  The work queue in the queues' contexts is that of receive memory
 * pools.
 */

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
