/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside the wire: what the wires of one process share.
 *
 * Tables of wires are read under RCU.  Channels are type-stable (see channel.h).  The control lock
 * is held for short and never across a callback: the thread that answers open_channel's request may
 * be the very one that calls wire_host_add_channel or wire_host_drop_channel.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/spin.h"
#include "wire/channel.h"
#include "wire/wire.h"

#define HOST_WIRES 16u

struct wire {
	struct wire_host *host;
	uint32_t port_row;
	bool ethernet;
	_Atomic(uint64_t) *counters;
	struct wire_client attached;
	_Atomic(const struct wire_client *) client; /* &attached or NULL */
};

struct wire_host {
	struct wire_host_attr attr;
	struct slot *slot; /* our own */
	struct spin rx_lock;
	_Atomic(struct wire *) wires[HOST_WIRES];
	_Atomic(struct channel *) channels[REGISTRY_SLOTS];
	_Atomic(bool) opening[REGISTRY_SLOTS];
	_Atomic(uint64_t) retry_at[REGISTRY_SLOTS]; /* ns; no attempt to open before */

	pthread_mutex_t control;
	struct channel *dying; /* unpublished, torn down by the next who progresses */
	_Atomic(bool) any_dying;
	struct channel *spare;
};

/* Sends to the process in another slot; opens the channel if need be. */
enum wire_verdict host_send(struct wire_host *h, uint16_t peer, const struct pkt *p);
/* The wire of this process for a port, or NULL.  In a reader's section. */
struct wire *host_wire(struct wire_host *h, uint32_t port_row);
/* Hands a packet to the wire's client, counting it.  In a reader's section; false: nobody there. */
bool wire_deliver(struct wire *w, const struct pkt *p);
