/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Taps: who wants to see the packets of this process.
 *
 * Common requests make no packets, and packets may carry a whole message; so a word in the slot of
 * each process says that somebody observes it (or injects faults), and while it is not 0 the
 * requests of its queue pairs, and those of its peers to them, go by packets of the path MTU.  Some
 * of what is on its way when the word changes may still go the other way.
 */
#pragma once

#include "base/compiler.h"
#include "wire/wire.h"

enum tap_point {
	/* The port has sent it.  On loopback before it is delivered, and there also if nobody takes
	 * it; otherwise when it is on its way, so that the other process may see it first. */
	TAP_SENT,
	TAP_DELIVERED, /* the port has received it */
};

struct tap {
	/*
	 * In the thread that sends or receives, in a reader's section, the caller's locks held: it
	 * must not call the wire.  The payload is there until it returns (wire/payload.h), but the
	 * owner of a packet that was sent to another process may be changing it already.
	 */
	void (*packet)(struct tap *t, enum tap_point at, uint32_t port_row, const struct pkt *p);
	_Atomic(struct tap *) next; /* the wire's */
};

/* When it returns, requests of this process that begin make packets. */
void wire_tap_attach(struct wire_process *h, struct tap *t);
/* When it returns, nobody is in the tap.  Not from within one. */
void wire_tap_detach(struct wire_process *h, struct tap *t);

/* Does anybody observe the process of this slot? */
static inline bool slot_observed(const struct slot *s)
{
	return unlikely(atomic_load_explicit(&s->observers, memory_order_relaxed));
}
