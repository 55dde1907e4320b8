// SPDX-License-Identifier: BSD-2-Clause
/*
 * How often a port was shown a bad key.  SMPs are counted in PortInfo itself; packets of programs
 * their processes count, and what PortInfo shows is those since the last reset.
 */
#include <stdlib.h>

#include "fabric/daemon/sma/sma.h"

#define VIOLATIONS_MOST 0xffffu

static const struct violation_field {
	struct prm_field field;
	enum port_counter counted; /* by processes; PORT_COUNTERS: not */
} violation_fields[] = {
	{PI_MKEY_VIOLATIONS, PORT_COUNTERS},
	{PI_PKEY_VIOLATIONS, PORT_PKEY_VIOLATIONS},
	{PI_QKEY_VIOLATIONS, PORT_QKEY_VIOLATIONS},
};

#define VIOLATION_FIELDS (sizeof(violation_fields) / sizeof(violation_fields[0]))

struct violations {
	uint64_t reset[VIOLATION_FIELDS]; /* what had been counted by then */
};

static uint64_t violations_of_host(const struct net *n, uint32_t row, size_t i)
{
	if (!n->host_count || violation_fields[i].counted == PORT_COUNTERS ||
	    subnet_node_of(n->subnet, row)->kind != SUBNET_HCA)
		return 0;
	return n->host_count(n->user, row, violation_fields[i].counted);
}

void sma_violations_get(const struct smp_request *r, uint32_t row, uint8_t *info)
{
	const struct violations *all = r->sma ? r->sma->violations : NULL;

	for (size_t i = 0; i < VIOLATION_FIELDS; i++) {
		uint64_t v = net_info(r->net, row, violation_fields[i].field) +
			     violations_of_host(r->net, row, i) - (all ? all[row].reset[i] : 0);

		prm_set(info, violation_fields[i].field, v < VIOLATIONS_MOST ? v : VIOLATIONS_MOST);
	}
}

static void violations_reset(const struct smp_request *r, uint32_t row, size_t i)
{
	uint64_t counted = violations_of_host(r->net, row, i);
	struct violations **all = &r->sma->violations;

	net_info_set(r->net, row, violation_fields[i].field, 0);
	if (!*all && counted)
		*all = calloc(r->net->nports, sizeof(**all));
	/* Without memory it counts on. */
	if (*all)
		(*all)[row].reset[i] = counted;
}

void sma_violations_set(const struct smp_request *r, uint32_t row, const uint8_t *info)
{
	for (size_t i = 0; i < VIOLATION_FIELDS; i++)
		if (!prm_get(info, violation_fields[i].field))
			violations_reset(r, row, i);
}
