// SPDX-License-Identifier: BSD-2-Clause
/*
 * System calls that a program makes by syscall(2).  Those that set a handler or a mask of signals are
 * treated like the functions in signal.c, because a thread that blocks SIGBUS dies at its next doorbell.
 * All others go to the kernel as they are: who makes them so wants what nobody interposes.  UCX maps memory
 * in this way from within its own mmap, and jemalloc reads a file while the first malloc runs.
 */
#include "preload/libc.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/cdev.h"
#include "preload/program_memory.h"
#include "preload/tree.h"
#include "preload/wait.h"

/* The size of the kernel's masks, which callers have to say. */
#define KERNEL_MASK_BYTES 8
/* SA_RESTORER, which libc keeps to itself. */
#define HAS_RESTORER 0x04000000

/* struct sigaction of the kernel, where it has a restorer. */
struct kernel_sigaction {
	void (*handler)(int signum);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

/* What pselect6 takes as its last argument. */
struct select_mask {
	const void *mask;
	size_t bytes;
};

static void mask_from_kernel(sigset_t *set, uint64_t mask)
{
	sigemptyset(set);
	memcpy(set, &mask, sizeof(mask));
}

static uint64_t mask_to_kernel(const sigset_t *set)
{
	uint64_t mask;

	memcpy(&mask, set, sizeof(mask));
	return mask;
}

/* Returns the mask to use in place of the program's. */
static const void *mask_with_faults(const void *mask, long bytes, sigset_t *room)
{
	return bytes == KERNEL_MASK_BYTES ? signal_wait_mask(mask, room) : mask;
}

/* ---- handlers ---- */

static long kept_signal_action(int signum, const struct kernel_sigaction *act,
			       struct kernel_sigaction *old)
{
	struct sigaction changed, was;

	if (act) {
		changed = (struct sigaction){.sa_flags = (int)act->flags & ~HAS_RESTORER};
		changed.sa_handler = act->handler;
		mask_from_kernel(&changed.sa_mask, act->mask);
	}
	if (cdev_sigaction(signum, act ? &changed : NULL, &was))
		return -1;
	if (old)
		*old = (struct kernel_sigaction){
			.handler = was.sa_handler,
			.flags = (unsigned long)was.sa_flags,
			.mask = mask_to_kernel(&was.sa_mask),
		};
	return 0;
}

static long signal_action(int signum, const void *act, void *old)
{
	struct kernel_sigaction action;
	sigset_t set, room;

	/* The kernel says what is wrong with the call. */
	if (act && !program_read(&action, act, sizeof(action)))
		return real(syscall)(SYS_rt_sigaction, signum, act, old, KERNEL_MASK_BYTES);
	if (cdev_keeps_signal(signum)) {
		if (old && real(syscall)(SYS_rt_sigaction, signum, NULL, old, KERNEL_MASK_BYTES))
			return -1;
		return kept_signal_action(signum, act ? &action : NULL, old);
	}
	if (!act)
		return real(syscall)(SYS_rt_sigaction, signum, NULL, old, KERNEL_MASK_BYTES);
	mask_from_kernel(&set, action.mask);
	action.mask = mask_to_kernel(signal_wait_mask(&set, &room));
	return real(syscall)(SYS_rt_sigaction, signum, &action, old, KERNEL_MASK_BYTES);
}

/* ---- the call ---- */

#define POINTER(argument) ((void *)(argument))
#define MASK(mask, bytes) ((long)mask_with_faults(POINTER(mask), bytes, &room))

static long with_faults_open(long number, long a, long b, long c, long d, long e, long f)
{
	struct select_mask of_select;
	sigset_t room;

	switch (number) {
	case SYS_rt_sigaction:
		if (d == KERNEL_MASK_BYTES && tree_active())
			return signal_action((int)a, POINTER(b), POINTER(c));
		break;
	case SYS_rt_sigprocmask:
		if (a != SIG_UNBLOCK)
			b = MASK(b, d);
		break;
	case SYS_rt_sigsuspend:
		a = MASK(a, b);
		break;
	case SYS_ppoll:
		d = MASK(d, e);
		break;
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
		e = MASK(e, f);
		break;
	case SYS_pselect6:
		if (f && program_read(&of_select, POINTER(f), sizeof(of_select))) {
			of_select.mask =
				mask_with_faults(of_select.mask, (long)of_select.bytes, &room);
			f = (long)&of_select;
		}
		break;
	}
	return real(syscall)(number, a, b, c, d, e, f);
}

/* Takes as many arguments as the kernel does.  Those that the caller has not passed are whatever lies there. */
exported long syscall(long number, ...)
{
	long a[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	return with_faults_open(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
