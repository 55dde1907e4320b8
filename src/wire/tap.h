/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tap sees the packets of this process.
 *
 * Common requests make no packets, and packets may carry a whole message; so a word in the slot of
 * each process says that somebody observes it (or injects faults), and while it is not 0 the
 * requests of its queue pairs, and those of its peers to them, go by packets of the path MTU.  A
 * few requests that are under way when the word changes may still go the other way.
 */
#pragma once

#include <stdbool.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "wire/pkt.h"
#include "wire/wire.h"

enum tap_point {
	/* The port has sent the packet.  On loopback the tap sees it before it is delivered, and
	 * even if nobody takes it.  Otherwise the tap sees it when it is on its way, so the other
	 * process may see it first. */
	TAP_SENT,
	TAP_DELIVERED, /* the port has received it */
};

struct tap {
	/*
	 * Runs in the thread that sends or receives, in a reader's section, while the caller holds
	 * its locks: it must not call the wire.  The payload stays until it returns
	 * (wire/payload.h), but the owner of a packet that was sent to another process may already
	 * be changing it.  ns: when the packet was sent, before its receiver can have seen it
	 * (CLOCK_REALTIME); 0: now.
	 */
	void (*packet)(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
		       const struct pkt *p);
	_Atomic(struct tap *) next; /* belongs to the wire */
};

/* When it returns, requests of this process that begin make packets. */
void wire_tap_attach(struct wire_process *h, struct tap *t);
/* When it returns, nobody is in the tap.  Must not be called from within a tap. */
void wire_tap_detach(struct wire_process *h, struct tap *t);

/* True if somebody observes the process of this slot. */
static inline bool slot_observed(const struct slot *s)
{
	return unlikely(atomic_load_explicit(&s->observers, memory_order_relaxed));
}

/*
 * A thread that may be preempted between sending a packet and showing it says since when, so that
 * who puts packets in order knows what is still to come.  A packet that is sent has a time after
 * that.  More than SLOT_SENDING threads at once are not seen.
 */
static inline _Atomic(uint64_t) *sending_begin(struct slot *s)
{
	uint64_t now = clock_realtime_ns();

	for (uint32_t i = 0; i < SLOT_SENDING; i++) {
		uint64_t none = 0;

		if (!atomic_load_explicit(&s->sending_since[i], memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&s->sending_since[i], &none, now))
			return &s->sending_since[i];
	}
	return NULL;
}

static inline void sending_end(_Atomic(uint64_t) *since)
{
	if (since)
		atomic_store_explicit(since, 0, memory_order_release);
}

/* The earliest of these times; UINT64_MAX: nobody sends.  Read the clock before: a packet that is not
 * in its ring when this returns has a time after the one or the other. */
static inline uint64_t sending_earliest(const struct slot *s)
{
	uint64_t earliest = UINT64_MAX;

	for (uint32_t i = 0; i < SLOT_SENDING; i++) {
		uint64_t ns = atomic_load(&s->sending_since[i]);

		if (ns && ns < earliest)
			earliest = ns;
	}
	return earliest;
}

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
