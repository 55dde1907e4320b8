// SPDX-License-Identifier: BSD-2-Clause
/*
 * The driver keeps the handlers for SIGSEGV and SIGBUS, and its own handler stays outermost.  For
 * the same reason threads must not block the two: a blocked fault kills the process at once.  A
 * program loses nothing, because a fault cannot be held back anyway.  So every function of the C
 * library that sets a handler or a mask is here, or in system_call.c, but those that set the mask of a process to be
 * (posix_spawnattr_setsigmask): a process opens the two when it starts, whoever blocked them.  Out
 * of our reach are a system call without the C library and a handler that changes the mask to which it returns.  For a DPA the driver handles more
 * signals; those are faults of device code, which runs in threads of our own, so here they may be
 * blocked.
 */
#include "preload/libc.h"

#include "preload/wait.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include "driver/cdev.h"
#include "preload/program_memory.h"
#include "preload/tree.h"

/* The header declares some of these under no name, and sigpause under that of another function. */
#undef sigpause
sighandler_t bsd_signal(int signum, sighandler_t handler);
int bsd_sigpause(int mask) __asm__("sigpause");
int __sigpause(int sig_or_mask, int is_sig);
int __sigsuspend(const sigset_t *set);
int __sigaction(int signum, const struct sigaction *act, struct sigaction *oldact);

/* Programs call them all the same. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* In the masks of BSD a signal is a bit of an int. */
#define BSD_MASK(signum) (1 << ((signum)-1))

static bool stays_open(int signum)
{
	return (signum == SIGSEGV || signum == SIGBUS) && tree_active();
}

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

static int without_bsd_faults(int mask)
{
	return tree_active() ? mask & ~(BSD_MASK(SIGSEGV) | BSD_MASK(SIGBUS)) : mask;
}

/* The kernel reads the first word of a mask. */
const sigset_t *signal_wait_mask(const sigset_t *mask, sigset_t *room)
{
	if (!mask || !tree_active())
		return mask;
	sigemptyset(room);
	if (!program_word_read((uint64_t *)(void *)room, mask))
		return mask;
	return without_faults(SIG_SETMASK, room, room);
}

/* The process may have got its mask from one that blocked them before it executed this program. */
static __attribute__((constructor)) void open_faults(void)
{
	sigset_t faults;

	sigemptyset(&faults);
	sigaddset(&faults, SIGSEGV);
	sigaddset(&faults, SIGBUS);
	if (tree_active())
		real(sigprocmask)(SIG_UNBLOCK, &faults, NULL);
}

/* ---- handlers ---- */

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

exported int __sigaction(int signum, const struct sigaction *act, struct sigaction *oldact)
{
	return sigaction(signum, act, oldact);
}

static sighandler_t set_handler(int signum, sighandler_t handler, unsigned flags)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = (int)flags};
	struct sigaction old;

	sigemptyset(&act.sa_mask);
	return cdev_sigaction(signum, &act, &old) ? SIG_ERR : old.sa_handler;
}

exported sighandler_t signal(int signum, sighandler_t handler)
{
	if (!cdev_keeps_signal(signum) || handler == SIG_ERR)
		return real(signal)(signum, handler);
	return set_handler(signum, handler, SA_RESTART);
}

exported sighandler_t bsd_signal(int signum, sighandler_t handler)
{
	return signal(signum, handler);
}

exported sighandler_t ssignal(int signum, sighandler_t handler)
{
	return signal(signum, handler);
}

exported sighandler_t __sysv_signal(int signum, sighandler_t handler)
{
	if (!cdev_keeps_signal(signum) || handler == SIG_ERR)
		return real(__sysv_signal)(signum, handler);
	return set_handler(signum, handler, SA_RESETHAND | SA_NODEFER);
}

exported sighandler_t sysv_signal(int signum, sighandler_t handler)
{
	return __sysv_signal(signum, handler);
}

/* A signal that cannot be held keeps its handler. */
exported sighandler_t sigset(int signum, sighandler_t handler)
{
	struct sigaction old;

	if (!cdev_keeps_signal(signum) || handler == SIG_ERR)
		return real(sigset)(signum, handler);
	if (handler == SIG_HOLD && stays_open(signum))
		return cdev_sigaction(signum, NULL, &old) ? SIG_ERR : old.sa_handler;
	if (handler == SIG_HOLD)
		return real(sigset)(signum, handler);
	real(sigrelse)(signum);
	return set_handler(signum, handler, 0);
}

exported int sigignore(int signum)
{
	if (!cdev_keeps_signal(signum))
		return real(sigignore)(signum);
	return set_handler(signum, SIG_IGN, 0) == SIG_ERR ? -1 : 0;
}

/* The kernel has read *stack if it says that all is well. */
exported int sigaltstack(const stack_t *restrict stack, stack_t *restrict old)
{
	int ret = real(sigaltstack)(stack, old);

	if (!ret && stack && !(stack->ss_flags & SS_DISABLE) && tree_active())
		cdev_signal_stack(stack->ss_size);
	return ret;
}

/* ---- masks ---- */

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

exported int pthread_attr_setsigmask_np(pthread_attr_t *attr, const sigset_t *set)
{
	sigset_t room;

	return real(pthread_attr_setsigmask_np)(attr, without_faults(SIG_SETMASK, set, &room));
}

exported int sigblock(int mask)
{
	return real(sigblock)(without_bsd_faults(mask));
}

exported int sigsetmask(int mask)
{
	return real(sigsetmask)(without_bsd_faults(mask));
}

exported int sighold(int signum)
{
	return stays_open(signum) ? 0 : real(sighold)(signum);
}

exported int sigsuspend(const sigset_t *set)
{
	sigset_t room;

	return real(sigsuspend)(signal_wait_mask(set, &room));
}

exported int __sigsuspend(const sigset_t *set)
{
	return sigsuspend(set);
}

exported int bsd_sigpause(int mask)
{
	return real(sigpause)(without_bsd_faults(mask));
}

exported int __sigpause(int sig_or_mask, int is_sig)
{
	return real(__sigpause)(is_sig ? sig_or_mask : without_bsd_faults(sig_or_mask), is_sig);
}

/* ---- contexts ---- */

static void context_open_faults(const ucontext_t *ucp)
{
	ucontext_t *changed = (ucontext_t *)(uintptr_t)ucp;
	uint64_t mask;

	/* The real function says what is wrong with a context that cannot be read. */
	if (!tree_active() || !program_word_read(&mask, &ucp->uc_sigmask))
		return;
	sigdelset(&changed->uc_sigmask, SIGSEGV);
	sigdelset(&changed->uc_sigmask, SIGBUS);
}

/*
 * The contexts change in place, and the real function is jumped to: it saves the context of its
 * caller, to which the program may return more than once, and which must not be a frame of ours.
 */
exported JUMPS int setcontext(const ucontext_t *ucp)
{
	context_open_faults(ucp);
	return real(setcontext)(ucp);
}

exported JUMPS int swapcontext(ucontext_t *restrict oucp, const ucontext_t *restrict ucp)
{
	context_open_faults(ucp);
	return real(swapcontext)(oucp, ucp);
}
