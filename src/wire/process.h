/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the wire: what the wires of one process share.
 *
 * Tables of wires are read under RCU.  Channels are type-stable (see channel.h).  The control lock
 * is held for short and never across a callback: the thread that answers open_channel's request may
 * be the very one that calls wire_process_add_channel or wire_process_drop_channel.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/spin.h"
#include "wire/channel.h"
#include "wire/inbox.h"
#include "wire/wire.h"

#define WIRE_PROCESS_WIRES 16u

/*
 * Channels that carried something lately are looked into at each progress, without waiting for a
 * bit in the inbox: as many as cost less to look at than the bits would cost to set and clear.
 */
#define WIRE_PROCESS_HOT 4u
/* A channel that was found empty so often in a row gives up its place to another. */
#define WIRE_PROCESS_HOT_PATIENCE 1024u

struct wire {
	struct wire_process *host;
	uint32_t port_row;
	bool ethernet;
	_Atomic(uint64_t) *counters;
	struct wire_client attached;
	_Atomic(const struct wire_client *) client; /* &attached or NULL */
};

struct wire_process {
	struct wire_process_attr attr;
	struct slot *slot; /* our own */
	struct expose expose;
	_Atomic(struct remote *) remotes[REGISTRY_SLOTS]; /* mapped under control, read under RCU */
	struct remote *dead_remotes;
	struct spin rx_lock;
	/* under rx_lock */
	struct inbox_kept kept;
	uint16_t hot[WIRE_PROCESS_HOT]; /* peers */
	uint32_t hot_idle[WIRE_PROCESS_HOT];
	_Atomic(uint32_t) nhot;
	_Atomic(struct wire *) wires[WIRE_PROCESS_WIRES];
	_Atomic(struct channel *) channels[REGISTRY_SLOTS];
	_Atomic(bool) opening[REGISTRY_SLOTS];
	_Atomic(uint64_t) retry_at[REGISTRY_SLOTS]; /* ns; no attempt to open before */
	uint32_t group_users[WIRE_GROUP_BITS];	    /* the control lock */

	pthread_mutex_t control;
	struct channel *dying; /* unpublished, torn down by the next who progresses */
	_Atomic(bool) any_dying;
	struct channel *spare;
};

/* Maps what another slot exposes. */
void wire_process_remote_connect(struct wire_process *h, uint16_t peer);
/* Opens the channel to another slot if need be; false: not now. */
bool wire_process_connect(struct wire_process *h, uint16_t peer);
/* Sends to the process in another slot; opens the channel if need be. */
enum wire_verdict wire_process_send(struct wire_process *h, uint16_t peer, const struct pkt *p);
/* Would it take the packet now?  False means WIRE_BUSY, and that we hear when there is room. */
bool wire_process_has_room(struct wire_process *h, uint16_t peer, const struct pkt *p);
/* Payloads that went by reference to the process in another slot are taken back. */
void wire_process_withdraw(struct wire_process *h, uint16_t peer, const struct record_refs *refs,
			   void (*lost)(void *user, uint32_t sqpn), void *user);
/* The wire of this process for a port, or NULL.  In a reader's section. */
struct wire *wire_process_wire(struct wire_process *h, uint32_t port_row);
/* Hands a packet to the wire's client, counting it.  In a reader's section; false: nobody there. */
bool wire_deliver(struct wire *w, const struct pkt *p);

/* Packets to IB_MULTICAST_QPN, see multicast.c.  Delivery in a reader's section. */
enum wire_verdict multicast_xmit(struct wire *w, const struct pkt *p);
void multicast_deliver(struct wire_process *h, const struct pkt *p);
