/* SPDX-License-Identifier: BSD-2-Clause */
/* PCI functions that a card emulates: a query for what it has, and general objects for a function,
 * its doorbells and its interrupts. */
#pragma once

#include "prm/cmd.h"

/* QUERY_EMULATED_FUNCTIONS_INFO; the modifier names the kind of function. */
#define EMULATED_VIRTIO_NET  1u
#define EMULATED_COUNT	     PRM_FIELD(0x70, 16)
#define EMULATED_LIST	     0x10u /* byte */
#define EMULATED_ENTRY_BYTES 0x08u
#define EMULATED_ENTRY_BDF   PRM_FIELD(0x00, 16)
#define EMULATED_ENTRY_VHCA  PRM_FIELD(0x10, 16)

/* Where the function stands on the bus. */
#define EMULATION_BUS	 3u
#define EMULATION_SLOT	 1u /* a device's number in the card is also its function's number */
#define EMULATION_VENDOR 0x1af4u
#define EMULATION_DEVICE 0x1041u /* virtio 1.0: network */
#define EMULATION_CLASS	 0x020000u
#define EMULATION_QUEUES 64u /* each has a doorbell */

/* ---- the function: a virtio network device ---- */

#define EMULATION_IN_BYTES    0x20u
#define EMULATION_OUT_BYTES   0x80u
#define EMULATION_VHCA	      PRM_FIELD(0x0d0, 16)
#define EMULATION_ENABLED     PRM_FIELD(0x0e0, 1)
#define EMULATION_HAS_EQ      PRM_FIELD(0x0e8, 1)
#define EMULATION_HAS_MAPPING PRM_FIELD(0x0e9, 1)
#define EMULATION_DEVICE_ID   PRM_FIELD(0x180, 16)
#define EMULATION_VENDOR_ID   PRM_FIELD(0x190, 16)
#define EMULATION_REVISION    PRM_FIELD(0x1a0, 8)
#define EMULATION_CLASS_CODE  PRM_FIELD(0x1a8, 24)
#define EMULATION_MSIX	      PRM_FIELD(0x1f0, 16)
#define EMULATION_NUM_QUEUES  PRM_FIELD(0x310, 16)
#define EMULATION_BDF	      PRM_FIELD(0x330, 16)
#define EMULATION_STRIDE      PRM_FIELD(0x340, 32) /* bytes between doorbells */

/* ---- a doorbell of the function, and the CQ that it leads to ---- */

#define DB_CQ_BYTES	 0x50u
#define DB_CQ_UNMAPPED	 PRM_FIELD(0x0d0, 4)
#define DB_CQ_QUEUE_TYPE PRM_FIELD(0x0d4, 4)
#define DB_CQ_KIND	 PRM_FIELD(0x0d8, 8) /* kind of device; 0: any */
#define DB_CQ_DEVICE	 PRM_FIELD(0x100, 32)
#define DB_CQ_QUEUE	 PRM_FIELD(0x120, 32)
#define DB_CQ_CQN	 PRM_FIELD(0x140, 32)
#define DB_CQ_HANDLE	 PRM_FIELD(0x160, 32) /* for bells of device code */

/* ---- an interrupt of the function, as the event queue of CQs ---- */

#define EMULATED_EQ_BYTES  0x50u
#define EMULATED_EQ_DEVICE PRM_FIELD(0x0e0, 32)
#define EMULATED_EQ_VECTOR PRM_FIELD(0x234, 12)
