/* SPDX-License-Identifier: BSD-2-Clause */
/* Raw packet queue pairs: Ethernet frames out of the send ring, and into the receive ring. */
#pragma once

#include "adapter/qp/qp.h"
#include "adapter/qp/send_wqe.h"

enum raw_verdict {
	RAW_SENT,
	RAW_BUSY,	/* the caller continues from *off later */
	RAW_BAD_LENGTH, /* too many bytes for a frame, or too few */
	RAW_BAD_KEY,
	RAW_BAD_WQE, /* the request segments a frame that is no TCP segment */
};

/* Sends the frames of a request.  *off: how many payload bytes are sent. */
enum raw_verdict raw_send(struct qp *qp, const struct send_wqe *w, uint64_t *off);

/* Takes a frame for this port; true if a rule took it.  The caller is a reader. */
bool raw_receive(struct adapter *a, const struct pkt *pkt);
/* The same for a frame that the switch hands to the host, which may have sent it itself. */
void raw_receive_from_switch(struct adapter *a, const struct pkt *pkt);
/* Takes a packet of queue pairs as a frame, which only sniffers get.  The caller is a reader. */
void raw_sniff(struct adapter *a, const struct pkt *pkt);
