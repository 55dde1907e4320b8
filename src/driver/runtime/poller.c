// SPDX-License-Identifier: BSD-2-Clause
/* See poller.h. */
#include "driver/runtime/poller.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "reach/task_state.h"

/* A thread is known by the clock of the time that it has run: the C library knows that one without a
 * system call.  0: nobody. */
static clockid_t poller_who(const struct poller *p)
{
	return (clockid_t)atomic_load_explicit(&p->who, memory_order_relaxed);
}

static clockid_t poller_self(void)
{
	clockid_t clock;

	return likely(!pthread_getcpuclockid(pthread_self(), &clock)) ? clock : 0;
}

/* The kernel's names of such clocks hold the complement of the thread's number above three bits. */
static pid_t poller_thread(clockid_t who)
{
	return (pid_t) ~(who >> 3);
}

/* How long has this thread run?  False: there is no such thread any more. */
static bool poller_ran(clockid_t who, uint64_t *ns)
{
	struct timespec t;

	if (!who || clock_gettime(who, &t))
		return false;
	*ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return true;
}

void poller_note(struct poller *p)
{
	atomic_store_explicit(&p->who, poller_self(), memory_order_relaxed);
}

uint64_t poller_mark(struct poller *p, uint32_t polls)
{
	clockid_t before = p->marked;
	uint64_t ran_ns = p->ran_ns;

	p->polls = polls;
	p->marked = poller_who(p);
	if (!poller_ran(p->marked, &p->ran_ns))
		p->marked = 0;
	return p->marked && p->marked == before ? p->ran_ns - ran_ns : UINT64_MAX;
}

bool poller_goes_on(const struct poller *p, uint64_t most_ns)
{
	clockid_t who = poller_who(p);
	uint64_t ns;

	return who == p->marked && poller_ran(who, &ns) && ns - p->ran_ns <= most_ns &&
	       task_is_runnable(getpid(), poller_thread(who));
}

bool poller_is_another(const struct poller *p)
{
	clockid_t who = poller_who(p);

	return who && who != poller_self() && task_beside_is_runnable(poller_thread(who));
}
