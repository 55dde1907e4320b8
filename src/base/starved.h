/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that was kept off the processor while it was awake may have to share that processor with
 * somebody who does not sleep.  It reckons with that for some time, and for longer if it happens
 * again.
 */
#pragma once

#include "base/compiler.h"

#define STARVED_MIN_NS 10000000u
#define STARVED_MAX_NS 1000000000u

/* How long it reckons with that from now on.  until_ns, for_ns: until when it did so before, and
 * for how long; 0: never. */
static inline uint64_t starved_ns(uint64_t now, uint64_t until_ns, uint64_t for_ns)
{
	return now < until_ns + 2 * for_ns ? min_u64(2 * for_ns, STARVED_MAX_NS) : STARVED_MIN_NS;
}
