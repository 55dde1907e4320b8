// SPDX-License-Identifier: BSD-2-Clause
/* Attributes of a node and of a port: NodeInfo, SwitchInfo, PortInfo. */
#include "fabric/daemon/sma/sma.h"

#include <string.h>

/* ---- NodeInfo and NodeDescription ---- */

unsigned sma_node_description(struct smp_request *r)
{
	const struct net_node *node = net_node_of(r->net, r->row);

	_Static_assert(sizeof(node->description) == MAD_ATTRIBUTE_BYTES, "it fills the attribute");
	memcpy(r->data, node->description, MAD_ATTRIBUTE_BYTES);
	return MAD_STATUS_OK;
}

unsigned sma_node_info(struct smp_request *r)
{
	const struct net_node *node = net_node_of(r->net, r->row);
	const struct net_port *in = &r->net->ports[r->row];

	memset(r->data, 0, MAD_ATTRIBUTE_BYTES);
	prm_set(r->data, NI_BASE_VERSION, 1);
	prm_set(r->data, NI_CLASS_VERSION, 1);
	prm_set(r->data, NI_TYPE, node->type);
	prm_set(r->data, NI_PORTS, node->nports);
	prm_set(r->data, NI_SYSTEM_GUID, node->system_guid);
	prm_set(r->data, NI_NODE_GUID, node->guid);
	/* All ports of a switch have the same GUID. */
	prm_set(r->data, NI_PORT_GUID, node->type == SMP_NODE_SWITCH ? node->guid : in->guid);
	prm_set(r->data, NI_PARTITION_CAP, node->partition_cap);
	prm_set(r->data, NI_DEVICE, node->device_id);
	prm_set(r->data, NI_REVISION, node->revision);
	prm_set(r->data, NI_LOCAL_PORT, in->number);
	prm_set(r->data, NI_VENDOR, node->vendor_id);
	return MAD_STATUS_OK;
}

/* ---- SwitchInfo ---- */

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

/*
 * PortInfo (IBTA 14.2.5.6).  A Set is judged as a whole before anything changes: with one bad
 * field, all stays as it was.
 */

#define MODIFIER_EXT_SPEEDS (1u << 31) /* the asker knows of extended speeds */
#define WIDTH_ALL	    255u
#define SPEED_ALL	    15u
#define EXT_SPEED_NONE	    30u
#define EXT_SPEED_ALL	    31u
#define MTU_LARGEST	    5u

/* Which of a node's ports have a field that can be set. */
enum port_part {
	PART_END = 1,	   /* ports with a LID: of a CA, port 0 of a switch */
	PART_LINK = 2,	   /* ports with a link: all but port 0 */
	PART_EXTERNAL = 4, /* external ports of a switch */
};

/* Fields that are stored as they come. */
static const struct plain_field {
	struct prm_field field;
	enum port_part part;
} plain_fields[] = {
	{PI_MKEY, PART_END},
	{PI_MKEY_LEASE, PART_END},
	{PI_MKEY_PROTECT, PART_END},
	{PI_INIT_TYPE_REPLY, PART_END},
	{PI_SUBNET_TIMEOUT, PART_END},
	{PI_VL_HIGH_LIMIT, PART_LINK},
	{PI_LOCAL_PHYS_ERRORS, PART_LINK},
	{PI_OVERRUN_ERRORS, PART_LINK},
	{PI_VL_STALL, PART_EXTERNAL},
	{PI_HOQ_LIFE, PART_EXTERNAL},
};

struct port_set {
	struct smp_request *r;
	struct net *net;
	const uint8_t *data;
	uint32_t row;
	unsigned parts;
};

/* The port that the low bits of a modifier name, or SUBNET_NONE.  On nodes other than
 * switches 0 means the port that the SMP came in by. */
static uint32_t sma_named_port(const struct smp_request *r)
{
	uint32_t number = r->modifier & ~MODIFIER_EXT_SPEEDS;

	if (!number && !net_is_switch(r->net, r->row))
		return r->row;
	return net_port_row(r->net, net_node_of(r->net, r->row), number);
}

static unsigned port_parts(const struct net *net, uint32_t row)
{
	if (!net_is_switch(net, row))
		return PART_END | PART_LINK;
	return net->ports[row].number ? PART_LINK | PART_EXTERNAL : PART_END;
}

static uint32_t port_wish(const struct port_set *s, struct prm_field f)
{
	return prm_get32(s->data, f);
}

/* ---- what may be set ---- */

static bool lid_is_unicast(uint32_t lid)
{
	return lid && lid < MAD_LID_MULTICAST;
}

static bool port_end_valid(const struct port_set *s)
{
	uint32_t lid = port_wish(s, PI_LID), last = (1u << port_wish(s, PI_LMC)) - 1;

	return lid_is_unicast(lid) && !(lid & last) && lid_is_unicast(lid + last) &&
	       lid_is_unicast(port_wish(s, PI_SM_LID));
}

/* 0 leaves the field; 'all' stands for all that is supported. */
static bool port_enabled_valid(uint32_t wish, uint32_t all, uint32_t supported)
{
	return wish == all || !(wish & ~supported);
}

static bool port_speeds_valid(const struct port_set *s)
{
	uint32_t ext = port_wish(s, PI_EXT_SPEED_ENABLED);

	if (!port_enabled_valid(port_wish(s, PI_WIDTH_ENABLED), WIDTH_ALL,
				net_info(s->net, s->row, PI_WIDTH_SUPPORTED)))
		return false;
	if (!port_enabled_valid(port_wish(s, PI_SPEED_ENABLED), SPEED_ALL,
				net_info(s->net, s->row, PI_SPEED_SUPPORTED)))
		return false;
	return !(s->r->modifier & MODIFIER_EXT_SPEEDS) || ext == EXT_SPEED_NONE ||
	       port_enabled_valid(ext, EXT_SPEED_ALL,
				  net_info(s->net, s->row, PI_EXT_SPEED_SUPPORTED));
}

static bool port_states_valid(const struct port_set *s)
{
	uint32_t state = port_wish(s, PI_STATE), phys = port_wish(s, PI_PHYS_STATE);

	if (state > IB_PORT_ACTIVE || state == IB_PORT_INIT)
		return false;
	if (phys && phys != SMP_PHYS_POLLING && phys != SMP_PHYS_DISABLED)
		return false;
	/* A port cannot both train and keep its state. */
	return !phys || state <= IB_PORT_DOWN;
}

static bool port_link_valid(const struct port_set *s)
{
	uint32_t mtu = port_wish(s, PI_NEIGHBOR_MTU), down = port_wish(s, PI_DOWN_DEFAULT);

	if (!mtu || mtu > MTU_LARGEST || mtu > net_info(s->net, s->row, PI_MTU_CAP))
		return false;
	if (port_wish(s, PI_OPER_VLS) > net_info(s->net, s->row, PI_VL_CAP))
		return false;
	if (down && down != SMP_PHYS_SLEEP && down != SMP_PHYS_POLLING)
		return false;
	return port_speeds_valid(s) && port_states_valid(s);
}

/* ---- setting ---- */

static void port_set_plain(const struct port_set *s)
{
	for (size_t i = 0; i < sizeof(plain_fields) / sizeof(plain_fields[0]); i++)
		if (plain_fields[i].part & s->parts)
			net_info_set(s->net, s->row, plain_fields[i].field,
				     prm_get(s->data, plain_fields[i].field));
	net_show_info(s->net, s->row);
}

static void port_set_partition(const struct port_set *s)
{
	if (s->parts & PART_EXTERNAL)
		net_set_partition(s->net, s->row, port_wish(s, PI_PARTITION_FLAGS));
}

static unsigned port_set_end(const struct port_set *s)
{
	uint32_t cap = net_info(s->net, s->row, PI_CAP_MASK);
	struct net *net = s->net;

	if (net_set_lid(net, s->row, port_wish(s, PI_LID), port_wish(s, PI_LMC)) ||
	    net_set_prefix(net, s->row, prm_get(s->data, PI_GID_PREFIX)))
		return MAD_STATUS_BAD_VALUE;
	net_set_sm(net, s->row, port_wish(s, PI_SM_LID), port_wish(s, PI_SM_SL));
	sma_violations_set(s->r, s->row, s->data);
	if (cap & CAP_IS_MCAST_PKEY_TRAP)
		net_info_set(net, s->row, PI_MCAST_PKEY_TRAP, port_wish(s, PI_MCAST_PKEY_TRAP));
	if (port_wish(s, PI_CLIENT_REREGISTER) && cap & CAP_IS_CLIENT_REREGISTER)
		net_reregister(net, s->row);
	return MAD_STATUS_OK;
}

/* Widths and speeds take effect at the next training.  0 leaves a field as it is. */
static void port_set_speeds(const struct port_set *s)
{
	uint32_t width = net_info(s->net, s->row, PI_WIDTH_ENABLED);
	uint32_t speed = net_info(s->net, s->row, PI_SPEED_ENABLED);
	uint32_t ext = net_info(s->net, s->row, PI_EXT_SPEED_ENABLED);
	bool knows_ext = s->r->modifier & MODIFIER_EXT_SPEEDS;
	unsigned changes = 0;

	net_set_enabled(s->net, s->row, port_wish(s, PI_WIDTH_ENABLED),
			port_wish(s, PI_SPEED_ENABLED),
			knows_ext ? port_wish(s, PI_EXT_SPEED_ENABLED) : 0);
	if (width != net_info(s->net, s->row, PI_WIDTH_ENABLED))
		changes |= NOTICE_CHANGED_WIDTH;
	if (speed != net_info(s->net, s->row, PI_SPEED_ENABLED) ||
	    ext != net_info(s->net, s->row, PI_EXT_SPEED_ENABLED))
		changes |= NOTICE_CHANGED_SPEED;
	if (changes)
		notice_local_changes(s->r->sma, s->row, changes);
}

static void port_set_link(const struct port_set *s)
{
	net_set_mtu(s->net, s->row, (enum ib_mtu)port_wish(s, PI_NEIGHBOR_MTU));
	if (port_wish(s, PI_OPER_VLS))
		net_info_set(s->net, s->row, PI_OPER_VLS, port_wish(s, PI_OPER_VLS));
	if (port_wish(s, PI_DOWN_DEFAULT))
		net_info_set(s->net, s->row, PI_DOWN_DEFAULT, port_wish(s, PI_DOWN_DEFAULT));
	port_set_speeds(s);
}

/* Down and training come last, so that the link comes up with what has been set. */
static unsigned port_set_down(const struct port_set *s)
{
	uint32_t phys = port_wish(s, PI_PHYS_STATE);
	int err = 0;

	if (phys)
		err = net_set_phys(s->net, s->row, phys);
	else if (port_wish(s, PI_STATE) == IB_PORT_DOWN)
		err = net_set_state(s->net, s->row, IB_PORT_DOWN);
	return err ? MAD_STATUS_BAD_VALUE : MAD_STATUS_OK;
}

static unsigned port_info_set(const struct port_set *s)
{
	uint32_t state = port_wish(s, PI_STATE);
	bool link = s->parts & PART_LINK;
	unsigned status = MAD_STATUS_OK;

	if (s->parts & PART_END && !port_end_valid(s))
		return MAD_STATUS_BAD_VALUE;
	if (link && !port_link_valid(s))
		return MAD_STATUS_BAD_VALUE;
	/* Armed and active may be refused, so they come before anything else changes. */
	if (link && state > IB_PORT_DOWN && net_set_state(s->net, s->row, state))
		return MAD_STATUS_BAD_VALUE;
	if (s->parts & PART_END)
		status = port_set_end(s);
	port_set_plain(s);
	port_set_partition(s);
	if (!link)
		return status;
	port_set_link(s);
	return status | port_set_down(s);
}

/* ---- the attribute ---- */

/*
 * With protection 1, an asker that does not know the key does not read it.  Who sets a key knows it,
 * though the SMP has the key before: OpenSM takes an answer without the key for a failure.
 */
static void port_hide_key(const struct smp_request *r, uint8_t *data)
{
	if (!r->set && prm_get32(data, PI_MKEY_PROTECT) && r->key != prm_get(data, PI_MKEY))
		prm_set(data, PI_MKEY, 0);
}

unsigned sma_port_info(struct smp_request *r)
{
	uint32_t row = sma_named_port(r);
	bool reregister = prm_get32(r->data, PI_CLIENT_REREGISTER);

	if (row == SUBNET_NONE)
		return MAD_STATUS_BAD_VALUE;
	if (r->set) {
		struct port_set s = {r, r->net, r->data, row, port_parts(r->net, row)};
		unsigned status;

		if (row != r->row && !net_is_switch(r->net, r->row))
			return MAD_STATUS_BAD_VALUE;
		status = port_info_set(&s);
		if (status)
			return status;
	}
	memcpy(r->data, r->net->ports[row].info, MAD_ATTRIBUTE_BYTES);
	sma_violations_get(r, row, r->data);
	prm_set(r->data, PI_LOCAL_PORT, r->net->ports[r->row].number);
	/* The SM that asked for it sees that the port has heard it (IBTA o14-12.2.1). */
	prm_set(r->data, PI_CLIENT_REREGISTER, r->set && reregister);
	port_hide_key(r, r->data);
	return MAD_STATUS_OK;
}

/* ExtendedPortInfo of Mellanox' nodes tells of FDR10.  A Set changes nothing. */
unsigned sma_mellanox_port_info(struct smp_request *r)
{
	uint32_t row = sma_named_port(r);

	if (row == SUBNET_NONE)
		return MAD_STATUS_BAD_VALUE;
	memset(r->data, 0, MAD_ATTRIBUTE_BYTES);
	prm_set(r->data, MLNX_PI_SPEED_SUPPORTED, r->net->ports[row].fdr10);
	prm_set(r->data, MLNX_PI_SPEED_ENABLED, r->net->ports[row].fdr10);
	prm_set(r->data, MLNX_PI_SPEED_ACTIVE, r->net->ports[row].fdr10_active);
	return MAD_STATUS_OK;
}
