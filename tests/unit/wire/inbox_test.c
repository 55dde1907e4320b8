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
#include "wire/wakeup_fifo.h"

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

static bool fifo_is_readable(const struct hidden *fifo)
{
	struct pollfd one = {.fd = fifo->fd, .events = POLLIN};

	return poll(&one, 1, 0) == 1;
}

/* One that waits for descriptors. */
static void wakeups_by_fifo(void)
{
	struct hidden fifo = HIDDEN_NONE, other;

	slot->pid = getpid();
	CHECK(wakeup_fifo_open(slot, &fifo) && wakeup_fifo_open(slot, &fifo));
	for (unsigned i = 0; i < 3; i++) {
		CHECK(!fifo_is_readable(&fifo));
		atomic_store(&slot->driver, i ? SLOT_PROGRAM : SLOT_NOBODY);
		atomic_store(&slot->waiter, SLOT_WAITS_AT_FIFO | 1);
		inbox_raise(slot, 5);
		CHECK(atomic_load(&slot->driver) == SLOT_PROGRAM && !atomic_load(&slot->waiter));
		CHECK(fifo_is_readable(&fifo));
		wakeup_fifo_drain(&fifo);
		inbox_raise(slot, 6); /* nobody is registered any more */
		CHECK(!fifo_is_readable(&fifo));
	}
	/* Nobody hears: what is full is no reason to wait. */
	for (unsigned i = 0; i < 70000; i++) {
		atomic_store(&slot->waiter, SLOT_WAITS_AT_FIFO | 1);
		inbox_raise(slot, 5);
	}
	while (fifo_is_readable(&fifo))
		wakeup_fifo_drain(&fifo);
	CHECK(!atomic_load(&slot->wakeups_failed));
	/* The program has closed it. */
	other = fifo;
	CHECK(!syscall(SYS_close, fifo.fd));
	CHECK(wakeup_fifo_open(slot, &fifo) && fifo.id != other.id);
	atomic_store(&slot->waiter, SLOT_WAITS_AT_FIFO | 1);
	inbox_raise(slot, 5);
	CHECK(fifo_is_readable(&fifo) && !atomic_load(&slot->wakeups_failed));
	/* Another file has its number. */
	atomic_store(&slot->wakeup_id, fifo.id + 1);
	wakeup_fifo_drain(&fifo);
	atomic_store(&slot->waiter, SLOT_WAITS_AT_FIFO | 1);
	inbox_raise(slot, 5);
	CHECK(!fifo_is_readable(&fifo) && atomic_load(&slot->wakeups_failed));
	CHECK(atomic_load(&slot->driver) == SLOT_PROGRAM);
	wakeup_fifo_close(slot, &fifo);
	wakeup_fifos_close();
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
	wakeups_by_fifo();
	return 0;
}
