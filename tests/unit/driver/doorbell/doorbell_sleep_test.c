// SPDX-License-Identifier: BSD-2-Clause
/*
 * While the engine sleeps the pages are protected: the first store is a fault, which executes what
 * was posted and wakes the engine.
 */
#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "doorbell_device.h"

static bool queues_have_room = true;

static void on_fault(int signum, siginfo_t *info, void *ucontext)
{
	(void)signum;
	CHECK(doorbell_fault((uintptr_t)info->si_addr, ucontext, queues_have_room));
}

static void catch_faults(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

	CHECK(!sigaction(SIGBUS, &act, NULL));
}

static bool kicked_within(struct doorbell_device *r, unsigned seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	return sem_timedwait(&r->kicked, &until) == 0;
}

static void forget_kicks(struct doorbell_device *r)
{
	while (sem_trywait(&r->kicked) == 0)
		;
}

/* As the engine does: looks until there is nothing, then goes to sleep. */
static enum doorbell_sleep go_to_sleep(struct doorbell_device *r)
{
	enum doorbell_sleep s;

	do {
		while (doorbell_look(DOORBELL_WATCHED_PAGES))
			;
		forget_kicks(r);
		s = doorbell_arm();
	} while (s == DOORBELL_STAY);
	return s;
}

static void *post_one(void *arg)
{
	struct doorbell_device *r = arg;

	doorbell_device_post(r, r->program, 0, 0);
	return NULL;
}

static void store_wakes(struct doorbell_device *r)
{
	pthread_t thread;

	CHECK(go_to_sleep(r) == DOORBELL_SLEEP);
	CHECK(!pthread_create(&thread, NULL, post_one, r));
	CHECK(kicked_within(r, 10));
	pthread_join(thread, NULL);
	/* served by the very thread that stored, before it stored */
	CHECK(doorbell_device_done(r) == queues_have_room);
	CHECK(doorbell_arm() == DOORBELL_STAY); /* because there it is */
	CHECK(doorbell_device_done(r));
}

static void test_sleep(void)
{
	uint8_t *old, *place;
	struct doorbell_device r;

	doorbell_device_open(&r, false, 2);
	if (go_to_sleep(&r) == DOORBELL_POLL) {
		fprintf(stderr, "no userfaultfd here: sleep is not tested\n");
		doorbell_device_close(&r);
		return;
	}
	for (unsigned i = 0; i < 50; i++)
		store_wakes(&r);
	queues_have_room = false;
	store_wakes(&r);
	queues_have_room = true;
	doorbell_wake();
	/* awake, a direct page lets stores pass */
	forget_kicks(&r);
	doorbell_device_post(&r, r.program, 1, 1);
	CHECK(sem_trywait(&r.kicked) < 0 && errno == EAGAIN);

	/* a mapping that nobody has told of is found, but not searched for again and again */
	CHECK(go_to_sleep(&r) == DOORBELL_SLEEP);
	doorbell_unmapping((uintptr_t)r.program + UAR_BYTES - 1, 1);
	CHECK(go_to_sleep(&r) == DOORBELL_SLEEP);
	store_wakes(&r);
	doorbell_unmapping((uintptr_t)r.program + UAR_BYTES - 1, 1);
	CHECK(go_to_sleep(&r) == DOORBELL_POLL);
	doorbell_mapped(r.device, (uintptr_t)r.program);
	store_wakes(&r);

	place = mmap(NULL, UAR_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(place != MAP_FAILED);
	CHECK(go_to_sleep(&r) == DOORBELL_SLEEP);
	old = r.program;
	r.program = mremap(old, UAR_BYTES, UAR_BYTES, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	CHECK(r.program == place);
	doorbell_moved((uintptr_t)old, UAR_BYTES, (uintptr_t)r.program);
	CHECK(kicked_within(&r, 10));
	store_wakes(&r);
	doorbell_device_close(&r);
}

/* An engine that starts again at once can protect the pages: the one before it has let them go. */
static void test_start_again(void)
{
	struct doorbell_device r;

	doorbell_device_open(&r, false, 1);
	if (go_to_sleep(&r) == DOORBELL_SLEEP) {
		for (unsigned i = 0; i < 20; i++) {
			doorbell_stop();
			doorbell_start(&r.engine);
			CHECK(go_to_sleep(&r) == DOORBELL_SLEEP);
		}
		store_wakes(&r);
	}
	doorbell_device_close(&r);
}

/* A plain store; the others here are exchanges, which nobody can take for executed. */
static void store_index(struct doorbell_device *r, unsigned queue, uint16_t index)
{
	atomic_fetch_add(&r->queues[queue].posted, 1);
	*(volatile uint64_t *)(void *)(r->program + UAR_SQ) =
		htobe64((uint64_t)index << 40 | queue << 8 | 2);
}

static void store_plainly(struct doorbell_device *r, unsigned queue)
{
	store_index(r, queue, 0);
}

/* A store that stands alone is taken for executed, of two in a row the second passes. */
static void test_store_alone(void)
{
	const volatile uint64_t *reg;
	struct doorbell_device r;
	unsigned i;

	doorbell_device_open(&r, false, 2);
	reg = (const volatile uint64_t *)(const void *)(r.device + UAR_SQ);
	doorbell_device_post(&r, r.program, 0, 0);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES) && doorbell_any_direct());
	if (go_to_sleep(&r) == DOORBELL_SLEEP) {
		for (i = 0; i < 20; i++) {
			usleep(1000);
			store_index(&r, i % 2, (uint16_t)i);
			CHECK(doorbell_device_done(&r) && !*reg);
			/* the register has not got it, and it says how far that queue is posted */
			CHECK(r.named == i % 2 && r.named_pi == i + 1);
			/* the next block of the same request, if it was copied */
			*(volatile uint64_t *)(void *)(r.program + UAR_SQ + 64) = i + 1;
			CHECK(!reg[64 / sizeof(*reg)]);
			CHECK(sem_trywait(&r.kicked) < 0 && errno == EAGAIN);
		}
		for (i = 0; i < 100000 && !*reg; i++)
			store_plainly(&r, i % 2);
		CHECK(*reg && doorbell_device_done(&r));
		CHECK(kicked_within(&r, 10));
		CHECK(doorbell_look(DOORBELL_DIRECT_PAGES));
		/* with more queues than are served at once the engine does the rest */
		CHECK(go_to_sleep(&r) == DOORBELL_SLEEP);
		for (i = 2; i < DOORBELL_DEVICE_QUEUES; i++) {
			doorbell_user_init(&r.queues[i].user, DOORBELL_SQ, r.device,
					   doorbell_queue_serve);
			doorbell_live(&r.queues[i].user, true);
		}
		usleep(1000);
		store_plainly(&r, DOORBELL_DEVICE_QUEUES - 1);
		CHECK(doorbell_device_done(&r) || kicked_within(&r, 10));
		while (doorbell_look(DOORBELL_DIRECT_PAGES))
			;
		CHECK(doorbell_device_done(&r));
	}
	doorbell_device_close(&r);
}

static unsigned driven;
static bool drive_is_enough;

static bool count_drive(void *user)
{
	struct doorbell_device *r = user;

	CHECK(doorbell_device_done(r));
	driven++;
	/* without a lock: whoever drives may look himself */
	(void)doorbell_look(DOORBELL_DIRECT_PAGES);
	return drive_is_enough;
}

/* A thread that serves drives the device as well, once for each request. */
static void test_drive(void)
{
	struct doorbell_engine engine;
	struct doorbell_device r;
	unsigned i;

	doorbell_device_open(&r, false, 2);
	/* An engine without a processor of its own: all stores are taken, also while it is awake. */
	engine = (struct doorbell_engine){
		.kick = r.engine.kick, .drive = count_drive, .stays_armed = true, .user = &r};
	doorbell_device_post(&r, r.program, 0, 0);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES) && doorbell_any_direct());
	if (go_to_sleep(&r) == DOORBELL_SLEEP) {
		doorbell_stop();
		doorbell_start(&engine);
		CHECK(go_to_sleep(&r) == DOORBELL_SLEEP);
		doorbell_wake();
		drive_is_enough = true;
		for (i = 0; i < 1000; i++) {
			store_plainly(&r, i % 2);
			*(volatile uint64_t *)(void *)(r.program + UAR_SQ + 64) = i + 1;
			CHECK(doorbell_device_done(&r) && driven == i + 1);
		}
		CHECK(sem_trywait(&r.kicked) < 0 && errno == EAGAIN);
		drive_is_enough = false;
		store_plainly(&r, 0);
		CHECK(kicked_within(&r, 10));
	}
	doorbell_device_close(&r);
}

/* A program that closes all descriptors: the store passes, and the engine polls from then on. */
static void test_descriptor_closed(void)
{
	pthread_t thread;
	struct doorbell_device r;

	doorbell_device_open(&r, false, 1);
	if (go_to_sleep(&r) == DOORBELL_SLEEP) {
		for (int fd = 3; fd < 4096; fd++)
			if (fd != r.fd)
				close(fd);
		CHECK(!pthread_create(&thread, NULL, post_one, &r));
		CHECK(kicked_within(&r, 10));
		pthread_join(thread, NULL);
		CHECK(doorbell_device_done(&r));
		CHECK(go_to_sleep(&r) == DOORBELL_POLL);
	}
	doorbell_device_close(&r);
}

static void *engine_loop(void *arg)
{
	struct doorbell_device *r = arg;

	while (!atomic_load(&r->stop)) {
		enum doorbell_sleep s = go_to_sleep(r);

		if (atomic_load(&r->stop))
			break;
		if (s == DOORBELL_SLEEP)
			CHECK(kicked_within(r, 10)); /* else a doorbell was lost */
		doorbell_wake();
	}
	return NULL;
}

/* Two threads that share a register and wait for each of their posts. */
static void *poster_loop(void *arg)
{
	static _Atomic(unsigned) next;
	struct doorbell_device *r = arg;
	unsigned queue = atomic_fetch_add(&next, 1) % 2;
	struct doorbell_queue *q = &r->queues[queue];

	for (unsigned i = 0; i < 3000; i++) {
		doorbell_device_post(r, r->program, queue, 0);
		while (atomic_load(&q->done) != atomic_load(&q->posted))
			sched_yield();
		if (i % 7 == 0)
			usleep(i % 90);
	}
	return NULL;
}

static void test_nothing_is_lost(void)
{
	pthread_t sleeper, posters[2];
	struct doorbell_device r;

	doorbell_device_open(&r, false, 2);
	CHECK(!pthread_create(&sleeper, NULL, engine_loop, &r));
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&posters[i], NULL, poster_loop, &r));
	for (unsigned i = 0; i < 2; i++)
		pthread_join(posters[i], NULL);
	CHECK(doorbell_device_done(&r));
	atomic_store(&r.stop, true);
	sem_post(&r.kicked);
	/* it may just have forgotten that */
	while (pthread_tryjoin_np(sleeper, NULL) == EBUSY) {
		sem_post(&r.kicked);
		usleep(1000);
	}
	doorbell_device_close(&r);
}

/* A store was held up, and the registers go before the handler of its fault runs. */
static void test_forgotten_meanwhile(void)
{
	struct doorbell_device r;

	doorbell_device_open(&r, false, 1);
	if (go_to_sleep(&r) == DOORBELL_POLL) {
		fprintf(stderr, "no userfaultfd here: forgetting is not tested\n");
		doorbell_device_close(&r);
		return;
	}
	doorbell_forget(r.device, UAR_BYTES);
	CHECK(doorbell_fault((uintptr_t)r.program + UAR_SQ, NULL, true));
	doorbell_device_post(&r, r.program, 0, 0); /* the store itself: nothing holds it up */
	doorbell_unmapping((uintptr_t)r.program, UAR_BYTES);
	CHECK(!doorbell_fault((uintptr_t)r.program + UAR_SQ, NULL, true));
	doorbell_device_close(&r);
}

int main(void)
{
	catch_faults();
	test_forgotten_meanwhile();
	test_sleep();
	test_start_again();
	test_store_alone();
	test_drive();
	test_nothing_is_lost();
	test_descriptor_closed();
	return 0;
}
