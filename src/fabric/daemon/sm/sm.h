/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The built-in subnet manager.  It works on the net itself, without MADs, so that tens of thousands of
 * hosts are up in seconds; SMInfo and the SA's answers go by MADs like everybody's.  It stands back
 * as soon as a program is a subnet manager, and comes back when none is left; or it has a priority and
 * finds out with programs' SMs who is the master, as they do among each other (negotiate.c).
 *
 * It manages every port that has a link, also where its own port does not reach: nobody has to start
 * anything for a part of the subnet that has been cut off.
 */
#pragma once

#include "fabric/daemon/mad/agent.h"
#include "fabric/daemon/sa/sa.h"

struct sm_routes;

enum sm_mode { SM_BUILT_IN, SM_EXTERNAL };

/* As SMInfo numbers them. */
enum sm_state { SM_NOT_ACTIVE, SM_DISCOVERING, SM_STANDBY, SM_MASTER };

struct sm {
	struct mad_fabric *fabric;
	enum sm_mode mode;
	bool master;	 /* we are the subnet's SM now */
	bool answers;	 /* our agents are registered */
	bool serves;	 /* and the SA's: of the master */
	bool negotiates; /* by priority */
	enum sm_state state;
	uint8_t priority;
	uint32_t act_count;
	uint32_t home;	   /* row of the port that we are at: the first end port */
	uint32_t programs; /* that are subnet managers */
	uint32_t next_lid;
	struct net_listener listener;
	struct loop_work sweep;
	struct loop_timer take_back, poll;
	uint32_t polls;	     /* of the master that have not been answered */
	uint32_t master_lid; /* whom we stand by for */
	uint64_t told;	     /* GUID of the master that has been told of our higher rank */
	uint64_t next_tid;
	struct sma *sma;		      /* for that */
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

#define SM_TAKE_BACK_MS	  1000u
#define SM_SUBNET_TIMEOUT 18u
#define SM_PREFIX	  0xfe80000000000000ull
#define SM_KEY		  1ull /* that OpenSM has by itself; it passes over SMs with another */

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

/* Is a program that is a subnet manager at this port in our way?  If not, do not tell us of it. */
static inline bool sm_minds(const struct sm *s, uint32_t row)
{
	return !s->negotiates || row == s->home;
}

/* ---- negotiate.c: who is the master ---- */

/* After sm_open: from now on by rank.  'sma' carries what a master is to be told of; NULL: nothing. */
void sm_negotiate(struct sm *s, uint32_t priority, struct sma *sma);
/* Another SM is there before us: then we stand by. */
bool sm_comes_second(struct sm *s) must_check;
/* We are the master no longer: the SA ends and sweeps. */
void sm_stand_by(struct sm *s);
/* The SA ends. */
void sm_serve_no_more(struct sm *s);
/* Another SM has answered. */
void sm_answered(struct sm *s, const struct mad_message *m);
/* Another sets our SMInfo: the status of the answer, and what follows when it is 0. */
unsigned sm_set_status(const struct sm *s, const uint8_t *mad) must_check;
void sm_set_perform(struct sm *s, const struct mad_message *m);

/* ---- info.c: SMInfo, and traps that come to us ---- */

/* Ours. */
void sm_info_fill(struct sm *s, uint8_t *data);

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
