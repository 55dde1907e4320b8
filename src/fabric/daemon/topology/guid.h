/* SPDX-License-Identifier: BSD-2-Clause */
/* GUIDs by ibsim's rule: each kind of node counts from its own base, in the order of the file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "fabric/daemon/topology/plan.h"

#define GUID_KINDS 4u /* by enum smp_node_type */

struct guid_rule {
	uint64_t next[GUID_KINDS];
	uint64_t base[GUID_KINDS]; /* the last that was given, to which relative ones are added */
	bool given[GUID_KINDS];	   /* next was given, and no node has taken it */
};

void guid_rule_start(struct guid_rule *g);
void guid_rule_set(struct guid_rule *g, enum smp_node_type type, uint64_t guid, bool relative);
/* Returns the GUID of the next node of its type. */
uint64_t guid_rule_take(struct guid_rule *g, enum smp_node_type type, uint32_t nports);
