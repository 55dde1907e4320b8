// SPDX-License-Identifier: BSD-2-Clause
/*
 * fence_heavy: two threads each store a word and then look at the other's.  One of them sees the
 * other's store, though only one side has a fence that costs something.
 *
 * With the argument "control" there is none: then the test has to fail, where there are two
 * processors.
 */
#include "base/fence.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/spin.h"
#include "check.h"

#define ROUNDS 1000u

struct shared {
	cacheline_aligned _Atomic(uint32_t) begun;
	cacheline_aligned _Atomic(uint32_t) ended;
	cacheline_aligned _Atomic(uint32_t) light;
	cacheline_aligned _Atomic(uint32_t) heavy;
	cacheline_aligned uint32_t light_saw;
};

static void await_word(_Atomic(uint32_t) *word, uint32_t value)
{
	for (unsigned i = 1; atomic_load(word) != value; i++)
		if (i % 1024)
			cpu_relax();
		else
			sched_yield();
}

static void spin_some(struct rng *rng)
{
	for (volatile uint64_t n = rng_below(rng, 60); n; n--)
		;
}

static void *light_loop(void *arg)
{
	struct shared *s = arg;
	struct rng rng = {1};

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		await_word(&s->begun, round);
		spin_some(&rng);
		atomic_store_explicit(&s->light, round, memory_order_relaxed);
		fence_light();
		s->light_saw = atomic_load_explicit(&s->heavy, memory_order_relaxed);
		atomic_store(&s->ended, round);
	}
	return NULL;
}

/* In how many rounds neither has seen the other's store. */
static unsigned both_blind(struct shared *s, bool fence)
{
	struct rng rng = {2};
	unsigned blind = 0;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint32_t heavy_saw;

		atomic_store_explicit(&s->begun, round, memory_order_release);
		spin_some(&rng);
		atomic_store_explicit(&s->heavy, round, memory_order_relaxed);
		if (fence)
			fence_heavy();
		else
			fence_light();
		heavy_saw = atomic_load_explicit(&s->light, memory_order_relaxed);
		await_word(&s->ended, round);
		blind += s->light_saw != round && heavy_saw != round;
	}
	return blind;
}

int main(int argc, char **argv)
{
	bool control = argc > 1 && !strcmp(argv[1], "control");
	static struct shared s;
	pthread_t thread;
	unsigned blind;

	if (atomic_load(&fence_symmetric))
		SKIP("the system has no membarrier");
	CHECK(!pthread_create(&thread, NULL, light_loop, &s));
	blind = both_blind(&s, !control);
	CHECK(!pthread_join(thread, NULL));
	if (control)
		printf("without a fence %u of %u rounds\n", blind, ROUNDS);
	return control ? !blind : !!blind;
}
