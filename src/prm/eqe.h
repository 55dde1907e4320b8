/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queue entries have 64 bytes, of which DEVX event channels carry a copy. */
#pragma once

#include "prm/field.h"

#define EQE_BYTES 64u

#define EQE_TYPE      PRM_FIELD(0x008, 8) /* enum eqe_type */
#define EQE_SUB_TYPE  PRM_FIELD(0x018, 8)
#define EQE_QUEUE     PRM_FIELD(0x1a0, 8) /* of queue events: enum eqe_queue */
#define EQE_QUEUE_NR  PRM_FIELD(0x1c8, 24)
#define EQE_COMP_CQN  PRM_FIELD(0x1c8, 24) /* of EQE_COMP */
#define EQE_CQ_ERR_NR PRM_FIELD(0x108, 24) /* of EQE_CQ_ERROR */
#define EQE_CQ_ERR    PRM_FIELD(0x158, 8)
#define EQE_PORT      PRM_FIELD(0x140, 4) /* of EQE_PORT_CHANGE */
#define EQE_OWNER     PRM_FIELD(0x1ff, 1)

#define EQE_OBJECT_TYPE PRM_FIELD(0x110, 16) /* of EQE_OBJECT_CHANGE */
#define EQE_OBJECT_ID	PRM_FIELD(0x120, 32)

enum eqe_type {
	EQE_COMP = 0x00,
	EQE_PATH_MIG = 0x01,
	EQE_COMM_EST = 0x02,
	EQE_SQ_DRAINED = 0x03,
	EQE_CQ_ERROR = 0x04,
	EQE_WQ_CATAS_ERROR = 0x05,
	EQE_PATH_MIG_FAILED = 0x07,
	EQE_PORT_CHANGE = 0x09,
	EQE_WQ_INVAL_REQ_ERROR = 0x10,
	EQE_WQ_ACCESS_ERROR = 0x11,
	EQE_SRQ_CATAS_ERROR = 0x12,
	EQE_SRQ_LAST_WQE = 0x13,
	EQE_SRQ_RQ_LIMIT = 0x14,
	EQE_XRQ_ERROR = 0x18,
	EQE_DCT_DRAINED = 0x1c,
	EQE_DCT_KEY_VIOLATION = 0x1d,
	EQE_OBJECT_CHANGE = 0x27,
};

enum eqe_port_change {
	EQE_PORT_DOWN = 1,
	EQE_PORT_ACTIVE = 4,
	EQE_PORT_LID = 6,
	EQE_PORT_PKEY = 7,
	EQE_PORT_GUID = 8,
	EQE_PORT_CLIENT_REREGISTER = 9,
};
enum eqe_cq_error { EQE_CQ_OVERRUN = 1, EQE_CQ_ACCESS = 2 };
enum eqe_queue { EQE_QUEUE_QP = 0, EQE_QUEUE_RQ = 1, EQE_QUEUE_SQ = 2, EQE_QUEUE_DCT = 6 };
