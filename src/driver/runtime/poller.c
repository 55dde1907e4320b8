// SPDX-License-Identifier: BSD-2-Clause
/* See poller.h. */
#include "driver/runtime/poller.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "reach/task_state.h"

static uint64_t poller_who(const struct poller *p)
{
	return atomic_load_explicit(&p->who, memory_order_relaxed);
}

/* How long has this thread run?  False: there is no such thread any more. */
static bool poller_ran(uint64_t who, uint64_t *ns)
{
	struct timespec t;

	if (!who || clock_gettime((clockid_t)(uint32_t)who, &t))
		return false;
	*ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	return true;
}

void poller_note(struct poller *p)
{
	clockid_t clock;

	if (likely(!pthread_getcpuclockid(pthread_self(), &clock)))
		atomic_store_explicit(&p->who, (uint64_t)gettid() << 32 | (uint32_t)clock,
				      memory_order_relaxed);
}

void poller_mark(struct poller *p, uint32_t polls)
{
	p->polls = polls;
	p->marked = poller_who(p);
	if (!poller_ran(p->marked, &p->ran_ns))
		p->marked = 0;
}

bool poller_goes_on(const struct poller *p, uint64_t most_ns)
{
	uint64_t who = poller_who(p), ns;

	return who == p->marked && poller_ran(who, &ns) && ns - p->ran_ns <= most_ns &&
	       task_is_runnable(getpid(), (pid_t)(who >> 32));
}

bool poller_is_another(const struct poller *p)
{
	pid_t who = (pid_t)(poller_who(p) >> 32);

	return who && who != gettid() && task_beside_is_runnable(who);
}
