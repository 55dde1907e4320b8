// SPDX-License-Identifier: BSD-2-Clause
/*
 * What work requests make of a key with signatures: when it has them, which, and when an error of
 * it is the first.
 */
#include <string.h>

#include "adapter/memory/psv.h"
#include "adapter/qp/qp.h"
#include "base/hazard.h"
#include "keyed_pair.h"

#define MEMORY_BYTES 1024u

struct signed_bed {
	struct keyed_pair t;
	struct psv *psv[SIG_SIDES];
	uint8_t bsf[BSF_BYTES];
	uint32_t key;
};

/*
 * As mlx5dv_create_mkey(3) with MLX5DV_MKEY_INIT_ATTR_FLAGS_BLOCK_SIGNATURE and a signature that
 * libmlx5 writes: T10-DIF on the wire, nothing or CRC32C in memory.
 */
static void signed_up(struct signed_bed *s, bool in_memory)
{
	struct mkey_indirect_attr attr;

	keyed_pair_up(&s->t);
	attr = empty(s->t.b.pdn);
	attr.signature = true;
	attr.bsf_octowords = BSF_BYTES / 16;
	make(&s->t, &attr);
	s->key = s->t.key | 0x5a;
	for (int i = 0; i < SIG_SIDES; i++)
		CHECK(!psv_create(s->t.device.adapter[0], s->t.b.pdn, &s->psv[i]));
	memset(s->bsf, 0, sizeof(s->bsf));
	bsf_set(s->bsf, BSF_SIZE, BSF_SIZE_INLINE);
	bsf_set(s->bsf, BSF_CHECK_MASK, 0xff);
	bsf_set(s->bsf, BSF_WIRE_BLOCK, BSF_BLOCK_512);
	bsf_set(s->bsf, BSF_RAW_DATA_BYTES, UINT32_MAX);
	bsf_domain_set(s->bsf, BSF_WIRE, BSF_PSV, psv_number(s->psv[SIG_WIRE]));
	bsf_domain_set(s->bsf, BSF_WIRE, BSF_INL_VALID, 1);
	bsf_domain_set(s->bsf, BSF_WIRE, BSF_INL_REFRESH, 1);
	bsf_domain_set(s->bsf, BSF_WIRE, BSF_INL_GUARD, BSF_GUARD_CRC);
	bsf_domain_set(s->bsf, BSF_WIRE, BSF_INL_REPEAT, 1);
	bsf_domain_set(s->bsf, BSF_WIRE, BSF_INL_APP_MASK, 0xffff);
	if (in_memory) {
		bsf_set(s->bsf, BSF_MEMORY_BLOCK, BSF_BLOCK_512);
		bsf_domain_set(s->bsf, BSF_MEMORY, BSF_PSV, psv_number(s->psv[SIG_MEMORY]));
		bsf_domain_set(s->bsf, BSF_MEMORY, BSF_FORMAT,
			       BSF_FORMAT_CRC32C | BSF_FORMAT_REPEAT);
	}
}

static void signed_down(struct signed_bed *s)
{
	for (int i = 0; i < SIG_SIDES; i++)
		if (s->psv[i])
			psv_destroy(s->t.device.adapter[0], s->psv[i]);
	keyed_pair_down(&s->t);
}

static struct change with_bsf(const struct signed_bed *s)
{
	struct change c = of_b(&s->t, MEMORY_BYTES);

	c.ctrl.mkey_mask =
		be64_of(be64_get(c.ctrl.mkey_mask) | UMR_MASK_BSF_ENABLE | UMR_MASK_SIG_ERR);
	c.ctrl.bsf_octowords = be16_of(BSF_BYTES / 16);
	c.context.flags_pd = be32_of(MKEY_CTX_BSF_ENABLE | 1u << 26);
	c.bsf = s->bsf;
	return c;
}

static enum mkey_verdict signed_open(struct signed_bed *s, uint32_t pdn, uint32_t access,
				     enum sig_direction d, struct mkey_signed *out)
{
	const struct mkey_use u = qp_remote_use(s->t.b.qp, s->key, pdn, access);
	enum mkey_verdict v;

	hazard_enter();
	v = mkey_signed_open(s->t.device.adapter[0], &u, d, out);
	hazard_leave();
	return v;
}

static enum mkey_verdict signed_runs(struct signed_bed *s, const struct mkey_signed *k,
				     uint64_t off, uint64_t len, struct runs *runs)
{
	enum mkey_verdict v;

	runs_begin(runs);
	hazard_enter();
	v = mkey_signed_runs(s->t.device.adapter[0], k, IB_ACCESS_REMOTE_WRITE, off, len, runs);
	hazard_leave();
	return v;
}

static void test_opened(void)
{
	struct mkey_signed k;
	struct signed_bed s;
	struct change c;
	struct runs runs;

	signed_up(&s, true);
	c = with_bsf(&s);
	CHECK(!change(&s.t, &c));
	/* signatures or not is told to those who may use it, and to nobody else */
	CHECK(verdict(&s.t, s.key, 0, 8) == MKEY_SIGNED);
	CHECK(verdict(&s.t, s.key + 1, 0, 8) == MKEY_NO_KEY);
	CHECK(signed_open(&s, s.t.a.pdn, IB_ACCESS_REMOTE_WRITE, SIG_SCATTER, &k) == MKEY_WRONG_PD);
	CHECK(signed_open(&s, s.t.b.pdn, IB_ACCESS_REMOTE_READ, SIG_GATHER, &k) == MKEY_OK);
	CHECK(k.plan.in.type == SIG_CRC32C && k.plan.out.type == SIG_T10DIF_CRC);
	CHECK(signed_open(&s, s.t.b.pdn, IB_ACCESS_REMOTE_WRITE, SIG_SCATTER, &k) == MKEY_OK);
	CHECK(k.plan.in.type == SIG_T10DIF_CRC && k.plan.out.type == SIG_CRC32C);
	CHECK(k.start == 0 && k.length == MEMORY_BYTES && k.plan.in.block == 512);

	CHECK(signed_runs(&s, &k, 10, MEMORY_BYTES - 10, &runs) == MKEY_OK);
	CHECK(runs.n == 1 && runs.run[0].addr == s.t.dst + 10);
	CHECK(signed_runs(&s, &k, 10, MEMORY_BYTES - 9, &runs) == MKEY_OUT_OF_RANGE);
	CHECK(signed_runs(&s, &k, UINT64_MAX, 2, &runs) == MKEY_OUT_OF_RANGE);
	/* what was opened is not what is there now */
	CHECK(!change(&s.t, &c));
	CHECK(signed_runs(&s, &k, 10, 1, &runs) == MKEY_NO_KEY);
	signed_down(&s);
}

/* On, off, on again with what was written before; and kept by an invalidation. */
static void test_switched(void)
{
	static const struct {
		uint64_t mask;
		uint32_t flags;
		enum mkey_verdict want;
	} steps[] = {
		{0, 0, MKEY_SIGNED},
		{UMR_MASK_BSF_ENABLE, 0, MKEY_OK},
		{0, 0, MKEY_OK},
		{UMR_MASK_BSF_ENABLE, MKEY_CTX_BSF_ENABLE, MKEY_SIGNED},
	};
	struct signed_bed s;
	struct change c;

	signed_up(&s, true);
	/* enabled since it was made, but there is nothing to do as long as nobody said what */
	c = of_b(&s.t, MEMORY_BYTES);
	CHECK(!change(&s.t, &c) && verdict(&s.t, s.key, 0, 8) == MKEY_OK);
	c = with_bsf(&s);
	CHECK(!change(&s.t, &c) && verdict(&s.t, s.key, 0, 8) == MKEY_SIGNED);
	for (unsigned i = 0; i < array_size(steps); i++) {
		c = of_b(&s.t, MEMORY_BYTES);
		c.ctrl.mkey_mask = be64_of(be64_get(c.ctrl.mkey_mask) | steps[i].mask);
		c.context.flags_pd = be32_of(steps[i].flags);
		CHECK(!change(&s.t, &c) && verdict(&s.t, s.key, 0, 8) == steps[i].want);
	}
	c = (struct change){
		.ctrl = {.flags = UMR_INLINE | UMR_TRANSLATION_OFFSET | UMR_CHECK_QPN,
			 .mkey_mask = be64_of(UMR_MASK_FREE | UMR_MASK_MKEY | UMR_MASK_QPN)},
		.context = {.free = MKEY_CTX_FREE, .qpn_mkey = be32_of(0xffffff00)},
	};
	post(&s.t.b, s.key, &c);
	CHECK(!outcome(&s.t.b) && verdict(&s.t, s.key, 0, 8) == MKEY_NO_KEY);
	c = of_b(&s.t, MEMORY_BYTES);
	CHECK(!change(&s.t, &c) && verdict(&s.t, s.key, 0, 8) == MKEY_SIGNED);
	signed_down(&s);
}

static bool raise_error(struct signed_bed *s, const struct mkey_signed *k)
{
	const struct sig_error e = {.kind = SIG_BAD_GUARD, .side = SIG_WIRE};
	bool first;

	hazard_enter();
	first = mkey_signed_raise(s->t.device.adapter[0], k, &e);
	hazard_leave();
	return first;
}

static bool in_error(const struct psv *p)
{
	uint64_t transient;
	bool error;

	psv_query(p, &transient, &error);
	return error;
}

static void set_psv(struct signed_bed *s, enum sig_side side)
{
	hazard_enter();
	CHECK(psv_set(s->t.device.adapter[0], psv_number(s->psv[side]), s->t.b.pdn, 7));
	hazard_leave();
}

static void first_errors(void)
{
	struct mkey_signed k;
	struct signed_bed s;
	struct change c, other;
	struct mkey_indirect_attr attr;
	struct mkey *second;

	signed_up(&s, true);
	c = with_bsf(&s);
	CHECK(!change(&s.t, &c));
	CHECK(signed_open(&s, s.t.b.pdn, IB_ACCESS_REMOTE_WRITE, SIG_SCATTER, &k) == MKEY_OK);
	CHECK(!in_error(s.psv[SIG_WIRE]));
	CHECK(raise_error(&s, &k) && in_error(s.psv[SIG_WIRE]));
	CHECK(!in_error(s.psv[SIG_MEMORY]));
	CHECK(!raise_error(&s, &k));
	/* either of its PSVs arms it */
	set_psv(&s, SIG_WIRE);
	CHECK(!in_error(s.psv[SIG_WIRE]));
	CHECK(raise_error(&s, &k) && !raise_error(&s, &k));
	set_psv(&s, SIG_MEMORY);
	CHECK(raise_error(&s, &k) && !raise_error(&s, &k));
	/* so does the bit of a UMR, and nothing else of it */
	other = of_b(&s.t, MEMORY_BYTES);
	CHECK(!change(&s.t, &other) && !raise_error(&s, &k));
	other.ctrl.mkey_mask = be64_of(be64_get(other.ctrl.mkey_mask) | UMR_MASK_SIG_ERR);
	CHECK(!change(&s.t, &other) && raise_error(&s, &k) && !raise_error(&s, &k));

	/* two keys that share a PSV have an error each */
	attr = empty(s.t.b.pdn);
	attr.bsf_octowords = 8;
	CHECK(!mkey_create_indirect(s.t.device.adapter[0], &attr, &second));
	post(&s.t.b, mkey_key(second), &c);
	CHECK(!outcome(&s.t.b));
	s.key = mkey_key(second) | 0x5a;
	CHECK(signed_open(&s, s.t.b.pdn, IB_ACCESS_REMOTE_WRITE, SIG_SCATTER, &k) == MKEY_OK);
	CHECK(raise_error(&s, &k) && !raise_error(&s, &k));
	/* without its PSV there is nothing that could be in error */
	set_psv(&s, SIG_WIRE);
	psv_destroy(s.t.device.adapter[0], s.psv[SIG_WIRE]);
	s.psv[SIG_WIRE] = NULL;
	CHECK(!raise_error(&s, &k));
	mkey_destroy(s.t.device.adapter[0], second);
	signed_down(&s);
}

/* As SPDK writes it for a key in the middle of a chain. */
static void transaction_up(struct signed_bed *s)
{
	signed_up(s, false);
	memset(s->bsf, 0, sizeof(s->bsf));
	bsf_set(s->bsf, BSF_SIZE, BSF_SIZE_EXTENDED);
	bsf_set(s->bsf, BSF_RAW_DATA_BYTES, MEMORY_BYTES);
	bsf_domain_set(s->bsf, BSF_WIRE, BSF_TRANSACTION_FORMAT, BSF_FORMAT_CRC32C);
	bsf_domain_set(s->bsf, BSF_WIRE, BSF_TRANSACTION_PSV, psv_number(s->psv[SIG_WIRE]));
}

/* What the data begins with, for a message that moves it from that offset. */
static uint64_t taken(struct signed_bed *s, struct mkey_signed *k, uint64_t message, uint64_t off)
{
	hazard_enter();
	mkey_signed_take(s->t.device.adapter[0], k, message, off);
	hazard_leave();
	return k->plan.out.start;
}

static void carry(struct signed_bed *s, const struct mkey_signed *k, uint64_t message, uint64_t reg)
{
	hazard_enter();
	mkey_signed_carry(s->t.device.adapter[0], k, message, SIG_WIRE, reg);
	hazard_leave();
}

static uint64_t psv_now(struct signed_bed *s)
{
	uint64_t transient;
	bool error;

	psv_query(s->psv[SIG_WIRE], &transient, &error);
	return transient >> 32;
}

static void psv_becomes(struct signed_bed *s, uint64_t reg)
{
	hazard_enter();
	CHECK(psv_set(s->t.device.adapter[0], psv_number(s->psv[SIG_WIRE]), s->t.b.pdn, reg << 32));
	hazard_leave();
}

/* A message that is sent again takes what it took, and carries nothing once more. */
static void test_chain(void)
{
	enum { FIRST = 1, SECOND, THIRD };
	struct mkey_signed k;
	struct signed_bed s;
	struct change c;

	transaction_up(&s);
	c = with_bsf(&s);
	CHECK(!change(&s.t, &c));
	CHECK(signed_open(&s, s.t.b.pdn, IB_ACCESS_REMOTE_READ, SIG_GATHER, &k) == MKEY_OK);
	psv_becomes(&s, 5);
	CHECK(taken(&s, &k, FIRST, 0) == 5);
	carry(&s, &k, FIRST, 6);
	CHECK(psv_now(&s) == 6 && taken(&s, &k, FIRST, 0) == 5);
	/* another key of the chain has gone on */
	psv_becomes(&s, 7);
	carry(&s, &k, FIRST, 6);
	CHECK(psv_now(&s) == 7);
	/* the rest of the data in another message */
	CHECK(taken(&s, &k, SECOND, 10) == 5);
	/* all of it once more */
	CHECK(taken(&s, &k, THIRD, 0) == 7 && taken(&s, &k, THIRD, 0) == 7);
	carry(&s, &k, THIRD, 8);
	CHECK(psv_now(&s) == 8);
	/* what is never sent again begins anew each time */
	CHECK(taken(&s, &k, 0, 0) == 8);
	carry(&s, &k, 0, 9);
	CHECK(taken(&s, &k, 0, 0) == 9);
	/* a key that has changed meanwhile carries nothing, and the new one begins anew */
	CHECK(!change(&s.t, &c));
	carry(&s, &k, 0, 10);
	CHECK(psv_now(&s) == 9);
	CHECK(signed_open(&s, s.t.b.pdn, IB_ACCESS_REMOTE_READ, SIG_GATHER, &k) == MKEY_OK);
	psv_becomes(&s, 11);
	CHECK(taken(&s, &k, THIRD, 10) == 11);
	signed_down(&s);
}

static void first_of_chain(void)
{
	struct mkey_signed k;
	struct signed_bed s;
	struct change c;

	transaction_up(&s);
	bsf_domain_set(s.bsf, BSF_WIRE, BSF_TRANSACTION_INIT, 1);
	c = with_bsf(&s);
	CHECK(!change(&s.t, &c));
	CHECK(signed_open(&s, s.t.b.pdn, IB_ACCESS_REMOTE_READ, SIG_GATHER, &k) == MKEY_OK);
	/* SPDK sets the PSV after an error, to something else */
	psv_becomes(&s, 5);
	CHECK(taken(&s, &k, 1, 0) == UINT32_MAX);
	signed_down(&s);
}

enum wrong { RIGHT, NO_PSV, FOREIGN_PSV, CRYPTO, CUT, NO_ROOM, BEHIND_POINTER, WRONGS };

static void test_refusals(void)
{
	static const uint8_t want[WRONGS] = {
		[NO_PSV] = CQE_SYN_MW_BIND,	[FOREIGN_PSV] = CQE_SYN_MW_BIND,
		[CRYPTO] = CQE_SYN_LOCAL_QP_OP, [CUT] = CQE_SYN_LOCAL_QP_OP,
		[NO_ROOM] = CQE_SYN_MW_BIND,	[BEHIND_POINTER] = CQE_SYN_LOCAL_QP_OP,
	};

	for (unsigned i = 0; i < WRONGS; i++) {
		struct psv *foreign = NULL;
		struct signed_bed s;
		struct change c;

		signed_up(&s, i & 1);
		CHECK(!psv_create(s.t.device.adapter[0], s.t.a.pdn, &foreign));
		if (i == NO_PSV)
			bsf_domain_set(s.bsf, BSF_WIRE, BSF_PSV, 0);
		if (i == FOREIGN_PSV)
			bsf_domain_set(s.bsf, BSF_WIRE, BSF_PSV, psv_number(foreign));
		if (i == CRYPTO)
			bsf_set(s.bsf, BSF_TYPE, BSF_TYPE_CRYPTO);
		c = with_bsf(&s);
		if (i == CUT)
			c.bsf = NULL;
		if (i == NO_ROOM) {
			/* the work request has it, in place of the list */
			c.ctrl.klm_octowords = be16_of(0);
			c.ctrl.bsf_octowords = be16_of(5);
		}
		if (i == BEHIND_POINTER)
			c.ctrl.flags = 0;
		CHECK(change(&s.t, &c) == want[i]);
		if (want[i])
			CHECK(verdict(&s.t, s.key, 0, 8) == MKEY_NO_KEY);
		psv_destroy(s.t.device.adapter[0], foreign);
		signed_down(&s);
	}
}

int main(void)
{
	test_opened();
	test_switched();
	first_errors();
	test_chain();
	first_of_chain();
	test_refusals();
	return 0;
}
