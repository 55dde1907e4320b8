/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames that leave the host: through the rules of queues that send, and the switch. */
#pragma once

#include "adapter/ethernet/raw.h"

/* A whole frame, which may be changed in its room of FRAME_MAX bytes: RAW_SENT or RAW_BUSY. */
enum raw_verdict egress_send(struct qp *qp, uint8_t *frame, uint32_t bytes);

/* Past all rules.  sqpn: of the queue that sent it.  RAW_SENT or RAW_BUSY. */
enum raw_verdict frame_to_wire(struct adapter *a, uint32_t sqpn, const uint8_t *frame,
			       uint32_t bytes);
