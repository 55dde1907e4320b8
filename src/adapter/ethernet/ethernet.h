/* SPDX-License-Identifier: BSD-2-Clause */
/* What an adapter keeps for frames: rules, tables and counters, and the device memory of
 * steering. */
#pragma once

#include <stdatomic.h>

#include "adapter/adapter.h"
#include "adapter/core/number.h"
#include "adapter/ethernet/flow.h"
#include "adapter/ste/tag.h"
#include "adapter/ste/icm.h"

/* Counters of steering rules, as code that counts sees them: packets and bytes of frames. */

struct flow_counter {
	_Atomic(uint64_t) packets;
	_Atomic(uint64_t) bytes;
};

/* The two numbers match only while nothing arrives. */
static inline void flow_counter_add(struct flow_counter *c, uint32_t bytes)
{
	atomic_fetch_add_explicit(&c->packets, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&c->bytes, bytes, memory_order_relaxed);
}

/* Headers of a tunnel, as code that puts frames into it sees them.  They do not change. */

struct flow_headers {
	uint32_t n;
	uint8_t byte[FLOW_HEADERS_MAX];
};

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
