// SPDX-License-Identifier: BSD-2-Clause
/*
 * Both ways to the memory of another process: what arrives, in which order, what is counted when
 * some of the memory is not there, and that nobody else's memory is reached.
 *
 * The child is the initiator; the target is this process.
 */
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rseq.h"
#include "check.h"
#include "test_fault.h"
#include "way_pair.h"

#define PAGE 4096u

static bool both_ways(way_fn **way, uint8_t **there, struct way_pair *p, int i)
{
	*way = i ? way_mapped : way_kernel;
	*there = i ? p->shared : p->memory;
	return i < 2;
}

static uint8_t sample_byte(uint32_t i)
{
	return (uint8_t)(i * 31 + (i >> 8) + 7);
}

/* ---- lengths and alignments, both directions ---- */

static void move_and_look(struct way_pair *p, way_fn *way, uint8_t *there, uint32_t tid,
			  uint32_t at, uint32_t len)
{
	static uint8_t mine[WAY_PAIR_BYTES], back[WAY_PAIR_BYTES];
	struct run remote = {there + at, len};
	/* in three parts, one of which is empty */
	struct run from[3] = {{mine, len / 3}, {mine, 0}, {mine + len / 3, len - len / 3}};
	struct run to[2] = {{back, len / 2}, {back + len / 2, len - len / 2}};
	uint32_t done;

	for (uint32_t i = 0; i < len; i++)
		mine[i] = sample_byte(i + at);
	memset(back, 0, len);
	CHECK(way_pair_move(p, way, tid, false, from, 3, &remote, 1, &done) == WAY_DONE);
	CHECK(done == 1);
	CHECK(way_pair_move(p, way, tid, true, to, 2, &remote, 1, &done) == WAY_DONE);
	CHECK(done == 1 && !memcmp(mine, back, len));
}

static int child_lengths(struct way_pair *p)
{
	static const uint32_t longer[] = {63,	  64,	  65,	  200,	  575,	  576,	  577,
					  4095,	  4096,	  16384,  16385,  65536,  262143, 262144,
					  262145, 262151, 262152, 262153, 524288, 900001};
	uint32_t tid = alive_probe(&p->alive, p->pid);
	way_fn *way;
	uint8_t *there;

	CHECK(tid);
	for (int i = 0; both_ways(&way, &there, p, i); i++) {
		for (uint32_t at = 0; at < 9; at++) {
			for (uint32_t len = 1; len < 40; len++)
				move_and_look(p, way, there, tid, at, len);
			for (size_t k = 0; k < array_size(longer); k++)
				move_and_look(p, way, there, tid, at, longer[k]);
		}
	}
	return 0;
}

static void test_lengths(struct way_pair *p)
{
	memset(p->memory, 0xee, WAY_PAIR_BYTES);
	memset(p->shared, 0xee, WAY_PAIR_BYTES);
	CHECK(way_pair_join(way_pair_fork(p, child_lengths)));
	/* the last of all: 900,001 bytes at 8, and nothing behind them */
	for (uint32_t i = 0; i < 900001; i++)
		CHECK(p->memory[8 + i] == sample_byte(i + 8) &&
		      p->shared[8 + i] == sample_byte(i + 8));
	CHECK(p->memory[8 + 900001] == 0xee && p->shared[8 + 900001] == 0xee);
}

/* ---- a list ---- */

static int child_list(struct way_pair *p)
{
	uint32_t tid = alive_probe(&p->alive, p->pid), done;
	struct run local[WAY_REQUESTS], remote[WAY_REQUESTS];
	uint8_t mine[WAY_REQUESTS][24];
	way_fn *way;
	uint8_t *there;

	for (int i = 0; both_ways(&way, &there, p, i); i++) {
		for (uint32_t k = 0; k < WAY_REQUESTS; k++) {
			memset(mine[k], (int)k + 1, sizeof(mine[k]));
			local[k] = (struct run){mine[k], k + 1};
			remote[k] = (struct run){there + k * PAGE, k + 1};
		}
		CHECK(way_pair_move(p, way, tid, false, local, WAY_REQUESTS, remote, WAY_REQUESTS,
				    &done) == WAY_DONE &&
		      done == WAY_REQUESTS);
	}
	return 0;
}

static void test_list(struct way_pair *p)
{
	memset(p->memory, 0, WAY_PAIR_BYTES);
	memset(p->shared, 0, WAY_PAIR_BYTES);
	CHECK(way_pair_join(way_pair_fork(p, child_list)));
	for (uint32_t k = 0; k < WAY_REQUESTS; k++)
		for (uint32_t i = 0; i < WAY_REQUESTS + 1; i++) {
			CHECK(p->memory[k * PAGE + i] == (i <= k ? k + 1 : 0));
			CHECK(p->shared[k * PAGE + i] == (i <= k ? k + 1 : 0));
		}
}

/* ---- memory that is not there ---- */

static uint32_t faults_after(struct way_pair *p, uint32_t tid, const struct run *local,
			     const struct run *remote, uint32_t n)
{
	uint32_t done = UINT32_MAX;

	CHECK(way_pair_move(p, way_kernel, tid, false, local, n, remote, n, &done) == WAY_FAULT);
	return done;
}

static int child_faults(struct way_pair *p)
{
	uint32_t tid = alive_probe(&p->alive, p->pid);
	struct run local[4], remote[4];
	uint8_t mine[4][16], *gone;

	gone = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(gone != MAP_FAILED);
	test_fault_catch();
	for (uint32_t hole = 0; hole < 4; hole++) {
		for (uint32_t k = 0; k < 4; k++) {
			memset(mine[k], (int)(0x10 * (hole + 1) + k), sizeof(mine[k]));
			local[k] = (struct run){mine[k], 16};
			remote[k] = (struct run){p->memory + 64 * k, 16};
		}
		/* the target's memory, whole or its end */
		remote[hole].addr = p->memory + WAY_PAIR_BYTES - PAGE;
		CHECK(faults_after(p, tid, local, remote, 4) == hole);
		remote[hole].addr = p->memory + WAY_PAIR_BYTES - PAGE - 8;
		CHECK(faults_after(p, tid, local, remote, 4) == hole);
		/* ours */
		remote[hole].addr = p->memory + 64 * hole;
		local[hole].addr = gone;
		CHECK(faults_after(p, tid, local, remote, 4) == hole);
	}
	return 0;
}

static void test_faults(struct way_pair *p)
{
	uint8_t *last = p->memory + WAY_PAIR_BYTES - PAGE;

	memset(p->memory, 0, WAY_PAIR_BYTES);
	CHECK(!mprotect(last, PAGE, PROT_NONE));
	CHECK(way_pair_join(way_pair_fork(p, child_faults)));
	CHECK(!mprotect(last, PAGE, PROT_READ | PROT_WRITE));
	CHECK(p->memory[0] == 0x40 && p->memory[64] == 0x41 && p->memory[128] == 0x42);
}

/* A fault inside a restartable sequence is the access's end, not the program's. */
static int child_mapped_faults(struct way_pair *p)
{
	static const uint32_t lengths[] = {1, 2, 4, 8, 12, 64, 1000, 5000};
	uint8_t *gone = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(gone != MAP_FAILED);
	test_fault_catch();
	for (size_t i = 0; i < array_size(lengths); i++) {
		struct run local = {gone, lengths[i]}, remote = {p->shared, lengths[i]};
		uint32_t done = 7;

		CHECK(way_pair_move(p, way_mapped, 1, false, &local, 1, &remote, 1, &done) ==
			      WAY_FAULT &&
		      !done);
		CHECK(way_pair_move(p, way_mapped, 1, true, &local, 1, &remote, 1, &done) ==
			      WAY_FAULT &&
		      !done);
	}
	CHECK(atomic_load(&test_fault_count) == 2 * array_size(lengths));
	return 0;
}

static void test_mapped_faults(struct way_pair *p)
{
	CHECK(way_pair_join(way_pair_fork(p, child_mapped_faults)));
}

/* ---- nobody else's memory ---- */

static enum way_verdict write_8(struct way_pair *p, uint32_t tid)
{
	uint64_t value = 1;
	struct run local = {&value, 8}, remote = {p->memory, 8};

	return way_pair_move(p, way_kernel, tid, false, &local, 1, &remote, 1, NULL);
}

/* The memory stays when the target has ended. */
static enum way_verdict map_8(struct way_pair *p, uint64_t value)
{
	struct run local = {&value, 8}, remote = {p->shared, 8};

	return way_pair_move(p, way_mapped, 0, false, &local, 1, &remote, 1, NULL);
}

/* The thread lives on and is another's by now, as far as the word tells. */
static int child_let_go(struct way_pair *p)
{
	uint32_t tid = alive_probe(&p->alive, p->pid);

	CHECK(tid && write_8(p, tid) == WAY_DONE && map_8(p, 1) == WAY_DONE);
	atomic_store(&p->step, 1);
	way_pair_await(&p->step, 2);
	CHECK(!alive_probe(&p->alive, p->pid) && write_8(p, tid) == WAY_CLOSED);
	CHECK(map_8(p, 2) == WAY_CLOSED);
	return 0;
}

static void test_let_go(struct way_pair *p)
{
	pid_t child;

	atomic_store(&p->step, 0);
	child = way_pair_fork(p, child_let_go);
	way_pair_await(&p->step, 1);
	way_pair_let_go(p);
	memset(p->memory, 0, 8);
	atomic_store(&p->step, 2);
	CHECK(way_pair_join(child) && !p->memory[0] && p->shared[0] == 1);
}

enum ending { ENDS_BY_KILL, ENDS_BY_EXIT, ENDS_BY_EXEC };

static enum ending ending;

/* A target of its own, in a child; it ends in that way when it is told. */
static int child_target(struct way_pair *p)
{
	way_pair_hold(p);
	atomic_store(&p->step, 1);
	way_pair_await(&p->step, 2);
	if (ending == ENDS_BY_EXIT)
		return 0;
	if (ending == ENDS_BY_KILL)
		raise(SIGKILL);
	execl("/bin/sleep", "sleep", "60", (char *)NULL);
	return 1;
}

/* The kernel's part, seen from here: the word has changed. */
static void await_word_change(struct way_pair *p, uint32_t tid)
{
	for (int ms = 0; atomic_load(alive_word(&p->alive)) == tid; ms++) {
		CHECK(ms < 60000);
		usleep(1000);
	}
}

static void test_ended(struct way_pair *p, enum ending how)
{
	pid_t target;
	uint32_t tid;

	ending = how;
	atomic_store(&p->step, 0);
	memset(&p->alive, 0, sizeof(p->alive));
	target = way_pair_fork(p, child_target);
	way_pair_await(&p->step, 1);
	tid = alive_probe(&p->alive, p->pid);
	CHECK(tid && tid != (uint32_t)target && write_8(p, tid) == WAY_DONE);
	CHECK(map_8(p, 3) == WAY_DONE && p->shared[0] == 3);
	atomic_store(&p->step, 2);
	await_word_change(p, tid);
	CHECK(write_8(p, tid) == WAY_CLOSED && !alive_probe(&p->alive, p->pid));
	CHECK(map_8(p, 4) == WAY_CLOSED && p->shared[0] == 3);
	kill(target, SIGKILL);
	CHECK(waitpid(target, NULL, 0) == target);
}

/* A process that says another cookie is not the one that wrote the exposure. */
static int child_stranger(struct way_pair *p)
{
	CHECK(alive_probe(&p->alive, p->pid));
	p->alive.cookie ^= 1;
	CHECK(!alive_probe(&p->alive, p->pid));
	p->alive.cookie ^= 1;
	p->alive.pid_namespace ^= 1;
	CHECK(!alive_probe(&p->alive, p->pid));
	p->alive.pid_namespace ^= 1;
	return 0;
}

/* What has fewer rights than we have could run another user's program under the number that it
 * names; and its first thread keeps its number there, whatever the rights. */
static int child_lesser(struct way_pair *p)
{
	uint32_t first = (uint32_t)p->pid;

	CHECK(alive_probe(&p->alive, p->pid));
	atomic_store((_Atomic(uint32_t) *)(void *)&p->alive.held, first);
	CHECK(!alive_probe(&p->alive, p->pid));
	return 0;
}

static int child_gives_rights_up(struct way_pair *p)
{
	CHECK(!setgid(65534) && !setuid(65534));
	/* as it was before, for those who may */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	way_pair_hold(p);
	atomic_store(&p->step, 1);
	way_pair_await(&p->step, 2);
	return 0;
}

/* It has all capabilities, but in a namespace of its own. */
static int child_goes_elsewhere(struct way_pair *p)
{
	bool elsewhere = !unshare(CLONE_NEWUSER);

	if (!elsewhere)
		fprintf(stderr, "CLONE_NEWUSER: %m: not looked at\n");
	way_pair_hold(p);
	atomic_store(&p->step, elsewhere ? 1 : 3);
	way_pair_await(&p->step, 2);
	return 0;
}

static void target_is_lesser(struct way_pair *p, int (*how)(struct way_pair *p))
{
	pid_t target;

	atomic_store(&p->step, 0);
	memset(&p->alive, 0, sizeof(p->alive));
	target = way_pair_fork(p, how);
	while (!atomic_load(&p->step))
		usleep(1000);
	CHECK(atomic_load(alive_word(&p->alive)));
	CHECK(atomic_load(&p->step) == 3 || !alive_probe(&p->alive, p->pid));
	atomic_store(&p->step, 2);
	CHECK(way_pair_join(target));
}

static void test_lesser(struct way_pair *p)
{

	memset(&p->alive, 0, sizeof(p->alive));
	way_pair_hold(p);
	CHECK(way_pair_join(way_pair_fork(p, child_lesser)));
	if (geteuid()) {
		fprintf(stderr, "not root: a target with fewer rights is not looked at\n");
		return;
	}
	target_is_lesser(p, child_gives_rights_up);
	target_is_lesser(p, child_goes_elsewhere);
}

int main(void)
{
	struct way_pair *p = way_pair_new();

	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	way_pair_hold(p);
	test_lengths(p);
	test_list(p);
	test_faults(p);
	test_mapped_faults(p);
	CHECK(way_pair_join(way_pair_fork(p, child_stranger)));
	test_let_go(p);
	test_ended(p, ENDS_BY_KILL);
	test_ended(p, ENDS_BY_EXIT);
	test_ended(p, ENDS_BY_EXEC);
	test_lesser(p);
	return 0;
}
