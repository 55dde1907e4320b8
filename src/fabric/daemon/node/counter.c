// SPDX-License-Identifier: BSD-2-Clause
/* Counters of ports; see net.h. */
#include <stdlib.h>

#include "fabric/daemon/node/net.h"

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
