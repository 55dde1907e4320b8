// SPDX-License-Identifier: BSD-2-Clause
/*
 * Nothing is written or read late.  A child writes into this process as fast as it can, as long as
 * the "key" allows it; it is stopped at a random moment, the key is withdrawn, and what it finds
 * when it goes on must keep it from the memory.
 *
 * With the argument "control" nothing is revoked and nobody waits: then the test has to fail.  That
 * shows what it can see.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rseq.h"
#include "check.h"
#include "reach/access.h"
#include "way_pair.h"

#define ROUNDS 1200

static way_fn *way;
static uint32_t bytes;

static enum way_verdict write_once(struct way_pair *p, uint32_t tid, const struct run *local)
{
	struct run remote = {way == way_kernel ? p->memory : p->shared, bytes};
	struct way_access a = {
		.alive = &p->alive,
		.tid = tid,
		.local = local,
		.nlocal = 1,
		.remote = &remote,
		.requests = 1,
	};
	enum way_verdict v = WAY_CLOSED;

	CHECK(access_claim(&p->table, &a.hold));
	if (atomic_load(&p->allowed))
		v = way(&a);
	access_release(&a.hold);
	return v;
}

static int child_writes(struct way_pair *p)
{
	static uint8_t mine[WAY_PAIR_BYTES];
	struct run local = {mine, bytes};
	uint32_t tid = alive_probe(&p->alive, p->pid);

	CHECK(tid);
	memset(mine, 0x77, sizeof(mine));
	while (!atomic_load(&p->end)) {
		enum way_verdict v = write_once(p, tid, &local);

		CHECK(v == WAY_DONE || v == WAY_REVOKED || v == WAY_CLOSED || v == WAY_INTERRUPTED);
		atomic_fetch_add(v == WAY_DONE ? &p->done : &p->refused, 1);
	}
	return 0;
}

static bool is_all(const uint8_t *at, uint8_t value)
{
	for (uint32_t i = 0; i < bytes; i++)
		if (at[i] != value)
			return false;
	return true;
}

/* True: the memory stayed as it was after the key had been withdrawn. */
static bool round_is_clean(struct way_pair *p, pid_t child, struct rng *rng, bool stopped,
			   bool control)
{
	uint8_t *memory = way == way_kernel ? p->memory : p->shared;
	uint64_t refused;
	bool clean;

	way_pair_interrupt(p, child, rng, stopped);
	atomic_store(&p->allowed, 0);
	if (!control)
		access_revoke(&p->table);
	memset(memory, 0x11, bytes);
	refused = atomic_load(&p->refused);
	if (stopped)
		CHECK(!kill(child, SIGCONT));
	/* what it was at when it was stopped, and one more */
	way_pair_await_more(&p->refused, refused + 2);
	clean = is_all(memory, 0x11);
	atomic_store(&p->allowed, 1);
	return clean;
}

static unsigned late_writes(struct way_pair *p, way_fn *by, uint32_t len, bool stopped,
			    bool control, unsigned rounds)
{
	struct rng rng = {len + 1};
	unsigned late = 0;
	pid_t child;

	way = by;
	bytes = len;
	atomic_store(&p->end, 0);
	atomic_store(&p->allowed, 1);
	child = way_pair_fork(p, child_writes);
	for (unsigned i = 0; i < rounds; i++)
		late += !round_is_clean(p, child, &rng, stopped, control);
	atomic_store(&p->end, 1);
	CHECK(way_pair_join(child));
	return late;
}

/* ---- who holds a slot ---- */

static int child_claims_and_dies(struct way_pair *p)
{
	struct access a;

	for (uint32_t i = 0; i < ACCESS_SLOTS; i++)
		CHECK(access_claim(&p->table, &a));
	CHECK(!access_claim(&p->table, &a));
	return 0;
}

static int child_claims_and_waits(struct way_pair *p)
{
	struct access a;

	CHECK(access_claim(&p->table, &a));
	atomic_store(&p->step, 1);
	way_pair_await(&p->step, 2);
	CHECK(access_is_revoked(&a));
	access_release(&a);
	return 0;
}

static unsigned slots_claimed(const struct way_pair *p)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < ACCESS_SLOTS; i++)
		n += !!atomic_load(&p->table.slots[i].owner);
	return n;
}

/* Slots of the dead are claimed anew, and a revocation does not wait for them. */
static void test_dead(struct way_pair *p)
{
	struct access mine[2];

	CHECK(way_pair_join(way_pair_fork(p, child_claims_and_dies)));
	CHECK(slots_claimed(p) == ACCESS_SLOTS);
	/* a home of ours, and then one of the dead child's */
	for (uint32_t i = 0; i < 2; i++)
		for (int ms = 0; !access_claim(&p->table, &mine[i]); ms++) {
			CHECK(ms < 60000);
			usleep(1000);
		}
	access_release(&mine[1]);
	access_release(&mine[0]);
	access_revoke(&p->table);
	CHECK(!slots_claimed(p));
}

/* A stopped thread keeps its slot, and does not keep who revokes. */
static void test_stopped(struct way_pair *p)
{
	pid_t child;

	atomic_store(&p->step, 0);
	child = way_pair_fork(p, child_claims_and_waits);
	way_pair_await(&p->step, 1);
	way_pair_stop(child);
	access_revoke(&p->table);
	CHECK(slots_claimed(p) == 1);
	access_revoke(&p->table);
	CHECK(!kill(child, SIGCONT));
	atomic_store(&p->step, 2);
	CHECK(way_pair_join(child) && !slots_claimed(p));
}

/* Claims a slot, and does nothing with it but run. */
static int child_claims_and_spins(struct way_pair *p)
{
	struct access a;

	CHECK(access_claim(&p->table, &a));
	atomic_store(&p->step, 1);
	while (atomic_load(&p->step) != 2)
		;
	return 0;
}

/* A peer that makes no access but keeps its slot is waited for once, and not for ever. */
static void test_spinning(struct way_pair *p)
{
	pid_t child;

	atomic_store(&p->step, 0);
	child = way_pair_fork(p, child_claims_and_spins);
	way_pair_await(&p->step, 1);
	/* If each waited for a second of the child's, they would take longer. */
	alarm(300);
	for (int i = 0; i < 1000; i++)
		access_revoke(&p->table);
	alarm(0);
	CHECK(slots_claimed(p) == 1);
	atomic_store(&p->step, 2);
	CHECK(way_pair_join(child));
}

/* A peer has written our own thread's number. */
static void test_ourselves(struct way_pair *p)
{
	struct access a;

	CHECK(access_claim(&p->table, &a));
	access_revoke(&p->table);
	CHECK(access_is_revoked(&a));
	access_release(&a);
}

static int control_child(struct way_pair *p)
{
	unsigned late = late_writes(p, way_kernel, 8, true, true, ROUNDS) +
			late_writes(p, way_mapped, 8, true, true, ROUNDS);

	printf("without revocation %u late writes in %u rounds\n", late, 2 * ROUNDS);
	return !late;
}

int main(int argc, char **argv)
{
	struct way_pair *p = way_pair_new();

	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	way_pair_hold(p);
	if (argc > 1 && !strcmp(argv[1], "control"))
		return control_child(p);
	test_dead(p);
	test_stopped(p);
	test_ourselves(p);
	test_spinning(p);
	CHECK(!late_writes(p, way_kernel, 8, true, false, ROUNDS));
	CHECK(!late_writes(p, way_kernel, 300000, true, false, ROUNDS / 10));
	CHECK(!late_writes(p, way_mapped, 8, true, false, ROUNDS));
	CHECK(!late_writes(p, way_mapped, 300000, true, false, ROUNDS / 10));
	CHECK(!late_writes(p, way_kernel, 64, false, false, ROUNDS / 4));
	CHECK(!late_writes(p, way_mapped, 20000, false, false, ROUNDS / 4));
	return 0;
}
