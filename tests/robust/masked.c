// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread that rings by bare stores in vain blocks the signal by which the device hears of that, or
 * handles it: by each function that the C library has for masks and handlers.  The stores arrive, and
 * the program's handler does not hear of them, but of a fault of its own.
 *
 *	masked DEVICE WAY
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../traffic/direct.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

int __sigpause(int sig_or_mask, int is_sig);
int __sigsuspend(const sigset_t *set);
int __sigaction(int signum, const struct sigaction *act, struct sigaction *oldact);
sighandler_t bsd_signal(int signum, sighandler_t handler);

#define RINGS  6u
#define BIT(s) (1 << ((s)-1))
#define FAULTS (BIT(SIGSEGV) | BIT(SIGBUS))

static struct direct_field field;
static sigset_t all;
static unsigned rung; /* so many times */

static void ring_some(void)
{
	direct_ring_asleep(&field, RINGS);
	rung++;
}

/* ---- masks ---- */

static void by_sigprocmask(void)
{
	sigprocmask(SIG_BLOCK, &all, NULL);
	ring_some();
	sigprocmask(SIG_SETMASK, &all, NULL);
	ring_some();
}

static void by_pthread_sigmask(void)
{
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	ring_some();
}

static void by_sigblock(void)
{
	sigblock(~0);
	ring_some();
	if (sigblock(0) & FAULTS)
		device_die("the faults are blocked");
}

static void by_sigsetmask(void)
{
	sigsetmask(~0);
	ring_some();
}

static void by_sighold(void)
{
	if (sighold(SIGBUS) || sighold(SIGSEGV) || sighold(SIGUSR1))
		device_die("sighold: %m");
	ring_some();
	if (sigrelse(SIGBUS) || sigrelse(SIGUSR1))
		device_die("sigrelse: %m");
	ring_some();
}

static void by_sigset_hold(void)
{
	if (sigset(SIGBUS, SIG_HOLD) == SIG_ERR || sigset(SIGSEGV, SIG_HOLD) == SIG_ERR)
		device_die("sigset: %m");
	ring_some();
}

static void by_system_call(void)
{
	uint64_t now = 0;

	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, &now, 8) || now)
		device_die("rt_sigprocmask: %m");
	ring_some();
	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &now, 8) || now & FAULTS ||
	    !(now & 1u << (SIGUSR1 - 1)))
		device_die("the mask");
	if (syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 4) != -1 || errno != EINVAL ||
	    syscall(SYS_rt_sigprocmask, SIG_BLOCK, 8, NULL, 8) != -1 || errno != EFAULT ||
	    syscall(SYS_rt_sigprocmask, 77, &all, NULL, 8) != -1 || errno != EINVAL)
		device_die("what is wrong");
}

static void *ringing_thread(void *unused)
{
	ring_some();
	return unused;
}

static void by_thread_attribute(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	if (pthread_attr_setsigmask_np(&attr, &all) ||
	    pthread_create(&thread, &attr, ringing_thread, NULL) || pthread_join(thread, NULL))
		device_die("no thread");
	pthread_attr_destroy(&attr);
}

static ucontext_t outer, inner;
static char inner_stack[1 << 18];

static void make_inner(void (*fn)(void))
{
	getcontext(&inner);
	inner.uc_stack.ss_sp = inner_stack;
	inner.uc_stack.ss_size = sizeof(inner_stack);
	inner.uc_link = &outer;
	makecontext(&inner, fn, 0);
	inner.uc_sigmask = all;
}

static void by_swapcontext(void)
{
	make_inner(ring_some);
	if (swapcontext(&outer, &inner))
		device_die("swapcontext: %m");
	ring_some();
}

static void by_setcontext(void)
{
	volatile bool back = false;

	make_inner(ring_some);
	getcontext(&outer);
	if (back)
		return;
	back = true;
	setcontext(&inner);
}

/* The program returns to a saved context as often as it likes. */
static void by_swapcontext_twice(void)
{
	volatile unsigned times = 0;
	char text[64];

	make_inner(ring_some);
	swapcontext(&outer, &inner);
	snprintf(text, sizeof(text), "%u", times); /* uses the stack below */
	ring_some();
	if (times++ < 2)
		setcontext(&outer);
}

static void by_siglongjmp(void)
{
	static sigjmp_buf back;
	volatile bool jumped = false;

	sigprocmask(SIG_BLOCK, &all, NULL);
	sigsetjmp(back, 1);
	ring_some();
	if (jumped)
		return;
	jumped = true;
	siglongjmp(back, 1);
}

/* A handler rings while the thread waits with a mask. */
static void on_alarm(int signum)
{
	(void)signum;
	ring_some();
}

static sigset_t but_alarm;

static void by_wait(void (*wait)(void))
{
	const struct itimerval soon = {.it_value = {0, 20000}};
	struct sigaction action = {.sa_handler = on_alarm};

	but_alarm = all;
	sigdelset(&but_alarm, SIGALRM);
	sigdelset(&but_alarm, SIGINT);
	action.sa_mask = all;
	if (sigaction(SIGALRM, &action, NULL) || setitimer(ITIMER_REAL, &soon, NULL))
		device_die("sigaction: %m");
	wait();
	if (errno != EINTR)
		device_die("the wait: %m");
}

static void wait_suspended(void)
{
	sigsuspend(&but_alarm);
}

static void wait_suspended_alias(void)
{
	__sigsuspend(&but_alarm);
}

/* The header gives its name to another function. */
static void wait_paused(void)
{
	((int (*)(int))dlsym(RTLD_DEFAULT, "sigpause"))(~BIT(SIGALRM));
}

static void wait_paused_xpg(void)
{
	sigpause(SIGALRM);
}

static void wait_paused_alias(void)
{
	__sigpause(~BIT(SIGALRM), 0);
}

static void wait_polling(void)
{
	ppoll(NULL, 0, NULL, &but_alarm);
}

static void wait_selecting(void)
{
	pselect(0, NULL, NULL, NULL, NULL, &but_alarm);
}

static void wait_epolling(void)
{
	struct epoll_event e;

	epoll_pwait(epoll_create1(0), &e, 1, -1, &but_alarm);
}

static void wait_epolling2(void)
{
	struct epoll_event e;

	epoll_pwait2(epoll_create1(0), &e, 1, NULL, &but_alarm);
}

static void wait_suspended_call(void)
{
	syscall(SYS_rt_sigsuspend, &but_alarm, 8);
}

static void wait_polling_call(void)
{
	syscall(SYS_ppoll, NULL, 0, NULL, &but_alarm, 8);
}

static void wait_selecting_call(void)
{
	const struct {
		const void *mask;
		size_t bytes;
	} last = {&but_alarm, 8};

	syscall(SYS_pselect6, 0, NULL, NULL, NULL, NULL, &last);
}

static void wait_epolling_call(void)
{
	struct epoll_event e;

	syscall(SYS_epoll_pwait, epoll_create1(0), &e, 1, -1, &but_alarm, 8);
}

static void wait_epolling2_call(void)
{
	struct epoll_event e;

	syscall(SYS_epoll_pwait2, epoll_create1(0), &e, 1, NULL, &but_alarm, 8);
}

#define WAITS(id)                 \
	static void by_##id(void) \
	{                         \
		by_wait(id);      \
	}
WAITS(wait_suspended)
WAITS(wait_suspended_alias)
WAITS(wait_paused)
WAITS(wait_paused_xpg)
WAITS(wait_paused_alias)
WAITS(wait_polling)
WAITS(wait_selecting)
WAITS(wait_epolling)
WAITS(wait_epolling2)
WAITS(wait_suspended_call)
WAITS(wait_polling_call)
WAITS(wait_selecting_call)
WAITS(wait_epolling_call)
WAITS(wait_epolling2_call)

/* ---- handlers ---- */

static volatile char *forbidden;
static volatile sig_atomic_t faults;
static sigjmp_buf behind;

static void on_fault(int signum)
{
	faults++;
	if (signum != SIGSEGV || faults > 1)
		_exit(9);
	ring_some();
	siglongjmp(behind, 1);
}

/* The device does not disturb the handlers, nor do they disturb the device. */
static void handled(bool resets)
{
	struct sigaction now;

	ring_some();
	if (faults)
		device_die("the program's handler has heard of the device's faults");
	if (sigaction(SIGSEGV, NULL, &now) || now.sa_handler != on_fault)
		device_die("the handler is not what the program has set");
	if (!sigsetjmp(behind, 1))
		forbidden[0] = 1;
	if (faults != 1)
		device_die("the program's handler has not heard of its fault");
	if (sigaction(SIGSEGV, NULL, &now) || (now.sa_handler == SIG_DFL) != resets)
		device_die("the handler after a fault");
	ring_some();
}

static void by_sigaction(void)
{
	struct sigaction action = {.sa_handler = on_fault, .sa_mask = all};

	if (sigaction(SIGSEGV, &action, NULL) || __sigaction(SIGBUS, &action, NULL))
		device_die("sigaction: %m");
	handled(false);
}

/* As the kernel has it. */
struct action {
	void (*handler)(int signum);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static void by_action_call(void)
{
	struct action set = {.handler = on_fault, .mask = UINT64_MAX}, was = {.flags = 1};

	if (syscall(SYS_rt_sigaction, SIGSEGV, &set, &was, 8) || was.handler || was.flags ||
	    syscall(SYS_rt_sigaction, SIGBUS, &set, NULL, 8) ||
	    syscall(SYS_rt_sigaction, SIGBUS, NULL, &was, 8) || was.handler != on_fault ||
	    was.mask != UINT64_MAX)
		device_die("rt_sigaction: %m");
	if (syscall(SYS_rt_sigaction, SIGBUS, &set, NULL, 4) != -1 || errno != EINVAL ||
	    syscall(SYS_rt_sigaction, SIGBUS, 8, NULL, 8) != -1 || errno != EFAULT ||
	    syscall(SYS_rt_sigaction, SIGBUS, NULL, 8, 8) != -1 || errno != EFAULT)
		device_die("what is wrong");
	handled(false);
}

static void by_handler(sighandler_t (*set)(int, sighandler_t), bool resets)
{
	if (set(SIGSEGV, on_fault) == SIG_ERR || set(SIGBUS, on_fault) != SIG_DFL ||
	    set(SIGBUS, on_fault) != on_fault)
		device_die("the earlier handler");
	handled(resets);
}

#define HANDLER(id, resets)             \
	static void by_##id(void)       \
	{                               \
		by_handler(id, resets); \
	}
HANDLER(signal, false)
HANDLER(bsd_signal, false)
HANDLER(ssignal, false)
HANDLER(sysv_signal, true)
HANDLER(__sysv_signal, true)
HANDLER(sigset, false)

static void by_sigignore(void)
{
	if (sigignore(SIGBUS) || sigignore(SIGSEGV))
		device_die("sigignore: %m");
	ring_some();
}

static void by_siginterrupt(void)
{
	if (siginterrupt(SIGBUS, 1) || siginterrupt(SIGSEGV, 1))
		device_die("siginterrupt: %m");
	ring_some();
}

/* ---- masks from an earlier program ---- */

static pthread_t early; /* it has its mask before the device is open */
static _Atomic(bool) opened;

static void *early_thread(void *unused)
{
	while (!atomic_load(&opened))
		direct_nap();
	ring_some();
	return unused;
}

static void by_early_thread(void)
{
	ring_some();
	atomic_store(&opened, true);
	if (pthread_join(early, NULL))
		device_die("pthread_join");
}

static void blocked_and_executed(char **argv)
{
	char *again[] = {argv[0], argv[1], argv[2], (char[]){"again"}, NULL};

	/* The C library's own function: the program's would leave the two out. */
	long (*bare)(long number, ...) =
		(long (*)(long, ...))dlsym(dlopen("libc.so.6", RTLD_NOW), "syscall");

	if (bare(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 8))
		device_die("rt_sigprocmask: %m");
	execv(argv[0], again);
	device_die("execv: %m");
}

static void blocked_and_spawned(char **argv)
{
	char *again[] = {argv[0], argv[1], argv[2], (char[]){"again"}, NULL};
	posix_spawnattr_t attr;
	int status;
	pid_t child;

	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigmask(&attr, &all);
	if (posix_spawn(&child, argv[0], NULL, &attr, again, environ) ||
	    waitpid(child, &status, 0) != child)
		device_die("posix_spawn: %m");
	posix_spawnattr_destroy(&attr);
	exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static const struct {
	const char *name;
	void (*run)(void);
	void (*before)(char **argv); /* does not return */
} ways[] = {
	{"sigprocmask", by_sigprocmask, NULL},
	{"pthread_sigmask", by_pthread_sigmask, NULL},
	{"sigblock", by_sigblock, NULL},
	{"sigsetmask", by_sigsetmask, NULL},
	{"sighold", by_sighold, NULL},
	{"sigset(SIG_HOLD)", by_sigset_hold, NULL},
	{"pthread_attr_setsigmask_np", by_thread_attribute, NULL},
	{"rt_sigprocmask by syscall", by_system_call, NULL},
	{"swapcontext", by_swapcontext, NULL},
	{"swapcontext, back twice", by_swapcontext_twice, NULL},
	{"setcontext", by_setcontext, NULL},
	{"siglongjmp", by_siglongjmp, NULL},
	{"sigsuspend", by_wait_suspended, NULL},
	{"__sigsuspend", by_wait_suspended_alias, NULL},
	{"sigpause", by_wait_paused, NULL},
	{"__xpg_sigpause", by_wait_paused_xpg, NULL},
	{"__sigpause", by_wait_paused_alias, NULL},
	{"ppoll", by_wait_polling, NULL},
	{"pselect", by_wait_selecting, NULL},
	{"epoll_pwait", by_wait_epolling, NULL},
	{"epoll_pwait2", by_wait_epolling2, NULL},
	{"rt_sigsuspend by syscall", by_wait_suspended_call, NULL},
	{"ppoll by syscall", by_wait_polling_call, NULL},
	{"pselect6 by syscall", by_wait_selecting_call, NULL},
	{"epoll_pwait by syscall", by_wait_epolling_call, NULL},
	{"epoll_pwait2 by syscall", by_wait_epolling2_call, NULL},
	{"exec", by_early_thread, blocked_and_executed},
	{"posix_spawnattr_setsigmask", by_early_thread, blocked_and_spawned},
	{"sigaction", by_sigaction, NULL},
	{"rt_sigaction by syscall", by_action_call, NULL},
	{"signal", by_signal, NULL},
	{"bsd_signal", by_bsd_signal, NULL},
	{"ssignal", by_ssignal, NULL},
	{"sysv_signal", by_sysv_signal, NULL},
	{"__sysv_signal", by___sysv_signal, NULL},
	{"sigset", by_sigset, NULL},
	{"sigignore", by_sigignore, NULL},
	{"siginterrupt", by_siginterrupt, NULL},
};

int main(int argc, char **argv)
{
	size_t i = 0;

	sigfillset(&all);
	while (argc >= 3 && i < sizeof(ways) / sizeof(ways[0]) &&
	       strcmp(ways[i].name, argv[2]) != 0)
		i++;
	if (argc < 3 || i == sizeof(ways) / sizeof(ways[0]))
		device_die("usage: masked DEVICE WAY");
	if (ways[i].before && argc == 3)
		ways[i].before(argv);
	if (ways[i].before && pthread_create(&early, NULL, early_thread, NULL))
		device_die("no thread");
	forbidden = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	direct_open(&field, argv[1], -1, 0);
	direct_add_loopback(&field);
	ways[i].run();
	if (!rung)
		device_die("nothing was rung");
	direct_close(&field);
	return 0;
}
