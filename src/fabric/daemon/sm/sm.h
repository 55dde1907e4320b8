/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The built-in subnet manager.  It works on the net itself, without MADs, so that tens of thousands of
 * hosts are up in seconds; SMInfo and the SA's answers go by MADs like everybody's.  It stands back
 * as soon as a program is a subnet manager, and comes back when none is left.
 *
 * It manages every port that has a link, also where its own port does not reach: nobody has to start
 * anything for a part of the subnet that has been cut off.
 */
#pragma once

#include "fabric/daemon/mad/agent.h"
#include "fabric/daemon/sa/sa.h"

struct sm_routes;

enum sm_mode { SM_BUILT_IN, SM_EXTERNAL };

struct sm {
	struct mad_fabric *fabric;
	enum sm_mode mode;
	bool master;	   /* we are the subnet's SM now */
	bool answers;	   /* our agents are registered */
	uint32_t home;	   /* row of the port that we are at: the first end port */
	uint32_t programs; /* that are subnet managers */
	uint32_t next_lid;
	struct net_listener listener;
	struct loop_work sweep;
	struct loop_timer take_back;
	struct mad_agent info, directed_info; /* answer SMInfo, and traps */
	struct mad_scope scope;
	struct sa sa;
	struct loop_work make_trees;		/* what the SA queues when groups change */
	uint64_t trees[NET_MULTICAST_CAP / 64]; /* MLIDs that tables have trees of */
	struct sm_routes *routes;		/* of the sweep under way */
	uint64_t *there; /* bit of a row: the end port was in service after the last sweep */
	bool afresh;	 /* routes are all made anew: there are links that none of them uses */
	bool reregister; /* clients are to be told that this SM knows nothing of theirs */
	bool busy;	 /* what the listener hears now is our own doing */
};

#define SM_STATE_MASTER	  3u
#define SM_TAKE_BACK_MS	  1000u
#define SM_SUBNET_TIMEOUT 18u
#define SM_PREFIX	  0xfe80000000000000ull

/* Brings the subnet up before it returns, unless the mode is SM_EXTERNAL. */
int sm_open(struct sm *s, struct mad_fabric *f, enum sm_mode mode) must_check;
void sm_close(struct sm *s);
/* Does the next part of a sweep that is due, all of it if the subnet is small. */
void sm_catch_up(struct sm *s);
/* A program holds IsSM or is an agent for Get or Trap of SMPs; and it no longer is.  The first must be
 * called before the program's agent is registered: until then our own have these methods. */
void sm_program_began(struct sm *s);
void sm_program_ended(struct sm *s);

/* Is it a port that has a LID: of InfiniBand, of a node that is there, port 0 of switches? */
bool sm_is_end_port(const struct net *n, uint32_t row);

/* ---- info.c: SMInfo, and traps that come to us ---- */

int sm_info_open(struct sm *s) must_check;
void sm_info_close(struct sm *s);

/* ---- lid.c, mcast.c, up.c ---- */

int sm_assign_lids(struct sm *s) must_check; /* keeps what is valid and unique */
void sm_make_trees(struct sm *s);	     /* multicast */
void sm_raise_ports(struct sm *s);	     /* INIT -> ARMED -> ACTIVE, MTU, VLs, SM LID */

/* ---- routes.c ---- */

/* Keeps tables that lead everywhere, unless s->afresh.  All at once: */
int sm_make_routes(struct sm *s) must_check;
/* In parts: 'begin' looks at the links as they are now; 'step' does 64 LIDs, false: it was all. */
int sm_routes_begin(struct sm *s) must_check;
bool sm_routes_step(struct sm *s);
void sm_routes_end(struct sm *s);
