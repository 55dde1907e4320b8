// SPDX-License-Identifier: BSD-2-Clause
/* What is known of the thread that polls. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "driver/runtime/poller.h"

#define LONG_NS	 (3600ull * 1000000000u)
#define SHORT_NS 1000000u

static struct poller p;
static int to_thread[2], to_main[2];

static void tell(const int *way)
{
	CHECK(write(way[1], &(char){0}, 1) == 1);
}

static void hear(const int *way)
{
	CHECK(read(way[0], &(char){0}, 1) == 1);
}

static uint64_t own_ns(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static _Atomic(bool) busy, ran;

static void *thread_run(void *arg)
{
	uint64_t until;

	poller_note(&p);
	tell(to_main);
	hear(to_thread);
	until = own_ns() + 2 * SHORT_NS;
	while (atomic_load(&busy))
		if (own_ns() > until)
			atomic_store(&ran, true);
	hear(to_thread);
	return arg;
}

/* It is about to wait, or to end; nothing else tells when it does. */
static void await_asleep(void)
{
	while (poller_goes_on(&p, LONG_NS))
		usleep(100);
}

static void test_thread(void)
{
	pthread_t thread;

	poller_mark(&p, 7);
	CHECK(p.polls == 7 && !poller_goes_on(&p, LONG_NS)); /* nobody has polled */
	CHECK(!pthread_create(&thread, NULL, thread_run, NULL));
	hear(to_main);
	CHECK(!poller_goes_on(&p, LONG_NS)); /* another one was marked */
	poller_mark(&p, 0);
	await_asleep();
	atomic_store(&busy, true);
	tell(to_thread);
	while (!poller_goes_on(&p, LONG_NS))
		;
	while (!atomic_load(&ran))
		;
	/* It wants a processor all the time, and has had one for longer than that. */
	CHECK(poller_goes_on(&p, LONG_NS) && !poller_goes_on(&p, SHORT_NS));
	atomic_store(&busy, false);
	await_asleep();
	tell(to_thread);
	CHECK(!pthread_join(thread, NULL));
	await_asleep(); /* the kernel may still be ending it */
	poller_mark(&p, 0);
	CHECK(!poller_goes_on(&p, LONG_NS)); /* it has ended */
}

static void test_self(void)
{
	int status;
	pid_t child;

	poller_note(&p);
	CHECK(!poller_goes_on(&p, LONG_NS));
	poller_mark(&p, 0);
	CHECK(poller_goes_on(&p, LONG_NS));
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		/* The thread is not this process's. */
		poller_mark(&p, 0);
		_exit(poller_goes_on(&p, LONG_NS));
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
}

int main(void)
{
	CHECK(!pipe(to_thread) && !pipe(to_main));
	test_thread();
	test_self();
	return 0;
}
