/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the communication manager (IBTA volume 1, chapter 12): MADs of class 7, method Send.  The
 * fields are those of the whole MAD, whose first 24 bytes are the common header.
 */
#pragma once

#include "prm/field.h"
#include "prm/mad.h"

#define CM_CLASS_VERSION 2u

enum cm_attribute {
	CM_REQ = 0x10,
	CM_MRA = 0x11,
	CM_REJ = 0x12,
	CM_REP = 0x13,
	CM_RTU = 0x14,
	CM_DREQ = 0x15,
	CM_DREP = 0x16,
	CM_SIDR_REQ = 0x17,
	CM_SIDR_REP = 0x18,
	CM_LAP = 0x19,
	CM_APR = 0x1a,
};

/* A field at a byte and a bit of the part behind the common header. */
#define CM_FIELD(byte, bit, bits) PRM_FIELD((MAD_HEADER_BYTES + (byte)) * 8 + (bit), bits)

/* All but SIDR's begin with the sender's number of the connection; all but REQ go on with the other's. */
#define CM_LOCAL_ID  CM_FIELD(0, 0, 32)
#define CM_REMOTE_ID CM_FIELD(4, 0, 32)

#define REQ_VENDOR_ID	   CM_FIELD(5, 0, 24) /* of an enhanced connection (ECE) */
#define REQ_SERVICE_ID	   CM_FIELD(8, 0, 64)
#define REQ_CA_GUID	   CM_FIELD(16, 0, 64)
#define REQ_QKEY	   CM_FIELD(28, 0, 32)
#define REQ_QPN		   CM_FIELD(32, 0, 24)
#define REQ_RESPONDER	   CM_FIELD(35, 0, 8)
#define REQ_INITIATOR	   CM_FIELD(39, 0, 8)
#define REQ_REMOTE_TIMEOUT CM_FIELD(43, 0, 5)
#define REQ_TRANSPORT	   CM_FIELD(43, 5, 2) /* RC, UC, RD, XRC (extended) */
#define REQ_FLOW_CONTROL   CM_FIELD(43, 7, 1)
#define REQ_PSN		   CM_FIELD(44, 0, 24)
#define REQ_LOCAL_TIMEOUT  CM_FIELD(47, 0, 5)
#define REQ_RETRIES	   CM_FIELD(47, 5, 3)
#define REQ_PKEY	   CM_FIELD(48, 0, 16)
#define REQ_MTU		   CM_FIELD(50, 0, 4)
#define REQ_RNR_RETRIES	   CM_FIELD(50, 5, 3)
#define REQ_CM_RETRIES	   CM_FIELD(51, 0, 4)
#define REQ_SRQ		   CM_FIELD(51, 4, 1)
#define REQ_EXTENDED	   CM_FIELD(51, 5, 3)
#define REQ_LOCAL_LID	   CM_FIELD(52, 0, 16)
#define REQ_REMOTE_LID	   CM_FIELD(54, 0, 16)
#define REQ_AT_LOCAL_GID   (MAD_HEADER_BYTES + 56u)
#define REQ_AT_REMOTE_GID  (MAD_HEADER_BYTES + 72u)
#define REQ_FLOW_LABEL	   CM_FIELD(88, 0, 20)
#define REQ_RATE	   CM_FIELD(91, 2, 6)
#define REQ_CLASS	   CM_FIELD(92, 0, 8)
#define REQ_HOP_LIMIT	   CM_FIELD(93, 0, 8)
#define REQ_SL		   CM_FIELD(94, 0, 4)
#define REQ_SUBNET_LOCAL   CM_FIELD(94, 4, 1)
#define REQ_ACK_TIMEOUT	   CM_FIELD(95, 0, 5)
#define REQ_AT_PRIVATE	   (MAD_HEADER_BYTES + 140u)
#define REQ_PRIVATE_BYTES  92u

#define REP_QKEY	   CM_FIELD(8, 0, 32)
#define REP_QPN		   CM_FIELD(12, 0, 24)
#define REP_VENDOR_ID_HIGH CM_FIELD(15, 0, 8)
#define REP_VENDOR_ID_MID  CM_FIELD(19, 0, 8)
#define REP_PSN		   CM_FIELD(20, 0, 24)
#define REP_VENDOR_ID_LOW  CM_FIELD(23, 0, 8)
#define REP_RESPONDER	   CM_FIELD(24, 0, 8)
#define REP_INITIATOR	   CM_FIELD(25, 0, 8)
#define REP_ACK_DELAY	   CM_FIELD(26, 0, 5)
#define REP_FAILOVER	   CM_FIELD(26, 5, 2)
#define REP_FLOW_CONTROL   CM_FIELD(26, 7, 1)
#define REP_RNR_RETRIES	   CM_FIELD(27, 0, 3)
#define REP_SRQ		   CM_FIELD(27, 3, 1)
#define REP_CA_GUID	   CM_FIELD(28, 0, 64)
#define REP_AT_PRIVATE	   (MAD_HEADER_BYTES + 36u)
#define REP_PRIVATE_BYTES  196u

#define RTU_AT_PRIVATE	  (MAD_HEADER_BYTES + 8u)
#define RTU_PRIVATE_BYTES 224u

enum cm_answered { CM_ANSWERS_REQ, CM_ANSWERS_REP, CM_ANSWERS_OTHER };
#define MRA_WHAT    CM_FIELD(8, 0, 2)
#define MRA_TIMEOUT CM_FIELD(9, 0, 5)

#define REJ_WHAT	  CM_FIELD(8, 0, 2)
#define REJ_INFO_LENGTH	  CM_FIELD(9, 0, 7)
#define REJ_REASON	  CM_FIELD(10, 0, 16)
#define REJ_AT_INFO	  (MAD_HEADER_BYTES + 12u)
#define REJ_AT_PRIVATE	  (MAD_HEADER_BYTES + 84u)
#define REJ_PRIVATE_BYTES 148u

enum cm_reject {
	CM_REJECT_TIMEOUT = 4,
	CM_REJECT_NO_SERVICE = 8,
	CM_REJECT_STALE = 10,
	CM_REJECT_CONSUMER = 28,
	CM_REJECT_VENDOR_OPTION = 35,
};

#define DREQ_QPN CM_FIELD(8, 0, 24)

/* Service resolution for datagrams. */
#define SIDR_REQ_PKEY	       CM_FIELD(4, 0, 16)
#define SIDR_REQ_SERVICE_ID    CM_FIELD(8, 0, 64)
#define SIDR_REQ_AT_PRIVATE    (MAD_HEADER_BYTES + 16u)
#define SIDR_REQ_PRIVATE_BYTES 216u

enum cm_sidr_status { CM_SIDR_SUCCESS, CM_SIDR_UNSUPPORTED, CM_SIDR_REJECT };
#define SIDR_REP_STATUS	       CM_FIELD(4, 0, 8)
#define SIDR_REP_QPN	       CM_FIELD(8, 0, 24)
#define SIDR_REP_SERVICE_ID    CM_FIELD(12, 0, 64)
#define SIDR_REP_QKEY	       CM_FIELD(20, 0, 32)
#define SIDR_REP_AT_PRIVATE    (MAD_HEADER_BYTES + 96u)
#define SIDR_REP_PRIVATE_BYTES 136u

/*
 * What librdmacm's connections by IP address have at the beginning of the private data of a REQ or
 * SIDR_REQ (annex A11).
 */
#define IP_CM_BYTES	 36u
#define IP_CM_VERSION	 PRM_FIELD(0, 8) /* 0 */
#define IP_CM_IP_VERSION PRM_FIELD(8, 4)
#define IP_CM_PORT	 PRM_FIELD(16, 16) /* the source's */
#define IP_CM_AT_SOURCE	 4u		   /* 16 bytes; of IPv4 the last four */
#define IP_CM_AT_TARGET	 20u
