// SPDX-License-Identifier: BSD-2-Clause
/* The life of the built-in SM and its sweeps. */
#include "fabric/daemon/sm/sm.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric/daemon/sm/yield.h"

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
