// SPDX-License-Identifier: BSD-2-Clause
/*
 * The outermost handler of SIGSEGV and SIGBUS, and the record of what the program believes to be
 * installed.  From the first process of a DPA on it also handles SIGILL, SIGFPE and SIGTRAP, which
 * the DPA's code may raise.
 *
 * We look the real sigaction up behind ourselves, because the preload library's sigaction calls
 * fault_sigaction.  Everything here may run in a signal handler of the program (sigaction is
 * async-signal-safe), so we take a spin lock under blocked signals.
 */
#include "driver/runtime/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/thread.h"
#include "base/spin.h"
#include "dpa/dpa.h"
#include "driver/doorbell/doorbell.h"
#include "usermem/usermem.h"

#define SERVING_STACK_BYTES (120u << 10)
/* What the handler needs beside the kernel's frame if it does not run the device: less than 1,200
 * bytes as optimized. */
#define HANDLER_STACK_BYTES 3072u

typedef int sigaction_fn(int signum, const struct sigaction *act, struct sigaction *oldact);

struct fault_signal {
	int signum;
	bool of_dpa;		  /* we handle it only once there is a DPA */
	_Atomic(bool) installed;  /* for these signals: our handler is installed */
	struct sigaction program; /* what the program has installed; under lock */
};

static struct fault_signal fault_signals[] = {
	{.signum = SIGSEGV},
	{.signum = SIGBUS},
	{.signum = SIGILL, .of_dpa = true},
	{.signum = SIGFPE, .of_dpa = true},
	{.signum = SIGTRAP, .of_dpa = true},
};
static struct spin lock;
/* The process whose handlers these are; 0 before installation.  A child of vfork(2) that resets its
 * handlers has its own in the kernel but shares our memory. */
static _Atomic(pid_t) installed_pid;

static sigaction_fn *real_sigaction(void)
{
	static _Atomic(sigaction_fn *) fn;
	sigaction_fn *f = atomic_load_explicit(&fn, memory_order_relaxed);

	if (!f) {
		f = (sigaction_fn *)dlsym(RTLD_NEXT, "sigaction");
		atomic_store_explicit(&fn, f, memory_order_relaxed);
	}
	return f;
}

static struct fault_signal *handler_find(int signum)
{
	for (size_t i = 0; i < array_size(fault_signals); i++)
		if (fault_signals[i].signum == signum)
			return !fault_signals[i].of_dpa || atomic_load(&fault_signals[i].installed)
				       ? &fault_signals[i]
				       : NULL;
	return NULL;
}

bool fault_is_ours(int signum)
{
	return handler_find(signum) != NULL;
}

/* Makes the system call itself, because pthread_sigmask of the preload library would leave our
 * signals open. */
static void set_mask(int how, const sigset_t *set, sigset_t *old)
{
	syscall(SYS_rt_sigprocmask, how, set, old, _NSIG / 8);
}

static void lock_signals(sigset_t *saved)
{
	sigset_t all;

	sigfillset(&all);
	set_mask(SIG_SETMASK, &all, saved);
	spin_lock(&lock);
}

static void unlock_signals(const sigset_t *saved)
{
	spin_unlock(&lock);
	set_mask(SIG_SETMASK, saved, NULL);
}

/*
 * Takes the default action.  After a fault it is enough to return: the instruction faults again and
 * the core dump shows the fault itself.  A signal that somebody sent has to be sent again, and so
 * has a trap, behind which the program would go on.
 */
static void take_default(int signum, const siginfo_t *info)
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};

	sigemptyset(&dfl.sa_mask);
	real_sigaction()(signum, &dfl, NULL);
	if (info->si_code <= 0 || signum == SIGTRAP)
		raise(signum);
}

/* Runs the program's handler as the kernel would have run it. */
static void handler_chain(struct fault_signal *s, siginfo_t *info, void *ucontext)
{
	struct sigaction act;
	sigset_t saved, mask;

	lock_signals(&saved);
	act = s->program;
	if (act.sa_flags & (int)SA_RESETHAND)
		s->program.sa_handler = SIG_DFL;
	unlock_signals(&saved);

	/* A fault cannot be ignored (the kernel kills); a sent signal can. */
	if (act.sa_handler == SIG_IGN && info->si_code <= 0)
		return;
	if (act.sa_handler == SIG_DFL || act.sa_handler == SIG_IGN) {
		take_default(s->signum, info);
		return;
	}
	mask = act.sa_mask;
	if (!(act.sa_flags & SA_NODEFER))
		sigaddset(&mask, s->signum);
	/* Its handler may meet the device's faults too, those of the other signal. */
	if (s->signum != SIGSEGV)
		sigdelset(&mask, SIGSEGV);
	if (s->signum != SIGBUS)
		sigdelset(&mask, SIGBUS);
	/* The return from our handler lifts this block: it restores the mask of the interrupted
	 * code. */
	set_mask(SIG_BLOCK, &mask, NULL);
	if (act.sa_flags & SA_SIGINFO)
		act.sa_sigaction(s->signum, info, ucontext);
	else
		act.sa_handler(s->signum);
}

/*
 * Is there room to run the device?  An alternate stack may have room for a handler only; that of
 * UCX has 140 KiB.  The device keeps there at most two pieces of 16 KiB, its frames, the frames of
 * a fault on the way, and what has arrived (31 KiB for each time that an Ethernet frame is sent on
 * within the process).
 */
static bool stack_has_room(const ucontext_t *uc)
{
	size_t left = (uintptr_t)__builtin_frame_address(0) - (uintptr_t)uc->uc_stack.ss_sp;

	return left >= uc->uc_stack.ss_size || left >= SERVING_STACK_BYTES;
}

/* We hold signals back, because a handler of the program must not jump away with locks of the
 * device.  The return from our handler lets them through. */
static bool is_doorbell(uintptr_t addr, void *ucontext)
{
	uint64_t signals;

	if (!doorbell_may_be_at(addr))
		return false;
	signals_hold(&signals);
	if (doorbell_fault(addr, ucontext, stack_has_room(ucontext)))
		return true;
	signals_release(&signals);
	return false;
}

static bool is_handled(int signum, const siginfo_t *info, void *ucontext)
{
	return (signum == SIGBUS && is_doorbell((uintptr_t)info->si_addr, ucontext)) ||
	       usermem_fault(ucontext, info->si_addr);
}

static void on_fault(int signum, siginfo_t *info, void *ucontext)
{
	int saved_errno = errno;

	if (!dpa_signal(signum, info, ucontext) &&
	    (info->si_code <= 0 || !is_handled(signum, info, ucontext)))
		handler_chain(handler_find(signum), info, ucontext);
	errno = saved_errno;
}

/*
 * We set SA_ONSTACK because programs that catch their own stack overflow have an alternate stack;
 * others are not affected.  We set SA_NODEFER because usermem may leave by a jump, which would
 * leave the signal blocked.
 */
static int handler_install(struct fault_signal *s)
{
	struct sigaction act = {
		.sa_sigaction = on_fault,
		.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER,
	};

	sigemptyset(&act.sa_mask);
	return real_sigaction()(s->signum, &act, &s->program) ? -errno : 0;
}

int fault_install(void)
{
	sigset_t saved;
	int ret = 0;

	if (!real_sigaction())
		return -ENOSYS;
	lock_signals(&saved);
	if (!atomic_load(&installed_pid)) {
		for (size_t i = 0; !ret && i < array_size(fault_signals); i++)
			if (!fault_signals[i].of_dpa)
				ret = handler_install(&fault_signals[i]);
		atomic_store(&installed_pid, ret ? 0 : getpid());
	}
	unlock_signals(&saved);
	return ret;
}

int fault_install_dpa(void)
{
	sigset_t saved;
	int ret = 0;

	lock_signals(&saved);
	for (size_t i = 0; !ret && i < array_size(fault_signals); i++) {
		struct fault_signal *s = &fault_signals[i];

		if (!s->of_dpa || atomic_load(&s->installed))
			continue;
		ret = handler_install(s);
		atomic_store(&s->installed, !ret);
	}
	unlock_signals(&saved);
	return ret;
}

int fault_sigaction(int signum, const struct sigaction *act, struct sigaction *oldact)
{
	struct fault_signal *s = handler_find(signum);
	struct sigaction old;
	sigset_t saved;

	if (!s || !atomic_load(&installed_pid) || atomic_load(&installed_pid) != getpid())
		return real_sigaction()(signum, act, oldact);
	lock_signals(&saved);
	old = s->program;
	if (act)
		s->program = *act;
	unlock_signals(&saved);
	if (oldact)
		*oldact = old;
	return 0;
}

/*
 * The kernel takes smaller stacks than its own frame needs, and kills a thread that has one when a
 * signal comes.
 */
void fault_signal_stack(size_t bytes)
{
	if (bytes < getauxval(AT_MINSIGSTKSZ) + HANDLER_STACK_BYTES)
		doorbell_never_arm();
}

void fault_fork_child(void)
{
	if (atomic_load(&installed_pid))
		atomic_store(&installed_pid, getpid());
	/* A thread that the child does not have may hold the lock. */
	spin_unlock(&lock);
}
