/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of event handlers and the function `handle` of tests/unit/dpa/device_code.c agree on. */
#pragma once

#include <stdint.h>

enum control_mode {
	CONTROL_RESCHEDULE,
	CONTROL_RETRIGGER, /* until it has run as often as limit says */
	CONTROL_FINISH,
	CONTROL_PROCESS_FINISH,
	CONTROL_YIELD, /* then reschedules */
	CONTROL_SPIN,  /* for ever */
	CONTROL_RETURN,
	CONTROL_FAULT,
	CONTROL_HOLD, /* until go is not 0 */
};

/* Lies on the heap of the DPA; the argument of the handler. */
struct control {
	volatile uint64_t mode;
	volatile uint64_t limit;
	volatile uint64_t go;
	/* by the handler */
	volatile uint64_t runs;
	volatile uint64_t ends; /* it comes to its end now */
	volatile uint64_t inside, most_inside;
	volatile uint64_t id, local_storage;
	volatile uint64_t after_yield;
	struct control *volatile beside; /* whose handler must not be inside at the same time */
	volatile uint64_t overlaps;
};
