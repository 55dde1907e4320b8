/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance management agents of all ports, and the vendor's and congestion's that share their
 * counters. */
#pragma once

#include "fabric/daemon/mad/agent.h"

struct pma {
	struct port_agent agent;      /* class 0x04 */
	struct port_agent vendor;     /* 0x0a */
	struct port_agent congestion; /* 0x21 */
	struct mad_fabric *fabric;
};

int pma_open(struct pma *p, struct mad_fabric *f) must_check;

/* What PMA reports: 64-bit running counts less what was cleared; files in sysfs use it too. */
uint64_t pma_count(const struct net *n, uint32_t row, enum net_counter c);
void pma_clear(struct net *n, uint32_t row, enum net_counter c);
