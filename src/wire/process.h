/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the wire: what the wires of one process share.  Tables of wires are read under RCU.  The
 * control lock is held for short and never across a callback.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "exposure/expose.h"
#include "wire/link_shm.h"
#include "wire/route.h"
#include "wire/tap.h"
#include "wire/wire.h"

#define WIRE_PROCESS_WIRES 16u

struct wire {
	struct wire_process *host;
	uint32_t port_row;
	bool ethernet;
	_Atomic(uint64_t) *counters;
	struct traffic *traffic; /* NULL: no switches on its ways, all counts are in 'counters' */
	_Atomic(uint64_t) violation_next_ns; /* at a switch: not told of before */
	struct wire_client attached;
	_Atomic(const struct wire_client *) client; /* &attached or NULL */
};

struct wire_process {
	struct wire_process_attr attr;
	struct slot *slot; /* our own */
	struct expose expose;
	uint32_t files_ended; /* as the slot said when peers' files were looked at last */
	struct link *links[WIRE_PROCESS_LINKS]; /* that drain */
	unsigned nlinks;
	_Atomic(struct wire *) wires[WIRE_PROCESS_WIRES];
	_Atomic(struct tap *) taps;	       /* changed under the control lock, read under RCU */
	uint32_t group_users[WIRE_GROUP_BITS]; /* the control lock */
	pthread_mutex_t control;
	/* Flows that we control (wire/flow_control.h). */
	struct spin flows_lock;
	void (*flows)(void *user, uint16_t slot, uint32_t row);
	void *flows_user;
	uint32_t flows_begun;		/* how often we began to */
	void (*_Atomic emulated)(void); /* or NULL */
	struct link none, local;
	struct link_shm shm;
	/* What leads to an owner that a route names; never NULL. */
	struct link *link_to[ROUTE_OWNERS];
};

/* The link leads to owners [first, end) from now on.  Before the process has a wire. */
void wire_process_add_link(struct wire_process *h, struct link *l, uint32_t first, uint32_t end);
/* The wire of this process for a port, or NULL.  In a reader's section. */
static inline struct wire *wire_process_wire(struct wire_process *h, uint32_t port_row)
{
	for (unsigned i = 0; i < WIRE_PROCESS_WIRES; i++) {
		struct wire *w = atomic_load_explicit(&h->wires[i], memory_order_acquire);

		if (w && w->port_row == port_row)
			return w;
	}
	return NULL;
}

/* Tells the taps of a packet, if the slot is observed. */
void tap_packet(struct wire *w, enum tap_point at, const struct pkt *p) __attribute__((cold));

/* Packets to IB_MULTICAST_QPN, see multicast.c.  Delivery in a reader's section; false: nobody here
 * wants it. */
enum wire_verdict multicast_xmit(struct wire *w, const struct pkt *p);
bool multicast_deliver(struct wire_process *h, const struct pkt *p);
