// SPDX-License-Identifier: BSD-2-Clause
/* The life of the built-in SM and its sweeps. */
#include "fabric/daemon/sm/sm.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <stdlib.h>

/* Gives LIDs to ports that have none; a port that has one keeps it. */

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

/* ---- configures ports and brings their links up ---- */

static uint32_t cap_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static void port_info_agree(struct net *n, uint32_t row, struct prm_field f, uint32_t value)
{
	if (net_info(n, row, f) != value)
		net_info_set(n, row, f, value);
}

/* Sets what both ends of a link must have alike. */
static void link_agree(struct net *n, uint32_t row, uint32_t peer)
{
	uint32_t mtu = cap_least(net_info(n, row, PI_MTU_CAP), net_info(n, peer, PI_MTU_CAP));
	uint32_t vls = cap_least(net_info(n, row, PI_VL_CAP), net_info(n, peer, PI_VL_CAP));

	net_set_mtu(n, row, (enum ib_mtu)mtu);
	port_info_agree(n, row, PI_OPER_VLS, vls);
}

static void end_port_configure(struct sm *s, uint32_t row)
{
	struct net *n = s->fabric->net;
	uint32_t sm_lid = net_info(n, s->home, PI_LID);

	if (net_info(n, row, PI_SM_LID) != sm_lid || net_info(n, row, PI_SM_SL))
		net_set_sm(n, row, sm_lid, 0);
	if (prm_get(n->ports[row].info, PI_GID_PREFIX) != SM_PREFIX &&
	    net_set_prefix(n, row, SM_PREFIX))
		return;
	port_info_agree(n, row, PI_SUBNET_TIMEOUT, SM_SUBNET_TIMEOUT);
	net_show_info(n, row);
	if (s->reregister && net_info(n, row, PI_CAP_MASK) & CAP_IS_CLIENT_REREGISTER)
		net_reregister(n, row);
}

static void ports_step(struct net *n, enum ib_port_state from, enum ib_port_state to)
{
	for (uint32_t row = 0; row < n->nports; row++)
		/* A refusal means that the link has gone; its event begins the next sweep. */
		if (!n->subnet->ports[row].ethernet && net_info(n, row, PI_STATE) == from &&
		    net_set_state(n, row, to))
			continue;
}

void sm_raise_ports(struct sm *s)
{
	struct net *n = s->fabric->net;

	for (uint32_t row = 0; row < n->nports; row++) {
		uint32_t peer;

		if (n->subnet->ports[row].ethernet || net_node_of(n, row)->removed)
			continue;
		if (sm_is_end_port(n, row))
			end_port_configure(s, row);
		peer = net_peer(n, row, IB_PORT_INIT);
		if (peer != SUBNET_NONE)
			link_agree(n, row, peer);
	}
	s->reregister = false;
	ports_step(n, IB_PORT_INIT, IB_PORT_ARMED);
	ports_step(n, IB_PORT_ARMED, IB_PORT_ACTIVE);
	for (uint32_t i = 0; i < n->nnodes; i++)
		if (n->nodes[i].sw)
			n->nodes[i].sw->port_change = false;
}

#define SWEEP_SLICE_NS 1000000u

static struct sm *sm_of_sweep(struct loop_work *w)
{
	return (struct sm *)((char *)w - offsetof(struct sm, sweep));
}

static struct sm *sm_of_listener(struct net_listener *l)
{
	return (struct sm *)((char *)l - offsetof(struct sm, listener));
}

/* ---- where we are ---- */

/* The first end port of a host; if there is none, the first switch. */
static uint32_t sm_first_port(const struct net *n)
{
	uint32_t first = SUBNET_NONE;

	for (uint32_t row = 0; row < n->nports; row++) {
		if (!sm_is_end_port(n, row))
			continue;
		if (!net_is_switch(n, row))
			return row;
		if (first == SUBNET_NONE)
			first = row;
	}
	return first;
}

/* Finds a place again, because the node that we are at may have been taken away. */
static int sm_settle(struct sm *s)
{
	uint32_t home = sm_first_port(s->fabric->net);

	if (home != s->home)
		sm_stand_back(s);
	s->home = home;
	return home == SUBNET_NONE ? -ENODEV : sm_stand_up(s);
}

/* ---- sweeps ---- */

static void sm_sweep_failed(struct sm *s, int error)
{
	sm_routes_end(s);
	log_error("subnet manager: the subnet stays as it is: errno %d", -error);
}

/* Tells those who want to know of ports that came into service or left it since the last sweep. */
static void sm_tell_ports(struct sm *s)
{
	const struct net *n = s->fabric->net;

	for (uint32_t row = 0; row < n->nports; row++) {
		uint64_t bit = 1ull << row % 64;
		bool there = sa_port_there(n, row);

		if (there == !!(s->there[row / 64] & bit))
			continue;
		s->there[row / 64] ^= bit;
		sa_report_port(&s->sa, row, there ? SA_TRAP_PORT_IN : SA_TRAP_PORT_OUT);
	}
}

static void sm_sweep_finish(struct sm *s)
{
	sm_routes_end(s);
	s->afresh = false;
	sm_raise_ports(s);
	sm_make_trees(s);
	sm_tell_ports(s);
}

static int sm_sweep_begin(struct sm *s)
{
	int ret = sm_assign_lids(s);

	return ret ? ret : sm_routes_begin(s);
}

/* Does a part of a sweep.  True: there is more. */
static bool sm_sweep_slice(struct sm *s, uint64_t until_ns)
{
	int ret = s->routes ? 0 : sm_sweep_begin(s);

	if (ret) {
		sm_sweep_failed(s, ret);
		return false;
	}
	while (sm_routes_step(s))
		if (clock_ns() >= until_ns)
			return true;
	sm_sweep_finish(s);
	return false;
}

static void sm_sweep_run(struct loop *l, struct loop_work *w)
{
	struct sm *s = sm_of_sweep(w);

	if (!s->master || sm_settle(s))
		return;
	s->busy = true;
	if (sm_sweep_slice(s, clock_ns() + SWEEP_SLICE_NS))
		loop_queue(l, w);
	s->busy = false;
}

void sm_sweep_soon(struct sm *s)
{
	/* A sweep under way has seen the links as they were, so it ends. */
	sm_routes_end(s);
	loop_queue(s->fabric->loop, &s->sweep);
}

void sm_catch_up(struct sm *s)
{
	if (!s->sweep.queued)
		return;
	loop_unqueue(s->fabric->loop, &s->sweep);
	sm_sweep_run(s->fabric->loop, &s->sweep);
}

static void sm_sweep_whole(struct sm *s)
{
	s->busy = true;
	while (sm_sweep_slice(s, UINT64_MAX))
		;
	s->busy = false;
}

/* A link between switches that has come up may be the shorter way for LIDs that arrive already. */
static bool port_joins_switches(const struct net *n, uint32_t row)
{
	uint32_t peer = net_peer(n, row, IB_PORT_INIT);

	return peer != SUBNET_NONE && net_is_switch(n, row) && net_is_switch(n, peer);
}

static void sm_event(struct net_listener *l, enum net_event event, uint32_t row, uint32_t what)
{
	struct sm *s = sm_of_listener(l);

	if (!s->master || s->busy || (event != NET_STATE && event != NET_LID))
		return;
	if (event == NET_STATE && what == IB_PORT_DOWN && port_joins_switches(s->fabric->net, row))
		s->afresh = true;
	sm_sweep_soon(s);
}

static void sm_groups_changed(struct loop *l, struct loop_work *w)
{
	struct sm *s = (struct sm *)((char *)w - offsetof(struct sm, make_trees));

	(void)l;
	if (s->master)
		sm_make_trees(s);
}

/* ---- life ---- */

int sm_open(struct sm *s, struct mad_fabric *f, enum sm_mode mode)
{
	int ret;

	*s = (struct sm){.fabric = f, .mode = mode, .home = SUBNET_NONE, .next_lid = 1};
	s->sweep.run = sm_sweep_run;
	s->make_trees.run = sm_groups_changed;
	s->take_back.fire = sm_take_back;
	s->listener.event = sm_event;
	s->there = calloc(f->net->nports / 64u + 1u, sizeof(*s->there));
	if (!s->there)
		return -ENOMEM;
	net_listen(f->net, &s->listener);
	if (mode == SM_EXTERNAL)
		return 0;
	s->master = true;
	s->state = SM_MASTER;
	s->afresh = true;
	ret = sm_settle(s);
	if (ret == -ENODEV) /* the fabric has no InfiniBand */
		return 0;
	if (ret) {
		sm_close(s);
		return ret;
	}
	sm_sweep_whole(s);
	return 0;
}

void sm_close(struct sm *s)
{
	if (!s->fabric) /* it was never opened */
		return;
	s->master = false;
	sm_routes_end(s);
	loop_unqueue(s->fabric->loop, &s->sweep);
	loop_unqueue(s->fabric->loop, &s->make_trees);
	loop_timer_cancel(s->fabric->loop, &s->take_back);
	loop_timer_cancel(s->fabric->loop, &s->poll);
	sm_stand_back(s);
	free(s->there);
	s->there = NULL;
}
