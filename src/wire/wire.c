/* SPDX-License-Identifier: BSD-2-Clause */
/* Ports on the wire: where a packet goes, and the loopback within the process. */
#include <errno.h>
#include <stdlib.h>

#include "base/rcu.h"
#include "base/trace.h"
#include "wire/process.h"
#include "wire/route.h"
#include "wire/counter_shard.h"
#include "wire/size.h"

int wire_create(struct wire_process *h, uint32_t port_row, struct wire **out)
{
	const struct subnet *s = h->attr.subnet;
	struct wire *w;
	int rc = -ENOSPC;

	if (port_row >= s->nports || s->ports[port_row].host_index >= SLOT_PORTS)
		return -EINVAL;
	w = malloc(sizeof(*w));
	if (!w)
		return -ENOMEM;
	*w = (struct wire){
		.host = h,
		.port_row = port_row,
		.ethernet = s->ports[port_row].ethernet,
		.counters = h->slot->counters[0][s->ports[port_row].host_index],
	};
	pthread_mutex_lock(&h->control);
	for (unsigned i = 0; rc == -ENOSPC && i < WIRE_PROCESS_WIRES; i++) {
		if (atomic_load_explicit(&h->wires[i], memory_order_relaxed))
			continue;
		atomic_store_explicit(&h->wires[i], w, memory_order_release);
		rc = 0;
	}
	pthread_mutex_unlock(&h->control);
	if (rc)
		free(w);
	else
		*out = w;
	return rc;
}

void wire_destroy(struct wire *w)
{
	struct wire_process *h = w->host;

	pthread_mutex_lock(&h->control);
	for (unsigned i = 0; i < WIRE_PROCESS_WIRES; i++)
		if (atomic_load_explicit(&h->wires[i], memory_order_relaxed) == w)
			atomic_store(&h->wires[i], NULL);
	pthread_mutex_unlock(&h->control);
	rcu_wait();
	free(w);
}

void wire_attach(struct wire *w, const struct wire_client *client)
{
	/* When it has returned, nobody is in the former client any more. */
	if (atomic_exchange(&w->client, NULL))
		rcu_wait();
	if (client) {
		w->attached = *client;
		atomic_store_explicit(&w->client, &w->attached, memory_order_release);
	}
}

const struct subnet *wire_subnet(const struct wire *w)
{
	return w->host->attr.subnet;
}

uint32_t wire_port_row(const struct wire *w)
{
	return w->port_row;
}

_Atomic(uint64_t) *wire_counters(struct wire *w)
{
	return w->counters;
}

struct wire *wire_process_wire(struct wire_process *h, uint32_t port_row)
{
	for (unsigned i = 0; i < WIRE_PROCESS_WIRES; i++) {
		struct wire *w = atomic_load_explicit(&h->wires[i], memory_order_acquire);

		if (w && w->port_row == port_row)
			return w;
	}
	return NULL;
}

bool wire_deliver(struct wire *w, const struct pkt *p)
{
	const struct wire_client *client = atomic_load_explicit(&w->client, memory_order_acquire);
	uint32_t n = pkt_wire_packets(p);

	/* The port may have gone down while the packet was on its way. */
	if (!client || !subnet_port_active(w->host->attr.subnet, w->port_row))
		return false;
	shard_count(w->counters, PORT_RCV_DATA, pkt_wire_octets(p, w->ethernet) / 4);
	shard_count(w->counters, PORT_RCV_PACKETS, n);
	client->receive(client->user, p);
	return true;
}

static enum wire_verdict loop_back(struct wire_process *h, const struct pkt *p)
{
	struct wire *to;
	bool delivered;

	rcu_enter();
	to = wire_process_wire(h, p->path->dst_port);
	delivered = to && wire_deliver(to, p);
	rcu_leave();
	return delivered ? WIRE_SENT : WIRE_LOST;
}

enum wire_verdict wire_xmit(struct wire *w, const struct pkt *p)
{
	struct wire_process *h = w->host;
	enum wire_verdict verdict = WIRE_LOST;
	uint32_t n, owner;
	uint64_t octets;

	if (unlikely(p->dqpn == IB_MULTICAST_QPN))
		return multicast_xmit(w, p);
	/* Before it is sent: on loopback the receiver may reuse what the packet describes. */
	octets = pkt_wire_octets(p, w->ethernet);
	n = pkt_wire_packets(p);
	owner = route_owner_plus_1(w, p->path, p->dqpn);
	if (owner == h->attr.slot + 1u)
		verdict = loop_back(h, p);
	else if (likely(owner))
		verdict = wire_process_send(h, (uint16_t)(owner - 1), p);
	if (likely(verdict == WIRE_SENT)) {
		shard_count(w->counters, PORT_XMIT_DATA, octets / 4);
		shard_count(w->counters, PORT_XMIT_PACKETS, n);
	} else if (verdict == WIRE_LOST) {
		trace(packet, lost, p->sqpn, p->dqpn, bth_op_name(p->opcode), p->psn,
		      route_missing(w, p->path, p->dqpn));
		shard_count(w->counters, PORT_XMIT_DISCARDS, n);
	}
	return verdict;
}

void wire_withdraw(struct wire *w, uint32_t dqpn, uint32_t sqpn)
{
	const struct record_refs refs = {.sqpn = sqpn};
	struct wire_process *h = w->host;
	uint32_t owner = route_number_owner_plus_1(h->attr.registry, dqpn);

	if (owner && owner != h->attr.slot + 1u)
		wire_process_withdraw(h, (uint16_t)(owner - 1), &refs, NULL, NULL);
}

void wire_withdraw_memory(struct wire *w, struct run memory,
			  void (*lost)(void *user, uint32_t sqpn), void *user)
{
	const struct record_refs refs = {.src_port = w->port_row, .memory = memory};

	for (unsigned peer = 0; peer < REGISTRY_SLOTS; peer++)
		wire_process_withdraw(w->host, (uint16_t)peer, &refs, lost, user);
}

uint32_t wire_max_payload(struct wire *w, const struct path *path, uint32_t dqpn,
			  uint32_t mtu_bytes, bool by_reference_ok)
{
	struct wire_process *h = w->host;
	uint32_t owner = route_owner_plus_1(w, path, dqpn);
	uint32_t max = channel_min_payload();

	if (owner == h->attr.slot + 1u) {
		max = (uint32_t)IB_MAX_MSG_BYTES;
	} else if (owner) {
		struct channel *ch =
			atomic_load_explicit(&h->channels[owner - 1], memory_order_acquire);

		if (ch)
			max = channel_max_payload(ch, by_reference_ok);
	}
	/* mtu_bytes is at most 4096 and every channel takes that. */
	return mtu_bytes ? max - max % mtu_bytes : max;
}

struct expose *wire_expose(struct wire *w)
{
	return &w->host->expose;
}

struct slot *wire_slots(const struct wire *w)
{
	return w->host->attr.slots;
}

uint16_t wire_slot(const struct wire *w)
{
	return w->host->attr.slot;
}

/* What that slot lays open, if it lives.  Under RCU. */
static struct remote *remote_of(struct wire_process *h, uint32_t owner_plus_1)
{
	struct remote *f;

	if (!owner_plus_1 || owner_plus_1 == h->attr.slot + 1u)
		return NULL;
	f = atomic_load_explicit(&h->remotes[owner_plus_1 - 1], memory_order_acquire);
	if (!f || atomic_load_explicit(&h->attr.slots[owner_plus_1 - 1].alive,
				       memory_order_relaxed) != f->alive)
		return NULL;
	return f;
}

struct remote *wire_remote(struct wire *w, const struct path *path, uint32_t dqpn)
{
	return remote_of(w->host, route_owner_plus_1(w, path, dqpn));
}

bool wire_is_remote(struct wire *w, const struct path *path, uint32_t dqpn)
{
	bool remote;

	rcu_enter();
	/* The queue pair's locks may not be held: its memory of the route is none of ours. */
	remote = remote_of(w->host, route_walk(w, path, dqpn));
	rcu_leave();
	return remote;
}

void wire_remote_connect(struct wire *w, const struct path *path, uint32_t dqpn)
{
	uint32_t owner = route_walk(w, path, dqpn);

	if (owner && owner != w->host->attr.slot + 1u)
		wire_process_remote_connect(w->host, (uint16_t)(owner - 1));
}
