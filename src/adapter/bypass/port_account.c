// SPDX-License-Identifier: BSD-2-Clause
#include "adapter/bypass/port_account.h"

#include "adapter/core/device.h"
#include "exposure/expose.h"

static enum port_counter request_of(enum message_kind kind)
{
	switch (kind) {
	case MESSAGE_WRITE:
		return HW_RX_WRITE_REQUESTS;
	case MESSAGE_ANSWER:
		return HW_RX_READ_REQUESTS;
	case MESSAGE_SEND:
	case MESSAGE_SEND_IMM:
		break;
	}
	return PORT_COUNTERS;
}

/* Inline, so that the sizes of headers of one kind are known. */
static inline __attribute__((always_inline)) void account_remote(const struct adapter *a,
								 const struct path *path,
								 struct remote *f,
								 const struct message_sizes *m)
{
	bool read = m->kind == MESSAGE_ANSWER;
	bool ethernet = a->port->ethernet;
	unsigned shard;
	uint64_t data = message_octets(path, ethernet, m) / 4;
	uint64_t other = (read ? request_octets(path, ethernet) : ack_octets(path, ethernet)) *
			 m->messages / 4;
	/* wire_remote has found it in the subnet */
	uint32_t port = wire_subnet(a->wire)->ports[path->dst_port].host_index % SLOT_PORTS;
	const struct port_account ours = {
		.sent = read ? other : data,
		.sent_packets = read ? m->messages : m->packets,
		.received = read ? data : other,
		.received_packets = read ? m->packets : m->messages,
		.request = PORT_COUNTERS,
	};
	/* The counts that the peer's own device would have made. */
	const struct port_account theirs = {
		.sent = ours.received,
		.sent_packets = ours.received_packets,
		.received = ours.sent,
		.received_packets = ours.sent_packets,
		.request = request_of(m->kind),
		.requests = m->messages,
	};

	port_account_count(a->counters, &ours);
	/* that has given this thread a shard of its own, if there was one */
	shard = remote_shard(f, shard_plus_1 - 1);
	if (likely(shard))
		port_account_add(f->slot->counters[shard][port], &theirs, shard_add);
	else
		port_account_add(f->slot->counters[0][port], &theirs, shard_add_shared);
}

void port_account_remote(const struct adapter *a, const struct path *path, struct remote *f,
			 const struct message_sizes *m)
{
	if (m->kind == MESSAGE_WRITE) {
		const struct message_sizes writes = {MESSAGE_WRITE, m->messages, m->packets,
						     m->payload};

		account_remote(a, path, f, &writes);
	} else {
		account_remote(a, path, f, m);
	}
}
