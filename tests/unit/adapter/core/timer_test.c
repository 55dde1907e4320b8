// SPDX-License-Identifier: BSD-2-Clause
/* The heap of timers against a plain table of deadlines, and from several threads. */
#include "adapter/core/timer.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/compiler.h"
#include "base/hazard.h"
#include "check.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define TIMERS 200

struct subject {
	struct timer timer;
	unsigned fired;
};

static struct subject subject[TIMERS];
static uint64_t kicks;

static void subject_fire(struct timer *t)
{
	container_of(t, struct subject, timer)->fired++;
}

static void count_kick(void *user)
{
	(*(uint64_t *)user)++;
}

/* What fires, and when the next look is due, is what a table of deadlines says. */
static void test_timers_against_model(void)
{
	uint64_t model[TIMERS] = {0}, now = 1000;
	unsigned expected[TIMERS] = {0};
	struct timers s;

	srand(7);
	timers_init(&s, count_kick, &kicks);
	for (unsigned i = 0; i < TIMERS; i++)
		subject[i] = (struct subject){.timer.fire = subject_fire};
	for (unsigned step = 0; step < 200000; step++) {
		unsigned i = (unsigned)rand() % TIMERS;

		switch (rand() % 8) {
		case 0:
		case 1:
		case 2:
		case 3:
			model[i] = now + 1 + (uint64_t)(rand() % 5000);
			timer_arm(&s, &subject[i].timer, model[i]);
			break;
		case 4:
			model[i] = 0;
			timer_disarm(&subject[i].timer);
			break;
		case 5:
			model[i] = 0;
			timer_cancel(&s, &subject[i].timer);
			break;
		default:
			now += (uint64_t)(rand() % 300);
			for (unsigned k = 0; k < TIMERS; k++)
				if (model[k] && model[k] <= now) {
					expected[k]++;
					model[k] = 0;
				}
			timers_run(&s, now);
			for (unsigned k = 0; k < TIMERS; k++)
				CHECK(subject[k].fired == expected[k]);
		}
		CHECK(timer_armed(&subject[i].timer) == !!model[i]);
		/* never later than the earliest deadline, or a sleeper would miss it */
		for (unsigned k = 0; k < TIMERS; k++)
			CHECK(!model[k] || timers_next(&s) <= model[k]);
	}
	CHECK(kicks);
	for (unsigned i = 0; i < TIMERS; i++)
		timer_cancel(&s, &subject[i].timer);
	CHECK(timers_next(&s) == TIMER_NEVER);
}

/* Whoever sleeps until the next deadline hears of a sooner one, and of no other. */
static void test_kick_for_sooner_deadline(void)
{
	struct subject a = {.timer.fire = subject_fire}, b = {.timer.fire = subject_fire};
	uint64_t n = 0;
	struct timers s;

	timers_init(&s, count_kick, &n);
	timer_arm(&s, &a.timer, 100);
	CHECK(n == 1);
	timer_arm(&s, &b.timer, 200);
	CHECK(n == 1);
	timer_arm(&s, &b.timer, 50);
	CHECK(n == 2 && timers_next(&s) == 50);
	CHECK(timers_run(&s, 60) && b.fired == 1 && !a.fired);
	timer_disarm(&a.timer);
	CHECK(!timers_run(&s, 100) && !a.fired && timers_next(&s) == TIMER_NEVER);
}

/* What goes away is armed no more, whoever tries. */
static void test_retired(void)
{
	struct subject a = {.timer.fire = subject_fire};
	struct timers s;

	timers_init(&s, NULL, NULL);
	timer_arm(&s, &a.timer, 10);
	timer_retire(&s, &a.timer);
	timer_arm(&s, &a.timer, 20);
	CHECK(!timer_armed(&a.timer) && timers_next(&s) == TIMER_NEVER);
	CHECK(!timers_run(&s, 100) && !a.fired);
}

static struct timers shared;
static struct subject common[16];
static _Atomic(bool) over;

static void atomic_fire(struct timer *t)
{
	__atomic_fetch_add(&container_of(t, struct subject, timer)->fired, 1, __ATOMIC_RELAXED);
}

static void *arm_and_cancel(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;

	for (unsigned n = 0; n < 50000; n++) {
		struct timer *t = &common[(unsigned)rand_r(&seed) % COUNT(common)].timer;

		if (rand_r(&seed) % 4)
			timer_arm(&shared, t, 1 + (uint64_t)(rand_r(&seed) % 1000));
		else
			timer_cancel(&shared, t);
	}
	return NULL;
}

static void *run_all(void *arg)
{
	(void)arg;
	while (!atomic_load(&over))
		timers_run(&shared, 500);
	return NULL;
}

static void test_threads(void)
{
	pthread_t armer[2], runner;

	timers_init(&shared, NULL, NULL);
	for (unsigned i = 0; i < COUNT(common); i++)
		common[i].timer.fire = atomic_fire;
	CHECK(!pthread_create(&runner, NULL, run_all, NULL));
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&armer[i], NULL, arm_and_cancel, (void *)(i + 1)));
	for (unsigned i = 0; i < 2; i++)
		pthread_join(armer[i], NULL);
	atomic_store(&over, true);
	pthread_join(runner, NULL);
	timers_run(&shared, 1000);
	for (unsigned i = 0; i < COUNT(common); i++)
		CHECK(!timer_armed(&common[i].timer) && !common[i].timer.queued);
	CHECK(timers_next(&shared) == TIMER_NEVER);
}

int main(void)
{
	test_timers_against_model();
	test_kick_for_sooner_deadline();
	test_retired();
	test_threads();
	return 0;
}
