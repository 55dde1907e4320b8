/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds the program's signals back while a thread of the program does what no handler may see or
 * jump out of.  It does not hold back faults, which are the device's own and which the thread may
 * meet, nor the two signals of the C library.  With those blocked, a call that is a cancellation
 * point (poll, say) can wait for ever: glibc 2.36 waits on its way out of such a call until the
 * handler of a cancellation that is under way has run.  setuid() of another thread waits for them, too.
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
	const uint64_t c_library = 1ull << (32 - 1) | 1ull << (33 - 1); /* SIGCANCEL, SIGSETXID */
	const uint64_t all = ~(faults | c_library);

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, old, sizeof(all));
}

static inline void signals_release(const uint64_t *old)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, sizeof(*old));
}
