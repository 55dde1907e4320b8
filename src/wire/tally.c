// SPDX-License-Identifier: BSD-2-Clause
#include "wire/tally.h"

#include "wire/host.h"
#include "wire/lane.h"

typedef void add_fn(_Atomic(uint64_t) *lane, enum port_counter c, uint64_t n);

static void add_shared(_Atomic(uint64_t) *lane, enum port_counter c, uint64_t n)
{
	atomic_fetch_add_explicit(&lane[c], n, memory_order_relaxed);
}

/* In units of PortXmitData: words of 4 octets. */
struct totals {
	uint64_t sent, sent_packets;	     /* by the side that asked */
	uint64_t received, received_packets; /* by it */
	enum port_counter request; /* what the other side has served; of PORT_COUNTERS: none */
	uint32_t requests;
};

static inline void add_totals(_Atomic(uint64_t) *lane, const struct totals *t, add_fn *add)
{
	add(lane, PORT_XMIT_DATA, t->sent);
	add(lane, PORT_XMIT_PACKETS, t->sent_packets);
	add(lane, PORT_RCV_DATA, t->received);
	add(lane, PORT_RCV_PACKETS, t->received_packets);
	if (t->request != PORT_COUNTERS)
		add(lane, t->request, t->requests);
}

static inline void count(_Atomic(uint64_t) *counters, const struct totals *t)
{
	_Atomic(uint64_t) *own = lane_own(counters);

	if (likely(own))
		add_totals(own, t, lane_add);
	else
		add_totals(counters, t, add_shared);
}

void tally_looped(struct wire *w, const struct path *path, const struct message_sizes *m)
{
	uint64_t octets = message_octets(path, w->ethernet, m) +
			  (uint64_t)m->messages * ack_octets(path, w->ethernet);
	uint32_t packets = m->packets + m->messages;
	const struct totals both = {
		.sent = octets / 4,
		.sent_packets = packets,
		.received = octets / 4,
		.received_packets = packets,
		.request = HW_RX_WRITE_REQUESTS,
		.requests = m->messages,
	};

	count(w->counters, &both);
}

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

void tally_far(struct wire *w, const struct path *path, struct far *f,
	       const struct message_sizes *m)
{
	bool read = m->kind == MESSAGE_ANSWER;
	uint64_t data = message_octets(path, w->ethernet, m) / 4;
	uint64_t other =
		(read ? request_octets(path, w->ethernet) : ack_octets(path, w->ethernet)) *
		m->messages / 4;
	const struct registry_port *dst = &w->host->attr.registry->ports[path->dst_port];
	/* the device's index is the digit of its name */
	unsigned hca = (unsigned)(dst->hca[5] - '0') % SLOT_HCAS;
	const struct totals ours = {
		.sent = read ? other : data,
		.sent_packets = read ? m->messages : m->packets,
		.received = read ? data : other,
		.received_packets = read ? m->packets : m->messages,
		.request = PORT_COUNTERS,
	};
	/* What the peer's own device would have counted. */
	const struct totals theirs = {
		.sent = ours.received,
		.sent_packets = ours.received_packets,
		.received = ours.sent,
		.received_packets = ours.sent_packets,
		.request = request_of(m->kind),
		.requests = m->messages,
	};

	count(w->counters, &ours);
	if (likely(f->lane && spin_try(&f->counting))) {
		add_totals(f->slot->counters[f->lane][hca], &theirs, lane_add);
		spin_unlock(&f->counting);
	} else {
		add_totals(f->slot->counters[0][hca], &theirs, add_shared);
	}
}
