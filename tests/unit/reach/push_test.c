// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is written to the places that a peer has sent: that it arrives, and that nothing is written
 * late.  The peer is this process, a child writes.
 *
 * With the argument "control" the peer only marks what it takes back and revokes nothing: then the
 * test has to fail.  That shows what it can see.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/rseq.h"
#include "check.h"
#include "test_fault.h"
#include "test_runs.h"
#include "way_pair.h"

#define ROUNDS 300u
#define OLD    0x11
#define LATE   0x99

static struct way_peer peer_of(struct way_pair *p)
{
	return (struct way_peer){.table = &p->table, .alive = &p->alive, .pid = p->pid};
}

/* ---- what arrives ---- */

static const _Atomic(uint32_t) stays;

/* The child's copy of the answer is what both map; the parent looks at its own memory. */
static int child_cuts(struct way_pair *p)
{
	static unsigned char back[WAY_PAIR_BYTES];
	struct way_peer to = peer_of(p);
	struct run src[100], dst[100], all = {p->memory, WAY_PAIR_BYTES};
	struct rng rng = {78};

	for (int i = 0; i < 300; i++) {
		size_t total = 1 + rng_below(&rng, i % 8 ? 65536 : WAY_PAIR_BYTES);
		size_t off = rng_below(&rng, total), n = 1 + rng_below(&rng, total - off);
		uint32_t ndst = test_runs_cut(&rng, p->memory, total, dst);
		uint32_t nsrc = test_runs_cut(&rng, p->shared, n, src);
		struct run here = {back, WAY_PAIR_BYTES};

		for (size_t k = 0; k < n; k++)
			p->shared[k] = (uint8_t)rng_next(&rng);
		CHECK(way_pull(&to, &here, 1, &all, 1, NULL) == WAY_DONE);
		memcpy(back + off, p->shared, n);
		CHECK(way_push(&to, dst, ndst, off, src, nsrc, &stays) == WAY_DONE);
		here = (struct run){p->shared, WAY_PAIR_BYTES};
		CHECK(way_pull(&to, &here, 1, &all, 1, NULL) == WAY_DONE);
		CHECK(!memcmp(back, p->shared, WAY_PAIR_BYTES));
	}
	return 0;
}

static int child_odd(struct way_pair *p)
{
	struct way_peer to = peer_of(p), nobody = {.table = &p->table, .alive = &p->alive};
	unsigned char bytes[64] = {1};
	struct run src = {bytes, 64}, at = {p->memory, 64}, part = {p->memory, 63};
	const _Atomic(uint32_t) withdrawn = 1;

	CHECK(way_push(&to, &at, 1, 0, &src, 0, &stays) == WAY_DONE);
	CHECK(way_push(&to, &part, 1, 0, &src, 1, &stays) == WAY_FAULT);
	CHECK(way_push(&to, &at, 1, 64, &src, 1, &stays) == WAY_FAULT);
	CHECK(way_push(&to, &at, 1, UINT64_MAX, &src, 1, &stays) == WAY_FAULT);
	CHECK(way_push(&to, &at, 1, 0, &src, 1, &withdrawn) == WAY_REVOKED);
	/* memory that is not there, and what no memory is */
	at.addr = (void *)16;
	CHECK(way_push(&to, &at, 1, 0, &src, 1, &stays) == WAY_FAULT);
	at.addr = RUN_DISCARD;
	CHECK(way_push(&to, &at, 1, 0, &src, 1, &stays) == WAY_FAULT);
	at.addr = p->memory;
	src.addr = (void *)16;
	CHECK(way_push(&to, &at, 1, 0, &src, 1, &stays) == WAY_FAULT);
	src.addr = bytes;
	/* the thread that the word names is another process's */
	nobody.pid = getpid();
	CHECK(way_push(&nobody, &at, 1, 0, &src, 1, &stays) == WAY_CLOSED);
	return 0;
}

/* ---- what is taken back ---- */

static uint32_t bytes;

/* Writes as long as it may; p->step says that it is withdrawn. */
static int child_pushes(struct way_pair *p)
{
	struct way_peer to = peer_of(p);
	struct run dst = {p->memory, bytes}, src = {p->shared, bytes};

	while (!atomic_load(&p->end)) {
		enum way_verdict v = way_push(&to, &dst, 1, 0, &src, 1, &p->step);

		CHECK(v == WAY_DONE || v == WAY_REVOKED || v == WAY_INTERRUPTED);
		atomic_fetch_add(v == WAY_DONE ? &p->done : &p->refused, 1);
	}
	return 0;
}

static bool is_all(const uint8_t *at, uint8_t value, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (at[i] != value)
			return false;
	return true;
}

/* Is nothing written after the memory was taken back, also by a child that was stopped meanwhile? */
static bool take_back(struct way_pair *p, pid_t child, struct rng *rng, bool stopped, bool control)
{
	uint64_t refused;
	bool quiet;

	way_pair_interrupt(p, child, rng, stopped);
	atomic_store(&p->step, 1);
	if (!control)
		access_revoke(&p->table);
	memset(p->memory, OLD, bytes);
	refused = atomic_load(&p->refused);
	if (stopped)
		CHECK(!kill(child, SIGCONT));
	/* what it was at when it was stopped, and one more */
	way_pair_await_more(&p->refused, refused + 2);
	quiet = is_all(p->memory, OLD, bytes);
	atomic_store(&p->step, 0);
	return quiet;
}

static bool is_quiet(struct way_pair *p, uint32_t len, bool stopped, bool control, unsigned rounds)
{
	struct rng rng = {len + 1};
	bool quiet = true;
	pid_t child;

	bytes = len;
	memset(p->shared, LATE, bytes);
	atomic_store(&p->end, 0);
	atomic_store(&p->step, 0);
	child = way_pair_fork(p, child_pushes);
	for (unsigned i = 0; i < rounds; i++)
		quiet &= take_back(p, child, &rng, stopped, control);
	atomic_store(&p->end, 1);
	CHECK(way_pair_join(child));
	return quiet;
}

/* A child that is killed wherever it is leaves nobody waiting. */
static void test_killed(struct way_pair *p)
{
	struct rng rng = {4};

	bytes = 900000;
	memset(p->shared, LATE, bytes);
	atomic_store(&p->end, 0);
	atomic_store(&p->step, 0);
	for (int i = 0; i < 20; i++) {
		pid_t child = way_pair_fork(p, child_pushes);

		way_pair_interrupt(p, child, &rng, false);
		CHECK(!kill(child, SIGKILL));
		atomic_store(&p->step, 1);
		access_revoke(&p->table);
		memset(p->memory, OLD, bytes);
		(void)way_pair_join(child);
		CHECK(is_all(p->memory, OLD, bytes));
		atomic_store(&p->step, 0);
	}
}

int main(int argc, char **argv)
{
	bool control = argc > 1 && !strcmp(argv[1], "control");
	struct way_pair *p = way_pair_new();

	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	alarm(120);
	test_fault_catch();
	way_pair_hold(p);
	CHECK(way_pair_join(way_pair_fork(p, child_cuts)));
	CHECK(way_pair_join(way_pair_fork(p, child_odd)));
	CHECK(is_quiet(p, 8192, true, control, ROUNDS));
	CHECK(is_quiet(p, 900000, true, control, ROUNDS / 10));
	CHECK(is_quiet(p, 8192, false, control, ROUNDS / 2));
	CHECK(is_quiet(p, 900000, false, control, ROUNDS / 10));
	test_killed(p);
	return 0;
}
