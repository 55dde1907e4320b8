/* SPDX-License-Identifier: BSD-2-Clause */
/* The MAD layer on a test_net; time stands until the test lets it go. */
#pragma once

#include "fabric/daemon/mad/agent.h"
#include "test_net.h"

struct test_mad {
	struct test_net t;
	struct loop loop;
	struct mad_fabric mad;
};

void test_mad_open(struct test_mad *m);
void test_mad_close(struct test_mad *m);
/* Runs rounds of the loop until nothing is queued; then, if 'ms' is not 0, until so much later. */
void test_mad_run(struct test_mad *m, uint32_t ms);
