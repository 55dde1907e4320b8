// SPDX-License-Identifier: BSD-2-Clause
/* Counts less what has been cleared. */
#include <assert.h>
#include <stdlib.h>

#include "fabric/daemon/pma/pma.h"

uint64_t pma_total(const struct net *n, uint32_t row, unsigned source)
{
	if (source >= PMA_RCV_SL)
		return net_sl_total(n, row, NET_IN, source - PMA_RCV_SL);
	if (source >= PMA_XMIT_SL)
		return net_sl_total(n, row, NET_OUT, source - PMA_XMIT_SL);
	switch (source) {
	case PMA_UNICAST_XMIT:
		return net_total(n, row, NET_XMIT_PACKETS) -
		       net_total(n, row, NET_MULTICAST_XMIT_PACKETS);
	case PMA_UNICAST_RCV:
		return net_total(n, row, NET_RCV_PACKETS) -
		       net_total(n, row, NET_MULTICAST_RCV_PACKETS);
	default:
		return net_total(n, row, (enum net_counter)source);
	}
}

static_assert(NET_SLS <= PMA_SOURCES, "service levels have the places of a group");

static size_t group_place(enum pma_group group, unsigned source)
{
	if (source >= PMA_RCV_SL)
		source -= PMA_RCV_SL;
	else if (source >= PMA_XMIT_SL)
		source -= PMA_XMIT_SL;
	return (size_t)group * PMA_SOURCES + source;
}

uint64_t pma_group_get(const struct net *n, uint32_t row, enum pma_group group, unsigned source)
{
	const uint64_t *cleared = n->ports[row].counters_cleared;

	return pma_total(n, row, source) - (cleared ? cleared[group_place(group, source)] : 0);
}

void pma_group_set(struct net *n, uint32_t row, enum pma_group group, unsigned source,
		   uint64_t value)
{
	uint64_t **cleared = &n->ports[row].counters_cleared;
	uint64_t base = pma_total(n, row, source) - value;

	/* Most ports are never cleared, or have nothing to clear, so they have no memory for it. */
	if (!*cleared && !base)
		return;
	if (!*cleared)
		*cleared = calloc(group_place(PMA_GROUPS, 0), sizeof(**cleared));
	/* Without memory the counter simply counts on. */
	if (*cleared)
		(*cleared)[group_place(group, source)] = base;
}

/* Returns the attribute in which the kernel looks for the counter. */
static enum pma_group count_group(enum net_counter c)
{
	return c < NET_XMIT_DISCARDS ? PMA_GROUP_EXTENDED : PMA_GROUP_BASIC;
}

uint64_t pma_count(const struct net *n, uint32_t row, enum net_counter c)
{
	return pma_group_get(n, row, count_group(c), c);
}

void pma_clear(struct net *n, uint32_t row, enum net_counter c)
{
	pma_group_set(n, row, count_group(c), c, 0);
}
