/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Captures of packets (registry/capture.h): a tap that copies what the ports of this process send
 * and receive into a ring, and what the reader of the ring needs to know of such a copy.
 */
#pragma once

#include "registry/capture.h"
#include "wire/record.h"
#include "wire/wire.h"

/* Packets of this process are to go into the ring of capture 'id'. */
struct capture_attr {
	uint32_t id;
	uint32_t ports; /* of the host, a bit each, by subnet_port.host_index */
	struct capture_want want;
};

/*
 * Maps the ring, whose descriptor stays the caller's.  Requests that begin after it has returned make
 * packets, and the ring gets them; those that are under way may not.  It does not wait for them, because
 * they may wait for its caller.  0 or a negative errno.
 */
int wire_capture_begin(struct wire_process *h, const struct capture_attr *attr, int fd) must_check;
/* No request that begins is written into the ring any more.  wire_captures_let_go unmaps it. */
void wire_capture_end(struct wire_process *h, uint32_t id);
/* Unmaps the rings of captures that have ended, when nobody writes there any more.  Not from a reader's
 * section, nor where requests may wait for the caller.  True: there were some. */
bool wire_captures_let_go(struct wire_process *h);
/* Both, for all captures. */
void wire_captures_end(struct wire_process *h);

/* True if the packet is one that the capture is to have. */
bool capture_matches(const struct capture_want *want, const struct pkt *p) must_check;

/* What capture_unpack finds in a record. */
struct captured {
	struct record_pkt packet; /* of CAPTURE_PACKET and CAPTURE_MAD */
	struct run runs[2];
	const void *frame; /* of CAPTURE_FRAME */
	uint32_t bytes;	   /* of the payload or the frame that were copied */
};

/*
 * Takes a record of a ring apart.  The packet's payload, of at most CAPTURE_PAYLOAD_MAX bytes, is
 * zero where it was not copied.  False: the record is malformed.
 */
bool capture_unpack(const struct capture_head *head, uint32_t bytes,
		    struct captured *out) must_check;
