/* SPDX-License-Identifier: BSD-2-Clause */
/* What host and device code of dpa_calls agree on. */
#pragma once

#include <stdint.h>

#define LOG_CQ 8u

/* In memory of the host. */
struct event_times {
	uint64_t completed_ns; /* as the completion says */
	uint64_t began_ns;     /* the handler; written last */
};

/* On the heap of the DPA; the argument of the handler. */
struct event_queue {
	uint64_t cqn, ring, record, ci;
	uint64_t window, mkey, host; /* address of the times */
	uint64_t window_is_set;
};
