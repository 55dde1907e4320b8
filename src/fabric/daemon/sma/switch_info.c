// SPDX-License-Identifier: BSD-2-Clause
/* SwitchInfo. */
#include <string.h>

#include "fabric/daemon/sma/sma.h"

#define SWITCH_ENHANCED_PORT0	  1u   /* a bit of SI_FLAGS */
#define SWITCH_PORT_NONE	  255u /* for the default ports: there is none */
#define SWITCH_MULTICAST_TOP_NONE 0xbfffu

static void switch_info_get(const struct net_node *node, uint8_t *data)
{
	const struct net_switch *sw = node->sw;

	memset(data, 0, MAD_ATTRIBUTE_BYTES);
	prm_set(data, SI_LINEAR_CAP, NET_LINEAR_CAP);
	prm_set(data, SI_MULTICAST_CAP, NET_MULTICAST_CAP);
	prm_set(data, SI_LINEAR_TOP, sw->linear_top);
	prm_set(data, SI_DEFAULT_PORT, sw->default_port);
	prm_set(data, SI_MC_PRIMARY, sw->mc_primary);
	prm_set(data, SI_MC_NOT_PRIMARY, sw->mc_not_primary);
	prm_set(data, SI_LIFE_TIME, sw->life_time);
	prm_set(data, SI_STATE_CHANGE, sw->port_change);
	prm_set(data, SI_PARTITION_CAP, node->partition_cap);
	prm_set(data, SI_FLAGS, sw->enhanced_port0 ? SWITCH_ENHANCED_PORT0 : 0);
	prm_set(data, SI_MULTICAST_TOP, sw->multicast_top);
}

static bool switch_port_valid(const struct net_node *node, uint32_t number)
{
	return number <= node->nports || number == SWITCH_PORT_NONE;
}

static bool switch_info_valid(const struct net_node *node, const uint8_t *data)
{
	uint32_t top = prm_get32(data, SI_MULTICAST_TOP);

	if (prm_get32(data, SI_LINEAR_TOP) >= NET_LINEAR_CAP)
		return false;
	if (top &&
	    (top < SWITCH_MULTICAST_TOP_NONE || top >= MAD_LID_MULTICAST + NET_MULTICAST_CAP))
		return false;
	return switch_port_valid(node, prm_get32(data, SI_DEFAULT_PORT)) &&
	       switch_port_valid(node, prm_get32(data, SI_MC_PRIMARY)) &&
	       switch_port_valid(node, prm_get32(data, SI_MC_NOT_PRIMARY));
}

static void switch_info_set(struct net *net, struct net_switch *sw, const uint8_t *data)
{
	net_linear_top_set(net, sw, prm_get32(data, SI_LINEAR_TOP));
	sw->default_port = (uint8_t)prm_get32(data, SI_DEFAULT_PORT);
	sw->mc_primary = (uint8_t)prm_get32(data, SI_MC_PRIMARY);
	sw->mc_not_primary = (uint8_t)prm_get32(data, SI_MC_NOT_PRIMARY);
	sw->life_time = (uint8_t)prm_get32(data, SI_LIFE_TIME);
	net_multicast_top_set(net, sw, prm_get32(data, SI_MULTICAST_TOP));
	/* Writing 1 clears it; 0 leaves it. */
	if (prm_get32(data, SI_STATE_CHANGE))
		sw->port_change = false;
}

unsigned sma_switch_info(struct smp_request *r)
{
	const struct net_node *node = net_node_of(r->net, r->row);

	if (r->set) {
		if (!switch_info_valid(node, r->data))
			return MAD_STATUS_BAD_VALUE;
		switch_info_set(r->net, node->sw, r->data);
	}
	switch_info_get(node, r->data);
	return MAD_STATUS_OK;
}
