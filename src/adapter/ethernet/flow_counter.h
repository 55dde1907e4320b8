/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of steering rules, as code that counts sees them: packets and bytes of frames. */
#pragma once

#include <stdatomic.h>

#include "adapter/adapter.h"

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
