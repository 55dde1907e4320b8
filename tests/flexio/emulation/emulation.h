/* SPDX-License-Identifier: BSD-2-Clause */
/* What device and host of tests/flexio/emulation agree on. */
#pragma once

#include <stdint.h>

/* On the heap; the argument of the handler of one doorbell.  All words, so that the host may read them by a call. */
struct bell {
	uint64_t cqn, ring, record, entries;
	uint64_t context; /* handle of the doorbell */
	uint64_t answers; /* CQ of the interrupt; 0: none are sent */
	uint64_t rearms;  /* the context, too */
	/* by the handler */
	uint64_t ci;
	uint64_t activations, taken;
};
