// SPDX-License-Identifier: BSD-2-Clause
/*
 * A revocation ends, whatever peers have written into the slots and whatever their threads do, and
 * also where /proc does not tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "reach/access.h"
#include "reach/proc.h"
#include "way_pair.h"

#define SPINNING 10

static uint64_t word_of(pid_t pid, pid_t tid)
{
	return (uint64_t)tid | (uint64_t)pid << OWNER_TASK_BITS |
	       (task_began(pid) & OWNER_BEGAN_MASK) << OWNER_BEGAN_SHIFT |
	       1ull << OWNER_COUNT_SHIFT;
}

static void revoke_within(struct way_pair *p, unsigned seconds)
{
	alarm(seconds);
	access_revoke(&p->table);
	alarm(0);
}

static void stop_child(pid_t child)
{
	siginfo_t info;

	CHECK(!kill(child, SIGSTOP));
	CHECK(!waitid(P_PID, (id_t)child, &info, WSTOPPED | WEXITED));
}

static void finish_child(pid_t child)
{
	CHECK(!kill(child, SIGKILL));
	CHECK(waitpid(child, NULL, 0) == child);
}

/* Words that name no thread are free. */
static void test_nonsense(struct way_pair *p)
{
	const uint64_t words[] = {
		1ull << OWNER_COUNT_SHIFT,
		word_of(getpid(), 0),
		word_of(0, 1),
		(uint64_t)getppid() | 1ull << OWNER_COUNT_SHIFT,
	};

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		atomic_store(&p->table.slots[i].owner, words[i]);
		revoke_within(p, 60);
		CHECK(!atomic_load(&p->table.slots[i].owner));
	}
}

/* ---- a thread that sleeps where we cannot see it ---- */

static int child_is_unseen(struct way_pair *p)
{
	struct access a;

	CHECK(access_claim(&p->table, &a));
	CHECK(!prctl(PR_SET_DUMPABLE, 0, 0, 0, 0));
	atomic_store(&p->step, 1);
	for (;;)
		pause();
}

static int target_of_unseen(struct way_pair *p)
{
	uint64_t ran_ms, owner = 0;
	pid_t peer;

	/* Who may look at everything is no use here. */
	if (!geteuid())
		CHECK(!setgid(65534) && !setuid(65534));
	peer = way_pair_fork(p, child_is_unseen);
	way_pair_await(&p->step, 1);
	for (uint32_t i = 0; i < ACCESS_SLOTS && !owner; i++)
		owner = atomic_load(&p->table.slots[i].owner);
	CHECK(owner_pid(owner) == peer);
	if (owner_look(owner, &ran_ms) != TASK_UNKNOWN)
		printf("not tried: the system shows where any thread sleeps\n");
	/* The first takes its time; if each did, they would take longer. */
	alarm(100);
	for (int i = 0; i < 200; i++)
		access_revoke(&p->table);
	alarm(0);
	finish_child(peer);
	access_revoke(&p->table);
	return 0;
}

static void test_unseen(struct way_pair *p)
{
	atomic_store(&p->step, 0);
	CHECK(way_pair_join(way_pair_fork(p, target_of_unseen)));
}

/* ---- threads that spin ---- */

static int child_spins(struct way_pair *p)
{
	struct access a;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	(void)sched_setaffinity(0, sizeof(one), &one);
	CHECK(access_claim(&p->table, &a));
	atomic_fetch_add(&p->step, 1);
	for (;;)
		;
}

/* They share a processor: to wait for a second of each, one after the other, would take minutes. */
static void test_many_spin(struct way_pair *p)
{
	cpu_set_t all, one;
	pid_t children[SPINNING];

	CHECK(!sched_getaffinity(0, sizeof(all), &all));
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	CHECK(!sched_setaffinity(0, sizeof(one), &one));
	atomic_store(&p->step, 0);
	for (int i = 0; i < SPINNING; i++)
		children[i] = way_pair_fork(p, child_spins);
	CHECK(!sched_setaffinity(0, sizeof(all), &all));
	way_pair_await(&p->step, SPINNING);
	revoke_within(p, 60);
	for (int i = 0; i < SPINNING; i++)
		finish_child(children[i]);
	access_revoke(&p->table);
}

static void spin_ms(unsigned ms)
{
	struct timespec now, end;

	CHECK(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end));
	end.tv_nsec += ms * 1000000;
	do
		CHECK(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now));
	while ((now.tv_sec - end.tv_sec) * 1000000000 + now.tv_nsec < end.tv_nsec);
}

static void *claims_and_spins(void *arg)
{
	struct way_pair *p = arg;
	struct access a;

	CHECK(access_claim(&p->table, &a));
	atomic_fetch_add(&p->done, 1);
	while (atomic_load(&p->step) < 2)
		;
	access_release(&a);
	return NULL;
}

/* Several of its threads were given up at some time; the next keeps the rules. */
static int child_improves(struct way_pair *p)
{
	pthread_t threads[3];
	struct access a;

	for (int i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, claims_and_spins, p));
	while (atomic_load(&p->done) < 3)
		usleep(1000);
	atomic_store(&p->step, 1);
	way_pair_await(&p->step, 2);
	for (int i = 0; i < 3; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(access_claim(&p->table, &a));
	atomic_store(&p->step, 3);
	spin_ms(5);
	atomic_store(&p->step, 4);
	access_release(&a);
	return 0;
}

static void test_improves(struct way_pair *p)
{
	pid_t child;

	atomic_store(&p->step, 0);
	atomic_store(&p->done, 0);
	child = way_pair_fork(p, child_improves);
	way_pair_await(&p->step, 1);
	revoke_within(p, 100);
	atomic_store(&p->step, 2);
	while (atomic_load(&p->step) < 3)
		;
	revoke_within(p, 100);
	CHECK(atomic_load(&p->step) == 4);
	CHECK(way_pair_join(child));
}

/* ---- where /proc does not tell ---- */

static int child_claims_and_pauses(struct way_pair *p)
{
	struct access a;

	CHECK(access_claim(&p->table, &a));
	atomic_store(&p->step, 1);
	for (;;)
		pause();
}

static bool no_descriptors(void)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = 64;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
	proc_file_keep();
	while (dup(STDERR_FILENO) >= 0)
		;
	return errno == EMFILE;
}

static bool no_proc(void)
{
	char empty[] = "/tmp/reach-XXXXXX";

	proc_file_keep();
	CHECK(mkdtemp(empty));
	if (chroot(empty)) {
		printf("not tried: chroot: %s\n", strerror(errno));
		rmdir(empty);
		return false;
	}
	CHECK(!chdir("/") && access("/proc", F_OK));
	return true;
}

static pid_t stopped;
static bool (*blind)(void);

/* A stopped peer is told from one that runs, again and again. */
static int target_is_blind(struct way_pair *p)
{
	uint64_t ran_ms, began = task_began(stopped);

	if (!blind())
		return 0;
	for (int i = 0; i < 10; i++)
		CHECK(task_look(stopped, stopped, began, UINT64_MAX, &ran_ms) == TASK_STOPPED);
	revoke_within(p, 60);
	proc_file_drop();
	revoke_within(p, 60);
	return 0;
}

static void test_blind(struct way_pair *p)
{
	bool (*const ways[])(void) = {no_descriptors, no_proc};

	for (int i = 0; i < 2; i++) {
		atomic_store(&p->step, 0);
		stopped = way_pair_fork(p, child_claims_and_pauses);
		way_pair_await(&p->step, 1);
		stop_child(stopped);
		blind = ways[i];
		CHECK(way_pair_join(way_pair_fork(p, target_is_blind)));
		finish_child(stopped);
		access_revoke(&p->table);
	}
}

int main(void)
{
	struct way_pair *p = way_pair_new();

	test_nonsense(p);
	test_unseen(p);
	test_many_spin(p);
	test_improves(p);
	test_blind(p);
	return 0;
}
