/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of receive memory pools (shared receive queues): CREATE_RMP, MODIFY_RMP, QUERY_RMP; the
 * context, and the work queue in it. */
#pragma once

#include "prm/cmd.h"

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
