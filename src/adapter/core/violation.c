// SPDX-License-Identifier: BSD-2-Clause
/*
 * A port with a bad neighbour may see millions of bad keys in a second, while a trap that nobody has
 * repressed is under way once anyway.  So of each kind one is told in a while; all are counted.
 */
#include "adapter/core/violation.h"

#include "base/clock.h"
#include "prm/violation.h"
#include "wire/counter_shard.h"

#define VIOLATION_PAUSE_NS 100000000ull

/* Is it time to tell of one again?  For one thread only. */
static bool violation_due(_Atomic(uint64_t) *next_ns)
{
	uint64_t now = clock_ns();
	uint64_t next = atomic_load_explicit(next_ns, memory_order_relaxed);

	return now >= next &&
	       atomic_compare_exchange_strong(next_ns, &next, now + VIOLATION_PAUSE_NS);
}

void violation_count(struct adapter *a, const struct pkt *pkt, enum port_counter c)
{
	const bool qkey = c == PORT_QKEY_VIOLATIONS;
	const struct path *path = pkt->path;

	shard_count(a->counters, c, 1);
	if (!a->attr.violated || a->attr.port.ethernet ||
	    !violation_due(&a->violation_next_ns[qkey]))
		return;
	a->attr.violated(a->attr.user, &(struct key_violation){
					       .row = a->attr.port.fabric_port,
					       .key = qkey ? pkt->qkey : pkt->pkey,
					       .sqpn = pkt->sqpn,
					       .dqpn = pkt->dqpn,
					       .slid = path->slid,
					       .dlid = path->dlid,
					       .sl = path->sl,
					       .qkey = qkey,
					       .grh = path->grh,
					       .sgid = path->sgid,
					       .dgid = path->dgid,
				       });
}
