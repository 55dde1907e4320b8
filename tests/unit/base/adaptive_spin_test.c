// SPDX-License-Identifier: BSD-2-Clause
/* Who looks before it sleeps, and when it is time to leave the processor for that. */
#include "base/adaptive_spin.h"

#include <sched.h>
#include <time.h>

#include "check.h"

#define SHORT_NS   1000u
#define LONG_NS	   1000000u
#define WAITS_MANY 100000u

static bool never(const void *arg)
{
	(void)arg;
	return false;
}

static bool over(const void *arg)
{
	return *(const bool *)arg;
}

static void pause_ms(unsigned ms)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
}

/* The answer comes after the first look. */
static bool soon(const void *arg)
{
	return (++*(unsigned *)(uintptr_t)arg & 1) == 0;
}

/* Waits beside the partner, until it is time to leave. */
static unsigned waits(struct adaptive_spin *p)
{
	unsigned n = 1;

	/* After the processor was taken away none leaves for a while. */
	while (!adaptive_spin_leaves_cpu(p)) {
		CHECK(n++ < WAITS_MANY);
		if (n % 1024 == 0)
			pause_ms(1);
	}
	return n;
}

static void test_leaves(void)
{
	struct adaptive_spin p = {0};
	uint32_t stay, first;

	CHECK(!adaptive_spin_leaves_cpu(&p)); /* it has learnt nothing yet */
	adaptive_spin_learn(&p, LONG_NS);
	for (unsigned i = 0; i < WAITS_MANY; i++)
		CHECK(!adaptive_spin_leaves_cpu(&p));
	adaptive_spin_learn(&p, SHORT_NS);
	first = p.stay;
	CHECK(first > 1 && waits(&p) >= first);
	/* It has not helped yet: the next takes longer. */
	stay = p.stay;
	CHECK(stay > first && waits(&p) >= stay && p.stay > stay);
	/* A long one: from the beginning. */
	CHECK(!adaptive_spin_leaves_cpu(&p));
	adaptive_spin_learn(&p, LONG_NS);
	CHECK(!adaptive_spin_leaves_cpu(&p) && p.near == 0);
}

/* Those who have left and find what they look for may leave as soon again. */
static void test_found(void)
{
	struct adaptive_spin p = {0};
	unsigned n = 0, looks = 0;
	uint32_t first;

	adaptive_spin_learn(&p, SHORT_NS);
	first = p.stay;
	(void)waits(&p);
	CHECK(p.stay > first);
	while (p.stay > first) {
		CHECK(looks++ < WAITS_MANY);
		if (!adaptive_spin_until(&p, soon, &n, NULL)) {
			n = 0;
			pause_ms(1);
		}
	}
	CHECK(looks > 1);
}

static void test_look(void)
{
	struct adaptive_spin p = {0};
	bool yes = true;

	CHECK(!adaptive_spin_until(&p, never, NULL, NULL));
	CHECK(adaptive_spin_until(&p, over, &yes, NULL));
	adaptive_spin_learn(&p, SHORT_NS);
	CHECK(!adaptive_spin_until(&p, never, NULL, NULL));
	CHECK(p.not_before_ns); /* there is a pause now */
	CHECK(!spin_on_until(never, NULL));
	CHECK(spin_on_until(over, &yes));
}

int main(void)
{
	cpu_set_t set;

	adaptive_spin_init();
	/* First of all: whoever has waited for a processor does not look for some time. */
	CHECK(sched_getaffinity(0, sizeof(set), &set) == 0);
	if (CPU_COUNT(&set) < 2) {
		printf("one processor: nobody looks, and nobody leaves it\n");
		return 0;
	}
	test_look();
	test_found();
	test_leaves();
	return 0;
}
