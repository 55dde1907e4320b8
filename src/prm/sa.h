/* SPDX-License-Identifier: BSD-2-Clause */
/* Subnet administration (IBTA 15.2): the header, the numbers of attributes, and the fields of
 * records that have many, counted from the record's first byte. */
#pragma once

#include "prm/field.h"

#define SA_AT_SM_KEY	 36u /* 64 bits */
#define SA_AT_OFFSET	 44u /* 16 bits: bytes from record to record, divided by 8 */
#define SA_AT_MASK	 48u /* 64 bits: the component mask */
#define SA_AT_DATA	 56u
#define SA_CLASS_VERSION 2u

enum sa_attribute {
	SA_CLASS_PORT_INFO = 0x01,
	SA_NOTICE = 0x02,
	SA_INFORM_INFO = 0x03,
	SA_NODE_RECORD = 0x11,
	SA_PORT_INFO_RECORD = 0x12,
	SA_SL_TO_VL_RECORD = 0x13,
	SA_SWITCH_INFO_RECORD = 0x14,
	SA_LINEAR_TABLE_RECORD = 0x15,
	SA_MULTICAST_TABLE_RECORD = 0x17,
	SA_SM_INFO_RECORD = 0x18,
	SA_LINK_RECORD = 0x20,
	SA_GUID_INFO_RECORD = 0x30,
	SA_SERVICE_RECORD = 0x31,
	SA_PKEY_TABLE_RECORD = 0x33,
	SA_PATH_RECORD = 0x35,
	SA_VL_ARBITRATION_RECORD = 0x36,
	SA_MC_MEMBER_RECORD = 0x38,
	SA_MULTI_PATH_RECORD = 0x3a,
	SA_INFORM_INFO_RECORD = 0xf3,
};

enum sa_status {
	SA_NO_RESOURCES = 0x0100,
	SA_INVALID = 0x0200,
	SA_NO_RECORDS = 0x0300,
	SA_TOO_MANY = 0x0400,
	SA_INVALID_GID = 0x0500,
	SA_INSUFFICIENT = 0x0600,
	SA_DENIED = 0x0700,
};

/* Notices of the SM itself (14.4.9). */
enum sa_trap {
	SA_TRAP_PORT_IN = 64,
	SA_TRAP_PORT_OUT,
	SA_TRAP_GROUP_CREATED,
	SA_TRAP_GROUP_DELETED,
};

/* How a query means the value of MTU, rate or life time that it asks for. */
enum sa_selector { SA_GREATER, SA_LESS, SA_EXACTLY, SA_LARGEST };

/* PathRecord; GIDs are 16 bytes at these places. */
#define PR_AT_DGID    8u
#define PR_AT_SGID    24u
#define PR_BYTES      64u
#define PR_SERVICE_ID PRM_FIELD(0, 64)
#define PR_DLID	      PRM_FIELD(320, 16)
#define PR_SLID	      PRM_FIELD(336, 16)
#define PR_RAW	      PRM_FIELD(352, 1)
#define PR_FLOW	      PRM_FIELD(356, 20)
#define PR_HOP_LIMIT  PRM_FIELD(376, 8)
#define PR_CLASS      PRM_FIELD(384, 8)
#define PR_REVERSIBLE PRM_FIELD(392, 1)
#define PR_NUMBER     PRM_FIELD(393, 7)
#define PR_PKEY	      PRM_FIELD(400, 16)
#define PR_QOS_CLASS  PRM_FIELD(416, 12)
#define PR_SL	      PRM_FIELD(428, 4)
#define PR_MTU_SEL    PRM_FIELD(432, 2)
#define PR_MTU	      PRM_FIELD(434, 6)
#define PR_RATE_SEL   PRM_FIELD(440, 2)
#define PR_RATE	      PRM_FIELD(442, 6)
#define PR_LIFE_SEL   PRM_FIELD(448, 2)
#define PR_LIFE	      PRM_FIELD(450, 6)
#define PR_PREFERENCE PRM_FIELD(456, 8)

/* Components of a PathRecord that queries look at individually. */
enum pr_component {
	PR_COMP_SERVICE_ID = 0, /* and the next one: it has 64 bits */
	PR_COMP_DGID = 2,
	PR_COMP_SGID = 3,
	PR_COMP_DLID = 4,
	PR_COMP_SLID = 5,
	PR_COMP_CLASS = 10,
	PR_COMP_REVERSIBLE = 11,
	PR_COMP_NUMBER = 12,
	PR_COMP_PKEY = 13,
	PR_COMP_QOS_CLASS = 14,
	PR_COMP_MTU_SEL = 16,
	PR_COMP_MTU = 17,
	PR_COMP_RATE_SEL = 18,
	PR_COMP_RATE = 19,
	PR_COMP_LIFE_SEL = 20,
	PR_COMP_LIFE = 21,
};

/* MultiPathRecord.  Fields that a PathRecord has too lie at the same distance from one another. */
#define MPR_AT_GIDS    24u
#define MPR_REVERSIBLE PRM_FIELD(40, 1)
#define MPR_NUMBER     PRM_FIELD(41, 7)
#define MPR_PKEY       PRM_FIELD(48, 16)
#define MPR_SL	       PRM_FIELD(76, 4)
#define MPR_MTU_SEL    PRM_FIELD(80, 2)
#define MPR_MTU	       PRM_FIELD(82, 6)
#define MPR_RATE_SEL   PRM_FIELD(88, 2)
#define MPR_RATE       PRM_FIELD(90, 6)
#define MPR_LIFE_SEL   PRM_FIELD(96, 2)
#define MPR_LIFE       PRM_FIELD(98, 6)
#define MPR_SGID_COUNT PRM_FIELD(120, 8)
#define MPR_DGID_COUNT PRM_FIELD(128, 8)

enum mpr_component {
	MPR_COMP_REVERSIBLE = 5,
	MPR_COMP_NUMBER = 6,
	MPR_COMP_PKEY = 7,
	MPR_COMP_SL = 9,
	MPR_COMP_MTU_SEL = 10,
	MPR_COMP_MTU = 11,
	MPR_COMP_RATE_SEL = 12,
	MPR_COMP_RATE = 13,
	MPR_COMP_LIFE_SEL = 14,
	MPR_COMP_LIFE = 15,
	MPR_COMP_SGID_COUNT = 19,
	MPR_COMP_DGID_COUNT = 20,
};

/* MCMemberRecord */
#define MCM_AT_MGID	0u
#define MCM_AT_PORT_GID 16u
#define MCM_BYTES	52u
#define MCM_QKEY	PRM_FIELD(256, 32)
#define MCM_MLID	PRM_FIELD(288, 16)
#define MCM_MTU_SEL	PRM_FIELD(304, 2)
#define MCM_MTU		PRM_FIELD(306, 6)
#define MCM_CLASS	PRM_FIELD(312, 8)
#define MCM_PKEY	PRM_FIELD(320, 16)
#define MCM_RATE_SEL	PRM_FIELD(336, 2)
#define MCM_RATE	PRM_FIELD(338, 6)
#define MCM_LIFE_SEL	PRM_FIELD(344, 2)
#define MCM_LIFE	PRM_FIELD(346, 6)
#define MCM_SL		PRM_FIELD(352, 4)
#define MCM_FLOW	PRM_FIELD(356, 20)
#define MCM_HOP_LIMIT	PRM_FIELD(376, 8)
#define MCM_SCOPE	PRM_FIELD(384, 4)
#define MCM_JOIN_STATE	PRM_FIELD(388, 4)
#define MCM_PROXY	PRM_FIELD(392, 1)

enum mcm_component {
	MCM_COMP_MGID,
	MCM_COMP_PORT_GID,
	MCM_COMP_QKEY,
	MCM_COMP_MLID,
	MCM_COMP_MTU_SEL,
	MCM_COMP_MTU,
	MCM_COMP_CLASS,
	MCM_COMP_PKEY,
	MCM_COMP_RATE_SEL,
	MCM_COMP_RATE,
	MCM_COMP_LIFE_SEL,
	MCM_COMP_LIFE,
	MCM_COMP_SL,
	MCM_COMP_FLOW,
	MCM_COMP_HOP_LIMIT,
	MCM_COMP_SCOPE,
	MCM_COMP_JOIN_STATE,
	MCM_COMP_PROXY,
};

/* ServiceRecord */
#define SR_AT_GID	  8u
#define SR_AT_KEY	  32u
#define SR_AT_NAME	  48u
#define SR_AT_DATA	  112u
#define SR_BYTES	  176u
#define SR_ID		  PRM_FIELD(0, 64)
#define SR_PKEY		  PRM_FIELD(192, 16)
#define SR_LEASE	  PRM_FIELD(224, 32)
#define SR_LEASE_FOR_EVER 0xffffffffu

/* InformInfo */
#define II_AT_GID    0u
#define II_BYTES     36u
#define II_LID_BEGIN PRM_FIELD(128, 16)
#define II_LID_END   PRM_FIELD(144, 16)
#define II_GENERIC   PRM_FIELD(176, 8)
#define II_SUBSCRIBE PRM_FIELD(184, 8)
#define II_TYPE	     PRM_FIELD(192, 16)
#define II_TRAP	     PRM_FIELD(208, 16)
#define II_QPN	     PRM_FIELD(224, 24)
#define II_RESP_TIME PRM_FIELD(251, 5)
#define II_PRODUCER  PRM_FIELD(264, 24)

/* Notice (IBTA 13.4.8.2) */
#define NOTICE_BYTES	  80u /* with the issuer's GID, as reports have it */
#define NOTICE_AT_GID	  64u
#define NOTICE_GENERIC	  PRM_FIELD(0, 1)
#define NOTICE_TYPE	  PRM_FIELD(1, 7)
#define NOTICE_PRODUCER	  PRM_FIELD(8, 24)
#define NOTICE_TRAP	  PRM_FIELD(32, 16)
#define NOTICE_ISSUER	  PRM_FIELD(48, 16)
#define NOTICE_AT_DETAILS 10u
