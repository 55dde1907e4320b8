/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connected subnet made by a seed: switches in a random tree, more links among them, hosts on what
 * ports are left, hosts' rows first.
 */
#pragma once

#include "fabric/daemon/node/net.h"

#define MADE_SWITCHES 12u
#define MADE_HOSTS    24u
#define MADE_PORTS    10u /* of a switch */

struct made_net {
	struct subnet subnet;
	struct net net;
	uint32_t hosts[MADE_HOSTS];	  /* rows of their ports */
	uint32_t switches[MADE_SWITCHES]; /* rows of ports 0 */
	uint32_t nhosts;		  /* that have found a port */
	uint64_t random;
};

/* All links are INIT, no port has a LID, all tables drop. */
void made_net_open(struct made_net *m, uint64_t seed);
void made_net_close(struct made_net *m);
uint32_t made_net_random(struct made_net *m, uint32_t below);
/* How many hops a packet takes from a port to the one that has the LID, by the tables; -1: it is lost. */
int made_net_walk(const struct net *n, uint32_t from, uint32_t lid);
