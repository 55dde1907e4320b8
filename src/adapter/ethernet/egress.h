/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that leave the host, through the rules for queues that send and through the switch. */
#pragma once

#include "adapter/ethernet/raw.h"

/* Sends a whole frame, and may change it in its room of FRAME_MAX bytes.  Returns RAW_SENT or
 * RAW_BUSY. */
enum raw_verdict egress_send(struct qp *qp, uint8_t *frame, uint32_t bytes);

/* Sends a frame past all rules. sqpn: the number of the queue that sends it, or FRAME_OF_SWITCH.
 * Returns RAW_SENT or RAW_BUSY. */
enum raw_verdict frame_to_wire(struct adapter *a, uint32_t sqpn, const uint8_t *frame,
			       uint32_t bytes);
