// SPDX-License-Identifier: BSD-2-Clause
/* A sender that is stopped on its way to wake an engine takes nobody else's wake-up with it. */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <linux/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "wire/inbox.h"

static struct slot *slot;

/* To the next entry or exit of a system call; says whether it is the entry of that one. */
static bool next_enters(pid_t child, uint64_t number)
{
	struct ptrace_syscall_info info = {0};
	int status;

	CHECK(!ptrace(PTRACE_SYSCALL, child, NULL, NULL));
	CHECK(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	CHECK(ptrace((enum __ptrace_request)PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) >
	      0);
	return info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == number;
}

static pid_t sender_stopped(void)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(77);
		raise(SIGSTOP);
		inbox_raise(slot, 1);
		_exit(0);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	if (WIFEXITED(status)) {
		fprintf(stderr, "no process may be traced here\n");
		exit(WEXITSTATUS(status));
	}
	CHECK(!ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD));
	while (!next_enters(child, SYS_futex))
		;
	return child;
}

static void *sleep_there(void *arg)
{
	while (atomic_load(&slot->wake) == SLOT_ASLEEP)
		syscall(SYS_futex, &slot->wake, FUTEX_WAIT, SLOT_ASLEEP, NULL, NULL, 0);
	return arg;
}

int main(void)
{
	pthread_t sleeper;
	pid_t child;

	slot = mmap(NULL, sizeof(*slot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(slot != MAP_FAILED);
	atomic_store(&slot->wake, SLOT_ASLEEP);
	CHECK(!pthread_create(&sleeper, NULL, sleep_there, NULL));
	child = sender_stopped();
	CHECK(atomic_load(&slot->wake) == SLOT_ASLEEP);
	inbox_raise(slot, 2);
	pthread_join(sleeper, NULL);
	CHECK(atomic_load(&slot->wake) == SLOT_AWAKE);
	kill(child, SIGKILL);
	/* A thread of the program in the engine's place. */
	atomic_store(&slot->wake, SLOT_READER);
	inbox_raise(slot, 3);
	CHECK(atomic_load(&slot->wake) == SLOT_POLLED);
	inbox_raise(slot, 4);
	CHECK(atomic_load(&slot->wake) == SLOT_POLLED);
	return 0;
}
