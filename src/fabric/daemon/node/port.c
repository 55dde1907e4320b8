// SPDX-License-Identifier: BSD-2-Clause
/* Ports: their fields, what they say at the start, and their counters; see net.h. */
#include "base/endian.h"
#include "base/log.h"
#include "fabric/daemon/node/net.h"
#include "prm/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- fields of PortInfo that the subnet's rows show too, or that somebody listens for ---- */

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

static void net_set_cap_mask(struct net *n, uint32_t row, uint32_t mask)
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

/* ---- what a port says of itself before anybody has set anything ---- */

/* What differs between kinds of ports. */
struct port_start {
	uint32_t cap_mask, cap_mask2;
	uint8_t widths, width;	 /* supported, enabled */
	uint8_t speeds, speed;	 /* supported, enabled */
	uint8_t ext_speeds, ext; /* supported, enabled */
	uint8_t mtu;
};

enum { START_IBSIM, START_IBSIM_CA, START_EDR, START_HDR, START_NDR, START_KINDS };

#define CAP_MASK 0x2651e848u
#define CAP2_ALL (CAP2_WIDTH_2X | CAP2_HDR | CAP2_NDR)

static const struct port_start port_starts[START_KINDS] = {
	/* What programs that were written against ibsim find there: SDR, 4X. */
	[START_IBSIM] = {0x0050c048, 0x0030, 31, 2, 7, 1, 0, 0, IB_MTU_2048},
	/* But adapters can what ours can: OpenSM asks for CLIENT_REREGISTER only where it is offered. */
	[START_IBSIM_CA] = {CAP_MASK, 0x0030, 31, 2, 7, 1, 0, 0, IB_MTU_2048},
	/* Cards, and switches of ours, which have the fastest speed; widths of 2X came with HDR. */
	[START_EDR] = {CAP_MASK, 0, 0x03, 0x03, 7, 7, 0x3, 0x3, IB_MTU_4096},
	[START_HDR] = {CAP_MASK, CAP2_ALL & ~CAP2_NDR, 0x13, 0x13, 7, 7, 0x7, 0x7, IB_MTU_4096},
	[START_NDR] = {CAP_MASK, CAP2_ALL, 0x13, 0x13, 7, 7, 0xf, 0xf, IB_MTU_4096},
};

static unsigned start_kind(const struct net *n, uint32_t row)
{
	bool is_ca = net_node_of(n, row)->type == SMP_NODE_CA;

	if (n->like_ibsim)
		return is_ca ? START_IBSIM_CA : START_IBSIM;
	if (!is_ca)
		return START_NDR;
	return n->card_lane == LANE_EDR	  ? START_EDR
	       : n->card_lane == LANE_HDR ? START_HDR
					  : START_NDR;
}

static void info_start(uint8_t *info, const struct port_start *from)
{
	prm_set(info, PI_WIDTH_SUPPORTED, from->widths);
	prm_set(info, PI_WIDTH_ENABLED, from->width);
	prm_set(info, PI_WIDTH_ACTIVE, 2);
	prm_set(info, PI_SPEED_SUPPORTED, from->speeds);
	prm_set(info, PI_SPEED_ENABLED, from->speed);
	prm_set(info, PI_SPEED_ACTIVE, 1);
	prm_set(info, PI_EXT_SPEED_SUPPORTED, from->ext_speeds);
	prm_set(info, PI_EXT_SPEED_ENABLED, from->ext);
	prm_set(info, PI_DOWN_DEFAULT, SMP_PHYS_POLLING);
	prm_set(info, PI_NEIGHBOR_MTU, from->mtu);
	prm_set(info, PI_MTU_CAP, from->mtu);
	prm_set(info, PI_VL_CAP, VL_CAP_0_TO_7);
	prm_set(info, PI_OPER_VLS, 1);
	prm_set(info, PI_VL_ARB_HIGH_CAP, 8);
	prm_set(info, PI_VL_ARB_LOW_CAP, 8);
}

/* Sets what only ports with LIDs have. */
static void info_start_end_port(uint8_t *info, const struct port_start *from)
{
	prm_set(info, PI_CAP_MASK, from->cap_mask);
	prm_set(info, PI_CAP_MASK2, from->cap_mask2);
	prm_set(info, PI_GUID_CAP, NET_GUIDS);
	prm_set(info, PI_SUBNET_TIMEOUT, 31);
}

/* Tens of thousands of ports begin alike, so the fields are set once for each kind. */
static const uint8_t *info_template(unsigned kind, bool end_port)
{
	static uint8_t made[START_KINDS][2][MAD_ATTRIBUTE_BYTES];
	uint8_t *info = made[kind][end_port];

	if (!prm_get(info, PI_VL_CAP)) {
		info_start(info, &port_starts[kind]);
		if (end_port)
			info_start_end_port(info, &port_starts[kind]);
	}
	return info;
}

/* What programs see of PortInfo besides the fields that have a function of their own. */
void net_show_info(struct net *n, uint32_t row)
{
	struct subnet_port *p = &n->subnet->ports[row];

	atomic_store_explicit(&p->cap_mask2, net_info(n, row, PI_CAP_MASK2), memory_order_relaxed);
	atomic_store_explicit(&p->mtu_cap, net_info(n, row, PI_MTU_CAP), memory_order_relaxed);
	atomic_store_explicit(&p->subnet_timeout, net_info(n, row, PI_SUBNET_TIMEOUT),
			      memory_order_relaxed);
	atomic_store_explicit(&p->init_type_reply, net_info(n, row, PI_INIT_TYPE_REPLY),
			      memory_order_relaxed);
}

void net_port_start(struct net *n, uint32_t row)
{
	bool own_of_switch = net_is_switch(n, row) && !n->ports[row].number;
	enum ib_port_state state = own_of_switch ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	enum smp_phys_state phys = own_of_switch ? SMP_PHYS_LINK_UP : SMP_PHYS_POLLING;
	struct subnet_port *p = &n->subnet->ports[row];
	uint8_t *info = n->ports[row].info;

	memcpy(info, info_template(start_kind(n, row), net_end_port(n, row) == row),
	       MAD_ATTRIBUTE_BYTES);
	prm_set(info, PI_STATE, state);
	prm_set(info, PI_PHYS_STATE, phys);
	subnet_set_state(n->subnet, row, state);
	atomic_store_explicit(&p->phys_state, phys, memory_order_relaxed);
	atomic_store_explicit(&p->cap_mask, prm_get32(info, PI_CAP_MASK), memory_order_relaxed);
	atomic_store_explicit(&p->mtu, prm_get32(info, PI_NEIGHBOR_MTU), memory_order_relaxed);
	atomic_store_explicit(&p->width, prm_get32(info, PI_WIDTH_ACTIVE), memory_order_relaxed);
	atomic_store_explicit(&p->speed, prm_get32(info, PI_SPEED_ACTIVE), memory_order_relaxed);
	net_show_info(n, row);
	atomic_store_explicit(&p->pkeys[0], SUBNET_PKEY_DEFAULT, memory_order_relaxed);
}

/* ---- counters of ports ---- */

void net_count(struct net *n, uint32_t row, enum net_counter c, uint64_t add)
{
	struct net_port *p = &n->ports[row];

	/* Most ports of a large fabric never count anything, so they have no memory for it. */
	if (!p->counters)
		p->counters = calloc(NET_COUNTERS, sizeof(*p->counters));
	if (p->counters)
		p->counters[c] += add;
}

void net_settle(const struct net *n)
{
	if (n->settle)
		n->settle(n->user);
}

static bool row_of_switch(const struct net *n, uint32_t row)
{
	return n->subnet->nodes[n->ports[row].node].kind == SUBNET_SWITCH;
}

/*
 * Nearly all data has service level 0, so this counts only the other levels; level 0 is the rest.
 */
static void sl_count(struct net *n, uint32_t row, enum net_way way, const struct net_carried *c)
{
	struct net_port *p = &n->ports[row];

	if (!c->sl)
		return;
	if (!p->sl_words)
		p->sl_words = calloc((size_t)NET_WAYS * NET_SLS, sizeof(*p->sl_words));
	if (p->sl_words)
		p->sl_words[way * NET_SLS + c->sl] += c->words;
}

/* Counts at both ends of a cable; the processes of a host count at its ends. */
static void link_count(struct net *n, uint32_t row, uint32_t peer, const struct net_carried *c)
{
	sl_count(n, row, NET_OUT, c);
	sl_count(n, peer, NET_IN, c);
	if (!row_of_switch(n, row) || !row_of_switch(n, peer))
		return;
	net_count(n, row, NET_XMIT_DATA, c->words);
	net_count(n, row, NET_XMIT_PACKETS, c->packets);
	net_count(n, peer, NET_RCV_DATA, c->words);
	net_count(n, peer, NET_RCV_PACKETS, c->packets);
}

struct group_carried {
	struct net *net;
	const struct net_carried *carried;
};

static bool group_link_count(void *user, uint32_t row, uint32_t peer)
{
	const struct group_carried *c = user;

	link_count(c->net, row, peer, c->carried);
	if (row_of_switch(c->net, row) && row_of_switch(c->net, peer)) {
		net_count(c->net, row, NET_MULTICAST_XMIT_PACKETS, c->carried->packets);
		net_count(c->net, peer, NET_MULTICAST_RCV_PACKETS, c->carried->packets);
	}
	return true;
}

static bool row_admits(struct net *n, uint32_t row, uint8_t direction, const struct net_carried *c)
{
	if (likely(subnet_port_lets_pass(&n->subnet->ports[row], c->pkey, direction)))
		return true;
	net_count(n, row,
		  direction == SUBNET_ENFORCES_OUT ? NET_XMIT_CONSTRAINT_ERRORS
						   : NET_RCV_CONSTRAINT_ERRORS,
		  c->packets);
	return false;
}

void net_carry(struct net *n, uint32_t row, const struct net_carried *c)
{
	if (c->dlid >= MAD_LID_MULTICAST) {
		struct group_carried g = {n, c};

		subnet_follow_group(n->subnet, row, &(struct subnet_packet){.dlid = c->dlid},
				    group_link_count, &g);
		return;
	}
	/* A port that sends to itself passes no cable, and counts both. */
	if (subnet_port_by_lid(n->subnet, c->dlid) == row) {
		sl_count(n, row, NET_OUT, c);
		sl_count(n, row, NET_IN, c);
		return;
	}
	for (uint32_t hops = 0; hops < SUBNET_HOPS; hops++) {
		uint32_t peer = subnet_link_peer(n->subnet, row);

		if (peer == SUBNET_NONE || !row_admits(n, row, SUBNET_ENFORCES_OUT, c))
			return;
		link_count(n, row, peer, c);
		if (!row_admits(n, peer, SUBNET_ENFORCES_IN, c) || !row_of_switch(n, peer))
			return;
		row = subnet_forward(n->subnet, peer, c->dlid);
		if (row == SUBNET_NONE)
			return;
	}
}

/* The name under which a process counts it; PORT_COUNTERS: processes do not. */
static const enum port_counter host_counters[NET_COUNTERS] = {
	[NET_XMIT_DATA] = PORT_XMIT_DATA,
	[NET_RCV_DATA] = PORT_RCV_DATA,
	[NET_XMIT_PACKETS] = PORT_XMIT_PACKETS,
	[NET_RCV_PACKETS] = PORT_RCV_PACKETS,
	[NET_MULTICAST_XMIT_PACKETS] = PORT_MULTICAST_XMIT_PACKETS,
	[NET_MULTICAST_RCV_PACKETS] = PORT_MULTICAST_RCV_PACKETS,
	[NET_XMIT_DISCARDS] = PORT_XMIT_DISCARDS,
	[NET_RCV_ERRORS] = PORT_RCV_ERRORS,
	[NET_LINK_DOWNED] = PORT_LINK_DOWNED,
	[NET_RCV_SWITCH_RELAY_ERRORS] = PORT_COUNTERS,
	[NET_VL15_DROPPED] = PORT_COUNTERS,
	[NET_LINK_RECOVERED] = PORT_COUNTERS,
	[NET_XMIT_CONSTRAINT_ERRORS] = PORT_COUNTERS,
	[NET_RCV_CONSTRAINT_ERRORS] = PORT_COUNTERS,
};

/* What has left one end of a cable has come to the other, so this names the count there. */
static const enum port_counter peer_counters[NET_COUNTERS] = {
	[NET_XMIT_DATA] = PORT_RCV_DATA,
	[NET_RCV_DATA] = PORT_XMIT_DATA,
	[NET_XMIT_PACKETS] = PORT_RCV_PACKETS,
	[NET_RCV_PACKETS] = PORT_XMIT_PACKETS,
	[NET_MULTICAST_XMIT_PACKETS] = PORT_MULTICAST_RCV_PACKETS,
	[NET_MULTICAST_RCV_PACKETS] = PORT_MULTICAST_XMIT_PACKETS,
};

static bool row_of_host(const struct net *n, uint32_t row)
{
	return row != SUBNET_NONE && n->subnet->nodes[n->ports[row].node].kind == SUBNET_HCA;
}

/* Tells whether data that processes have sent counts, too. */
static bool counter_is_settled(enum net_counter c)
{
	return c <= NET_MULTICAST_RCV_PACKETS || c == NET_XMIT_CONSTRAINT_ERRORS ||
	       c == NET_RCV_CONSTRAINT_ERRORS;
}

uint64_t net_total(const struct net *n, uint32_t row, enum net_counter c)
{
	const struct net_port *p = &n->ports[row];
	uint64_t own;

	if (row_of_switch(n, row) && counter_is_settled(c))
		net_settle(n);
	own = p->counters ? p->counters[c] : 0;
	if (!n->host_count)
		return own;
	if (row_of_host(n, row))
		return host_counters[c] == PORT_COUNTERS
			       ? own
			       : own + n->host_count(n->user, row, host_counters[c]);
	/* No data passes through the daemon: a switch's port has carried what the host's own port
	 * says. */
	if (c <= NET_MULTICAST_RCV_PACKETS && row_of_host(n, p->cable))
		own += n->host_count(n->user, p->cable, peer_counters[c]);
	return own;
}

uint64_t net_sl_total(const struct net *n, uint32_t row, enum net_way way, uint32_t sl)
{
	const struct net_port *p = &n->ports[row];
	uint64_t others = 0, all;

	net_settle(n);
	if (sl)
		return p->sl_words ? p->sl_words[way * NET_SLS + sl] : 0;
	all = net_total(n, row, way == NET_OUT ? NET_XMIT_DATA : NET_RCV_DATA);
	for (uint32_t i = 1; p->sl_words && i < NET_SLS; i++)
		others += p->sl_words[way * NET_SLS + i];
	return all > others ? all - others : 0;
}

uint64_t net_own(const struct net *n, uint32_t row, enum port_counter counter)
{
	const struct net_port *p = &n->ports[row];

	for (uint32_t c = 0; p->counters && counter < PORT_COUNTERS && c < NET_COUNTERS; c++)
		if (host_counters[c] == counter)
			return p->counters[c];
	return 0;
}
