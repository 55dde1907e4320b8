/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of protected signature values: CREATE_PSV, which makes up to four at once. */
#pragma once

#include "prm/cmd.h"

#define CREATE_PSV_COUNT     PRM_FIELD(0x40, 4)
#define CREATE_PSV_PD	     PRM_FIELD(0x48, 24)
#define CREATE_PSV_OUT_BYTES 0x20u
#define CREATE_PSV_INDEX     PRM_FIELD(0x88, 24) /* of the first PSV */
