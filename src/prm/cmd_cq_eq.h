/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands of completion queues and of event queues. */
#pragma once

#include "prm/cmd.h"

/* Commands of completion queues: CREATE_CQ, QUERY_CQ, MODIFY_CQ, and the CQ context. */

#define CREATE_CQ_IN_BYTES 0x110u
#define CREATE_CQ_CONTEXT  0x10u /* byte */
#define CREATE_CQ_OFFSET   PRM_FIELD(0x280, 64)
#define CREATE_CQ_UMEM	   PRM_FIELD(0x2c0, 32)

#define QUERY_CQ_OUT_BYTES 0x50u
#define QUERY_CQ_CONTEXT   0x10u /* byte */

#define MODIFY_CQ_IN_BYTES 0x50u
#define MODIFY_CQ_SELECT   PRM_FIELD(0x60, 32)
#define MODIFY_CQ_CONTEXT  0x10u /* byte */

enum modify_cq_select {
	MODIFY_CQ_PERIOD = 1 << 0,
	MODIFY_CQ_MAX_COUNT = 1 << 1,
	MODIFY_CQ_OVERRUN_IGNORE = 1 << 2,
	MODIFY_CQ_EQN = 1 << 3,
	MODIFY_CQ_PERIOD_MODE = 1 << 4,
};
enum modify_cq_op_mod { MODIFY_CQ_MODERATE, MODIFY_CQ_RESIZE };

#define CQC_BYTES	    0x40u
#define CQC_STATUS	    PRM_FIELD(0x000, 4) /* enum cqc_status */
#define CQC_APU		    PRM_FIELD(0x007, 1) /* completions go to an element of the DPA */
#define CQC_CQE_SIZE	    PRM_FIELD(0x008, 3) /* enum cqc_cqe_size */
#define CQC_COLLAPSED	    PRM_FIELD(0x00b, 1)
#define CQC_OVERRUN_IGNORE  PRM_FIELD(0x00e, 1)
#define CQC_PERIOD_MODE	    PRM_FIELD(0x00f, 2) /* enum cqc_period */
#define CQC_COMPRESSION	    PRM_FIELD(0x011, 1)
#define CQC_MINI_FORMAT	    PRM_FIELD(0x012, 2) /* low bits of enum cqe_mini_format */
#define CQC_STATE	    PRM_FIELD(0x014, 4) /* enum cqc_state */
#define CQC_ELEMENT	    PRM_FIELD(0x019, 3) /* enum cqc_element */
#define CQC_LAYOUT	    PRM_FIELD(0x01e, 2) /* enum cqc_layout */
#define CQC_DBR_UMEM	    PRM_FIELD(0x020, 32)
#define CQC_PAGE_OFFSET	    PRM_FIELD(0x054, 6)
#define CQC_MINI_FORMAT_EXT PRM_FIELD(0x05c, 2) /* the high bits */
#define CQC_LOG_SIZE	    PRM_FIELD(0x063, 5)
#define CQC_UAR_PAGE	    PRM_FIELD(0x068, 24)
#define CQC_PERIOD	    PRM_FIELD(0x084, 12) /* us */
#define CQC_MAX_COUNT	    PRM_FIELD(0x090, 16)
#define CQC_EQN		    PRM_FIELD(0x0a0, 32) /* or the element's number */
#define CQC_LOG_PAGE_SIZE   PRM_FIELD(0x0c3, 5)
#define CQC_CONSUMER	    PRM_FIELD(0x148, 24)
#define CQC_PRODUCER	    PRM_FIELD(0x168, 24)
#define CQC_DBR_ADDR	    PRM_FIELD(0x1c0, 64)

enum cqc_cqe_size { CQC_CQE_64, CQC_CQE_128, CQC_CQE_128_PADDED };
enum cqc_status { CQC_STATUS_OK = 0x0, CQC_STATUS_OVERFLOW = 0x9 };
enum cqc_state {
	CQC_STATE_ARMED_SOLICITED = 0x6,
	CQC_STATE_ARMED = 0x9,
	CQC_STATE_FIRED = 0xa,
	CQC_STATE_ALWAYS = 0xb, /* each completion is an event */
};
/* The time from which the period counts: the last event, or the last completion. */
enum cqc_period { CQC_PERIOD_FROM_EVENT, CQC_PERIOD_FROM_CQE };
enum cqc_layout { CQC_LAYOUT_BASIC, CQC_LAYOUT_ENHANCED };
enum cqc_element { CQC_ELEMENT_THREAD, CQC_ELEMENT_EQ, CQC_ELEMENT_EMULATED_EQ };

/*
 * Commands of event queues: CREATE_EQ, QUERY_EQ, and the EQ context.  An umem says where the ring
 * lies, as with other queues; the kernel's driver would give a list of pages.
 */

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
