// SPDX-License-Identifier: BSD-2-Clause
/* A sender that is stopped on its way to wake an engine takes nobody else's wake-up with it. */
#include <linux/futex.h>
#include <poll.h>
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
#include "wire/knock.h"

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
	while (atomic_load(&slot->driver) == SLOT_NOBODY)
		syscall(SYS_futex, &slot->driver, FUTEX_WAIT, SLOT_NOBODY, NULL, NULL, 0);
	return arg;
}

static void *sleep_at_waiter(void *arg)
{
	while (atomic_load(&slot->waiter))
		syscall(SYS_futex, &slot->waiter, FUTEX_WAIT, SLOT_WAITS_AT_WORD | 1, NULL, NULL,
			0);
	return arg;
}

static bool knocked(const struct hidden *door)
{
	struct pollfd one = {.fd = door->fd, .events = POLLIN};

	return poll(&one, 1, 0) == 1;
}

/* One that waits for descriptors. */
static void knocks(void)
{
	struct hidden door = HIDDEN_NONE, other;

	slot->pid = getpid();
	CHECK(knock_ready(slot, &door) && knock_ready(slot, &door));
	for (unsigned i = 0; i < 3; i++) {
		CHECK(!knocked(&door));
		atomic_store(&slot->driver, i ? SLOT_PROGRAM : SLOT_NOBODY);
		atomic_store(&slot->waiter, SLOT_WAITS_AT_FIFO | 1);
		inbox_raise(slot, 5);
		CHECK(atomic_load(&slot->driver) == SLOT_PROGRAM && !atomic_load(&slot->waiter));
		CHECK(knocked(&door));
		knock_heard(&door);
		inbox_raise(slot, 6); /* nobody is registered any more */
		CHECK(!knocked(&door));
	}
	/* Nobody hears: what is full is no reason to wait. */
	for (unsigned i = 0; i < 70000; i++) {
		atomic_store(&slot->waiter, SLOT_WAITS_AT_FIFO | 1);
		inbox_raise(slot, 5);
	}
	while (knocked(&door))
		knock_heard(&door);
	CHECK(!atomic_load(&slot->knocks_in_vain));
	/* The program has closed it. */
	other = door;
	CHECK(!syscall(SYS_close, door.fd));
	CHECK(knock_ready(slot, &door) && door.id != other.id);
	atomic_store(&slot->waiter, SLOT_WAITS_AT_FIFO | 1);
	inbox_raise(slot, 5);
	CHECK(knocked(&door) && !atomic_load(&slot->knocks_in_vain));
	/* Another file has its number. */
	atomic_store(&slot->knock_id, door.id + 1);
	knock_heard(&door);
	atomic_store(&slot->waiter, SLOT_WAITS_AT_FIFO | 1);
	inbox_raise(slot, 5);
	CHECK(!knocked(&door) && atomic_load(&slot->knocks_in_vain));
	CHECK(atomic_load(&slot->driver) == SLOT_PROGRAM);
	knock_close(slot, &door);
	knock_forget_all();
}

int main(void)
{
	pthread_t sleeper;
	pid_t child;

	slot = mmap(NULL, sizeof(*slot), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(slot != MAP_FAILED);
	atomic_store(&slot->driver, SLOT_NOBODY);
	CHECK(!pthread_create(&sleeper, NULL, sleep_there, NULL));
	child = sender_stopped();
	CHECK(atomic_load(&slot->driver) == SLOT_NOBODY);
	inbox_raise(slot, 2);
	pthread_join(sleeper, NULL);
	CHECK(atomic_load(&slot->driver) == SLOT_ENGINE);
	kill(child, SIGKILL);
	/* A thread of the program that sleeps at the word: the engine is woken with it, as the guard. */
	atomic_store(&slot->driver, SLOT_NOBODY);
	atomic_store(&slot->waiter, SLOT_WAITS_AT_WORD | 1);
	CHECK(!pthread_create(&sleeper, NULL, sleep_at_waiter, NULL));
	inbox_raise(slot, 3);
	pthread_join(sleeper, NULL);
	CHECK(atomic_load(&slot->driver) == SLOT_PROGRAM && !atomic_load(&slot->waiter));
	inbox_raise(slot, 4);
	CHECK(atomic_load(&slot->driver) == SLOT_PROGRAM);
	/* The engine drives: nobody is woken. */
	atomic_store(&slot->driver, SLOT_ENGINE);
	atomic_store(&slot->waiter, SLOT_WAITS_AT_WORD | 1);
	inbox_raise(slot, 5);
	CHECK(atomic_load(&slot->driver) == SLOT_ENGINE && atomic_load(&slot->waiter));
	knocks();
	return 0;
}
