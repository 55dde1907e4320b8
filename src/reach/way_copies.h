/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says of which requests the kernel's copy routine keeps the words whole, on this processor and
 * kernel.  Nobody promises it.  So way_order_test hammers the routine, and requests go by packets
 * on a kind of processor on which it was not hammered, or where its text does not show it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct way_machine {
	bool x86; /* of Intel or AMD */
	bool erms,
		/* String instructions are fast: erms for long copies, fsrm for short ones. */
		fsrm;
	unsigned major, minor; /* the kernel */
};

struct way_copies {
	bool any; /* the routine keeps all words whole, of any request */
	/* Otherwise it keeps those of requests that consist of whole words and have at most so many
	 * bytes; 0: of none. */
	uint64_t most;
};

struct way_copies way_copies_of(const struct way_machine *m) must_check;
struct way_machine way_machine_here(void);
