// SPDX-License-Identifier: BSD-2-Clause
/* See deliver.h. */
#include "wire/deliver.h"

#include "base/hazard.h"
#include "wire/counter_shard.h"
#include "wire/size.h"
#include "wire/sniffer.h"

/* Hands a packet to the wire's client and counts it.  Call it in a reader's section. */
static bool wire_deliver(struct wire *w, const struct pkt *p)
{
	const struct wire_client *client = atomic_load_explicit(&w->client, memory_order_acquire);
	uint32_t n = pkt_wire_packets(p);

	/* The port may have gone down while the packet was on its way. */
	if (!client || !subnet_port_active(w->host->attr.subnet, w->port_row))
		return false;
	shard_count(w->counters, PORT_RCV_DATA, pkt_wire_octets(p, w->ethernet) / 4);
	shard_count(w->counters, PORT_RCV_PACKETS, n);
	if (slot_observed(w->host->slot))
		tap_packet(w, TAP_DELIVERED, p);
	client->receive(client->user, p);
	return true;
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
