/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subnet of a test's own, without a daemon:
 *
 *      H1 [1]----[1] S1 [8]----[8] S2 [1]----[1] H2
 *
 * Both switches have 8 ports.
 */
#pragma once

#include "fabric/daemon/node/net.h"

struct test_net {
	struct subnet subnet;
	struct net net;
	uint32_t h1, h2; /* rows of the hosts' ports */
	uint32_t s1, s2; /* rows of the switches' ports 0; external ones follow */
};

/* All links are INIT, no port has a LID, all tables drop. */
void test_net_open(struct test_net *t);
/* As an SM would: H1 has LID 1, S1 2, S2 3, H2 4; tables lead everywhere; links are ACTIVE. */
void test_net_raise(struct test_net *t);
void test_net_close(struct test_net *t);
