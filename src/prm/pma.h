/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of performance management (IBTA 16.1), of congestion control (A10) and of Mellanox'
 * own class.  The data of the first two begins at MAD_GMP_DATA, that of the third at
 * MAD_VENDOR_DATA. */
#pragma once

#include "prm/field.h"

#define MAD_GMP_DATA	    64u
#define MAD_VENDOR_DATA	    24u
#define MAD_CC_LOG_DATA	    32u /* CongestionLog has more room than the rest */
#define MAD_GMP_BYTES	    192u
#define GMP_CLASS_PORT_INFO 0x01u

/* ClassPortInfo (13.4.8.1): the fields that are not 0 in ours. */
#define CPI_BASE_VERSION  PRM_FIELD(0, 8)
#define CPI_CLASS_VERSION PRM_FIELD(8, 8)
#define CPI_CAP_MASK	  PRM_FIELD(16, 16)
#define CPI_CAP_MASK2	  PRM_FIELD(32, 27)
#define CPI_RESP_TIME	  PRM_FIELD(59, 5)

/* CapabilityMask of class PerfMgt. */
#define PMA_CAP_ALL_PORTS (1u << 8)
#define PMA_CAP_EXTENDED  (1u << 9)
#define PMA_CAP_XMIT_WAIT (1u << 12)
/* CapabilityMask2: PortCountersExtended has the error counters, too. */
#define PMA_CAP2_EXTENDED_ERRORS (1u << 1)

enum pma_attribute {
	PMA_SAMPLES_CONTROL = 0x10,
	PMA_SAMPLES_RESULT = 0x11,
	PMA_PORT_COUNTERS = 0x12,
	PMA_RCV_ERROR_DETAILS = 0x15,
	PMA_XMIT_DISCARD_DETAILS = 0x16,
	PMA_OP_RCV_COUNTERS = 0x17,
	PMA_FLOW_CTL_COUNTERS = 0x18,
	PMA_VL_OP_PACKETS = 0x19,
	PMA_VL_OP_DATA = 0x1a,
	PMA_VL_FLOW_CTL_ERRORS = 0x1b,
	PMA_VL_XMIT_WAIT = 0x1c,
	PMA_PORT_COUNTERS_EXTENDED = 0x1d,
	PMA_EXTENDED_SPEEDS = 0x1f,
	PMA_SWITCH_VL_CONGESTION = 0x30,
	PMA_RCV_CONGESTION = 0x31,
	PMA_SL_RCV_FECN = 0x32,
	PMA_SL_RCV_BECN = 0x33,
	PMA_XMIT_CONGESTION = 0x34,
	PMA_VL_XMIT_CONGESTION = 0x35,
	PMA_XMIT_DATA_SL = 0x36,
	PMA_RCV_DATA_SL = 0x37,
};

/* All of them begin so, except PortSamplesResult. */
#define PC_PORT_SELECT	   PRM_FIELD(8, 8)
#define PC_COUNTER_SELECT  PRM_FIELD(16, 16)
#define PC_COUNTER_SELECT2 PRM_FIELD(144, 8) /* of PortCounters */
#define PX_COUNTER_SELECT2 PRM_FIELD(32, 32) /* of PortCountersExtended */
#define PMA_PORTS_ALL	   0xffu

/* PortSamplesControl */
#define PSC_OP_CODE	       PRM_FIELD(0, 8)
#define PSC_TICK	       PRM_FIELD(16, 8)
#define PSC_COUNTER_WIDTH      PRM_FIELD(29, 3)
#define PSC_COUNTER_MASK0      PRM_FIELD(34, 3)
#define PSC_COUNTER_MASKS1_9   PRM_FIELD(37, 27)
#define PSC_COUNTER_MASKS10_14 PRM_FIELD(65, 15)
#define PSC_STATUS	       PRM_FIELD(94, 2)
#define PSC_OPTION_MASK	       PRM_FIELD(96, 64)
#define PSC_START	       PRM_FIELD(224, 32)
#define PSC_INTERVAL	       PRM_FIELD(256, 32)
#define PSC_TAG		       PRM_FIELD(288, 16)
#define PSC_SELECT(n)	       PRM_FIELD((uint16_t)(304 + 16 * (n)), 16)
#define PSC_COUNTERS	       15u

/* PortSamplesResult */
#define PSR_TAG	       PRM_FIELD(0, 16)
#define PSR_STATUS     PRM_FIELD(30, 2)
#define PSR_COUNTER(n) PRM_FIELD((uint16_t)(32 + 32 * (n)), 32)

/* SampleStatus */
enum psc_status { PSC_DONE, PSC_STARTING, PSC_RUNNING };

/* CounterSelect: the counters that every device can sample. */
enum psc_select {
	PSC_XMIT_DATA = 1,
	PSC_RCV_DATA,
	PSC_XMIT_PACKETS,
	PSC_RCV_PACKETS,
	PSC_XMIT_WAIT,
};

enum cc_attribute {
	CC_INFO = 0x11,
	CC_KEY_INFO = 0x12,
	CC_LOG = 0x13,
	CC_SWITCH_SETTING = 0x14,
	CC_SWITCH_PORT_SETTING = 0x15,
	CC_CA_SETTING = 0x16,
	CC_TABLE = 0x17,
	CC_TIMESTAMP = 0x18,
};

#define MAD_AT_CC_KEY	       24u
#define CC_INFO_TABLE_CAP      PRM_FIELD(16, 8) /* blocks of CC_TABLE */
#define CC_KEY_INFO_KEY	       PRM_FIELD(0, 64)
#define CC_KEY_INFO_PROTECT    PRM_FIELD(64, 1)
#define CC_KEY_INFO_LEASE      PRM_FIELD(80, 16)
#define CC_KEY_INFO_VIOLATIONS PRM_FIELD(96, 16)
#define CC_LOG_TYPE	       PRM_FIELD(0, 8)
#define CC_LOG_SWITCH	       1u
#define CC_LOG_CA	       2u
#define CC_LOG_SWITCH_TIME     PRM_FIELD(32, 32)
#define CC_LOG_CA_TIME	       PRM_FIELD(64, 32)

enum vendor_attribute { VENDOR_GENERAL_INFO = 0x17 };

/* GeneralInfo, counted from MAD_VENDOR_DATA.  Devices since ConnectX-3 also have the long
 * versions. */
#define VGI_HW_REVISION	  PRM_FIELD(64, 16)
#define VGI_DEVICE	  PRM_FIELD(80, 16)
#define VGI_UPTIME	  PRM_FIELD(288, 32)
#define VGI_FW_MAJOR	  PRM_FIELD(328, 8)
#define VGI_FW_MINOR	  PRM_FIELD(336, 8)
#define VGI_FW_SUBMINOR	  PRM_FIELD(344, 8)
#define VGI_AT_PSID	  56u
#define VGI_PSID_BYTES	  16u
#define VGI_LONG_MAJOR	  PRM_FIELD(608, 32)
#define VGI_LONG_MINOR	  PRM_FIELD(640, 32)
#define VGI_LONG_SUBMINOR PRM_FIELD(672, 32)
