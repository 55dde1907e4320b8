// SPDX-License-Identifier: BSD-2-Clause
/*
 * The word by which peers know that a process lives.  They can write all that is beside it, so its
 * thread gives it up without a look at the rest.
 */
#include "reach/alive.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096u

static struct alive *shared;
static uint8_t *forbidden;
static int spoil_by;

/* Where a mutex has its kind and its neighbours in the list of the thread's mutexes. */
static void spoil_word(void)
{
	uint8_t *rest = (uint8_t *)&shared->held + sizeof(uint32_t);
	size_t bytes = sizeof(shared->held) - sizeof(uint32_t);
	uintptr_t bad = (uintptr_t)forbidden + 64;

	if (spoil_by < 256) {
		memset(rest, spoil_by, bytes);
		return;
	}
	for (size_t i = 24; i + sizeof(bad) <= sizeof(shared->held); i += sizeof(bad))
		memcpy((uint8_t *)&shared->held + i, &bad, sizeof(bad));
}

static void *hold_and_end(void *arg)
{
	CHECK(!alive_begin(shared));
	CHECK(atomic_load(alive_word(shared)) == (uint32_t)gettid());
	spoil_word();
	alive_end(shared);
	CHECK(!atomic_load(alive_word(shared)));
	/* what another thread has taken since is not ours to give up */
	atomic_store((_Atomic(uint32_t) *)(void *)&shared->held, 1);
	alive_end(shared);
	CHECK(atomic_load(alive_word(shared)) == 1);
	return arg;
}

static int child_ends(void)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, hold_and_end, NULL));
	CHECK(!pthread_join(thread, NULL));
	CHECK(atomic_load(alive_word(shared)) == 1);
	return 0;
}

static void test_spoilt(int by)
{
	pid_t child;
	int status;

	spoil_by = by;
	memset(shared, 0, sizeof(*shared));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		alarm(60);
		_exit(child_ends());
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
}

static void test_place(void)
{
	memset(shared, 0, sizeof(*shared));
	CHECK(!alive_is_near(shared));
	alive_place(shared);
	CHECK(alive_is_near(shared));
	shared->pid_namespace++;
	CHECK(!alive_is_near(shared));
}

/* Peers would address it, and after an exec another program. */
static void test_first_thread(void)
{
	CHECK(alive_begin(shared) < 0 && !atomic_load(alive_word(shared)));
}

int main(void)
{
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	forbidden = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED && forbidden != MAP_FAILED);
	test_first_thread();
	test_place();
	test_spoilt(0);
	test_spoilt(0xff);
	test_spoilt(0x61);
	test_spoilt(256);
	return 0;
}
