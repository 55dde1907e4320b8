/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes nonsense into the shared memory that the device's library of this process lays open to its
 * peers, and into its channels with them.  Knows nothing of what stands there: words that are not
 * zero are overwritten, by values that numbers, addresses, lengths, owners and indexes fear.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What a word may be overwritten with besides numbers: processes and addresses. */
struct spoil_lures {
	pid_t pids[3];
	uint64_t addresses[3];
};

/* Starts a thread that goes on until the process ends.  restore: each word gets its value back
 * soon, so that what looks sound is used again. */
void spoil_start(uint64_t seed, bool restore, const struct spoil_lures *lures);
/* Words overwritten so far. */
uint64_t spoil_words(void);
