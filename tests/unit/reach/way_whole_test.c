// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lists whose runs end anywhere, also inside of an aligned word: what arrives is what was sent, by
 * both ways and in both directions.  That no word is torn is for way_order_test.
 *
 * The child is the initiator; the target is this process.
 */
#include "reach/way_internal.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/rseq.h"
#include "check.h"
#include "test_fault.h"
#include "way_pair.h"

#define ROUNDS 3000u
#define PLACE  16384u /* of a request in the target's memory */
#define BYTES  (4u * PLACE)
#define APART  64u /* between two runs of ours */
#define PAGE   4096u

static uint8_t mine[BYTES + RUNS_MAX * (APART + 8)], want[BYTES];

struct plan {
	struct run local[RUNS_MAX], remote[4];
	uint32_t nlocal, requests, bytes;
};

/* Requests of any length and place, and runs of ours of any length, some of them empty. */
static void plan_draw(struct plan *p, struct rng *rng, uint8_t *there)
{
	uint32_t most = rng_below(rng, 2) ? 40 : PLACE - 8, left;
	uint8_t *at = mine;

	p->requests = 1 + (uint32_t)rng_below(rng, 4);
	p->bytes = p->nlocal = 0;
	for (uint32_t i = 0; i < p->requests; i++) {
		uint32_t len = 1 + (uint32_t)rng_below(rng, most);

		p->remote[i] = (struct run){there + i * PLACE + rng_below(rng, 8), len};
		p->bytes += len;
	}
	for (left = p->bytes; left; p->nlocal++) {
		uint32_t n = (uint32_t)rng_below(rng, rng_below(rng, 3) ? 20 : p->bytes + 1);

		if (n > left || p->nlocal == RUNS_MAX - 1)
			n = left;
		p->local[p->nlocal] = (struct run){at, n};
		at += n + rng_below(rng, APART);
		left -= n;
	}
}

static void plan_fill(const struct plan *p, struct rng *rng)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < p->nlocal; i++)
		for (size_t b = 0; b < p->local[i].len; b++)
			((uint8_t *)p->local[i].addr)[b] = want[k++] = (uint8_t)rng_next(rng);
}

static void plan_clear(const struct plan *p)
{
	for (uint32_t i = 0; i < p->nlocal; i++)
		memset(p->local[i].addr, 0, p->local[i].len);
}

static bool plan_holds(const struct plan *p)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < p->nlocal; i++) {
		if (p->local[i].len && memcmp(p->local[i].addr, want + k, p->local[i].len) != 0)
			return false;
		k += (uint32_t)p->local[i].len;
	}
	return k == p->bytes;
}

static enum way_verdict plan_move(struct way_pair *p, way_fn *way, struct plan *x, bool read,
				  uint32_t *done)
{
	uint32_t tid = alive_probe(&p->alive, p->pid);
	enum way_verdict v = WAY_INTERRUPTED;

	CHECK(tid);
	for (int i = 0; i < 100 && v == WAY_INTERRUPTED; i++)
		v = way_pair_move(p, way, tid, read, x->local, x->nlocal, x->remote, x->requests,
				  done);
	return v;
}

static bool takes_any(void)
{
	const struct way_machine here = way_machine_here();

	return way_copies_of(&here).any;
}

static int child_random(struct way_pair *p)
{
	struct rng rng = {7};
	uint32_t cut = 0;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		bool kernel = i % 2 && takes_any();
		way_fn *way = kernel ? way_kernel : way_mapped;
		struct plan x;
		uint32_t done;

		plan_draw(&x, &rng, kernel ? p->memory : p->shared);
		cut += way_is_cut(&(struct way_access){.local = x.local,
						       .nlocal = x.nlocal,
						       .remote = x.remote,
						       .requests = x.requests});
		plan_fill(&x, &rng);
		CHECK(plan_move(p, way, &x, false, &done) == WAY_DONE && done == x.requests);
		plan_clear(&x);
		CHECK(plan_move(p, way, &x, true, &done) == WAY_DONE && done == x.requests);
		CHECK(plan_holds(&x));
	}
	CHECK(cut > ROUNDS / 4);
	return 0;
}

/* The word that is cut lies where we have no memory. */
static int child_faults(struct way_pair *p)
{
	uint8_t *gone = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct plan x = {.nlocal = 2, .requests = 1};
	uint32_t done = 7;

	CHECK(gone != MAP_FAILED);
	CHECK(!mprotect(gone, PAGE, PROT_READ | PROT_WRITE));
	x.local[0] = (struct run){gone, 12};
	x.local[1] = (struct run){gone + PAGE, 12};
	x.remote[0] = (struct run){p->memory, 24};
	CHECK(plan_move(p, way_kernel, &x, false, &done) != WAY_DONE && !done);
	CHECK(plan_move(p, way_kernel, &x, true, &done) != WAY_DONE && !done);
	return 0;
}

int main(void)
{
	struct way_pair *p = way_pair_new();

	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	test_fault_catch();
	way_pair_hold(p);
	CHECK(way_pair_join(way_pair_fork(p, child_random)));
	CHECK(way_pair_join(way_pair_fork(p, child_faults)));
	return 0;
}
