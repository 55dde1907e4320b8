/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of subnet management (IBTA 14.2.5): their numbers, and the fields of those that have
 * many, counted from the attribute's first byte. */
#pragma once

#include "prm/field.h"

enum smp_attribute {
	SMP_NOTICE = 0x02,
	SMP_NODE_DESCRIPTION = 0x10,
	SMP_NODE_INFO = 0x11,
	SMP_SWITCH_INFO = 0x12,
	SMP_GUID_INFO = 0x14,
	SMP_PORT_INFO = 0x15,
	SMP_PKEY_TABLE = 0x16,
	SMP_SL_TO_VL = 0x17,
	SMP_VL_ARBITRATION = 0x18,
	SMP_LINEAR_TABLE = 0x19,
	SMP_RANDOM_TABLE = 0x1a,
	SMP_MULTICAST_TABLE = 0x1b,
	SMP_SM_INFO = 0x20,
	SMP_VENDOR_DIAG = 0x30,
	SMP_LED_INFO = 0x31,
	SMP_PORT_INFO_EXTENDED = 0x33,
	SMP_MELLANOX_EXTENDED_PORT_INFO = 0xff90,
};

enum smp_node_type { SMP_NODE_CA = 1, SMP_NODE_SWITCH, SMP_NODE_ROUTER };
enum smp_phys_state {
	SMP_PHYS_SLEEP = 1,
	SMP_PHYS_POLLING,
	SMP_PHYS_DISABLED,
	SMP_PHYS_TRAINING,
	SMP_PHYS_LINK_UP
};

/* NodeInfo */
#define NI_BASE_VERSION	 PRM_FIELD(0, 8)
#define NI_CLASS_VERSION PRM_FIELD(8, 8)
#define NI_TYPE		 PRM_FIELD(16, 8)
#define NI_PORTS	 PRM_FIELD(24, 8)
#define NI_SYSTEM_GUID	 PRM_FIELD(32, 64)
#define NI_NODE_GUID	 PRM_FIELD(96, 64)
#define NI_PORT_GUID	 PRM_FIELD(160, 64)
#define NI_PARTITION_CAP PRM_FIELD(224, 16)
#define NI_DEVICE	 PRM_FIELD(240, 16)
#define NI_REVISION	 PRM_FIELD(256, 32)
#define NI_LOCAL_PORT	 PRM_FIELD(288, 8)
#define NI_VENDOR	 PRM_FIELD(296, 24)

/* PortInfo.  Section 3.2 of umad-and-fabric has the offsets in bytes. */
#define PI_MKEY		       PRM_FIELD(0, 64)
#define PI_GID_PREFIX	       PRM_FIELD(64, 64)
#define PI_LID		       PRM_FIELD(128, 16)
#define PI_SM_LID	       PRM_FIELD(144, 16)
#define PI_CAP_MASK	       PRM_FIELD(160, 32)
#define PI_DIAG		       PRM_FIELD(192, 16)
#define PI_MKEY_LEASE	       PRM_FIELD(208, 16)
#define PI_LOCAL_PORT	       PRM_FIELD(224, 8)
#define PI_WIDTH_ENABLED       PRM_FIELD(232, 8)
#define PI_WIDTH_SUPPORTED     PRM_FIELD(240, 8)
#define PI_WIDTH_ACTIVE	       PRM_FIELD(248, 8)
#define PI_SPEED_SUPPORTED     PRM_FIELD(256, 4)
#define PI_STATE	       PRM_FIELD(260, 4)
#define PI_PHYS_STATE	       PRM_FIELD(264, 4)
#define PI_DOWN_DEFAULT	       PRM_FIELD(268, 4)
#define PI_MKEY_PROTECT	       PRM_FIELD(272, 2)
#define PI_LMC		       PRM_FIELD(277, 3)
#define PI_SPEED_ACTIVE	       PRM_FIELD(280, 4)
#define PI_SPEED_ENABLED       PRM_FIELD(284, 4)
#define PI_NEIGHBOR_MTU	       PRM_FIELD(288, 4)
#define PI_SM_SL	       PRM_FIELD(292, 4)
#define PI_VL_CAP	       PRM_FIELD(296, 4)
#define PI_INIT_TYPE	       PRM_FIELD(300, 4)
#define PI_VL_HIGH_LIMIT       PRM_FIELD(304, 8)
#define PI_VL_ARB_HIGH_CAP     PRM_FIELD(312, 8)
#define PI_VL_ARB_LOW_CAP      PRM_FIELD(320, 8)
#define PI_INIT_TYPE_REPLY     PRM_FIELD(328, 4)
#define PI_MTU_CAP	       PRM_FIELD(332, 4)
#define PI_VL_STALL	       PRM_FIELD(336, 3)
#define PI_HOQ_LIFE	       PRM_FIELD(339, 5)
#define PI_OPER_VLS	       PRM_FIELD(344, 4)
#define PI_PARTITION_FLAGS     PRM_FIELD(348, 4) /* enforcement, raw filters: in and out */
#define PI_MKEY_VIOLATIONS     PRM_FIELD(352, 16)
#define PI_PKEY_VIOLATIONS     PRM_FIELD(368, 16)
#define PI_QKEY_VIOLATIONS     PRM_FIELD(384, 16)
#define PI_GUID_CAP	       PRM_FIELD(400, 8)
#define PI_CLIENT_REREGISTER   PRM_FIELD(408, 1)
#define PI_MCAST_PKEY_TRAP     PRM_FIELD(409, 2) /* suppresses traps about multicast P_Keys */
#define PI_SUBNET_TIMEOUT      PRM_FIELD(411, 5)
#define PI_RESP_TIME	       PRM_FIELD(419, 5)
#define PI_LOCAL_PHYS_ERRORS   PRM_FIELD(424, 4)
#define PI_OVERRUN_ERRORS      PRM_FIELD(428, 4)
#define PI_MAX_CREDIT_HINT     PRM_FIELD(432, 16)
#define PI_ROUND_TRIP	       PRM_FIELD(456, 24)
#define PI_XDR_ACTIVE	       PRM_FIELD(449, 2) /* LinkSpeedExtActive2 and its kin */
#define PI_XDR_SUPPORTED       PRM_FIELD(451, 2)
#define PI_XDR_ENABLED	       PRM_FIELD(453, 3)
#define PI_CAP_MASK2	       PRM_FIELD(480, 16)
#define PI_EXT_SPEED_ACTIVE    PRM_FIELD(496, 4)
#define PI_EXT_SPEED_SUPPORTED PRM_FIELD(500, 4)
#define PI_EXT_SPEED_ENABLED   PRM_FIELD(507, 5)

/* ExtendedPortInfo of Mellanox: bit 0 of each is FDR10 */
#define MLNX_PI_SPEED_SUPPORTED PRM_FIELD(56, 8)
#define MLNX_PI_SPEED_ENABLED	PRM_FIELD(88, 8)
#define MLNX_PI_SPEED_ACTIVE	PRM_FIELD(120, 8)

/* CapabilityMask2 */
#define CAP2_IS_EXT_SPEEDS2 (1u << 11)

/* CapabilityMask */
#define CAP_IS_SM		 (1u << 1)
#define CAP_IS_NOTICE		 (1u << 2)
#define CAP_IS_TRAP		 (1u << 3)
#define CAP_IS_SM_DISABLED	 (1u << 10)
#define CAP_IS_EXT_SPEEDS	 (1u << 14)
#define CAP_IS_CAP_MASK2	 (1u << 15)
#define CAP_IS_CAP_NOTICE	 (1u << 22)
#define CAP_IS_CLIENT_REREGISTER (1u << 25)
#define CAP_IS_OTHER_NOTICE	 (1u << 26)
#define CAP_IS_MCAST_PKEY_TRAP	 (1u << 29)

/* CapabilityMask2 */
#define CAP2_WIDTH_2X (1u << 4)
#define CAP2_HDR      (1u << 5)
#define CAP2_NDR      (1u << 10)

#define VL_CAP_0_TO_7 4u /* of VLCap */

/* SwitchInfo */
#define SI_LINEAR_CAP	  PRM_FIELD(0, 16)
#define SI_RANDOM_CAP	  PRM_FIELD(16, 16)
#define SI_MULTICAST_CAP  PRM_FIELD(32, 16)
#define SI_LINEAR_TOP	  PRM_FIELD(48, 16)
#define SI_DEFAULT_PORT	  PRM_FIELD(64, 8)
#define SI_MC_PRIMARY	  PRM_FIELD(72, 8)
#define SI_MC_NOT_PRIMARY PRM_FIELD(80, 8)
#define SI_LIFE_TIME	  PRM_FIELD(88, 5)
#define SI_STATE_CHANGE	  PRM_FIELD(93, 1)
#define SI_LIDS_PER_PORT  PRM_FIELD(96, 16)
#define SI_PARTITION_CAP  PRM_FIELD(112, 16)
#define SI_FLAGS \
	PRM_FIELD(128, 5) /* enforcement in and out, raw filters in and out, enhanced port 0 */
#define SI_MULTICAST_TOP PRM_FIELD(144, 16)
