// SPDX-License-Identifier: BSD-2-Clause
/* Gives LIDs to ports that have none; a port that has one keeps it. */
#include "fabric/daemon/sm/sm.h"

#include <errno.h>

#include "base/log.h"

#define LID_WORDS (SUBNET_LIDS / 64u)

struct lid_set {
	uint64_t words[LID_WORDS];
};

static bool lid_set_has(const struct lid_set *set, uint32_t lid)
{
	return set->words[lid / 64] >> lid % 64 & 1;
}

/* Takes count LIDs if all of them are free: then true. */
static bool lid_set_take(struct lid_set *set, uint32_t lid, uint32_t count)
{
	if (!lid || lid % count || lid + count > SUBNET_LIDS)
		return false;
	for (uint32_t i = lid; i < lid + count; i++)
		if (lid_set_has(set, i))
			return false;
	for (uint32_t i = lid; i < lid + count; i++)
		set->words[i / 64] |= 1ull << i % 64;
	return true;
}

/*
 * Takes the next free one in a circle, so that a LID is used again as late as possible.  0: none.
 */
static uint32_t lid_set_next(struct lid_set *set, uint32_t *next)
{
	for (uint32_t i = 0; i < SUBNET_LIDS; i++) {
		uint32_t lid = *next;

		*next = lid + 1 < SUBNET_LIDS ? lid + 1 : 1;
		if (lid_set_take(set, lid, 1))
			return lid;
	}
	return 0;
}

bool sm_is_end_port(const struct net *n, uint32_t row)
{
	return !n->subnet->ports[row].ethernet && !net_node_of(n, row)->removed &&
	       net_end_port(n, row) == row;
}

static bool port_lid_is_kept(const struct net *n, uint32_t row, struct lid_set *kept)
{
	return lid_set_take(kept, net_info(n, row, PI_LID), 1u << net_info(n, row, PI_LMC));
}

static int port_lid_give(struct sm *s, uint32_t row, struct lid_set *taken)
{
	uint32_t lid = lid_set_next(taken, &s->next_lid);

	return lid ? net_set_lid(s->fabric->net, row, lid, 0) : -ENOSPC;
}

int sm_assign_lids(struct sm *s)
{
	struct lid_set taken = {{0}}, kept = {{0}};
	struct net *n = s->fabric->net;
	int ret = 0;

	for (uint32_t row = 0; row < n->nports; row++)
		if (sm_is_end_port(n, row))
			(void)port_lid_is_kept(n, row, &taken);
	/* The second pass sees the same: of two ports with the same LID the first keeps it both
	 * times. */
	for (uint32_t row = 0; row < n->nports && !ret; row++) {
		if (!sm_is_end_port(n, row) || port_lid_is_kept(n, row, &kept))
			continue;
		if (net_info(n, row, PI_STATE) != IB_PORT_DOWN)
			ret = port_lid_give(s, row, &taken);
	}
	if (ret)
		log_error("subnet manager: no LID is left for a port");
	return ret;
}
