/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The built-in subnet manager.  It works on the net itself, without MADs, so that tens of thousands of
 * hosts are up in seconds; SMInfo and the SA's answers go by MADs like everybody's.  It stands back
 * as soon as a program is a subnet manager, and comes back when none is left.
 */
#pragma once

#include "fabric/daemon/mad/agent.h"

struct sa;

enum sm_mode { SM_BUILT_IN, SM_EXTERNAL };

struct sm {
	struct mad_fabric *fabric;
	enum sm_mode mode;
	bool master;	   /* we are the subnet's SM now */
	uint32_t home;	   /* row of the port that we are at: the first end port */
	uint32_t programs; /* that are subnet managers */
	uint32_t next_lid;
	uint32_t act_count;
	struct net_listener listener;
	struct loop_work sweep;
	struct loop_timer take_back;
	struct mad_agent info; /* answers SMInfo */
	struct mad_scope scope;
	struct sa *sa;
};

#define SM_TAKE_BACK_MS 1000u

/* Brings the subnet up before it returns, unless the mode is SM_EXTERNAL. */
int sm_open(struct sm *s, struct mad_fabric *f, enum sm_mode mode) must_check;
void sm_close(struct sm *s);
/* A program holds IsSM or is an agent for Get or Trap of SMPs; and it no longer is. */
void sm_program_began(struct sm *s);
void sm_program_ended(struct sm *s);

/* ---- lid.c, routes.c, mcast.c, up.c ---- */
int sm_assign_lids(struct sm *s) must_check; /* keeps what is valid and unique */
int sm_make_routes(struct sm *s) must_check; /* keeps tables that lead everywhere */
void sm_make_trees(struct sm *s);	     /* multicast */
void sm_raise_ports(struct sm *s);	     /* INIT -> ARMED -> ACTIVE, MTU, VLs, SM LID */
