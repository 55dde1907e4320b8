/* SPDX-License-Identifier: BSD-2-Clause */
/* Our threads in the program's process; and what code of ours holds back in the program's threads:
 * cancellation, and signals. */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"

/*
 * Our threads in the program's process.  The program's signals are for the program's threads, so
 * ours block them.
 */

/* The name of a thread of ours, which readers of /proc see. */
enum own_thread {
	OWN_THREAD_ENGINE,
	OWN_THREAD_CONTROL,
	OWN_THREAD_KEEPER,
	OWN_THREAD_FEEDER,
	OWN_THREAD_DPA,
	OWN_THREADS,
};

/* What a thread needs besides its function. */
struct own_thread_attr {
	enum own_thread name;
	size_t stack_bytes; /* without the thread-local storage of the program and its libraries */
	/* Faults stay unblocked: the thread touches memory that may no longer exist, and a blocked
	 * fault kills the process. */
	bool faults;
};

/* Makes the thread.  Returns 0, or negative errno if the system lacks something for it. */
int own_thread_start(pthread_t *thread, const struct own_thread_attr *attr, void *(*main)(void *),
		     void *arg) must_check;
/*
 * The calling thread asks for short slices, so that it may interrupt a thread with longer ones as
 * soon as it wakes (Linux 6.12, sched_setattr(2)).  Otherwise a program that spins on its memory
 * has the CPU to itself for milliseconds, although the thread that could end its wait is on that
 * CPU.  Elsewhere it makes no difference.
 */
void own_thread_short_slices(void);

/*
 * Holds the program's signals back while a thread of the program does what no handler may see or
 * jump out of.  It does not hold back faults, which are the device's own and which the thread may
 * meet, nor the two signals of the C library.  With those blocked, a call that is a cancellation
 * point (poll, say) can wait for ever: glibc 2.36 waits on its way out of such a call until the
 * handler of a cancellation that is under way has run.  setuid() of another thread waits for them, too.
 */

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

/*
 * Cancellation of threads.  With hardware, most of what the device does for a program is no
 * cancellation point; and a thread that ended in the middle would leave locks held and data half
 * stored.  So the entry points of the driver, and the rare paths that open something or log, hold
 * cancellation off.  Posting, polling and events make their system calls by syscall(2), which is no
 * cancellation point and costs nothing.
 */

static inline int cancel_hold(void)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	return state;
}

static inline void cancel_restore(const int *state)
{
	pthread_setcancelstate(*state, NULL);
}

/* Holds cancellation off from here to the end of the block. */
#define no_cancellation() \
	const int cancel_state_ __attribute__((cleanup(cancel_restore))) = cancel_hold()

/*
 * A thread that was kept off the processor while it was awake may have to share that processor with
 * somebody who does not sleep.  It reckons with that for some time, and for longer if it happens
 * again.
 */

#define STARVED_MIN_NS 10000000u
#define STARVED_MAX_NS 1000000000u

/* How long it reckons with that from now on.  until_ns, for_ns: until when it did so before, and
 * for how long; 0: never. */
static inline uint64_t starved_ns(uint64_t now, uint64_t until_ns, uint64_t for_ns)
{
	return now < until_ns + 2 * for_ns ? min_u64(2 * for_ns, STARVED_MAX_NS) : STARVED_MIN_NS;
}
