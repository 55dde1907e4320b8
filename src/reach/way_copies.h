/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which requests the kernel's copy routine keeps the words of whole, on this processor and kernel.
 * Nobody promises it: way_order_test hammers it, and what a kind of processor was not hammered on,
 * or the routine's text does not show, goes by packets.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct way_machine {
	bool x86;	       /* of Intel or AMD */
	bool erms, fsrm;       /* string instructions are fast: for long copies, for short ones */
	unsigned major, minor; /* the kernel */
};

struct way_copies {
	bool any;      /* all words are whole, of whatever request */
	uint64_t most; /* else those of requests of whole words up to that length; 0: of none */
};

struct way_copies way_copies_of(const struct way_machine *m) must_check;
struct way_machine way_machine_here(void);
