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

/* Who waits at a word and who wakes there say the same: threads of this process alone, or also of
 * others. */
enum futex_scope { FUTEX_OF_PROCESS = FUTEX_PRIVATE_FLAG, FUTEX_OF_ALL = 0 };

/* Waits while the word has that value, for less than a second; it may return for any other reason. */
static inline void futex_wait_for(_Atomic(uint32_t) *word, uint32_t value, uint32_t ns,
				  enum futex_scope scope)
{
	const struct timespec ts = {.tv_nsec = (long)ns};

	syscall(SYS_futex, word, FUTEX_WAIT | scope, value, &ts, NULL, 0);
}

/* Waits while the word has that value, or until the deadline (CLOCK_MONOTONIC, UINT64_MAX: never);
 * it may return for any other reason. */
static inline void futex_wait_until(_Atomic(uint32_t) *word, uint32_t value, uint64_t deadline_ns,
				    enum futex_scope scope)
{
	const struct timespec ts = {
		.tv_sec = (time_t)(deadline_ns / 1000000000u),
		.tv_nsec = (long)(deadline_ns % 1000000000u),
	};

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET | scope, value,
		deadline_ns == UINT64_MAX ? NULL : &ts, NULL, FUTEX_BITSET_MATCH_ANY);
}

/* Wakes all threads that wait at the word. */
static inline void futex_wake_all(_Atomic(uint32_t) *word, enum futex_scope scope)
{
	syscall(SYS_futex, word, FUTEX_WAKE | scope, INT_MAX, NULL, NULL, 0);
}

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
	futex_wake_all(word, FUTEX_OF_ALL);
}
