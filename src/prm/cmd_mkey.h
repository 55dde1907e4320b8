/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of memory keys, and of the signature values that their errors go to. */
#pragma once

#include "prm/cmd.h"

/* Commands of memory keys: CREATE_MKEY, QUERY_MKEY, and the memory key context. */

#define CREATE_MKEY_IN_BYTES	0x110u
#define CREATE_MKEY_CONTEXT	0x10u		     /* byte */
#define CREATE_MKEY_LIST_ACTUAL PRM_FIELD(0x300, 32) /* number of octowords that follow */
#define CREATE_MKEY_UMEM	PRM_FIELD(0x320, 32)
#define CREATE_MKEY_OFFSET	PRM_FIELD(0x340, 64)
#define CREATE_MKEY_BSF_ACTUAL	PRM_FIELD(0x380, 32)
#define CREATE_MKEY_LIST	0x110u /* byte */

#define QUERY_MKEY_OUT_BYTES 0x50u
#define QUERY_MKEY_CONTEXT   0x10u /* byte */

#define MKC_BYTES	      0x40u
#define MKC_FREE	      PRM_FIELD(0x001, 1)
#define MKC_ACCESS_MODE_HIGH  PRM_FIELD(0x003, 3)
#define MKC_RELAXED_WRITE     PRM_FIELD(0x00d, 1)
#define MKC_UMR		      PRM_FIELD(0x010, 1)
#define MKC_ATOMIC	      PRM_FIELD(0x011, 1)
#define MKC_REMOTE_WRITE      PRM_FIELD(0x012, 1)
#define MKC_REMOTE_READ	      PRM_FIELD(0x013, 1)
#define MKC_LOCAL_WRITE	      PRM_FIELD(0x014, 1)
#define MKC_LOCAL_READ	      PRM_FIELD(0x015, 1)
#define MKC_ACCESS_MODE_LOW   PRM_FIELD(0x016, 2)
#define MKC_QPN		      PRM_FIELD(0x020, 24)
#define MKC_VARIANT	      PRM_FIELD(0x038, 8)
#define MKC_LENGTH64	      PRM_FIELD(0x060, 1)
#define MKC_BSF		      PRM_FIELD(0x061, 1)
#define MKC_SIGERR_COUNT      PRM_FIELD(0x065, 1)
#define MKC_REMOTE_INVALIDATE PRM_FIELD(0x067, 1)
#define MKC_PD		      PRM_FIELD(0x068, 24)
#define MKC_START	      PRM_FIELD(0x080, 64)
#define MKC_LENGTH	      PRM_FIELD(0x0c0, 64)
#define MKC_BSF_OCTOWORDS     PRM_FIELD(0x100, 32)
#define MKC_LIST_OCTOWORDS    PRM_FIELD(0x1a0, 32)
#define MKC_LOG_ENTRY_BYTES   PRM_FIELD(0x1db, 5)
#define MKC_CRYPTO	      PRM_FIELD(0x1e3, 2)

/* MKC_ACCESS_MODE_HIGH << 2 | MKC_ACCESS_MODE_LOW */
enum mkc_access_mode { MKC_MODE_PA, MKC_MODE_MTT, MKC_MODE_KLM, MKC_MODE_KSM };

/* Commands of protected signature values: CREATE_PSV, which makes up to four at once. */

#define CREATE_PSV_COUNT     PRM_FIELD(0x40, 4)
#define CREATE_PSV_PD	     PRM_FIELD(0x48, 24)
#define CREATE_PSV_OUT_BYTES 0x20u
#define CREATE_PSV_INDEX     PRM_FIELD(0x88, 24) /* of the first PSV */
