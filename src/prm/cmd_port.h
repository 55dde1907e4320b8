/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands about the device and its port that name no object. */
#pragma once

#include "prm/cmd.h"

#define HCA_VPORT_OTHER	    PRM_FIELD(0x40, 1)
#define HCA_VPORT_PORT	    PRM_FIELD(0x4c, 4) /* 0 where there is one port */
#define HCA_VPORT_NUMBER    PRM_FIELD(0x50, 16)
#define HCA_VPORT_OUT_BYTES 0x210u
#define HCA_VPORT_CONTEXT   0x10u /* byte */

#define HCA_VPORT_PHYS_STATE	 PRM_FIELD(0x110, 4)
#define HCA_VPORT_STATE_POLICY	 PRM_FIELD(0x114, 4)
#define HCA_VPORT_PORT_STATE	 PRM_FIELD(0x118, 4) /* enum ib_port_state */
#define HCA_VPORT_VPORT_STATE	 PRM_FIELD(0x11c, 4) /* 1: up */
#define HCA_VPORT_SYSTEM_GUID	 PRM_FIELD(0x140, 64)
#define HCA_VPORT_PORT_GUID	 PRM_FIELD(0x180, 64)
#define HCA_VPORT_NODE_GUID	 PRM_FIELD(0x1c0, 64)
#define HCA_VPORT_CAP_MASK1	 PRM_FIELD(0x200, 32)
#define HCA_VPORT_LID		 PRM_FIELD(0x300, 16)
#define HCA_VPORT_LMC		 PRM_FIELD(0x318, 3)
#define HCA_VPORT_SUBNET_TIMEOUT PRM_FIELD(0x31b, 5)
#define HCA_VPORT_SM_LID	 PRM_FIELD(0x320, 16)
#define HCA_VPORT_SM_SL		 PRM_FIELD(0x330, 4)

#define VPORT_STATE_ADMIN PRM_FIELD(0x78, 4)
#define VPORT_STATE	  PRM_FIELD(0x7c, 4)
/* op_mod: whose state it is. */
enum { VPORT_STATE_VNIC = 0, VPORT_STATE_ESW_VPORT = 1, VPORT_STATE_UPLINK = 2 };
enum { VPORT_DOWN = 0, VPORT_UP = 1 };

#define ADAPTER_OUT_BYTES 0x110u
#define ADAPTER_VENDOR	  PRM_FIELD(0x148, 24) /* IEEE */
#define ADAPTER_PSID	  0x100u	       /* byte */
#define ADAPTER_PSID_LEN  16u

/* The version of the interface between driver and firmware (ISSI). */
#define ISSI_OUT_BYTES 0x70u
#define ISSI_CURRENT   PRM_FIELD(0x50, 16)
#define ISSI_SUPPORTED PRM_FIELD(0x360, 32) /* bit n: version n */
