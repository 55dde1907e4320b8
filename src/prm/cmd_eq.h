/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Commands of event queues: CREATE_EQ, QUERY_EQ, and the EQ context.  An umem says where the ring
 * lies, as with other queues; the kernel's driver would give a list of pages.
 */
#pragma once

#include "prm/cmd.h"

#define CREATE_EQ_IN_BYTES 0x110u
#define CREATE_EQ_CONTEXT  0x10u /* byte */
#define CREATE_EQ_EVENTS   0x58u /* byte: a bit for each enum eqe_type, four words of 64 */
/* Only this device has these. */
#define CREATE_EQ_OFFSET  PRM_FIELD(0x3c0, 64)
#define CREATE_EQ_UMEM	  PRM_FIELD(0x400, 32)
#define CREATE_EQ_VECTOR  PRM_FIELD(0x420, 32) /* an eventfd of the program, plus 1; 0: none */
#define CREATE_EQ_OUT_EQN PRM_FIELD(0x58, 8)

#define QUERY_EQ_EQN	   PRM_FIELD(0x58, 8)
#define QUERY_EQ_OUT_BYTES 0x50u
#define QUERY_EQ_CONTEXT   0x10u /* byte */

#define EQC_BYTES	   0x40u
#define EQC_STATUS	   PRM_FIELD(0x000, 4) /* enum eqc_status */
#define EQC_OVERRUN_IGNORE PRM_FIELD(0x00e, 1)
#define EQC_STATE	   PRM_FIELD(0x014, 4) /* enum eqc_state */
#define EQC_PAGE_OFFSET	   PRM_FIELD(0x054, 6)
#define EQC_LOG_SIZE	   PRM_FIELD(0x063, 5)
#define EQC_UAR_PAGE	   PRM_FIELD(0x068, 24)
#define EQC_INTR	   PRM_FIELD(0x0b4, 12)
#define EQC_LOG_PAGE_SIZE  PRM_FIELD(0x0c3, 5)
#define EQC_CONSUMER	   PRM_FIELD(0x148, 24)
#define EQC_PRODUCER	   PRM_FIELD(0x168, 24)

enum eqc_status { EQC_STATUS_OK = 0x0, EQC_STATUS_OVERFLOW = 0x9 };
enum eqc_state { EQC_STATE_ARMED = 0x9, EQC_STATE_FIRED = 0xa };
