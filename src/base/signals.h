/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds the program's signals back while a thread of the program does what no handler may see or
 * jump out of.  It does not hold faults back: they are the device's own, and the thread may meet
 * one.
 */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline void signals_hold(uint64_t *old)
{
	const uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) |
				1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGTRAP - 1);
	const uint64_t all = ~faults;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, old, sizeof(all));
}

static inline void signals_release(const uint64_t *old)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, sizeof(*old));
}
