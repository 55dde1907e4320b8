// SPDX-License-Identifier: BSD-2-Clause
/* Who waits for which reader, and who does not: base/hazard.h. */
#include "base/hazard.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* A waiter that should wait and does not is found within this time, mostly. */
#define SHOULD_WAIT_US 50000u
#define MOST_NAP_US    16000u

static char object[64][16];

/* ---- one reader that stays where it is until it is told to leave ---- */

struct stay {
	unsigned first, n; /* the objects that it holds */
	bool nested;	   /* looks at them in an inner section */
	_Atomic(bool) entered, told, left;
};

static void *stay_main(void *arg)
{
	struct stay *s = arg;

	hazard_enter();
	if (s->nested)
		hazard_enter();
	for (unsigned i = 0; i < s->n; i++)
		hazard_hold(object[s->first + i]);
	if (s->nested)
		hazard_leave();
	atomic_store(&s->entered, true);
	/* Hundreds stay at once, and leave a processor to those who come. */
	for (useconds_t us = 1000; !atomic_load(&s->told); us = us < MOST_NAP_US ? us * 2 : us)
		usleep(us);
	atomic_store(&s->left, true);
	hazard_leave();
	return NULL;
}

static pthread_t stay_begin(struct stay *s)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, stay_main, s));
	while (!atomic_load(&s->entered))
		sched_yield();
	return t;
}

static void stay_end(struct stay *s, pthread_t t)
{
	atomic_store(&s->told, true);
	CHECK(!pthread_join(t, NULL));
}

static void *tell_later(void *arg)
{
	struct stay *s = arg;

	usleep(SHOULD_WAIT_US);
	atomic_store(&s->told, true);
	return NULL;
}

/* The wait for the bytes ends when the reader leaves, and not before. */
static void check_waits(struct stay *s, const void *bytes, size_t n)
{
	pthread_t reader = stay_begin(s), teller;

	CHECK(!pthread_create(&teller, NULL, tell_later, s));
	if (n)
		hazard_wait(bytes, n);
	else
		hazard_wait_all();
	CHECK(atomic_load(&s->left));
	CHECK(!pthread_join(reader, NULL) && !pthread_join(teller, NULL));
}

static void test_who_waits(void)
{
	check_waits(&(struct stay){.first = 3, .n = 1}, object[3], 1);
	check_waits(&(struct stay){.first = 3, .n = 1}, object, sizeof(object));
	check_waits(&(struct stay){.first = 3, .n = 5, .nested = true}, object[7], 1);
	/* more than the list has room for: it may hold anything */
	check_waits(&(struct stay){.first = 0, .n = HAZARD_HELD + 1}, object[63], 1);
	/* a section that holds nothing */
	check_waits(&(struct stay){.n = 0}, NULL, 0);
}

/* None of these hang, though the reader stays. */
static void test_who_does_not_wait(void)
{
	struct stay s = {.first = 3, .n = 4};
	pthread_t t = stay_begin(&s);

	hazard_wait(object[2], sizeof(object[2]));
	hazard_wait(object[7], sizeof(object[7]));
	hazard_wait(&object[3][1], 1); /* beside the address that it holds */
	CHECK(!atomic_load(&s.left));
	stay_end(&s, t);
	hazard_wait(object[3], 1);
	hazard_wait_all();
}

/* What a section held does not count in the next one. */
static void test_sections_end(void)
{
	hazard_enter();
	for (unsigned i = 0; i <= HAZARD_HELD; i++)
		hazard_hold(object[i]);
	CHECK(hazard_inside());
	hazard_leave();
	CHECK(!hazard_inside());
	for (unsigned i = 0; i < 200000; i++) {
		hazard_enter();
		hazard_leave();
	}
	hazard_wait(object[0], 1);
	/* outside a section it holds nothing */
	hazard_hold(object[1]);
	hazard_wait(object[1], 1);
}

static void test_take(void)
{
	static _Atomic(char *) place;

	CHECK(!hazard_take(&place));
	atomic_store(&place, object[5]);
	hazard_enter();
	CHECK(hazard_take(&place) == object[5]);
	hazard_leave();
}

/* ---- threads and processes that end inside a section ---- */

static void *end_inside(void *arg)
{
	(void)arg;
	hazard_enter();
	hazard_hold(object[0]);
	return NULL;
}

static void *enter_once(void *arg)
{
	(void)arg;
	CHECK(!hazard_inside());
	hazard_enter();
	hazard_leave();
	return NULL;
}

static void test_thread_that_ends_inside(void)
{
	pthread_t t;

	CHECK(!pthread_create(&t, NULL, end_inside, NULL) && !pthread_join(t, NULL));
	hazard_wait(object[0], 1);
	/* Others get its record, and many records come into being. */
	for (unsigned i = 0; i < 1000; i++)
		CHECK(!pthread_create(&t, NULL, enter_once, NULL) && !pthread_join(t, NULL));
	hazard_wait_all();
}

static void test_many_threads(void)
{
	static struct stay s[600];
	static pthread_t t[600];
	pthread_attr_t small;

	CHECK(!pthread_attr_init(&small) && !pthread_attr_setstacksize(&small, 65536));
	for (unsigned i = 0; i < array_size(s); i++) {
		s[i] = (struct stay){.first = i % 32, .n = 1};
		CHECK(!pthread_create(&t[i], &small, stay_main, &s[i]));
	}
	for (unsigned i = 0; i < array_size(s); i++)
		while (!atomic_load(&s[i].entered))
			usleep(1000);
	hazard_wait(object[40], 1);
	for (unsigned i = 0; i < array_size(s); i++)
		atomic_store(&s[i].told, true);
	hazard_wait(object[4], 1);
	for (unsigned i = 4; i < array_size(s); i += 32)
		CHECK(atomic_load(&s[i].left));
	for (unsigned i = 0; i < array_size(s); i++)
		CHECK(!pthread_join(t[i], NULL));
}

static void test_fork(void)
{
	struct stay s = {.first = 3, .n = 1};
	pthread_t t = stay_begin(&s);
	pid_t child;
	int status;

	child = fork();
	CHECK(child >= 0);
	if (!child) {
		/* the reader is not here */
		hazard_fork_child();
		hazard_wait_all();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && !status);
	stay_end(&s, t);
}

/* ---- readers beside a thread that frees what they look at ---- */

#define READERS 4u
#define PLACES	8u
#define ROUNDS	CHECK_TIMES(20000u)
#define ALIVE	0x600dcafeu

struct thing {
	_Atomic(uint32_t) alive;
};

static _Atomic(struct thing *) places[PLACES];
static _Atomic(bool) over;

static void *look_main(void *arg)
{
	struct rng rng = {(uintptr_t)arg + 1};
	uint64_t *seen = calloc(1, sizeof(*seen));

	CHECK(seen);
	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		struct thing *t;

		hazard_enter();
		t = hazard_take(&places[rng_below(&rng, PLACES)]);
		for (unsigned i = 0; t && i < 20; i++)
			CHECK(atomic_load_explicit(&t->alive, memory_order_relaxed) == ALIVE);
		*seen += t != NULL;
		hazard_leave();
	}
	return seen;
}

static void test_use_after_free(void)
{
	uint64_t seen[READERS];
	pthread_t t[READERS];
	struct rng rng = {7};

	for (uintptr_t i = 0; i < READERS; i++)
		CHECK(!pthread_create(&t[i], NULL, look_main, (void *)i));
	for (unsigned round = 0; round < ROUNDS; round++) {
		_Atomic(struct thing *) *place = &places[rng_below(&rng, PLACES)];
		struct thing *fresh = malloc(sizeof(*fresh)), *old;

		CHECK(fresh);
		atomic_init(&fresh->alive, ALIVE);
		old = atomic_exchange(place, fresh);
		if (!old)
			continue;
		hazard_wait(old, sizeof(*old));
		atomic_store_explicit(&old->alive, 0, memory_order_relaxed);
		free(old);
	}
	atomic_store(&over, true);
	for (unsigned i = 0; i < READERS; i++) {
		void *count;

		CHECK(!pthread_join(t[i], &count));
		seen[i] = *(uint64_t *)count;
		free(count);
		CHECK(seen[i]);
	}
	for (unsigned i = 0; i < PLACES; i++)
		free(atomic_load(&places[i]));
}

int main(void)
{
	test_who_waits();
	test_who_does_not_wait();
	test_sections_end();
	test_take();
	test_thread_that_ends_inside();
	test_many_threads();
	test_fork();
	test_use_after_free();
	return 0;
}
