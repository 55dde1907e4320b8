// SPDX-License-Identifier: BSD-2-Clause
/*
 * fence_far: two processes each store a word and then look at the other's.  One of them sees the
 * other's store, though only one side has a fence that costs something.
 *
 * With the argument "control" there is none: then the test has to fail, where there are two
 * processors.
 */
#include "base/fence.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/spin.h"
#include "check.h"

#define ROUNDS 1000u

struct shared {
	cacheline_aligned _Atomic(uint32_t) begun;
	cacheline_aligned _Atomic(uint32_t) ended;
	cacheline_aligned _Atomic(uint32_t) near;
	cacheline_aligned _Atomic(uint32_t) far;
	cacheline_aligned uint32_t near_saw;
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

static int child_loop(struct shared *s)
{
	struct rng rng = {1};

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		await_word(&s->begun, round);
		spin_some(&rng);
		atomic_store_explicit(&s->near, round, memory_order_relaxed);
		fence_far_light();
		s->near_saw = atomic_load_explicit(&s->far, memory_order_relaxed);
		atomic_store(&s->ended, round);
	}
	return 0;
}

/* In how many rounds neither has seen the other's store. */
static unsigned both_blind(struct shared *s, bool fence)
{
	struct rng rng = {2};
	unsigned blind = 0;

	for (uint32_t round = 1; round <= ROUNDS; round++) {
		uint32_t far_saw;

		atomic_store_explicit(&s->begun, round, memory_order_release);
		spin_some(&rng);
		atomic_store_explicit(&s->far, round, memory_order_relaxed);
		if (fence)
			fence_far();
		else
			fence_far_light();
		far_saw = atomic_load_explicit(&s->near, memory_order_relaxed);
		await_word(&s->ended, round);
		blind += s->near_saw != round && far_saw != round;
	}
	return blind;
}

int main(int argc, char **argv)
{
	bool control = argc > 1 && !strcmp(argv[1], "control");
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned blind;
	int status;
	pid_t pid;

	CHECK(s != MAP_FAILED);
	if (!atomic_load(&fence_far_ready))
		SKIP("the system has no membarrier between processes");
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fence_fork_child();
		_exit(!atomic_load(&fence_far_ready) || child_loop(s));
	}
	blind = both_blind(s, !control);
	CHECK(waitpid(pid, &status, 0) == pid && !status);
	if (control)
		printf("without a fence %u of %u rounds\n", blind, ROUNDS);
	return control ? !blind : !!blind;
}
