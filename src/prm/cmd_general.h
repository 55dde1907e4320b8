/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE_GENERAL_OBJECT, and the objects that it creates. */
#pragma once

#include "prm/cmd.h"

enum general_object {
	GENERAL_VIRTIO_NET_EMULATION = 0x15,
	GENERAL_MATCH_DEFINER = 0x18,
	GENERAL_FLOW_SAMPLER = 0x20,
	GENERAL_DPA_PROCESS = 0x2a,
	GENERAL_DPA_THREAD = 0x2b,
	GENERAL_RESERVED_QPN = 0x2c,
	GENERAL_DPA_OUTBOX = 0x2d,
	GENERAL_DB_CQ_MAPPING = 0x32, /* for an emulated function */
	GENERAL_DPA_WINDOW = 0x39,
	GENERAL_AV_QP_MAPPING = 0x3a,
	GENERAL_EMULATED_EQ = 0x49,
	/* Only this device has it: a number that stands for the UAR page of queues whose doorbells
	 * a DPA rings. */
	GENERAL_DUAR = 0xd0a,
	/* Only this device has them, too: messages and commands of a DPA process. */
	GENERAL_DPA_STREAM = 0xd5a,
	GENERAL_DPA_CMDQ = 0xd5b,
	/* Names a process or a thread of a DPA that another file has made. */
	GENERAL_DPA_ALIAS = 0xd5c,
};

#define GENERAL_IN_TYPE	     PRM_FIELD(0x30, 16)
#define GENERAL_IN_LOG_RANGE PRM_FIELD(0x63, 5)
#define GENERAL_IN_ID	     PRM_FIELD(0x40, 32) /* of the object to change */
#define GENERAL_OUT_ID	     PRM_FIELD(0x40, 32)

#define RESERVED_QPN_IN_BYTES 0x20u

#define AV_QP_MAPPING_IN_BYTES 0x50u
#define AV_QP_MAPPING_QPN      PRM_FIELD(0xe0, 32)
