/* SPDX-License-Identifier: BSD-2-Clause */
/* What host and device code of dpa_calls agree on. */
#pragma once

#include <stdint.h>

/* On the heap of the DPA; the argument of the handler. */
struct event_queue {
	uint64_t cqn, record, ci;
	uint64_t window, mkey, host; /* address of the host's word for the time */
	uint64_t window_is_set;
};
