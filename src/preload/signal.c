// SPDX-License-Identifier: BSD-2-Clause
/*
 * The driver keeps the handlers for SIGSEGV and SIGBUS, and its own handler stays outermost.  For
 * the same reason threads must not block the two: a blocked fault kills the process at once.  A
 * program loses nothing, because a fault cannot be held back anyway.  For a DPA the driver handles more
 * signals; those are faults of device code, which runs in threads of our own, so here they may be
 * blocked.
 */
#include "preload/libc.h"

#include <errno.h>
#include <signal.h>

#include "driver/cdev.h"
#include "preload/tree.h"

/* Returns what to block in place of set; room is for a changed copy. */
static const sigset_t *without_faults(int how, const sigset_t *set, sigset_t *room)
{
	if (!set || how == SIG_UNBLOCK || !tree_active())
		return set;
	*room = *set;
	sigdelset(room, SIGSEGV);
	sigdelset(room, SIGBUS);
	return room;
}

exported int sigaction(int signum, const struct sigaction *restrict act,
		       struct sigaction *restrict oldact)
{
	if (!cdev_keeps_signal(signum)) {
		struct sigaction open;

		if (act && tree_active()) {
			open = *act;
			open.sa_mask = *without_faults(SIG_BLOCK, &act->sa_mask, &open.sa_mask);
			act = &open;
		}
		return real(sigaction)(signum, act, oldact);
	}
	return cdev_sigaction(signum, act, oldact);
}

exported sighandler_t signal(int signum, sighandler_t handler)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct sigaction old;

	if (!cdev_keeps_signal(signum) || handler == SIG_ERR)
		return real(signal)(signum, handler);
	sigemptyset(&act.sa_mask);
	return cdev_sigaction(signum, &act, &old) ? SIG_ERR : old.sa_handler;
}

exported int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t room;

	return real(pthread_sigmask)(how, without_faults(how, set, &room), old);
}

exported int sigprocmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	sigset_t room;

	return real(sigprocmask)(how, without_faults(how, set, &room), old);
}
