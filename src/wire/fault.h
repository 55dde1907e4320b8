/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults on demand at a port, by the rules in registry/fault.h.
 *
 * A packet meets them where it ends, after its sender has counted it and before the port has: so one
 * that is lost was sent and has not come, as on a bad cable.  While there are rules, all processes
 * are observed (wire/tap.h), so each packet is one of a real wire.
 *
 * What a rule draws follows from its seed, the numbers of the queue pairs within their process, and
 * which packet of these two it is: the distance of its PSN from the first one, and how often it has
 * come before.  So the first transmissions that are hit do not depend on time.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/spin.h"
#include "registry/fault.h"
#include "registry/registry.h"

struct pkt;
struct wire;

struct fault_flow;
struct fault_held;

/* What a port knows of faults. */
struct fault_port {
	struct spin lock;
	struct fault_view view;
	uint64_t free_ns[FAULT_RULES]; /* when the rule's rate lets the next packet go */
	_Atomic(bool) equipped;	       /* the port has what follows */
	struct fault_flow *flows;
	struct fault_held *first, *last; /* packets that wait, by the time at which they go on */
	uint64_t held_bytes;
	bool delivering; /* a thread delivers packets that are due */
	/* There are packets that wait.  The process counts as observed meanwhile, so that later ones
	 * come here, too, when the rules have gone. */
	_Atomic(bool) holds;
};

/*
 * True if the packet, which has come to the port, goes no further now: it is lost, or comes later.
 * A packet that comes twice is delivered once within the call.  Call it in a reader's section.
 */
bool fault_takes(struct wire *w, const struct pkt *p) must_check __attribute__((cold));

/* A work request that is about to begin. */
struct fault_request {
	uint32_t qpn;
	uint32_t dst_port; /* row; SUBNET_NONE: not known */
	uint8_t op;	   /* enum bth_op of its only packet, if one is enough */
	bool frame;	   /* it sends a frame, which has no operation */
	bool reliable;
};

/* True if the request is to fail on demand, with that syndrome; vendor_err 0: the usual one. */
bool fault_request_fails(struct wire *w, const struct fault_request *q, uint8_t *syndrome,
			 uint8_t *vendor_err) must_check __attribute__((cold));
/* True if the receive that has been taken for the message, which begins with this packet, is to fail
 * on demand with that syndrome. */
bool fault_receive_fails(struct wire *w, const struct pkt *p, uint8_t *syndrome) must_check
	__attribute__((cold));
/* True if links have faults. */
bool fault_of_links(const struct wire *w) must_check __attribute__((cold));
/* Frees what the port holds. */
void fault_port_release(struct fault_port *f);

/* True if there are rules. */
static inline bool fault_any(const struct slot *s)
{
	return unlikely(atomic_load_explicit(&s->observers, memory_order_relaxed) &
			SLOT_HAS_FAULTS);
}

/* True if a packet that comes to the port has to be looked at. */
static inline bool fault_awaits(const struct slot *s, const struct fault_port *f)
{
	uint32_t observers = atomic_load_explicit(&s->observers, memory_order_relaxed);

	return unlikely(observers) && (observers & SLOT_HAS_FAULTS ||
				       atomic_load_explicit(&f->holds, memory_order_relaxed));
}
