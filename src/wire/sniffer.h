/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sniffers: processes that see what passes a port of their host, also if other processes send or
 * receive it.
 *
 * Ethernet frames come to every process that listens to them (wire/multicast.c).  Packets of queue
 * pairs do not, so the process that sends one makes a frame of RoCE of it for each sniffer at the
 * port that it leaves or at the one that it goes to.  A sniffer whose channel is full loses the
 * copy.  Transports that have no frame (wire/roce.h) are not seen.
 *
 * A process that sniffs says so in its own slot, for processes that come later, and in the slots of
 * those that exist.  A process that has a sniffer in its slot is observed (wire/tap.h), so its
 * requests make packets.  The sniffing process may die; a process that finds its bit then takes the
 * bit away.
 */
#pragma once

#include <stdbool.h>

#include "wire/pkt.h"

struct wire;
struct wire_process;

/* From now on wire_client.sniff of this wire gets what passes the port. */
void wire_sniff_begin(struct wire *w);
/* Once for each begin. */
void wire_sniff_end(struct wire *w);

/* Shows a frame of RoCE that has come to the port from outside of the fabric. */
void wire_sniff_arrival(struct wire *w, const uint8_t *frame, uint32_t bytes);

/* A new process calls it to find out who sniffs. */
void sniffer_join(struct wire_process *h);

static inline bool sniffer_is_copy(const struct pkt *p)
{
	return pkt_transport(p) == BTH_RAW && p->sqpn == FRAME_OF_PACKET;
}
