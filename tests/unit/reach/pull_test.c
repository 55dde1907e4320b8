// SPDX-License-Identifier: BSD-2-Clause
/*
 * Payloads that are read from their sender's memory: what arrives, and that nothing is read late.
 * The sender is this process, a child reads.
 *
 * With the argument "control" the sender only marks what it takes back and revokes nothing: then
 * the test has to fail.  That shows what it can see.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rseq.h"
#include "check.h"
#include "reach/access.h"
#include "test_fault.h"
#include "test_served.h"
#include "test_runs.h"
#include "usermem/usermem.h"
#include "way_pair.h"

#define ROUNDS 600u
#define OLD    0x11
#define POISON 0x99

static struct way_peer sender_of(struct way_pair *p)
{
	return (struct way_peer){.table = &p->table, .alive = &p->alive, .pid = p->pid};
}

/* ---- what arrives ---- */

static int child_cuts(struct way_pair *p)
{
	static unsigned char dst[WAY_PAIR_BYTES];
	struct way_peer from = sender_of(p);
	struct run src[100], to[100];
	struct rng rng = {77};

	for (int i = 0; i < 300; i++) {
		size_t total = 1 + rng_below(&rng, i % 8 ? 65536 : sizeof(dst));
		uint32_t nsrc = test_runs_cut(&rng, p->memory, total, src);
		uint32_t nto = test_runs_cut(&rng, dst, total, to);

		memset(dst, 0, total + 1);
		CHECK(way_pull(&from, to, nto, src, nsrc, NULL) == WAY_DONE);
		CHECK(!memcmp(dst, p->shared, total));
		CHECK(total == sizeof(dst) || !dst[total]);
	}
	return 0;
}

static int child_odd(struct way_pair *p)
{
	unsigned char head[16], tail[16], *dst = head;
	struct way_peer from = sender_of(p), nobody = {.table = &p->table, .alive = &p->alive};
	struct run part[3] = {{head, 16}, {RUN_DISCARD, 32}, {tail, 16}};
	struct run src[2] = {{p->memory, 40}, {p->memory + 40, 24}}, none = {RUN_DISCARD, 64};
	struct run to = {dst, 10}, at = {p->memory, 10};

	CHECK(way_pull(&from, part, 3, src, 2, NULL) == WAY_DONE);
	CHECK(!memcmp(head, p->shared, 16) && !memcmp(tail, p->shared + 48, 16));
	CHECK(way_pull(&from, &none, 1, src, 2, NULL) == WAY_DONE);
	CHECK(way_pull(&from, &none, 1, src, 1, NULL) == WAY_FAULT);
	CHECK(way_pull(&from, &to, 0, &at, 0, NULL) == WAY_DONE);
	to.len = 11;
	CHECK(way_pull(&from, &to, 1, &at, 1, NULL) == WAY_FAULT);
	to.len = 10;
	/* memory that is not there, on either side */
	at.addr = (void *)16;
	CHECK(way_pull(&from, &to, 1, &at, 1, NULL) == WAY_FAULT);
	/* a hostile sender names what only a destination may be */
	at.addr = RUN_DISCARD;
	CHECK(way_pull(&from, &to, 1, &at, 1, NULL) == WAY_FAULT);
	at.addr = p->memory;
	to.addr = (void *)16;
	CHECK(way_pull(&from, &to, 1, &at, 1, NULL) == WAY_FAULT);
	to.addr = dst;
	/* the thread that the word names is another process's */
	nobody.pid = getpid();
	CHECK(way_pull(&nobody, &to, 1, &at, 1, NULL) == WAY_CLOSED);
	return 0;
}

static void test_arrives(struct way_pair *p)
{
	struct rng rng = {5};

	for (uint32_t i = 0; i < WAY_PAIR_BYTES; i++)
		p->memory[i] = p->shared[i] = (uint8_t)rng_next(&rng);
	CHECK(way_pair_join(way_pair_fork(p, child_cuts)));
	CHECK(way_pair_join(way_pair_fork(p, child_odd)));
}

/* ---- memory of ours whose faults wait ---- */

static void nobody_is_in(void *user)
{
	struct way_pair *p = user;

	for (unsigned i = 0; i < ACCESS_SLOTS; i++)
		CHECK(!atomic_load(&p->table.slots[i].owner));
}

/* The sender's memory is not held meanwhile. */
static int child_waits(struct way_pair *p)
{
	static const uint32_t lengths[] = {100, 16384, 600000};
	struct way_peer from = sender_of(p);
	struct test_served served;

#ifdef __SANITIZE_THREAD__
	printf("own faults: the thread sanitizer knows no new threads in a forked child\n");
	return 0;
#endif
	if (!test_served_map(&served, WAY_PAIR_BYTES, nobody_is_in, p)) {
		printf("userfaultfd: %s\n", strerror(errno));
		return 0;
	}
	for (size_t i = 0; i < array_size(lengths); i++) {
		struct run to = {served.at + 3, lengths[i]}, src = {p->memory + 3, lengths[i]};

		test_served_empty(&served);
		CHECK(way_pull(&from, &to, 1, &src, 1, NULL) == WAY_DONE);
		CHECK(atomic_load(&served.faults) >= lengths[i] / 4096);
		CHECK(!memcmp(to.addr, p->shared + 3, lengths[i]));
	}
	test_served_unmap(&served);
	return 0;
}

/* ---- what is taken back ---- */

static uint32_t bytes;

/* Pulls into the memory that both map; p->step says that it is withdrawn. */
static int child_pulls(struct way_pair *p)
{
	struct way_peer from = sender_of(p);
	struct run dst = {p->shared, bytes}, src = {p->memory, bytes};
	unsigned late = 0;

	while (!atomic_load(&p->end)) {
		enum way_verdict v = way_pull(&from, &dst, 1, &src, 1, &p->step);

		CHECK(v == WAY_DONE || v == WAY_REVOKED || v == WAY_INTERRUPTED);
		if (memchr(p->shared, POISON, bytes)) {
			late++;
			memset(p->shared, OLD, bytes);
		}
		atomic_fetch_add(v == WAY_DONE ? &p->done : &p->refused, 1);
	}
	return late > 0;
}

static void take_back(struct way_pair *p, pid_t child, struct rng *rng, bool stopped, bool control)
{
	uint64_t refused;

	way_pair_interrupt(p, child, rng, stopped);
	atomic_store(&p->step, 1);
	if (!control)
		access_revoke(&p->table);
	memset(p->memory, POISON, bytes);
	refused = atomic_load(&p->refused);
	if (stopped)
		CHECK(!kill(child, SIGCONT));
	/* what it was at when it was stopped, and one more */
	way_pair_await_more(&p->refused, refused + 2);
	memset(p->memory, OLD, bytes);
	atomic_store(&p->step, 0);
}

/* Was nothing read late? */
static bool is_quiet(struct way_pair *p, uint32_t len, bool stopped, bool control, unsigned rounds)
{
	struct rng rng = {len + 1};
	pid_t child;

	bytes = len;
	memset(p->memory, OLD, bytes);
	memset(p->shared, OLD, bytes);
	atomic_store(&p->end, 0);
	atomic_store(&p->step, 0);
	child = way_pair_fork(p, child_pulls);
	for (unsigned i = 0; i < rounds; i++)
		take_back(p, child, &rng, stopped, control);
	atomic_store(&p->end, 1);
	return way_pair_join(child);
}

int main(int argc, char **argv)
{
	bool control = argc > 1 && !strcmp(argv[1], "control");
	struct way_pair *p = way_pair_new();

	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	test_fault_catch();
	way_pair_hold(p);
	test_arrives(p);
	CHECK(way_pair_join(way_pair_fork(p, child_waits)));
	CHECK(is_quiet(p, 8192, true, control, ROUNDS));
	CHECK(is_quiet(p, 900000, true, control, ROUNDS / 10));
	CHECK(is_quiet(p, 8192, false, control, ROUNDS / 2));
	CHECK(is_quiet(p, 900000, false, control, ROUNDS / 10));
	return 0;
}
