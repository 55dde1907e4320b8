/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire as the adapter sees it: a way out for packets and an upcall for those that arrive.
 * One struct wire serves one adapter in one process; behind it are loopback, the shared-memory channels to
 * the other processes of this machine, and (later) UDP.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/pkt.h"

struct wire;

/* Outcome of a transmission. */
enum wire_verdict {
	WIRE_SENT,	/* delivered, or on its way */
	WIRE_BUSY,	/* no room; nothing was sent.  The sender is told by ready() or tries at its next progress */
	WIRE_LOST,	/* no route, port down, peer gone: a real wire would have dropped it silently */
};

/* What the wire calls in the adapter that it serves. */
struct wire_client {
	/*
	 * A packet for this adapter.  On loopback it runs inside the sender's wire_xmit; from another process inside
	 * wire_progress.  The payload is valid until return.
	 */
	void (*receive)(void *user, const struct pkt *pkt);
	void *user;
};

void wire_attach(struct wire *w, const struct wire_client *client);

/*
 * Sends one packet.  The wire does not keep a reference to the payload after it returned WIRE_SENT,
 * except where pkt->ack_req is set on a reliable transport: then a large payload may be read by the peer process
 * until it has acknowledged (the requester keeps it in place until then, as for hardware).
 */
enum wire_verdict wire_xmit(struct wire *w, const struct pkt *pkt);

/*
 * The largest payload that one packet to this destination may carry, for a path MTU.  A multiple of mtu_bytes unless it
 * is the whole message.
 */
uint32_t wire_max_payload(struct wire *w, const struct path *path, uint32_t mtu_bytes, uint8_t transport);

/* Delivers what other processes sent; true if anything arrived. */
bool wire_progress(struct wire *w);
