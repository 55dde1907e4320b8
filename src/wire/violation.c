// SPDX-License-Identifier: BSD-2-Clause
/* See violation.h. */
#include "wire/violation.h"

#include "base/clock.h"
#include "wire/process.h"
#include "wire/size.h"
#include "wire/traffic.h"

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

void violation_at_switch(struct wire *w, const struct pkt *p)
{
	const struct wire_process_attr *attr = &w->host->attr;
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
