/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The built-in subnet manager.  It works on the net itself, without MADs, so that tens of thousands
 * of hosts are up in seconds; SMInfo and the SA's answers go by MADs, as everybody's do.  Without a
 * priority it stands back as soon as a program is a subnet manager, and comes back when none is
 * left.  With a priority it finds out with programs' SMs who is the master, as they do among each
 * other (negotiate.c).
 *
 * It manages every port that has a link, also ports that its own port does not reach: nobody has to
 * start anything for a part of the subnet that has been cut off.
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
	bool serves;	 /* the SA's are too, which only a master has */
	bool negotiates; /* by its priority */
	enum sm_state state;
	uint8_t priority;
	uint32_t act_count;
	uint32_t home;	   /* row of the port that we are at: the first end port */
	uint32_t programs; /* how many are subnet managers */
	uint32_t next_lid;
	struct net_listener listener;
	struct loop_work sweep;
	struct loop_timer take_back, poll;
	uint32_t polls;	     /* polls that the master has not answered */
	uint32_t master_lid; /* the master that we stand by for */
	uint64_t told;	     /* GUID of the master that we told of our higher rank */
	uint64_t next_tid;
	struct sma *sma;		      /* for telling the master */
	struct mad_agent info, directed_info; /* they answer SMInfo, and traps */
	struct mad_scope scope;
	struct sa sa;
	struct loop_work make_trees;		/* the SA queues it when groups change */
	uint64_t trees[NET_MULTICAST_CAP / 64]; /* MLIDs that have trees in tables */
	struct sm_routes *routes;		/* of the sweep under way */
	uint64_t *there; /* bit of a row: the last sweep left the end port in service */
	bool afresh;	 /* make all routes anew: no route uses some of the links yet */
	bool reregister; /* tell clients that this SM knows nothing of theirs */
	bool busy;	 /* the listener now hears what we do ourselves */
};

#define SM_TAKE_BACK_MS	  1000u
#define SM_SUBNET_TIMEOUT 18u
#define SM_PREFIX	  0xfe80000000000000ull
#define SM_KEY		  1ull /* OpenSM's default; it passes over SMs with another */

/* Brings the subnet up before it returns, unless the mode is SM_EXTERNAL. */
int sm_open(struct sm *s, struct mad_fabric *f, enum sm_mode mode) must_check;
void sm_close(struct sm *s);
/* Does the next part of a sweep that is due, or all of it if the subnet is small. */
void sm_catch_up(struct sm *s);
/* A program begins, or ceases, to hold IsSM or to be an agent for Get or Trap of SMPs.  Call the
 * first before the program's agent is registered, because until then our own agents have these
 * methods. */
void sm_program_began(struct sm *s);
void sm_program_ended(struct sm *s);

/*
 * Tells whether the port has a LID: it is of InfiniBand, of a node that is there, and port 0 of
 * switches.
 */
bool sm_is_end_port(const struct net *n, uint32_t row);

/*
 * Tells whether a program that is a subnet manager at this port is in our way.  If not, do not tell
 * us of it.
 */
static inline bool sm_minds(const struct sm *s, uint32_t row)
{
	return !s->negotiates || row == s->home;
}

/* ---- negotiate.c: who is the master ---- */

/*
 * Called after sm_open: from now on rank decides.  'sma' carries what a master is told; NULL:
 * nothing.
 */
void sm_negotiate(struct sm *s, uint32_t priority, struct sma *sma);

/* ---- sm.c, mcast.c ---- */

int sm_assign_lids(struct sm *s) must_check; /* keeps LIDs that are valid and unique */
void sm_make_trees(struct sm *s);	     /* multicast */
void sm_raise_ports(struct sm *s);	     /* INIT -> ARMED -> ACTIVE, MTU, VLs, SM LID */

/* ---- routes.c ---- */

/* Keeps tables that lead everywhere, unless s->afresh.  This makes all routes at once: */
int sm_make_routes(struct sm *s) must_check;
/*
 * These make them in parts: 'begin' looks at the links as they are now; 'step' does 64 LIDs and
 * returns false when it has done all.
 */
int sm_routes_begin(struct sm *s) must_check;
bool sm_routes_step(struct sm *s);
void sm_routes_end(struct sm *s);

/* Decides who is the subnet's SM: we, or a program. */

/* Shows us at the port s->home: IsSM, SMInfo and, as the master, SA.  Does nothing if we are shown
 * already. */
int sm_stand_up(struct sm *s) must_check;
/* Takes us away from that port. */
void sm_stand_back(struct sm *s);
/* The timer that runs after the last program has ended. */
void sm_take_back(struct loop *l, struct loop_timer *t);
/* sm.c: begins a sweep, or begins it again. */
void sm_sweep_soon(struct sm *s);
