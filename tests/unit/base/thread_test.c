// SPDX-License-Identifier: BSD-2-Clause
/* Threads of ours: what they block, what they are called, and what is left when there are none. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/thread.h"
#include "check.h"

#define STACK_BYTES (256u << 10)

/* More than a whole stack of ours. */
static _Thread_local volatile char own_storage[2 * STACK_BYTES];

struct seen {
	sigset_t blocked;
	size_t stack;
};

static void *look_around(void *arg)
{
	struct seen *s = arg;
	pthread_attr_t attr;
	size_t bytes;
	void *stack;

	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &s->blocked));
	CHECK(!pthread_getattr_np(pthread_self(), &attr));
	CHECK(!pthread_attr_getstack(&attr, &stack, &bytes));
	s->stack = (size_t)((char *)__builtin_frame_address(0) - (char *)stack);
	CHECK(s->stack < bytes && !own_storage[0]);
	pthread_attr_destroy(&attr);
	return s;
}

static void test_signals(bool faults)
{
	static const int of_faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
	static const int of_program[] = {SIGINT, SIGTERM, SIGCHLD, SIGALRM, SIGUSR1, SIGPROF};
	const struct own_thread_attr attr = {OWN_THREAD_ENGINE, STACK_BYTES, faults};
	sigset_t before, after;
	struct seen seen;
	pthread_t thread;
	void *end;

	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &before));
	CHECK(!own_thread_start(&thread, &attr, look_around, &seen));
	CHECK(!pthread_join(thread, &end) && end == &seen);
	for (size_t i = 0; i < array_size(of_faults); i++)
		CHECK(sigismember(&seen.blocked, of_faults[i]) == !faults);
	for (size_t i = 0; i < array_size(of_program); i++)
		CHECK(sigismember(&seen.blocked, of_program[i]));
	/* The C library and a sanitizer have used a little of it. */
	CHECK(seen.stack >= STACK_BYTES - (32u << 10) && seen.stack < 2 * STACK_BYTES);
	/* who starts it keeps its own mask */
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &after));
	for (int sig = 1; sig < NSIG; sig++)
		CHECK(sigismember(&before, sig) == sigismember(&after, sig));
}

static pthread_barrier_t barrier;

static void *stay_alive(void *arg)
{
	pthread_barrier_wait(&barrier);
	return arg;
}

static void test_names(void)
{
	CHECK(!pthread_barrier_init(&barrier, NULL, 2));
	for (int name = 0; name < OWN_THREADS; name++) {
		const struct own_thread_attr attr = {(enum own_thread)name, STACK_BYTES, false};
		pthread_t thread;
		char comm[32];

		CHECK(!own_thread_start(&thread, &attr, stay_alive, NULL));
		CHECK(!pthread_getname_np(thread, comm, sizeof(comm)));
		CHECK(!strncmp(comm, "softhca-", 8));
		pthread_barrier_wait(&barrier);
		CHECK(!pthread_join(thread, NULL));
	}
	pthread_barrier_destroy(&barrier);
}

static void test_refused(void)
{
	const struct own_thread_attr small = {OWN_THREAD_ENGINE, 1, false};
	const struct own_thread_attr large = {OWN_THREAD_ENGINE, (size_t)1 << 60, false};
	sigset_t mask;
	pthread_t thread;

	CHECK(own_thread_start(&thread, &small, stay_alive, NULL) == -EINVAL);
	CHECK(own_thread_start(&thread, &large, stay_alive, NULL) == -EAGAIN);
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &mask) && !sigismember(&mask, SIGTERM));
}

int main(void)
{
	test_signals(true);
	test_signals(false);
	test_names();
	test_refused();
	return 0;
}
