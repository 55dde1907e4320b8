// SPDX-License-Identifier: BSD-2-Clause
/* See self.h. */
#include "self.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "verbs_device.h"

static volatile sig_atomic_t ticks;

void self_refuse_process_vm(int err)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};

	/* For all threads: the device's own are already there. */
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
		device_die("seccomp: %m");
}

static void on_tick(int sig)
{
	(void)sig;
	ticks++;
}

unsigned long self_ticks(void)
{
	return (unsigned long)ticks;
}

void self_tick(unsigned us)
{
	static timer_t timer;
	static bool exists;
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	struct sigaction action = {.sa_handler = on_tick};
	struct timespec every = {0, (long)us * 1000};
	struct itimerspec when = {every, every};

	if (sigaction(SIGUSR2, &action, NULL))
		device_die("sigaction: %m");
	if (!exists && timer_create(CLOCK_MONOTONIC, &event, &timer))
		device_die("timer_create: %m");
	exists = true;
	if (timer_settime(timer, 0, &when, NULL))
		device_die("timer_settime: %m");
}
