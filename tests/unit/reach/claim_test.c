// SPDX-License-Identifier: BSD-2-Clause
/* Claims: whose they are, and what they cost when there is no slot. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "reach/access.h"
#include "way_pair.h"

static uint64_t word_of(const struct access *a)
{
	return atomic_load(&a->slot->owner);
}

/* A claim is told from the one before, and a handler that interrupts one takes another slot. */
static void test_claim(struct way_pair *p)
{
	struct access a, inner;
	uint64_t first;

	CHECK(access_claim(&p->table, &a));
	first = word_of(&a);
	CHECK(owner_tid(first) == gettid() && owner_pid(first) == getpid());
	CHECK(access_claim(&p->table, &inner) && inner.slot != a.slot);
	CHECK(owner_tid(word_of(&inner)) == gettid());
	access_release(&inner);
	CHECK(!word_of(&inner) && word_of(&a) == first);
	access_release(&a);
	CHECK(!word_of(&a));
	CHECK(access_claim(&p->table, &inner) && inner.slot == a.slot && word_of(&inner) != first);
	access_release(&inner);
}

/* A slot of somebody else is left alone. */
static void test_strange_slot(struct way_pair *p)
{
	struct access_slot *s = &p->table.slots[(uint32_t)gettid() % ACCESS_SLOTS];
	struct access a;

	atomic_store(&s->owner, (uint64_t)getppid());
	CHECK(access_claim(&p->table, &a) && a.slot != s);
	access_release(&a);
	CHECK(!word_of(&a) && atomic_load(&s->owner) == (uint64_t)getppid());
	atomic_store(&s->owner, 0);
}

static void test_revoked(struct way_pair *p)
{
	struct access a;

	CHECK(access_claim(&p->table, &a) && !access_is_revoked(&a));
	access_revoke(&p->table);
	CHECK(access_is_revoked(&a));
	access_release(&a);
	CHECK(!word_of(&a));
	CHECK(access_claim(&p->table, &a) && !access_is_revoked(&a));
	access_release(&a);
}

/* ---- another time ---- */

static int child_is_near(struct way_pair *p)
{
	CHECK(!alive_is_near(&p->alive));
	return 0;
}

/* Its processes seem to have begun at other times. */
static int child_in_other_time(struct way_pair *p)
{
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWTIME) && unshare(CLONE_NEWTIME)) {
		printf("not tried: a time namespace: %s\n", strerror(errno));
		return 0;
	}
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || dprintf(fd, "boottime 1000 0\n") < 0)
		printf("no offset: %s\n", strerror(errno));
	close(fd);
	CHECK(alive_is_near(&p->alive));
	CHECK(way_pair_join(way_pair_fork(p, child_is_near)));
	return 0;
}

static void test_other_time(struct way_pair *p)
{
	alive_place(&p->alive);
	CHECK(alive_is_near(&p->alive));
	CHECK(way_pair_join(way_pair_fork(p, child_in_other_time)));
}

/* ---- a full table ---- */

static int child_takes_all(struct way_pair *p)
{
	struct access a;

	for (uint32_t i = 0; i < ACCESS_SLOTS; i++)
		CHECK(access_claim(&p->table, &a));
	atomic_store(&p->step, 1);
	for (;;)
		pause();
}

static void *claims_cancelled(void *arg)
{
	struct way_pair *p = arg;
	struct access a;

	CHECK(!pthread_cancel(pthread_self()));
	CHECK(!access_claim(&p->table, &a));
	return p;
}

/* A claim is no cancellation point: the data path's locks would stay held. */
static void full_cancels_nobody(struct way_pair *p)
{
	pthread_t thread;
	void *ret;

	CHECK(!pthread_create(&thread, NULL, claims_cancelled, p));
	CHECK(!pthread_join(thread, &ret) && ret == p);
}

/* How many reads this process has made; false: the system does not count them. */
static bool reads_made(uint64_t *n)
{
	char text[512] = "";
	int fd = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
	const char *at;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return false;
	close(fd);
	at = strstr(text, "syscr: ");
	if (at)
		*n = strtoull(at + 7, NULL, 10);
	return at;
}

/* Some files per millisecond are read at most, however many claims fail. */
static void full_costs_little(struct way_pair *p)
{
	uint64_t before, after, ms = clock_ns() / 1000000;
	struct access a;

	if (!reads_made(&before)) {
		printf("not tried: reads are not counted\n");
		return;
	}
	for (int i = 0; i < 50000; i++)
		CHECK(!access_claim(&p->table, &a));
	ms = clock_ns() / 1000000 - ms;
	CHECK(reads_made(&after));
	CHECK(after - before <= 4 * (ms + 2));
}

/* All slots, one after the other, are found when their owner has died. */
static void full_of_dead(struct way_pair *p)
{
	struct access a;

	for (uint32_t i = 0; i < ACCESS_SLOTS; i++)
		for (int ms = 0; !access_claim(&p->table, &a); ms++) {
			CHECK(ms < 60000);
			usleep(1000);
		}
	for (uint32_t i = 0; i < ACCESS_SLOTS; i++)
		CHECK(owner_pid(atomic_load(&p->table.slots[i].owner)) == getpid());
	memset(&p->table, 0, sizeof(p->table));
}

static void test_full(struct way_pair *p)
{
	pid_t child;

	atomic_store(&p->step, 0);
	child = way_pair_fork(p, child_takes_all);
	way_pair_await(&p->step, 1);
	full_cancels_nobody(p);
	full_costs_little(p);
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	full_of_dead(p);
}

/* ---- a thread that cannot tell what it is ---- */

static void *claims_blindly(void *arg)
{
	struct way_pair *p = arg;
	struct rlimit limit, none = {0};
	uint64_t failed;
	struct access a;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	none.rlim_max = limit.rlim_max;
	CHECK(!setrlimit(RLIMIT_NOFILE, &none));
	failed = clock_ns();
	CHECK(!access_claim(&p->table, &a));
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	/* It does not ask at once again, but it asks. */
	while (!access_claim(&p->table, &a))
		CHECK(clock_ns() - failed < 60000000000);
	CHECK(clock_ns() - failed >= 100000000);
	access_release(&a);
	return NULL;
}

static void test_blind(struct way_pair *p)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, claims_blindly, p));
	CHECK(!pthread_join(thread, NULL));
}

int main(void)
{
	struct way_pair *p = way_pair_new();

	test_claim(p);
	test_strange_slot(p);
	test_revoked(p);
	test_other_time(p);
	test_full(p);
	test_blind(p);
	return 0;
}
