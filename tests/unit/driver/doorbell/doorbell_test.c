// SPDX-License-Identifier: BSD-2-Clause
/*
 * The doorbells alone: pages of a memfd, mapped twice as by program and device, and queues that
 * count how often they are served.
 */
#include "driver/doorbell/doorbell.h"

#include <endian.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "prm/uar.h"

#define QUEUES 20u

struct queue {
	struct doorbell_user user;
	_Atomic(uint32_t) posted; /* its record */
	_Atomic(uint32_t) done;
	_Atomic(uint32_t) served;
};

struct test_device {
	int fd;
	uint8_t *program, *device;
	_Atomic(bool) hooks;
	struct doorbell_page *page;
	struct queue queues[QUEUES];
	uint32_t named; /* the last that a register named */
	sem_t kicked;
	_Atomic(bool) stop;
};

static void serve(struct doorbell_user *u)
{
	struct queue *q = container_of(u, struct queue, user);

	atomic_fetch_add(&q->served, 1);
	atomic_store(&q->done, atomic_load(&q->posted));
}

static void named(void *user, uint32_t qpn)
{
	struct test_device *r = user;

	r->named = qpn;
	if (qpn < QUEUES)
		serve(&r->queues[qpn].user);
}

static void kick(void *user)
{
	sem_post(&((struct test_device *)user)->kicked);
}

static uint8_t *map(int fd)
{
	uint8_t *p = mmap(NULL, UAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static bool room = true;

static void on_fault(int signum, siginfo_t *info, void *ucontext)
{
	(void)signum;
	CHECK(doorbell_fault((uintptr_t)info->si_addr, ucontext, room));
}

static void catch_faults(void)
{
	struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};

	CHECK(!sigaction(SIGBUS, &act, NULL));
}

static void device_open(struct test_device *r, bool hooks, unsigned queues)
{
	struct doorbell_page_attr attr;

	*r = (struct test_device){.hooks = hooks, .fd = memfd_create("page", MFD_CLOEXEC)};
	sem_init(&r->kicked, 0, 0);
	CHECK(r->fd >= 0 && !ftruncate(r->fd, UAR_BYTES));
	r->device = map(r->fd);
	r->program = map(r->fd);
	doorbell_start(kick, r);
	attr = (struct doorbell_page_attr){
		.regs = r->device,
		.hooks = &r->hooks,
		.ring = named,
		.user = r,
	};
	CHECK(doorbell_page_create(&attr, &r->page) == 0);
	doorbell_mapped(r->device, (uintptr_t)r->program);
	for (unsigned i = 0; i < queues; i++) {
		doorbell_user_init(&r->queues[i].user, DOORBELL_SQ, r->device, serve);
		doorbell_live(&r->queues[i].user, true);
	}
}

static void device_close(struct test_device *r)
{
	for (unsigned i = 0; i < QUEUES; i++)
		doorbell_user_release(&r->queues[i].user);
	doorbell_page_destroy(r->page);
	doorbell_forget(r->device, UAR_BYTES);
	doorbell_stop();
	CHECK(!doorbell_any_watched() && !doorbell_any_direct());
	munmap(r->program, UAR_BYTES);
	munmap(r->device, UAR_BYTES);
	close(r->fd);
}

/* As a program does: the record, then the register. */
static void post(struct test_device *r, uint8_t *page, unsigned queue, unsigned half)
{
	uint64_t head = htobe64((uint64_t)0x0a << 32 | (uint64_t)queue << 8 | 2);

	atomic_fetch_add(&r->queues[queue].posted, 1);
	atomic_store((_Atomic(uint64_t) *)(void *)(page + UAR_SQ + half * UAR_SQ_HALF), head);
}

static bool all_done(const struct test_device *r)
{
	for (unsigned i = 0; i < QUEUES; i++)
		if (atomic_load(&r->queues[i].done) != atomic_load(&r->queues[i].posted))
			return false;
	return true;
}

static void test_named_first_then_all(void)
{
	struct test_device r;

	device_open(&r, false, QUEUES);
	CHECK(doorbell_any_watched());
	CHECK(!doorbell_look(DOORBELL_WATCHED_PAGES));
	post(&r, r.program, 17, 3);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES));
	CHECK(r.named == 17 && all_done(&r));
	for (unsigned i = 0; doorbell_look(DOORBELL_WATCHED_PAGES); i++)
		CHECK(i < QUEUES);
	for (unsigned i = 0; i < QUEUES; i++)
		CHECK(atomic_load(&r.queues[i].served));
	device_close(&r);
}

static void test_overwritten_value(void)
{
	struct test_device r;

	device_open(&r, false, QUEUES);
	for (unsigned x = 0; x < QUEUES; x++) {
		post(&r, r.program, x, 0);
		post(&r, r.program, (x + 1) % QUEUES, 0);
		for (unsigned i = 0; doorbell_look(DOORBELL_WATCHED_PAGES); i++)
			CHECK(i < QUEUES);
		CHECK(all_done(&r));
	}
	device_close(&r);
}

/* The number comes from the program, and so may be any. */
static void test_number_of_nobody(void)
{
	struct test_device r;

	device_open(&r, false, 2);
	atomic_store((_Atomic(uint64_t) *)(void *)(r.program + UAR_SQ), UINT64_MAX);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES));
	CHECK(r.named == 0xffffff);
	device_close(&r);
}

static void test_same_value_again(void)
{
	struct test_device r;

	device_open(&r, false, 1);
	for (unsigned i = 1; i < 10; i++) {
		post(&r, r.program, 0, 0);
		CHECK(doorbell_look(DOORBELL_WATCHED_PAGES));
		CHECK(all_done(&r) && atomic_load(&r.queues[0].posted) == i);
		CHECK(!doorbell_look(DOORBELL_WATCHED_PAGES));
	}
	device_close(&r);
}

static void test_states(void)
{
	struct test_device r;

	/* without hooks: whoever stores is direct */
	device_open(&r, false, 1);
	CHECK(!doorbell_any_direct());
	post(&r, r.program, 0, 0);
	CHECK(!doorbell_look(DOORBELL_DIRECT_PAGES));
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES));
	CHECK(doorbell_any_direct());
	device_close(&r);

	/* with hooks: the first may be announced in a moment, the second shows that none is */
	device_open(&r, true, 1);
	post(&r, r.program, 0, 0);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES) && !doorbell_any_direct());
	post(&r, r.program, 0, 1);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES) && doorbell_any_direct());
	device_close(&r);

	/* announced: nobody looks any more */
	device_open(&r, true, 2);
	doorbell_hooked(&r.queues[0].user);
	post(&r, r.program, 0, 0);
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
	device_close(&r);
}

static void test_cq(void)
{
	struct queue cqs[3] = {0};
	struct test_device r;

	device_open(&r, true, 0);
	for (unsigned i = 0; i < 3; i++)
		doorbell_user_init(&cqs[i].user, DOORBELL_CQ, r.device, serve);
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
	device_close(&r);
}

static void test_page_goes_first(void)
{
	struct doorbell_user stray;
	struct test_device r;

	device_open(&r, false, QUEUES);
	doorbell_user_init(&stray, DOORBELL_SQ, r.device + UAR_BYTES, serve);
	CHECK(!stray.page);
	doorbell_live(&stray, true);
	doorbell_taken_over(&stray);
	doorbell_user_release(&stray);
	doorbell_page_destroy(r.page);
	CHECK(!doorbell_any_watched());
	for (unsigned i = 0; i < QUEUES; i++) {
		doorbell_hooked(&r.queues[i].user);
		doorbell_live(&r.queues[i].user, false);
		doorbell_live(&r.queues[i].user, true);
		doorbell_taken_over(&r.queues[i].user);
	}
	CHECK(!doorbell_any_watched());
	CHECK(doorbell_page_create(&(struct doorbell_page_attr){r.device, &r.hooks, named, &r},
				   &r.page) == 0);
	device_close(&r);
}

/* ---- while the engine sleeps ---- */

static bool kicked_within(struct test_device *r, unsigned seconds)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	return sem_timedwait(&r->kicked, &until) == 0;
}

static void forget_kicks(struct test_device *r)
{
	while (sem_trywait(&r->kicked) == 0)
		;
}

/* As the engine does: looks until there is nothing, then goes to sleep. */
static enum doorbell_sleep go_to_sleep(struct test_device *r)
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
	struct test_device *r = arg;

	post(r, r->program, 0, 0);
	return NULL;
}

static void store_wakes(struct test_device *r)
{
	pthread_t thread;

	CHECK(go_to_sleep(r) == DOORBELL_SLEEP);
	CHECK(!pthread_create(&thread, NULL, post_one, r));
	CHECK(kicked_within(r, 10));
	pthread_join(thread, NULL);
	/* served by the very thread that stored, before it stored */
	CHECK(all_done(r) == room);
	CHECK(doorbell_arm() == DOORBELL_STAY); /* because there it is */
	CHECK(all_done(r));
}

static void test_sleep(void)
{
	uint8_t *old, *place;
	struct test_device r;

	device_open(&r, false, 2);
	if (go_to_sleep(&r) == DOORBELL_POLL) {
		fprintf(stderr, "no userfaultfd here: sleep is not tested\n");
		device_close(&r);
		return;
	}
	for (unsigned i = 0; i < 50; i++)
		store_wakes(&r);
	room = false;
	store_wakes(&r);
	room = true;
	doorbell_wake();
	/* awake, a direct page lets stores pass */
	forget_kicks(&r);
	post(&r, r.program, 1, 1);
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
	device_close(&r);
}

/* A plain store; the others here are exchanges, which nobody can take for executed. */
static void store(struct test_device *r, unsigned queue)
{
	atomic_fetch_add(&r->queues[queue].posted, 1);
	*(volatile uint64_t *)(void *)(r->program + UAR_SQ) = htobe64(queue << 8 | 2);
}

/* A store that stands alone is taken for executed, of two in a row the second passes. */
static void test_store_alone(void)
{
	const volatile uint64_t *reg;
	struct test_device r;
	unsigned i;

	device_open(&r, false, 2);
	reg = (const volatile uint64_t *)(const void *)(r.device + UAR_SQ);
	post(&r, r.program, 0, 0);
	CHECK(doorbell_look(DOORBELL_WATCHED_PAGES) && doorbell_any_direct());
	if (go_to_sleep(&r) == DOORBELL_SLEEP) {
		for (i = 0; i < 20; i++) {
			usleep(1000);
			store(&r, i % 2);
			CHECK(all_done(&r) && !*reg);
			CHECK(sem_trywait(&r.kicked) < 0 && errno == EAGAIN);
		}
		for (i = 0; i < 100000 && !*reg; i++)
			store(&r, i % 2);
		CHECK(*reg && all_done(&r));
		CHECK(kicked_within(&r, 10));
		CHECK(doorbell_look(DOORBELL_DIRECT_PAGES));
		/* an engine that does not get to run: all are taken, also while it is awake */
		doorbell_keep_armed(UINT64_MAX);
		CHECK(go_to_sleep(&r) == DOORBELL_SLEEP);
		doorbell_wake();
		for (i = 0; i < 1000; i++) {
			store(&r, i % 2);
			CHECK(all_done(&r) && !*reg);
		}
		CHECK(sem_trywait(&r.kicked) < 0 && errno == EAGAIN);
		doorbell_keep_armed(0);
		/* with more queues than are served at once the engine does the rest */
		CHECK(go_to_sleep(&r) == DOORBELL_SLEEP);
		for (i = 2; i < QUEUES; i++) {
			doorbell_user_init(&r.queues[i].user, DOORBELL_SQ, r.device, serve);
			doorbell_live(&r.queues[i].user, true);
		}
		usleep(1000);
		store(&r, QUEUES - 1);
		CHECK(all_done(&r) || kicked_within(&r, 10));
		while (doorbell_look(DOORBELL_DIRECT_PAGES))
			;
		CHECK(all_done(&r));
	}
	device_close(&r);
}

/* A program that closes all descriptors: the store passes, and the engine polls from then on. */
static void test_descriptor_closed(void)
{
	pthread_t thread;
	struct test_device r;

	device_open(&r, false, 1);
	if (go_to_sleep(&r) == DOORBELL_SLEEP) {
		for (int fd = 3; fd < 4096; fd++)
			if (fd != r.fd)
				close(fd);
		CHECK(!pthread_create(&thread, NULL, post_one, &r));
		CHECK(kicked_within(&r, 10));
		pthread_join(thread, NULL);
		CHECK(all_done(&r));
		CHECK(go_to_sleep(&r) == DOORBELL_POLL);
	}
	device_close(&r);
}

static void *engine(void *arg)
{
	struct test_device *r = arg;

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
static void *poster(void *arg)
{
	static _Atomic(unsigned) next;
	struct test_device *r = arg;
	unsigned queue = atomic_fetch_add(&next, 1) % 2;
	struct queue *q = &r->queues[queue];

	for (unsigned i = 0; i < 3000; i++) {
		post(r, r->program, queue, 0);
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
	struct test_device r;

	device_open(&r, false, 2);
	CHECK(!pthread_create(&sleeper, NULL, engine, &r));
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&posters[i], NULL, poster, &r));
	for (unsigned i = 0; i < 2; i++)
		pthread_join(posters[i], NULL);
	CHECK(all_done(&r));
	atomic_store(&r.stop, true);
	sem_post(&r.kicked);
	/* it may just have forgotten that */
	while (pthread_tryjoin_np(sleeper, NULL) == EBUSY) {
		sem_post(&r.kicked);
		usleep(1000);
	}
	device_close(&r);
}

/* ---- the engine goes while it is being told ---- */

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

static void *tell(void *arg)
{
	struct test_device *r = arg;

	doorbell_live(&r->queues[0].user, false);
	doorbell_live(&r->queues[0].user, true);
	return NULL;
}

static void test_stop_while_told(void)
{
	pthread_t thread;
	struct test_device r;

	device_open(&r, false, 1);
	doorbell_stop();
	doorbell_start(kick_slowly, &r);
	CHECK(!pthread_create(&thread, NULL, tell, &r));
	while (!atomic_load(&telling))
		sched_yield();
	doorbell_stop();
	atomic_store(&stopped, true);
	CHECK(!pthread_join(thread, NULL));
	device_close(&r);
}

/* ---- an allocator that gives pages back ---- */

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
	struct test_device r;
	uint8_t *second;

	device_open(&r, false, 1);
	second = map(r.fd);
	doorbell_mapped(r.device, (uintptr_t)second);
	atomic_store(&goes_with_free, second);
	alarm(60); /* nothing may hang */
	doorbell_unmapping((uintptr_t)r.program, UAR_BYTES);
	CHECK(!atomic_load(&goes_with_free));
	doorbell_mapped(r.device, (uintptr_t)second);
	atomic_store(&goes_with_free, second);
	doorbell_forget(r.device, UAR_BYTES);
	CHECK(!atomic_load(&goes_with_free));
	alarm(0);
	munmap(second, UAR_BYTES);
	device_close(&r);
}

int main(void)
{
	catch_faults();
	test_free_that_unmaps();
	test_named_first_then_all();
	test_overwritten_value();
	test_number_of_nobody();
	test_same_value_again();
	test_states();
	test_cq();
	test_page_goes_first();
	test_sleep();
	test_store_alone();
	test_nothing_is_lost();
	test_descriptor_closed();
	test_stop_while_told();
	return 0;
}
