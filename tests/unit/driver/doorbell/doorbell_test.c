// SPDX-License-Identifier: BSD-2-Clause
/*
 * Looking at pages for doorbells: which queues are served, which pages are looked at, and pages that
 * come and go meanwhile.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "doorbell_device.h"

static void test_named_first_then_all(void)
{
	struct doorbell_device r;

	doorbell_device_open(&r, false, DOORBELL_DEVICE_QUEUES);
	CHECK(doorbell_any_watched());
	CHECK(!doorbell_look(DOORBELL_WATCHED_PAGES));
	doorbell_device_post(&r, r.program, 17, 3);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES));
	CHECK(r.named == 17 && r.named_pi == 1 && doorbell_device_done(&r));
	for (unsigned i = 0; doorbell_look(DOORBELL_WATCHED_PAGES); i++)
		CHECK(i < DOORBELL_DEVICE_QUEUES);
	for (unsigned i = 0; i < DOORBELL_DEVICE_QUEUES; i++)
		CHECK(atomic_load(&r.queues[i].served));
	doorbell_device_close(&r);
}

static void test_overwritten_value(void)
{
	struct doorbell_device r;

	doorbell_device_open(&r, false, DOORBELL_DEVICE_QUEUES);
	for (unsigned x = 0; x < DOORBELL_DEVICE_QUEUES; x++) {
		doorbell_device_post(&r, r.program, x, 0);
		doorbell_device_post(&r, r.program, (x + 1) % DOORBELL_DEVICE_QUEUES, 0);
		for (unsigned i = 0; doorbell_look(DOORBELL_WATCHED_PAGES); i++)
			CHECK(i < DOORBELL_DEVICE_QUEUES);
		CHECK(doorbell_device_done(&r));
	}
	doorbell_device_close(&r);
}

/* The number comes from the program, and so may be any. */
static void test_number_of_nobody(void)
{
	struct doorbell_device r;

	doorbell_device_open(&r, false, 2);
	atomic_store((_Atomic(uint64_t) *)(void *)(r.program + UAR_SQ), UINT64_MAX);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES));
	CHECK(r.named == 0xffffff && r.named_pi == 31); /* 32 blocks behind index 65535 */
	doorbell_device_close(&r);
}

static void test_same_value_again(void)
{
	struct doorbell_device r;

	doorbell_device_open(&r, false, 1);
	for (unsigned i = 1; i < 10; i++) {
		doorbell_device_post(&r, r.program, 0, 0);
		CHECK(doorbell_look(DOORBELL_WATCHED_PAGES));
		CHECK(doorbell_device_done(&r) && atomic_load(&r.queues[0].posted) == i);
		CHECK(!doorbell_look(DOORBELL_WATCHED_PAGES));
	}
	doorbell_device_close(&r);
}

/* A value that was stored while nobody looked may be old: it names nobody, and all are served. */
static void test_old_values(void)
{
	struct doorbell_device r;

	doorbell_device_open(&r, true, 3);
	doorbell_hooked(&r.queues[0].user);
	doorbell_device_post(&r, r.program, 0, 0);
	doorbell_device_post(&r, r.program, 1, 2);
	r.named = 99;
	doorbell_taken_over(&r.queues[2].user);
	while (doorbell_look(DOORBELL_DIRECT_PAGES))
		;
	CHECK(r.named == 99 && doorbell_device_done(&r));
	/* the same where the page was off the list meanwhile */
	doorbell_live(&r.queues[2].user, false);
	CHECK(!doorbell_any_watched());
	doorbell_device_post(&r, r.program, 1, 1);
	doorbell_live(&r.queues[2].user, true);
	while (doorbell_look(DOORBELL_DIRECT_PAGES))
		;
	CHECK(r.named == 99 && doorbell_device_done(&r));
	/* a queue that ceases to be live gets what it was told before */
	doorbell_device_post(&r, r.program, 2, 3);
	doorbell_live(&r.queues[2].user, false);
	CHECK(r.named == 2 && doorbell_device_done(&r));
	doorbell_device_close(&r);
}

static void test_states(void)
{
	struct doorbell_device r;

	/* without hooks: whoever stores is direct */
	doorbell_device_open(&r, false, 1);
	CHECK(!doorbell_any_direct());
	doorbell_device_post(&r, r.program, 0, 0);
	CHECK(!doorbell_look(DOORBELL_DIRECT_PAGES));
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES));
	CHECK(doorbell_any_direct());
	doorbell_device_close(&r);

	/* with hooks: the first may be announced in a moment, the second shows that none is */
	doorbell_device_open(&r, true, 1);
	doorbell_device_post(&r, r.program, 0, 0);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES) && !doorbell_any_direct());
	doorbell_device_post(&r, r.program, 0, 1);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES) && doorbell_any_direct());
	doorbell_device_close(&r);

	/* announced: nobody looks any more */
	doorbell_device_open(&r, true, 2);
	doorbell_hooked(&r.queues[0].user);
	doorbell_device_post(&r, r.program, 0, 0);
	CHECK(!doorbell_look(DOORBELL_WATCHED_PAGES));
	CHECK(!doorbell_any_watched());
	/* a queue of it that the program takes over weighs more, as long as it lives */
	doorbell_taken_over(&r.queues[1].user);
	CHECK(doorbell_any_direct());
	doorbell_hooked(&r.queues[1].user);
	CHECK(doorbell_look(DOORBELL_DIRECT_PAGES) && doorbell_any_direct());
	doorbell_live(&r.queues[1].user, false);
	CHECK(!doorbell_any_watched());
	doorbell_live(&r.queues[1].user, true);
	CHECK(doorbell_any_direct());
	doorbell_device_close(&r);
}

static void test_cq(void)
{
	struct doorbell_queue cqs[3] = {0};
	struct doorbell_device r;

	doorbell_device_open(&r, true, 0);
	for (unsigned i = 0; i < 3; i++)
		doorbell_user_init(&cqs[i].user, DOORBELL_CQ, r.device, doorbell_queue_serve);
	CHECK(!doorbell_any_watched());
	doorbell_taken_over(&cqs[0].user);
	doorbell_taken_over(&cqs[1].user);
	CHECK(doorbell_any_direct());
	atomic_store((_Atomic(uint64_t) *)(void *)(r.program + UAR_CQ), 1);
	CHECK(doorbell_look(DOORBELL_DIRECT_PAGES) && !doorbell_look(DOORBELL_DIRECT_PAGES));
	CHECK(atomic_load(&cqs[0].served) == 1 && atomic_load(&cqs[1].served) == 1);
	CHECK(!atomic_load(&cqs[2].served));
	for (unsigned i = 0; i < 3; i++)
		doorbell_user_release(&cqs[i].user);
	doorbell_device_close(&r);
}

static void test_page_goes_first(void)
{
	struct doorbell_user stray;
	struct doorbell_device r;

	doorbell_device_open(&r, false, DOORBELL_DEVICE_QUEUES);
	doorbell_user_init(&stray, DOORBELL_SQ, r.device + UAR_BYTES, doorbell_queue_serve);
	CHECK(!stray.page);
	doorbell_live(&stray, true);
	doorbell_taken_over(&stray);
	doorbell_user_release(&stray);
	doorbell_page_destroy(r.page);
	CHECK(!doorbell_any_watched());
	for (unsigned i = 0; i < DOORBELL_DEVICE_QUEUES; i++) {
		doorbell_hooked(&r.queues[i].user);
		doorbell_live(&r.queues[i].user, false);
		doorbell_live(&r.queues[i].user, true);
		doorbell_taken_over(&r.queues[i].user);
	}
	CHECK(!doorbell_any_watched());
	CHECK(doorbell_page_create(&(struct doorbell_page_attr){r.device, &r.hooks,
								doorbell_device_named, &r},
				   &r.page) == 0);
	doorbell_device_close(&r);
}

static _Atomic(bool) telling, stopped;

static void kick_slowly(void *user)
{
	(void)user;
	atomic_store(&telling, true);
	for (unsigned i = 0; i < 1000; i++) {
		CHECK(!atomic_load(&stopped));
		sched_yield();
	}
}

static void *tell_live(void *arg)
{
	struct doorbell_device *r = arg;

	doorbell_live(&r->queues[0].user, false);
	doorbell_live(&r->queues[0].user, true);
	return NULL;
}

static void test_stop_while_told(void)
{
	pthread_t thread;
	struct doorbell_device r;

	doorbell_device_open(&r, false, 1);
	doorbell_stop();
	doorbell_start(&(struct doorbell_engine){.kick = kick_slowly});
	CHECK(!pthread_create(&thread, NULL, tell_live, &r));
	while (!atomic_load(&telling))
		sched_yield();
	doorbell_stop();
	atomic_store(&stopped, true);
	CHECK(!pthread_join(thread, NULL));
	doorbell_device_close(&r);
}

static _Atomic(uint8_t *) goes_with_free;

void __real_free(void *p);
void __wrap_free(void *p);

void __wrap_free(void *p)
{
	uint8_t *page = atomic_exchange(&goes_with_free, NULL);

	if (page)
		doorbell_unmapping((uintptr_t)page, UAR_BYTES);
	__real_free(p);
}

/* What free unmaps may lie where mappings of registers lie. */
static void test_free_that_unmaps(void)
{
	struct doorbell_device r;
	uint8_t *second;

	doorbell_device_open(&r, false, 1);
	second = doorbell_device_map(r.fd);
	doorbell_mapped(r.device, (uintptr_t)second);
	atomic_store(&goes_with_free, second);
	alarm(60); /* nothing may hang */
	doorbell_unmapping((uintptr_t)r.program, UAR_BYTES);
	CHECK(!atomic_load(&goes_with_free));
	alarm(0);
	munmap(second, UAR_BYTES);
	doorbell_device_close(&r);
}

int main(void)
{
	test_free_that_unmaps();
	test_named_first_then_all();
	test_overwritten_value();
	test_number_of_nobody();
	test_same_value_again();
	test_old_values();
	test_states();
	test_cq();
	test_page_goes_first();
	test_stop_while_told();
	return 0;
}
