// SPDX-License-Identifier: BSD-2-Clause
/* The port counts all of them, and tells of one of each kind in a while (wire/wire.h). */
#include "adapter/core/violation.h"

#include "wire/counter_shard.h"
#include "wire/wire.h"

void violation_count(struct adapter *a, const struct pkt *pkt, enum port_counter c)
{
	const bool qkey = c == PORT_QKEY_VIOLATIONS;
	struct key_violation v;

	shard_count(a->counters, c, 1);
	if (!a->attr.violated || a->attr.port.ethernet ||
	    !violation_due(&a->violation_next_ns[qkey]))
		return;
	v = violation_of(pkt, a->attr.port.fabric_port, qkey ? VIOLATION_QKEY : VIOLATION_PKEY);
	a->attr.violated(a->attr.user, &v);
}
