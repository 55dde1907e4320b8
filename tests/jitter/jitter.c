/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A library to preload in front of one that was compiled with -finstrument-functions: it holds
 * threads up at random where functions begin and end, so that orders of steps occur that are rare
 * otherwise.  Environment: JITTER_ONE_IN, of so many calls one is held up (none if it is not set);
 * JITTER_SEED.  At the end of the process a line on standard error says how many calls were held up.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PLAIN __attribute__((no_instrument_function))
#define EXPORTED \
	__attribute__((visibility("default"))) /* the tree is compiled with -fvisibility=hidden */

EXPORTED void __cyg_profile_func_enter(void *function, void *caller);
EXPORTED void __cyg_profile_func_exit(void *function, void *caller);

static uint32_t one_in;
static uint64_t seed;
static _Atomic(uint64_t) threads, held;
static _Thread_local __attribute__((tls_model("initial-exec"))) uint64_t state;

PLAIN static __attribute__((constructor)) void jitter_begin(void)
{
	const char *rate = getenv("JITTER_ONE_IN"), *start = getenv("JITTER_SEED");

	seed = start ? strtoull(start, NULL, 0) : 1;
	one_in = rate ? (uint32_t)strtoul(rate, NULL, 0) : 0;
}

PLAIN static __attribute__((destructor)) void jitter_end(void)
{
	if (one_in)
		fprintf(stderr, "jitter: %lu calls held up\n", (unsigned long)held);
}

PLAIN static uint32_t draw(void)
{
	if (!state)
		state = seed * 0x9e3779b97f4a7c15u + atomic_fetch_add(&threads, 1) + 1;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 32);
}

PLAIN static void spin(uint32_t rounds)
{
	for (uint32_t i = 0; i < rounds; i++)
		atomic_signal_fence(memory_order_seq_cst);
}

PLAIN static void jitter(void)
{
	struct timespec nap = {0};
	int error = errno;
	uint32_t how;

	if (!one_in || draw() % one_in)
		return;
	atomic_fetch_add(&held, 1);
	how = draw();
	switch (how % 4) {
	case 0:
		sched_yield();
		break;
	case 1:
		spin(how / 4 % 400);
		break;
	case 2:
		spin(how / 4 % 8000);
		break;
	default:
		nap.tv_nsec = how / 4 % 100000;
		nanosleep(&nap, NULL);
		break;
	}
	errno = error;
}

PLAIN void __cyg_profile_func_enter(void *function, void *caller)
{
	(void)function;
	(void)caller;
	jitter();
}

PLAIN void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
	jitter();
}
