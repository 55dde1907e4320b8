// SPDX-License-Identifier: BSD-2-Clause
/* Counts GUIDs; see guid.h. */
#include "fabric/daemon/topology/guid.h"

void guid_rule_start(struct guid_rule *g)
{
	*g = (struct guid_rule){
		.next = {[SMP_NODE_CA] = 0x100000,
			 [SMP_NODE_SWITCH] = 0x200000,
			 [SMP_NODE_ROUTER] = 0x300000},
		.base = {[SMP_NODE_CA] = 0x100000,
			 [SMP_NODE_SWITCH] = 0x200000,
			 [SMP_NODE_ROUTER] = 0x300000},
	};
}

void guid_rule_set(struct guid_rule *g, enum smp_node_type type, uint64_t guid, bool relative)
{
	if (!relative)
		g->base[type] = guid;
	g->next[type] = relative ? g->base[type] + guid : guid;
	g->given[type] = true;
}

uint64_t guid_rule_take(struct guid_rule *g, enum smp_node_type type, uint32_t nports)
{
	uint64_t guid = g->next[type];

	g->given[type] = false;
	/* Ports of a switch have its GUID; those of other nodes count up from the node's. */
	g->next[type] += type == SMP_NODE_SWITCH ? 1 : nports + 1;
	return guid;
}
