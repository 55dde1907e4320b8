// SPDX-License-Identifier: BSD-2-Clause
/* See adaptive_spin.h. */
#include "base/adaptive_spin.h"

#include <sched.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/spin.h"
#include "base/thread.h"

/*
 * The most that a wait in vain costs.  It is as long as a sleeping processor takes to run a thread
 * that the looker has just woken, so a look also covers the next call of a caller that has slept.
 */
#define LOOK_NS 50000u
/* The same where the looker makes the device work, because then to wake it takes two threads. */
#define LOOK_WORKING_NS 100000u
/* Any thread may look for this long; after that each looker needs its own processor. */
#define FIRST_NS 2000u
#define LOOKS	 16u /* between two looks at the clock */

/* After a look in vain nobody looks for this long, and for twice as long after the next. */
#define PENALTY_MIN_NS 50000u
#define PENALTY_MAX_NS 10000000u

/* A thread that leaves its processor works on another one, which may have to wake as well; this
 * takes at most so long.  Leaving pays after STAY_MIN calls. */
#define MOVE_NS	   300000u
#define STAY_MIN   32u
#define STAY_MAX   8192u
#define FOUND_MANY 64u /* finds in a row, after which leaving has paid */

/* A thread that is away this long between two looks is starved (base/thread.h). */
#define AWAY_NS 200000u

static struct {
	_Atomic(uint32_t) processors;
	_Atomic(uint32_t) lookers; /* threads that have looked for longer than FIRST_NS */
	_Atomic(uint64_t) starved_until_ns;
	_Atomic(uint64_t) starved_for_ns;
} machine;

void adaptive_spin_init(void)
{
	cpu_set_t set;

	/* More processors than the set has room for count as many. */
	atomic_store(&machine.processors, sched_getaffinity(0, sizeof(set), &set)
						  ? CPU_SETSIZE
						  : (uint32_t)CPU_COUNT(&set));
}

void adaptive_spin_fork_child(void)
{
	atomic_store(&machine.lookers, 0);
}

static __attribute__((cold)) void looker_starved(uint64_t now)
{
	uint64_t for_ns = starved_ns(now, atomic_load(&machine.starved_until_ns),
				     atomic_load(&machine.starved_for_ns));

	atomic_store(&machine.starved_for_ns, for_ns);
	atomic_store(&machine.starved_until_ns, now + for_ns);
}

static uint64_t look_ns(const struct adaptive_spin *p)
{
	return p->works ? LOOK_WORKING_NS : LOOK_NS;
}

static bool may_look(const struct adaptive_spin *p, uint64_t now)
{
	return now >= p->not_before_ns &&
	       now >= atomic_load_explicit(&machine.starved_until_ns, memory_order_relaxed) &&
	       atomic_load_explicit(&machine.processors, memory_order_relaxed) > 1;
}

/* A thread that looks. */
struct look {
	bool (*over)(const void *arg);
	const void *arg;
	const struct adaptive_spin_work *meanwhile; /* or NULL */
	uint64_t now; /* the last reading of the clock, so that nobody reads it once more */
};

/* Makes the looks between two looks at the clock.  True: the wait is over.  *worked: the thread has
 * done other work, so time has passed. */
static bool look_some(struct look *l, bool *worked)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		if (l->over(l->arg))
			return true;
		if (l->meanwhile && l->meanwhile->work(l->meanwhile->user))
			*worked = true;
		else
			cpu_relax();
	}
	return false;
}

static bool look_until(struct look *l, uint64_t end)
{
	while (l->now < end) {
		uint64_t last = l->now;
		bool worked = false;

		if (look_some(l, &worked))
			return true;
		l->now = clock_ns();
		if (unlikely(l->now - last > AWAY_NS) && !worked) {
			looker_starved(l->now);
			return l->over(l->arg);
		}
	}
	return false;
}

static bool look_on(struct look *l, uint64_t end)
{
	/* Each processor has room for one looker or for the partner that works. */
	uint32_t room = atomic_load(&machine.processors);
	bool found = false;

	if (atomic_fetch_add(&machine.lookers, 1) + 1 < room)
		found = look_until(l, end);
	atomic_fetch_sub(&machine.lookers, 1);
	return found;
}

bool adaptive_spin_until(struct adaptive_spin *p, bool (*over)(const void *arg), const void *arg,
			 const struct adaptive_spin_work *meanwhile)
{
	struct look l = {.over = over, .arg = arg, .meanwhile = meanwhile};
	uint64_t begin;

	p->works = meanwhile;
	if (over(arg))
		return true;
	if (!p->wait_was_short)
		return false;
	begin = l.now = clock_ns();
	if (!may_look(p, begin))
		return false;
	if (look_until(&l, begin + FIRST_NS) || look_on(&l, begin + look_ns(p))) {
		p->penalty_ns = PENALTY_MIN_NS;
		if (++p->found == FOUND_MANY)
			p->stay = STAY_MIN;
		return true;
	}
	p->found = 0;
	p->not_before_ns = l.now + p->penalty_ns;
	p->penalty_ns = (uint32_t)min_u64(2ull * p->penalty_ns, PENALTY_MAX_NS);
	return false;
}

bool spin_on_until(bool (*over)(const void *arg), const void *arg)
{
	struct look l = {.over = over, .arg = arg, .now = clock_ns()};

	return look_on(&l, l.now + MOVE_NS);
}

bool adaptive_spin_leaves_cpu(struct adaptive_spin *p)
{
	if (!p->wait_was_short) {
		p->near = 0;
		return false;
	}
	if (++p->near < p->stay || !may_look(p, clock_ns()))
		return false;
	p->near = p->found = 0;
	p->stay = (uint32_t)min_u64(2ull * p->stay, STAY_MAX);
	return true;
}

void adaptive_spin_learn(struct adaptive_spin *p, uint64_t took_ns)
{
	p->wait_was_short = took_ns < look_ns(p);
	if (!p->penalty_ns) {
		p->penalty_ns = PENALTY_MIN_NS;
		p->stay = STAY_MIN;
	}
}
