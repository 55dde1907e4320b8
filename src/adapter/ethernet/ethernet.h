/* SPDX-License-Identifier: BSD-2-Clause */
/* What an adapter keeps for frames: rules, tables and counters, and the device memory of
 * steering. */
#pragma once

#include "adapter/core/number.h"
#include "adapter/ethernet/flow.h"
#include "adapter/ste/definer.h"
#include "adapter/ste/icm.h"

#define FLOW_DEFINERS 256u

struct ethernet {
	struct steering rules[FLOW_DOMAINS]; /* in the root tables */
	struct icm icm;
	struct ids samplers; /* struct flow_sampler */
	struct ids tables;   /* struct flow_table */
	struct ids counters; /* struct flow_counter, those that have a number */
	struct ids headers;  /* struct flow_headers */
	_Atomic(struct ste_definer *) definers[FLOW_DEFINERS];
	_Atomic(uint32_t) told; /* bits of enum ste_verdict that the log has told of */
};

void ethernet_init(struct ethernet *e);
void ethernet_release(struct ethernet *e);
