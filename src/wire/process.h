/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the wire: what the wires of one process share.  Readers (base/hazard.h) look at the tables of wires.
 * Nobody holds the control lock for long, or across a callback.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "exposure/expose.h"
#include "wire/fault.h"
#include "wire/gsi.h"
#include "wire/link_shm.h"
#include "wire/route.h"
#include "wire/tap.h"
#include "wire/wire.h"

#define WIRE_PROCESS_WIRES 16u

struct wire {
	struct wire_process *process;
	uint32_t port_row;
	bool ethernet;
	_Atomic(uint64_t) *counters;
	uint32_t sniffers;	 /* how often the port is sniffed; under the control lock */
	struct traffic *traffic; /* NULL: no switches on its ways, 'counters' count all */
	_Atomic(uint64_t) violation_next_ns; /* when it may tell of one at a switch again */
	struct fault_port faults;
	struct wire_client attached;
	_Atomic(const struct wire_client *) client; /* &attached or NULL */
};

struct wire_process {
	struct wire_process_attr attr;
	struct slot *slot; /* our own */
	struct expose expose;
	uint32_t files_ended; /* our slot's count when we last looked at peers' files */
	struct link *links[WIRE_PROCESS_LINKS]; /* the links that drain */
	unsigned nlinks;
	_Atomic(struct wire *) wires[WIRE_PROCESS_WIRES];
	_Atomic(struct tap *) taps; /* changed under the control lock, read by readers */
	_Atomic(struct capture *) captures_ended; /* in which threads may still be */
	struct capture *captures;		  /* under the control lock (wire/capture.h) */
	uint32_t group_users[WIRE_GROUP_BITS];	  /* under the control lock */
	pthread_mutex_t control;
	/* The flows that we control (wire/flow_control.h). */
	struct spin flows_lock;
	void (*flows)(void *user, uint16_t slot, uint32_t row);
	void *flows_user;
	uint32_t flows_begun;		/* how often we began to control them */
	void (*_Atomic emulated)(void); /* or NULL */
	struct gsi gsi;
	struct link none, local;
	struct link_shm shm;
	/* The link that leads to each owner that a route names; never NULL. */
	struct link *link_to[ROUTE_OWNERS];
};

/* Makes the link lead to owners [first, end).  Only before the process has a wire. */
void wire_process_add_link(struct wire_process *h, struct link *l, uint32_t first, uint32_t end);
/* The wire of this process for a port, or NULL.  Call it in a reader's section. */
static inline struct wire *wire_process_wire(struct wire_process *h, uint32_t port_row)
{
	for (unsigned i = 0; i < WIRE_PROCESS_WIRES; i++) {
		struct wire *w = atomic_load_explicit(&h->wires[i], memory_order_acquire);

		if (w && w->port_row == port_row)
			return w;
	}
	return NULL;
}

/* As wire_tap_attach and wire_tap_detach, without the wait: requests that are under way may miss the
 * tap, or be in it. */
void tap_insert(struct wire_process *h, struct tap *t);
void tap_remove(struct wire_process *h, struct tap *t);
/* Shows the packet to the taps, if the slot is observed.  ns: when it was sent, by
 * clock_realtime_ns; 0: now. */
void tap_packet(struct wire *w, enum tap_point at, uint64_t ns, const struct pkt *p)
	__attribute__((cold));

/* Takes such a packet as a frame, from this process or another one.  Call it in a reader's
 * section. */
void sniffer_deliver(struct wire_process *h, const struct pkt *p);

/* Send and deliver packets to IB_MULTICAST_QPN, see multicast.c.  Call multicast_deliver in a
 * reader's section; false: nobody here wants the packet. */
enum wire_verdict multicast_xmit(struct wire *w, const struct pkt *p);
bool multicast_deliver(struct wire_process *h, const struct pkt *p);

/* Delivers packets that have arrived to the ports of this process. */

/* Hands the packet to the port's client, whatever faults there are.  Call it in a reader's section.
 * False: nobody takes it. */
bool wire_pass(struct wire *w, const struct pkt *p);
/* The same for packets to IB_MULTICAST_QPN; in multicast.c. */
bool multicast_pass(struct wire *w, const struct pkt *p);

/* Delivers to the port that the packet names, or to all ports that listen to its group.  False:
 * nobody takes it. */
bool wire_process_deliver(struct wire_process *h, const struct pkt *p);
