// SPDX-License-Identifier: BSD-2-Clause
/* Ports on the wire: what they send goes to the link that its route names. */
#include "wire/wire.h"

#include "base/clock.h"
#include "base/hazard.h"
#include "base/trace.h"
#include "wire/counter_shard.h"
#include "wire/process.h"
#include "wire/gsi.h"
#include "wire/route.h"
#include "wire/pkt.h"
#include "wire/tap.h"
#include "wire/traffic.h"

#include <errno.h>
#include <stdlib.h>

#define VIOLATION_PAUSE_NS 100000000ull

bool violation_due(_Atomic(uint64_t) *next_ns)
{
	uint64_t now = clock_ns();
	uint64_t next = atomic_load_explicit(next_ns, memory_order_relaxed);

	return now >= next &&
	       atomic_compare_exchange_strong(next_ns, &next, now + VIOLATION_PAUSE_NS);
}

struct key_violation violation_of(const struct pkt *p, uint32_t row, enum key_violation_kind kind)
{
	const struct path *path = p->path;

	return (struct key_violation){
		.row = row,
		.key = kind == VIOLATION_QKEY ? p->qkey : p->pkey,
		.sqpn = p->sqpn,
		.dqpn = p->dqpn,
		.slid = path->slid,
		.dlid = path->dlid,
		.sl = path->sl,
		.kind = (uint8_t)kind,
		.grh = path->grh,
		.sgid = path->sgid,
		.dgid = path->dgid,
	};
}

/* Counts a packet that a switch's port has not let pass, both as sent by our port and as refused
 * there (wire/traffic.h), and tells of it when it is time. */
static __attribute__((cold)) void violation_at_switch(struct wire *w, const struct pkt *p)
{
	const struct wire_process_attr *attr = &w->process->attr;
	uint32_t cell = w->traffic ? traffic_find_refused(w->traffic, p->path) : TRAFFIC_NONE;
	uint64_t words = pkt_wire_octets(p, w->ethernet) / 4, packets = pkt_wire_packets(p);
	struct key_violation v;

	if (cell != TRAFFIC_NONE) {
		traffic_add(w->traffic, cell, words, packets);
	} else {
		shard_count(w->counters, PORT_XMIT_DATA, words);
		shard_count(w->counters, PORT_XMIT_PACKETS, packets);
	}
	if (!attr->violated || !violation_due(&w->violation_next_ns))
		return;
	v = violation_of(p, w->port_row, VIOLATION_PKEY_AT_SWITCH);
	v.key = p->path->pkey;
	attr->violated(attr->user, &v);
}

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
		.process = h,
		.port_row = port_row,
		.ethernet = s->ports[port_row].ethernet,
		.counters = h->slot->counters[0][s->ports[port_row].host_index],
		.traffic = s->ports[port_row].ethernet ? NULL : h->attr.traffic,
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
	struct wire_process *h = w->process;

	pthread_mutex_lock(&h->control);
	for (unsigned i = 0; i < WIRE_PROCESS_WIRES; i++)
		if (atomic_load_explicit(&h->wires[i], memory_order_relaxed) == w)
			atomic_store(&h->wires[i], NULL);
	pthread_mutex_unlock(&h->control);
	hazard_wait_all();
	fault_port_release(&w->faults);
	free(w);
}

void wire_attach(struct wire *w, const struct wire_client *client)
{
	/* When hazard_wait has returned, nobody is in the former client any more. */
	if (atomic_exchange(&w->client, NULL))
		hazard_wait_all();
	if (client) {
		w->attached = *client;
		atomic_store_explicit(&w->client, &w->attached, memory_order_release);
	}
}

const struct subnet *wire_subnet(const struct wire *w)
{
	return w->process->attr.subnet;
}

uint32_t wire_port_row(const struct wire *w)
{
	return w->port_row;
}

_Atomic(uint64_t) *wire_counters(struct wire *w)
{
	return w->counters;
}

struct traffic *wire_traffic(const struct wire *w)
{
	return w->traffic;
}

/* True for the numbers of QP 0 and QP 1 of every port, and of all members of a group. */
static inline bool is_no_queue_pair(uint32_t qpn)
{
	return ((qpn + 1) & IB_QPN_MASK) <= IB_GSI_QPN + 1;
}

/* Sends the packet, and shows it to who observes us. */
static __attribute__((cold)) enum wire_verdict xmit_observed(struct wire *w, struct link *l,
							     uint32_t to, const struct pkt *p)
{
	enum wire_verdict verdict;
	_Atomic(uint64_t) *since;
	uint64_t ns;

	if (l->ops->immediate) {
		tap_packet(w, TAP_SENT, 0, p);
		return l->ops->xmit(l, to, p);
	}
	since = sending_begin(w->process->slot);
	ns = clock_realtime_ns();
	verdict = l->ops->xmit(l, to, p);
	if (verdict == WIRE_SENT)
		tap_packet(w, TAP_SENT, ns, p);
	sending_end(since);
	return verdict;
}

enum wire_verdict wire_xmit(struct wire *w, const struct pkt *p)
{
	bool observed = slot_observed(w->process->slot);
	struct link *l;
	enum wire_verdict verdict;
	uint32_t n, to;
	uint64_t octets;

	if (unlikely(is_no_queue_pair(p->dqpn))) {
		if (p->dqpn == IB_MULTICAST_QPN)
			return multicast_xmit(w, p);
		if (!route_leads_out(w, p->path))
			return gsi_xmit(w, p);
	}
	/* Count before the packet is sent: on loopback the receiver may reuse what it describes. */
	octets = pkt_wire_octets(p, w->ethernet);
	n = pkt_wire_packets(p);
	to = route_owner_plus_1(w, p->path, p->dqpn);
	l = w->process->link_to[to];
	verdict = unlikely(observed) ? xmit_observed(w, l, to, p) : l->ops->xmit(l, to, p);
	if (likely(verdict == WIRE_SENT)) {
		traffic_sent(w->traffic, w->counters, p->path, octets / 4, n);
	} else if (verdict == WIRE_LOST) {
		trace(packet, lost, p->sqpn, p->dqpn, bth_op_name(p->opcode), p->psn,
		      route_missing(w, p->path, p->dqpn));
		if (route_is_refused(w, p->path))
			violation_at_switch(w, p);
		else
			shard_count(w->counters, PORT_XMIT_DISCARDS, n);
	}
	return verdict;
}

enum wire_verdict wire_arrive_packet(struct wire *w, const struct pkt *p)
{
	uint32_t to = route_owner_at(w, p->dqpn);
	struct link *l = w->process->link_to[to];

	if (!to || !subnet_port_active(w->process->attr.subnet, w->port_row))
		return WIRE_LOST;
	return l->ops->xmit(l, to, p);
}

uint32_t wire_arrive_most(struct wire *w, uint32_t dqpn)
{
	uint32_t to = route_owner_at(w, dqpn);
	struct link *l = w->process->link_to[to];

	return to ? l->ops->max_payload(l, to, false) : 0;
}

bool wire_withdraw(struct wire *w, uint32_t dqpn, uint32_t sqpn)
{
	const struct record_refs refs = {.sqpn = sqpn};
	uint32_t to = route_number_owner_plus_1(w->process->attr.registry, dqpn);
	struct link *l = w->process->link_to[to];

	return l->ops->withdraw && l->ops->withdraw(l, to, &refs, NULL, NULL);
}

bool wire_withdraw_key(struct wire *w, uint32_t key, struct run memory,
		       void (*lost)(void *user, uint32_t sqpn), void *user)
{
	const struct record_refs refs = {.src_port = w->port_row, .key = key, .memory = memory};
	bool any = false;

	for (unsigned i = 0; i < w->process->nlinks; i++) {
		struct link *l = w->process->links[i];

		if (l->ops->withdraw)
			any |= l->ops->withdraw(l, LINK_ALL, &refs, lost, user);
	}
	return any;
}

uint32_t wire_max_payload(struct wire *w, const struct path *path, uint32_t dqpn,
			  uint32_t mtu_bytes, bool by_reference_ok)
{
	uint32_t to = route_owner_plus_1(w, path, dqpn);
	struct link *l = w->process->link_to[to];
	uint32_t max = l->ops->max_payload(l, to, by_reference_ok);

	/* mtu_bytes is at most 4096, and every link takes that. */
	if (unlikely(max == LINK_PATH_MTU) || slot_observed(w->process->slot))
		return mtu_bytes ? mtu_bytes : LINK_MIN_PAYLOAD;
	return mtu_bytes ? max - max % mtu_bytes : max;
}

bool wire_leads_out(const struct wire *w, const struct path *path)
{
	return route_leads_out(w, path);
}

uint32_t wire_datagram_max(const struct wire *w)
{
	const struct subnet_port *p = &w->process->attr.subnet->ports[w->port_row];
	uint32_t mtu = p->ethernet ? atomic_load_explicit(&p->mtu, memory_order_relaxed) : 0;

	return ib_mtu_bytes(mtu ? (enum ib_mtu)mtu : IB_MTU_4096);
}

bool wire_peer_is_behind(struct wire *w, const struct path *path, uint32_t dqpn, uint64_t *up_to)
{
	/* Walk: only the requester may use the queue pair's memory of the route. */
	uint32_t to = route_walk(w, path, dqpn);
	struct link *l = w->process->link_to[to];

	return l->ops->behind && l->ops->behind(l, to, up_to);
}

bool wire_peer_is_unheard(struct wire *w, const struct path *path, uint32_t dqpn)
{
	uint32_t to = route_walk(w, path, dqpn);
	struct link *l = w->process->link_to[to];

	return l->ops->unheard && l->ops->unheard(l, to);
}

bool wire_room_soon(struct wire *w, const struct path *path, uint32_t dqpn)
{
	uint32_t to = route_owner_plus_1(w, path, dqpn);
	struct link *l = w->process->link_to[to];

	return l->ops->room_soon && l->ops->room_soon(l, to);
}

struct expose *wire_expose(struct wire *w)
{
	return &w->process->expose;
}

const _Atomic(uint32_t) *wire_observers(const struct wire *w)
{
	return &w->process->slot->observers;
}

uint32_t wire_process_ends(const struct wire *w)
{
	return atomic_load_explicit(&w->process->attr.registry->ends, memory_order_acquire);
}

struct slot *wire_slots(const struct wire *w)
{
	return w->process->attr.slots;
}

uint16_t wire_slot(const struct wire *w)
{
	return w->process->attr.slot;
}

void wire_catch_up(struct wire *w)
{
	for (unsigned i = 0; i < w->process->nlinks; i++) {
		struct link *l = w->process->links[i];

		if (l->ops->catch_up)
			l->ops->catch_up(l);
	}
}

bool wire_pass(struct wire *w, const struct pkt *p)
{
	const struct wire_client *client = atomic_load_explicit(&w->client, memory_order_acquire);
	uint32_t n = pkt_wire_packets(p);

	if (unlikely(p->dqpn == IB_MULTICAST_QPN))
		return multicast_pass(w, p);
	/* The port may have gone down while the packet was on its way. */
	if (!client || !subnet_port_active(w->process->attr.subnet, w->port_row))
		return false;
	shard_count(w->counters, PORT_RCV_DATA, pkt_wire_octets(p, w->ethernet) / 4);
	shard_count(w->counters, PORT_RCV_PACKETS, n);
	if (slot_observed(w->process->slot))
		tap_packet(w, TAP_DELIVERED, 0, p);
	client->receive(client->user, p);
	return true;
}

/* Hands a packet that has come to the wire's client and counts it, if no fault is in its way.  Call it in a reader's section. */
static bool wire_deliver(struct wire *w, const struct pkt *p)
{
	if (fault_awaits(w->process->slot, &w->faults) && fault_takes(w, p))
		return true;
	return wire_pass(w, p);
}

/* Hands the packet to a process that carries what its port sends out of the fabric.  Call it in a
 * reader's section. */
static bool wire_carry(struct wire_process *h, const struct pkt *p)
{
	struct wire *from = wire_process_wire(h, p->path->src_port);
	const struct wire_client *client;

	if (!from || !subnet_port_active(h->attr.subnet, from->port_row))
		return false;
	client = atomic_load_explicit(&from->client, memory_order_acquire);
	if (!client || !client->carry)
		return false;
	client->carry(client->user, p);
	return true;
}

bool wire_process_deliver(struct wire_process *h, const struct pkt *p)
{
	bool delivered;

	hazard_enter();
	if (unlikely(p->dqpn == IB_MULTICAST_QPN)) {
		if (sniffer_is_copy(p))
			sniffer_deliver(h, p);
		else
			(void)multicast_deliver(h, p);
		delivered = true;
	} else {
		struct wire *to = wire_process_wire(h, p->path->dst_port);

		if (unlikely(h->attr.carries))
			delivered = wire_carry(h, p);
		else
			delivered = to && wire_deliver(to, p);
	}
	hazard_leave();
	return delivered;
}
