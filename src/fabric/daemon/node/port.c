// SPDX-License-Identifier: BSD-2-Clause
/* Fields of PortInfo that the subnet's rows show too, or that somebody listens for; see net.h. */
#include <errno.h>

#include "base/endian.h"
#include "base/log.h"
#include "fabric/daemon/node/net.h"

/* Warns of a mistake of the subnet's manager, whose consequences look like lost packets. */
static void lid_contest_warn(const struct net *n, uint32_t row, uint32_t lid)
{
	uint32_t owner = lid ? subnet_port_by_lid(n->subnet, (uint16_t)lid) : SUBNET_NONE;

	if (owner == SUBNET_NONE || owner == row)
		return;
	log_warn("LID %u is given to '%.64s' port %u, while '%.64s' port %u has it: packets go "
		 "where the tables of switches lead",
		 lid, net_node_of(n, row)->description, n->ports[row].number,
		 net_node_of(n, owner)->description, n->ports[owner].number);
}

int net_set_lid(struct net *n, uint32_t row, uint32_t lid, uint32_t lmc)
{
	bool same = net_info(n, row, PI_LID) == lid && net_info(n, row, PI_LMC) == lmc;
	int ret;

	if (!same) {
		net_settle(n);
		lid_contest_warn(n, row, lid);
	}
	ret = subnet_claim_lid(n->subnet, row, lid, lmc);
	if (ret || same)
		return ret;
	net_info_set(n, row, PI_LID, lid);
	net_info_set(n, row, PI_LMC, lmc);
	net_tell(n, NET_LID, row, 0);
	return 0;
}

void net_set_sm(struct net *n, uint32_t row, uint32_t lid, uint32_t sl)
{
	struct subnet_port *p = &n->subnet->ports[row];

	if (net_info(n, row, PI_SM_LID) == lid && net_info(n, row, PI_SM_SL) == sl)
		return;
	net_info_set(n, row, PI_SM_LID, lid);
	net_info_set(n, row, PI_SM_SL, sl);
	atomic_store_explicit(&p->sm_lid, lid, memory_order_release);
	atomic_store_explicit(&p->sm_sl, sl, memory_order_release);
	net_tell(n, NET_SM, row, 0);
}

/* ---- GIDs ---- */

static int gid_store(struct net *n, uint32_t row, uint32_t index, uint64_t prefix, uint64_t guid)
{
	const struct subnet_gid_entry entry = {{.half = {htobe64(prefix), htobe64(guid)}},
					       GID_IB_ROCE_V1};
	uint32_t owner;

	return subnet_set_gid(n->subnet, row, index, guid ? &entry : NULL, &owner);
}

static uint64_t guid_of(const struct net *n, uint32_t row, uint32_t index)
{
	struct subnet_gid_entry entry;

	return subnet_gid(n->subnet, row, index, &entry) ? be64toh(entry.gid.half[1]) : 0;
}

int net_set_prefix(struct net *n, uint32_t row, uint64_t prefix)
{
	uint64_t old = prm_get(n->ports[row].info, PI_GID_PREFIX);
	int ret;

	if (old == prefix)
		return 0;
	ret = gid_store(n, row, 0, prefix, n->ports[row].guid);
	for (uint32_t i = 1; i < NET_GUIDS && !ret; i++)
		ret = gid_store(n, row, i, prefix, guid_of(n, row, i));
	if (ret)
		return ret;
	net_info_set(n, row, PI_GID_PREFIX, prefix);
	net_tell(n, NET_LID, row, 0);
	if (old)
		net_tell(n, NET_GIDS, row, 0);
	return 0;
}

#define GUID_BLOCK 8u

static bool has_guids(const struct net *n, uint32_t row, uint32_t block)
{
	return net_end_port(n, row) == row && block < NET_GUIDS / GUID_BLOCK;
}

int net_guids_get(const struct net *n, uint32_t row, uint32_t block, uint8_t *out)
{
	if (!has_guids(n, row, block))
		return -ERANGE;
	for (uint32_t i = 0; i < GUID_BLOCK; i++)
		mad_put64(out, i * 8, guid_of(n, row, block * GUID_BLOCK + i));
	return 0;
}

int net_guids_set(struct net *n, uint32_t row, uint32_t block, const uint8_t *in)
{
	uint64_t prefix = prm_get(n->ports[row].info, PI_GID_PREFIX);
	bool changed = false;
	int ret = 0;

	if (!has_guids(n, row, block))
		return -ERANGE;
	for (uint32_t i = !block; i < GUID_BLOCK && !ret; i++) {
		uint32_t index = block * GUID_BLOCK + i;
		uint64_t guid = mad_get64(in, i * 8);

		if (guid == guid_of(n, row, index))
			continue;
		ret = gid_store(n, row, index, prefix, guid);
		changed |= !ret;
	}
	if (changed)
		net_tell(n, NET_GIDS, row, 0);
	return ret;
}

/* ---- the rest ---- */

void net_set_cap_mask(struct net *n, uint32_t row, uint32_t mask)
{
	if (net_info(n, row, PI_CAP_MASK) == mask)
		return;
	net_info_set(n, row, PI_CAP_MASK, mask);
	atomic_store_explicit(&n->subnet->ports[row].cap_mask, mask, memory_order_release);
	net_tell(n, NET_CAPABILITY, row, 0);
}

void net_hold_issm(struct net *n, uint32_t row, int held)
{
	struct net_port *p = &n->ports[row];
	uint32_t mask = net_info(n, row, PI_CAP_MASK);

	p->issm = (uint8_t)(p->issm + held);
	net_set_cap_mask(n, row, p->issm ? mask | CAP_IS_SM : mask & ~CAP_IS_SM);
}

void net_reregister(struct net *n, uint32_t row)
{
	net_tell(n, NET_REREGISTER, row, 0);
}

void net_set_mtu(struct net *n, uint32_t row, enum ib_mtu mtu)
{
	if (net_info(n, row, PI_NEIGHBOR_MTU) == (uint32_t)mtu)
		return;
	net_info_set(n, row, PI_NEIGHBOR_MTU, mtu);
	atomic_store_explicit(&n->subnet->ports[row].mtu, mtu, memory_order_release);
	subnet_raise_epoch(n->subnet);
}

void net_set_partition(struct net *n, uint32_t row, uint32_t flags)
{
	if (net_info(n, row, PI_PARTITION_FLAGS) == flags)
		return;
	net_settle(n);
	net_info_set(n, row, PI_PARTITION_FLAGS, flags);
	atomic_store_explicit(&n->subnet->ports[row].enforces, (uint8_t)flags,
			      memory_order_release);
	subnet_raise_epoch(n->subnet);
}

/* If all bits of the field are set, it means all that is supported (IBTA 14.2.5.6) by the port and
 * by its cable, 'fit'.  An SM writes that everywhere, and a topology's links keep what the topology
 * says. */
static bool enabled_store(struct net *n, uint32_t row, struct prm_field enabled,
			  struct prm_field supported, uint32_t fit, uint32_t v)
{
	uint32_t all = (1u << enabled.width) - 1;

	if (v == all)
		v = net_info(n, row, supported) & (fit ? fit : all);
	if (!v || v == net_info(n, row, enabled))
		return false;
	net_info_set(n, row, enabled, v);
	return true;
}

void net_add_xdr(struct net *n, uint32_t row)
{
	uint32_t end = net_end_port(n, row);

	net_info_set(n, row, PI_XDR_SUPPORTED, 1);
	net_info_set(n, row, PI_XDR_ENABLED, 1);
	net_info_set(n, end, PI_CAP_MASK2, net_info(n, end, PI_CAP_MASK2) | CAP2_IS_EXT_SPEEDS2);
}

void net_add_fdr10(struct net *n, uint32_t row)
{
	n->ports[row].fdr10 = true;
}

void net_set_enabled(struct net *n, uint32_t row, uint32_t width, uint32_t speed,
		     uint32_t ext_speed)
{
	const struct net_port *p = &n->ports[row];
	bool changed =
		enabled_store(n, row, PI_WIDTH_ENABLED, PI_WIDTH_SUPPORTED, p->fit_width, width);

	changed |= enabled_store(n, row, PI_SPEED_ENABLED, PI_SPEED_SUPPORTED, p->fit_speed, speed);
	changed |= enabled_store(n, row, PI_EXT_SPEED_ENABLED, PI_EXT_SPEED_SUPPORTED,
				 p->fit_ext_speed, ext_speed);
	if (changed)
		net_tell(n, NET_WIDTH_SPEED, row, 0);
}
