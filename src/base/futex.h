/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that wait for a word to change, and who wakes them. */
#pragma once

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * Stores the value and wakes all threads that wait at the word, also of other processes, in one
 * call of the kernel.  A thread that is stopped before the call has done neither, so the next one
 * that sees that somebody sleeps does both.
 */
static inline void futex_store_and_wake(_Atomic(uint32_t) *word, uint32_t value)
{
	const unsigned op = FUTEX_OP(FUTEX_OP_SET, value, FUTEX_OP_CMP_EQ, value);

	if (syscall(SYS_futex, word, FUTEX_WAKE_OP, INT_MAX, NULL, word, op) >= 0)
		return;
	/* A filter of system calls may not know that call. */
	atomic_store(word, value);
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Waits while the word has that value.  The futex is shared between processes, hence not
 * FUTEX_PRIVATE.  The time is absolute, CLOCK_MONOTONIC. */
static inline void futex_wait_until(_Atomic(uint32_t) *word, uint32_t value, uint64_t deadline_ns)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / 1000000000u),
		.tv_nsec = (long)(deadline_ns % 1000000000u),
	};

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, deadline_ns == UINT64_MAX ? NULL : &ts,
		NULL, FUTEX_BITSET_MATCH_ANY);
}
