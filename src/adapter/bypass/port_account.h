/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts at the ports for messages without packets: both ends count the packets that there would
 * have been.  Inline where the rate of small messages depends on it. */
#pragma once

#include "adapter/core/device.h"
#include "exposure/expose.h"
#include "wire/traffic.h"
#include "wire/pkt.h"
#include "wire/wire.h"

/* In units of PortXmitData: words of 4 octets. */
struct port_account {
	uint64_t sent, sent_packets;	     /* what the requesting side has sent */
	uint64_t received, received_packets; /* what the same side has received */
	/* Counts the requests that the other side has served; PORT_COUNTERS: none. */
	enum port_counter request;
	uint32_t requests;
};

/* Adds to a shard.  add: shard_add or shard_add_shared.  It counts what was sent only if no cell
 * counts that (wire/traffic.h). */
static inline void port_account_add(_Atomic(uint64_t) *shard, const struct port_account *t,
				    uint32_t cell, shard_add_fn *add)
{
	if (unlikely(cell == TRAFFIC_NONE)) {
		add(shard, PORT_XMIT_DATA, t->sent);
		add(shard, PORT_XMIT_PACKETS, t->sent_packets);
	}
	add(shard, PORT_RCV_DATA, t->received);
	add(shard, PORT_RCV_PACKETS, t->received_packets);
	if (t->request != PORT_COUNTERS)
		add(shard, t->request, t->requests);
}

/* Counts at one port of this process; counters: the port's in shard 0. */
static inline void port_account_count(_Atomic(uint64_t) *counters, uint32_t cell,
				      const struct port_account *t)
{
	_Atomic(uint64_t) *own = shard_own(counters);

	if (likely(own))
		port_account_add(own, t, cell, shard_add);
	else
		port_account_add(counters, t, cell, shard_add_shared);
}

/* Counts RDMA WRITEs and their acknowledgements that this port sends to itself. */
static inline void port_account_looped(_Atomic(uint64_t) *counters, const struct path *path,
				       bool ethernet, const struct message_sizes *m)
{
	const struct message_sizes writes = {MESSAGE_WRITE, m->messages, m->packets,
					     m->payload,    false,	 m->bth};
	uint32_t acks = m->unanswered ? 0 : m->messages;
	uint64_t octets =
		message_octets(path, ethernet, &writes) + acks * ack_octets(path, ethernet);
	uint32_t packets = m->packets + acks;
	const struct port_account both = {
		.sent = octets / 4,
		.sent_packets = packets,
		.received = octets / 4,
		.received_packets = packets,
		.request = HW_RX_WRITE_REQUESTS,
		.requests = m->messages,
	};

	port_account_count(counters, TRAFFIC_NONE, &both);
}

/* Counts for us, and counts for the peer's process what its own device would have counted. */
static inline void port_account_both(const struct adapter *a, const struct path *path,
				     struct remote *f, const struct port_account *ours,
				     enum port_counter request)
{
	const struct port_account theirs = {
		.sent = ours->received,
		.sent_packets = ours->received_packets,
		.received = ours->sent,
		.received_packets = ours->sent_packets,
		.request = request,
		.requests = ours->requests,
	};
	/* somebody found the peer in the subnet, so its port is one of these */
	uint32_t port = a->ports[path->dst_port].host_index % SLOT_PORTS;
	uint32_t there = traffic_there(a->traffic, path), back = traffic_back(a->traffic, path);
	unsigned shard;

	port_account_count(a->counters, there, ours);
	if (likely(there != TRAFFIC_NONE))
		traffic_add(a->traffic, there, ours->sent, ours->sent_packets);
	if (likely(back != TRAFFIC_NONE))
		traffic_add(a->traffic, back, theirs.sent, theirs.sent_packets);
	/* port_account_count has given this thread a shard of its own, if there was one */
	shard = remote_shard(f, shard_plus_1 - 1);
	if (likely(shard))
		port_account_add(f->slot->counters[shard][port], &theirs, back, shard_add);
	else
		port_account_add(f->slot->counters[0][port], &theirs, back, shard_add_shared);
}

/* Counts RDMA WRITEs to another process and their acknowledgements. */
static inline void port_account_written(const struct adapter *a, const struct path *path,
					struct remote *f, const struct message_sizes *m)
{
	const struct message_sizes writes = {MESSAGE_WRITE, m->messages, m->packets,
					     m->payload,    false,	 m->bth};
	bool ethernet = a->port->ethernet;
	uint32_t acks = m->unanswered ? 0 : m->messages;
	const struct port_account ours = {
		.sent = message_octets(path, ethernet, &writes) / 4,
		.sent_packets = m->packets,
		.received = ack_octets(path, ethernet) * acks / 4,
		.received_packets = acks,
		.request = PORT_COUNTERS,
		.requests = m->messages,
	};

	port_account_both(a, path, f, &ours, HW_RX_WRITE_REQUESTS);
}

/* Counts RDMA READs from another process, or atomics there, by the answers that would have come. */
void port_account_read(const struct adapter *a, const struct path *path, struct remote *f,
		       const struct message_sizes *answers);

/* Counts messages of any kind to another process. */
static inline void port_account_remote(const struct adapter *a, const struct path *path,
				       struct remote *f, const struct message_sizes *m)
{
	if (m->kind == MESSAGE_WRITE)
		port_account_written(a, path, f, m);
	else
		port_account_read(a, path, f, m);
}
