// SPDX-License-Identifier: BSD-2-Clause
/*
 * Work requests that change indirect keys and protected signature values.  Each rule has a case
 * that breaks it and nothing else.
 */
#include <string.h>

#include "adapter/memory/psv.h"
#include "base/explain.h"
#include "base/hazard.h"
#include "captured.h"
#include "keyed_pair.h"

static void test_configured(void)
{
	struct change c;
	struct keyed_pair t;

	keyed_pair_with_empty(&t);
	/* free: nobody may use it */
	CHECK(write_through(&t, t.key, 0, 8) == CQE_SYN_REM_ACCESS);
	keyed_pair_down(&t);

	keyed_pair_with_empty(&t);
	c = of_b(&t, 1000);
	CHECK(!change(&t, &c));
	CHECK(!write_through(&t, t.key | 0x5a, 0, 1000) && !memcmp(t.dst, t.src, 1000));
	/* the old variant is stale */
	CHECK(write_through(&t, t.key, 0, 1000) == CQE_SYN_REM_ACCESS);
	keyed_pair_down(&t);

	/* one byte more than its length; than its list */
	for (unsigned i = 0; i < 2; i++) {
		keyed_pair_with_empty(&t);
		c = of_b(&t, 1000);
		if (i)
			c.context.len = be64_of(2000);
		CHECK(!change(&t, &c));
		CHECK(write_through(&t, t.key | 0x5a, 1, 1000) == CQE_SYN_REM_ACCESS);
		keyed_pair_down(&t);
	}

	/* where its first byte is */
	keyed_pair_with_empty(&t);
	c = of_b(&t, 1000);
	c.ctrl.mkey_mask = be64_of(be64_get(c.ctrl.mkey_mask) | UMR_MASK_START_ADDR);
	c.context.start_addr = be64_of(1ull << 60);
	CHECK(!change(&t, &c));
	CHECK(!write_through(&t, t.key | 0x5a, (1ull << 60) + 10, 990));
	CHECK(!memcmp(t.dst + 10, t.src, 990));
	CHECK(write_through(&t, t.key | 0x5a, 10, 8) == CQE_SYN_REM_ACCESS);
	keyed_pair_down(&t);
}

/* What is not in the mask stays as it was, whatever the context says. */
static void mask_is_law(void)
{
	struct change c, rest;
	struct keyed_pair t;

	keyed_pair_with_empty(&t);
	c = of_b(&t, 1000);
	CHECK(!change(&t, &c));
	memset(&rest, 0, sizeof(rest));
	rest.ctrl.flags = UMR_INLINE;
	memset(&rest.context, 0xff, sizeof(rest.context));
	CHECK(!change(&t, &rest));
	CHECK(!write_through(&t, t.key | 0x5a, 0, 1000));

	/* without the right to read, which it had */
	rest.ctrl.mkey_mask = be64_of(UMR_MASK_ACCESS_REMOTE_READ);
	rest.context.access = (uint8_t)~MKEY_CTX_ACCESS_REMOTE_READ;
	CHECK(!change(&t, &rest));
	CHECK(!write_through(&t, t.key | 0x5a, 0, 1000));
	keyed_pair_rdma(&t.a, WQE_OP_RDMA_READ, 0, t.key | 0x5a, (uintptr_t)t.src, t.lkey, 8);
	CHECK(outcome(&t.a) == CQE_SYN_REM_ACCESS);
	keyed_pair_down(&t);
}

/* b's requests that are refused, each by one thing that is wrong. */
enum wrong {
	RIGHT,
	NOT_FREE,
	IS_FREE,
	OF_OTHER_QP,
	TOO_LONG,
	TOO_FAR,
	CUT_SHORT,
	UNKNOWN_MASK,
	UNKNOWN_FLAG,
	OTHER_DOMAIN,
	NO_SUCH_KEY,
	A_REGION,
	WITHOUT_UMR,
	BSF_NO_ROOM,
	BSF_ENABLE_NO_ROOM,
	BAD_STRIDES,
	STALE_INVALIDATE,
	WRONGS
};

static void test_refusals(void)
{
	static const uint8_t want[WRONGS] = {
		[NOT_FREE] = CQE_SYN_MW_BIND,	      [IS_FREE] = CQE_SYN_MW_BIND,
		[OF_OTHER_QP] = CQE_SYN_MW_BIND,      [TOO_LONG] = CQE_SYN_MW_BIND,
		[TOO_FAR] = CQE_SYN_MW_BIND,	      [CUT_SHORT] = CQE_SYN_LOCAL_QP_OP,
		[UNKNOWN_MASK] = CQE_SYN_LOCAL_QP_OP, [UNKNOWN_FLAG] = CQE_SYN_LOCAL_QP_OP,
		[OTHER_DOMAIN] = CQE_SYN_MW_BIND,     [NO_SUCH_KEY] = CQE_SYN_MW_BIND,
		[A_REGION] = CQE_SYN_MW_BIND,	      [WITHOUT_UMR] = CQE_SYN_MW_BIND,
		[BSF_NO_ROOM] = CQE_SYN_MW_BIND,      [BSF_ENABLE_NO_ROOM] = CQE_SYN_MW_BIND,
		[BAD_STRIDES] = CQE_SYN_LOCAL_QP_OP,  [STALE_INVALIDATE] = CQE_SYN_MW_BIND,
	};

	static const char *const said[WRONGS] = {
		[RIGHT] = "",
		[NOT_FREE] = ": the key is not free",
		[IS_FREE] = ": the key is free",
		[OF_OTHER_QP] = ": the key is of another QP",
		[TOO_LONG] = ": the key has no room for the list",
		[TOO_FAR] = ": the key has no room for the list",
		[CUT_SHORT] = " ends before its list of 4 entries",
		[UNKNOWN_MASK] = ": an unknown field in the mask",
		[UNKNOWN_FLAG] = ": unknown flags 0x1",
		[OTHER_DOMAIN] = ": the key is of another protection domain",
		[NO_SUCH_KEY] = "UMR of mkey 0x7fffff00: it is no indirect key",
		[A_REGION] = ": it is no indirect key",
		[WITHOUT_UMR] = ": the key was made without UMR",
		[BSF_NO_ROOM] = ": the key has no room for the BSF",
		[BSF_ENABLE_NO_ROOM] = ": the key has no BSF to enable",
		[BAD_STRIDES] = ": a strided list ",
		[STALE_INVALIDATE] = ": the key is not valid",
	};

	for (unsigned i = 0; i < WRONGS; i++) {
		static const uint8_t bsf[BSF_BYTES] = {0x80};
		struct mkey_indirect_attr attr;
		struct change c;
		struct keyed_pair t;
		uint32_t key;

		keyed_pair_with_empty(&t);
		if (i == WITHOUT_UMR || i == OF_OTHER_QP) {
			attr = empty(t.b.pdn);
			attr.umr = i != WITHOUT_UMR;
			attr.qpn = i == OF_OTHER_QP ? qp_number(t.a.qp) : MKEY_ANY_QPN;
			make(&t, &attr);
		}
		if (i == OTHER_DOMAIN) {
			attr = empty(t.a.pdn);
			make(&t, &attr);
		}
		c = of_b(&t, 1000);
		key = t.key;
		if (i == NOT_FREE) {
			CHECK(!change(&t, &c));
			c.ctrl.flags |= UMR_CHECK_FREE;
		}
		if (i == IS_FREE)
			c.ctrl.flags |= UMR_CHECK_NOT_FREE;
		if (i == OF_OTHER_QP)
			c.ctrl.flags |= UMR_CHECK_QPN;
		if (i == TOO_LONG) {
			c.ctrl.klm_octowords = be16_of(12);
			c.entries = 12;
		}
		if (i == TOO_FAR) {
			c.ctrl.flags |= UMR_TRANSLATION_OFFSET;
			c.ctrl.bsf_octowords = be16_of(5);
		}
		if (i == CUT_SHORT)
			c.entries = 3;
		if (i == UNKNOWN_MASK)
			c.ctrl.mkey_mask = be64_of(be64_get(c.ctrl.mkey_mask) | 1ull << 40);
		if (i == UNKNOWN_FLAG)
			c.ctrl.flags |= 1;
		if (i == NO_SUCH_KEY)
			key = 0x7fffff00;
		if (i == A_REGION) {
			key = t.rkey;
			c.ctrl.mkey_mask =
				be64_of(be64_get(c.ctrl.mkey_mask) | UMR_MASK_START_ADDR);
		}
		if (i == BSF_NO_ROOM) {
			c.ctrl.bsf_octowords = be16_of(4);
			c.bsf = bsf;
		}
		if (i == BSF_ENABLE_NO_ROOM) {
			c.ctrl.mkey_mask =
				be64_of(be64_get(c.ctrl.mkey_mask) | UMR_MASK_BSF_ENABLE);
			c.context.flags_pd = be32_of(MKEY_CTX_BSF_ENABLE);
		}
		if (i == BAD_STRIDES)
			c.entry[0] = header(7, 1, 3);
		if (i == STALE_INVALIDATE) {
			c.ctrl.flags = UMR_INLINE | UMR_TRANSLATION_OFFSET | UMR_CHECK_QPN;
			c.context.free = MKEY_CTX_FREE;
			key ^= 0x10;
		}
		explain_on = true;
		capture_begin();
		post(&t.b, key, &c);
		explain_flush();
		CHECK(strstr(capture_end(), said[i]));
		explain_on = false;
		CHECK(outcome(&t.b) == want[i]);
		keyed_pair_down(&t);
	}
}

#define ROWS 100u

static void parts_of_lists(void)
{
	struct umr_klm table[ROWS];
	struct mkey_indirect_attr attr;
	struct mkey *of_table;
	struct change c;
	struct keyed_pair t;

	keyed_pair_up(&t);
	for (unsigned i = 0; i < ROWS; i++)
		table[i] = klm(10, t.rkey, t.dst + (ROWS - 1 - i) * 10);
	attr = empty(t.b.pdn);
	attr.max_entries = ROWS;
	make(&t, &attr);
	/* by a pointer to it */
	c = of_b(&t, ROWS * 10);
	c.ctrl.flags = 0;
	c.ctrl.klm_octowords = be16_of(ROWS);
	c.entries = 1;
	c.entry[0] =
		klm(sizeof(table),
		    device_mr(&t.device, 0, t.b.pdn, table, sizeof(table), 0, &of_table), table);
	CHECK(!change(&t, &c));
	CHECK(!write_through(&t, t.key | 0x5a, 0, ROWS * 10));
	for (unsigned i = 0; i < ROWS; i++)
		CHECK(!memcmp(t.dst + (ROWS - 1 - i) * 10, t.src + i * 10, 10));
	/* two entries of it anew */
	c.ctrl.flags = UMR_INLINE | UMR_TRANSLATION_OFFSET;
	c.ctrl.klm_octowords = be16_of(2);
	c.ctrl.bsf_octowords = be16_of(40);
	c.ctrl.mkey_mask = be64_of(0);
	c.entries = 2;
	c.entry[0] = klm(10, t.rkey, t.dst + 5000);
	c.entry[1] = klm(10, t.rkey, t.dst + 6000);
	CHECK(!change(&t, &c));
	CHECK(!write_through(&t, t.key | 0x5a, 0, ROWS * 10));
	CHECK(!memcmp(t.dst + 5000, t.src + 400, 10) && !memcmp(t.dst + 6000, t.src + 410, 10));
	CHECK(!memcmp(t.dst + (ROWS - 43) * 10, t.src + 420, 10) &&
	      !memcmp(t.dst, t.src + (ROWS - 1) * 10, 10));
	/* from memory that the key does not reach: the list is empty then */
	c = of_b(&t, ROWS * 10);
	c.ctrl.flags = 0;
	c.ctrl.klm_octowords = be16_of(ROWS);
	c.entries = 1;
	c.entry[0] = klm(sizeof(table), mkey_key(of_table), table + 1);
	CHECK(change(&t, &c) == CQE_SYN_LOCAL_PROT);
	CHECK(verdict(&t, t.key | 0x5a, 0, 1) == MKEY_OUT_OF_RANGE);
	mkey_destroy(t.device.adapter[0], of_table);
	keyed_pair_down(&t);
}

/* A list is padded to 64 bytes, whatever the key has room for; the padding describes nothing. */
static void padded_list(void)
{
	struct mkey_indirect_attr attr;
	struct change c;
	struct keyed_pair t;

	keyed_pair_up(&t);
	attr = empty(t.b.pdn);
	attr.max_entries = 2;
	make(&t, &attr);
	c = of_b(&t, 20);
	c.entry[0] = klm(10, t.rkey, t.dst + 100);
	c.entry[1] = klm(10, t.rkey, t.dst);
	c.entry[2] = c.entry[3] = (struct umr_klm){0};
	c.entries = 4;
	c.ctrl.klm_octowords = be16_of(4);
	CHECK(!change(&t, &c));
	CHECK(!write_through(&t, t.key | 0x5a, 0, 20));
	CHECK(!memcmp(t.dst + 100, t.src, 10) && !memcmp(t.dst, t.src + 10, 10));
	CHECK(verdict(&t, t.key | 0x5a, 20, 1) == MKEY_OUT_OF_RANGE);
	c.entries = 8;
	c.ctrl.klm_octowords = be16_of(8);
	CHECK(change(&t, &c) == CQE_SYN_MW_BIND);
	keyed_pair_down(&t);
}

/* ---- invalidation ---- */

static struct change local_invalidate(void)
{
	struct change c = {
		.ctrl = {.flags = UMR_INLINE | UMR_TRANSLATION_OFFSET | UMR_CHECK_QPN,
			 .mkey_mask = be64_of(UMR_MASK_FREE | UMR_MASK_MKEY | UMR_MASK_QPN)},
	};

	/* libmlx5 leaves there what the ring held */
	memset(&c.context, 0xff, sizeof(c.context));
	c.context.free = MKEY_CTX_FREE;
	c.context.qpn_mkey = be32_of(0xffffff00);
	return c;
}

static uint8_t send_invalidate(struct keyed_pair *t, uint32_t key)
{
	struct device_wqe w;
	uint8_t got;

	device_recv(&t->b, t->dst, 100, t->rkey);
	device_wqe_begin(&t->a, &w, WQE_OP_SEND_INVAL, SIGNALED, key);
	device_wqe_data(&w, t->src, 100, t->lkey);
	device_wqe_end(&w);
	got = outcome(&t->b);
	/* the peer is not told of a refusal (IBTA 9.9.6.3, class J) */
	CHECK(got ? !device_cq_poll(&t->a.cq) : !outcome(&t->a));
	return got;
}

static void test_invalidated(void)
{
	struct mkey_indirect_attr attr;
	struct change c, inv = local_invalidate();
	struct keyed_pair t;

	keyed_pair_with_empty(&t);
	c = of_b(&t, 1000);
	CHECK(!change(&t, &c) && !write_through(&t, t.key | 0x5a, 0, 8));
	post(&t.b, t.key | 0x5a, &inv);
	CHECK(!outcome(&t.b));
	/* and configured again */
	CHECK(!change(&t, &c) && !write_through(&t, t.key | 0x5a, 0, 8));
	post(&t.b, t.key | 0x5a, &inv);
	CHECK(!outcome(&t.b));
	CHECK(write_through(&t, t.key | 0x5a, 0, 8) == CQE_SYN_REM_ACCESS);
	keyed_pair_down(&t);

	/* by the peer: only if its owner wants that, and only the key as it is */
	for (unsigned i = 0; i < 3; i++) {
		keyed_pair_up(&t);
		attr = empty(t.b.pdn);
		attr.remote_invalidate = i != 1;
		make(&t, &attr);
		c = of_b(&t, 1000);
		CHECK(!change(&t, &c));
		CHECK(!write_through(&t, t.key | 0x5a, 0, 8));
		CHECK(send_invalidate(&t, t.key | (i == 2 ? 0x5b : 0x5a)) ==
		      (i ? CQE_SYN_MW_BIND : 0));
		if (!i)
			CHECK(write_through(&t, t.key | 0x5a, 0, 8) == CQE_SYN_REM_ACCESS);
		keyed_pair_down(&t);
	}
}

/* ---- protected signature values ---- */

static uint8_t set_psv(struct device_qp *q, uint32_t number, uint64_t transient, bool cut)
{
	const struct wqe_set_psv p = {.psv_index = be32_of(number),
				      .transient_signature = be64_of(transient)};
	struct device_wqe w;

	device_wqe_begin(q, &w, WQE_OP_SET_PSV, SIGNALED, 0);
	if (!cut) {
		memcpy(w.bytes + w.at, &p, sizeof(p));
		w.at += sizeof(p);
	}
	device_wqe_end(&w);
	return outcome(q);
}

/* Refused, and said why. */
static void refuse_psv(struct device_qp *q, uint32_t number, bool cut, uint8_t syndrome,
		       const char *why)
{
	explain_on = true;
	capture_begin();
	CHECK(set_psv(q, number, 1, cut) == syndrome);
	CHECK(strstr(capture_end(), why));
	explain_on = false;
}

static void test_psvs(void)
{
	for (unsigned i = 0; i < 4; i++) {
		uint64_t transient;
		struct psv *p;
		struct keyed_pair t;
		bool error;

		keyed_pair_up(&t);
		CHECK(!psv_create(t.device.adapter[0], t.b.pdn, &p));
		CHECK(psv_number(p) && psv_number(p) <= PSV_INDEX_MASK);
		hazard_enter();
		CHECK(psv_note_error(t.device.adapter[0], psv_number(p)));
		hazard_leave();
		psv_query(p, &transient, &error);
		CHECK(!transient && error);
		switch (i) {
		case 0:
			CHECK(!set_psv(&t.b, psv_number(p), 0x1122334455667788, false));
			psv_query(p, &transient, &error);
			CHECK(transient == 0x1122334455667788 && !error);
			break;
		case 1: /* of another domain */
			refuse_psv(&t.a, psv_number(p), false, CQE_SYN_LOCAL_PROT,
				   " there is no PSV ");
			break;
		case 2:
			refuse_psv(&t.b, psv_number(p) + 1, false, CQE_SYN_LOCAL_PROT,
				   " there is no PSV ");
			break;
		default:
			refuse_psv(&t.b, psv_number(p), true, CQE_SYN_LOCAL_QP_OP,
				   " has ds 2, not 1");
			break;
		}
		psv_query(p, &transient, &error);
		CHECK(!i || (!transient && error));
		psv_destroy(t.device.adapter[0], p);
		keyed_pair_down(&t);
	}
}

/* The work request that does nothing says so. */
static void test_nop(void)
{
	static const uint8_t fences[] = {0, WQE_CTRL_FENCE_INITIATOR_SMALL, 0x40,
					 WQE_CTRL_FENCE_STRONG, WQE_CTRL_FENCE};
	struct keyed_pair t;

	keyed_pair_up(&t);
	for (unsigned i = 0; i < array_size(fences); i++) {
		const struct cqe64 *cqe;
		struct device_wqe w;

		device_wqe_begin(&t.a, &w, WQE_OP_NOP, SIGNALED | fences[i], 0);
		device_wqe_end(&w);
		cqe = device_cq_poll(&t.a.cq);
		CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ);
		CHECK(be32_get(cqe->sop_drop_qpn) == qp_number(t.a.qp));
		CHECK(be16_get(cqe->wqe_counter) == i);
	}
	keyed_pair_down(&t);
}

int main(void)
{
	test_configured();
	mask_is_law();
	test_refusals();
	parts_of_lists();
	padded_list();
	test_invalidated();
	test_psvs();
	test_nop();
	return 0;
}
