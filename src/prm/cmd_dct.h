/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE_DCT and QUERY_DCT: the targets of dynamically connected transport. */
#pragma once

#include "prm/cmd.h"

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
