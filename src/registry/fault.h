/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults on demand: what happens to packets of queue pairs and to frames on their way (softhca fabric
 * impair).  MADs have faults of their own in the daemon (fabric/daemon/mad/impair.h).
 *
 * The daemon writes the rules, and the port at which a packet ends applies them (wire/fault.h).
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#define FAULT_RULES 32u
#define FAULT_ALL   1000000u /* all of a share in parts per million */

/* A rule concerns a packet if all that it names fits. */
struct fault_rule {
	uint32_t set; /* not 0: the row has a rule; each rule that is set has another number */
	uint32_t link_row_plus_1;  /* one end of a link on the packet's way; 0: any link */
	uint32_t from_row_plus_1;  /* the port that sends; 0: any */
	uint32_t from_host_plus_1; /* the host that sends; 0: any */
	uint32_t to_row_plus_1, to_host_plus_1;
	uint32_t qpn; /* of the queue pair that sends or receives; 0: any */
	uint32_t ops; /* 1 << enum bth_op each; 0: any, and frames */
	/* Which of these packets, counted from 1 in each process and port; count 0: all. */
	uint32_t first, count;
	/* Shares in parts per million. */
	uint32_t loss_ppm, corrupt_ppm, duplicate_ppm, reorder_ppm;
	uint32_t delay_us, jitter_us;
	uint32_t rate_mbps; /* 0: as fast as it comes */
	uint32_t seed;
};

struct fault_rules {
	_Atomic(uint32_t) sequence; /* odd while rules are being written; rises with each change */
	_Atomic(uint32_t) n;	    /* rows up to the last rule; 0: there is none */
	struct fault_rule rule[FAULT_RULES];
};

/* How many packets of queue pairs and frames a rule has met. */
struct fault_counts {
	_Atomic(uint64_t) seen; /* that it concerned */
	_Atomic(uint64_t) done; /* to which it did something */
};
