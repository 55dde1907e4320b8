// SPDX-License-Identifier: BSD-2-Clause
/* The naps of the engine: how long they are, who ends them, who makes them shorter. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "check.h"
#include "driver/runtime/nap.h"

#define ROUNDS 300u

static void test_lengths(void)
{
	struct nap n = {0};
	uint64_t first;

	nap_start(&n);
	first = n.ns;
	CHECK(first && first < NAP_MAX_NS && n.longest_ns == NAP_MAX_NS);
	nap_take(&n);
	CHECK(n.ns == 2 * first);
	while (n.ns < NAP_MAX_NS)
		nap_take(&n);
	nap_take(&n);
	CHECK(n.ns == NAP_MAX_NS);
	nap_may_be_long(&n);
	while (n.ns < NAP_IN_TURNS_NS)
		nap_take(&n);
	nap_take(&n);
	CHECK(n.ns == NAP_IN_TURNS_NS);
	nap_keep_short(&n);
	nap_take(&n);
	CHECK(n.ns == NAP_MAX_NS);
	nap_start(&n);
	CHECK(n.ns == first);
}

static void test_states(void)
{
	struct nap n = {0};

	nap_allow(&n);
	nap_start(&n);
	nap_announce(&n);
	nap_shorten(&n); /* it is short */
	CHECK(n.state == NAP_ON);
	n.ns = NAP_IN_TURNS_NS;
	nap_may_be_long(&n);
	nap_announce(&n);
	nap_shorten(&n);
	CHECK(n.state == NAP_SHORTER && !nap_is_over(&n));
	nap_take(&n);
	CHECK(n.state == NAP_ON);
	nap_shorten(&n);
	nap_end(&n);
	CHECK(nap_is_over(&n));
	nap_take(&n);
	nap_shorten(&n);
	CHECK(nap_is_over(&n)); /* until the engine allows naps again */
	nap_allow(&n);
	CHECK(!nap_is_over(&n));
}

/* ---- the engine and a thread that comes to rely on it ---- */

static struct nap nap;
static _Atomic(unsigned) relied, seen;
static _Atomic(bool) stop;

/* All rounds would take too long for the test if naps were not made shorter. */
#define WHOLE_NAP_NS 900000000u

/* Naps as the engine does, and says up to which of the other thread's words it has seen any. */
static void *napper_run(void *arg)
{
	nap_start(&nap);
	while (!atomic_load(&stop)) {
		unsigned now;

		nap.longest_ns = nap.ns = WHOLE_NAP_NS;
		nap_announce(&nap);
		now = atomic_load(&relied);
		if (now != atomic_load(&seen))
			nap_keep_short(&nap);
		nap_take(&nap);
		atomic_store(&seen, now);
	}
	return arg;
}

/* Each word is seen, whether the nap had begun or not.  A nap that is over early shows the threads
 * in every order to the thread sanitizer. */
static void test_reliance(void)
{
	pthread_t thread;

	nap_allow(&nap);
	CHECK(!pthread_create(&thread, NULL, napper_run, NULL));
	for (unsigned i = 1; i <= ROUNDS; i++) {
		atomic_store(&relied, i);
		nap_shorten(&nap);
		while (atomic_load(&seen) != i)
			;
	}
	atomic_store(&stop, true);
	nap_end(&nap);
	CHECK(!pthread_join(thread, NULL));
}

int main(void)
{
	test_lengths();
	test_states();
	test_reliance();
	return 0;
}
