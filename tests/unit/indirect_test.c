// SPDX-License-Identifier: BSD-2-Clause
/*
 * Indirect memory keys in all roles:
 *
 *     a --- SEND, WRITE, READ, from and into lists ---> b, receives into lists
 *
 * Each rule has a case that breaks it and nothing else.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "adapter/mkey_indirect.h"
#include "adapter/psv.h"
#include "adapter_rig.h"
#include "base/rcu.h"
#include "check.h"
#include "prm/bsf.h"
#include "prm/umr.h"

#define BYTES	 (1u << 20)
#define SIGNALED WQE_CTRL_CE_ALWAYS
#define ALL                                                                       \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
	 IB_ACCESS_REMOTE_ATOMIC)

struct bed {
	struct rig rig;
	struct rig_qp a, b;
	uint8_t *src, *dst; /* BYTES each; a's and b's */
	struct mkey *ma, *mb;
	uint32_t lkey, rkey;
	struct mkey *list;
	uint32_t key; /* of the list */
};

static void bed_up(struct bed *t)
{
	memset(t, 0, sizeof(*t));
	rig_up(&t->rig);
	rig_qp_up(&t->rig, 0, &t->a, IB_QPT_RC);
	rig_qp_up(&t->rig, 0, &t->b, IB_QPT_RC);
	rig_connect(&t->rig, 0, &t->a, &t->b);
	t->src = malloc(BYTES);
	t->dst = malloc(BYTES);
	CHECK(t->src && t->dst);
	for (unsigned i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i * 11 + i / 256 + 3);
	memset(t->dst, 0xee, BYTES);
	t->lkey = rig_mr(&t->rig, 0, t->a.pdn, t->src, BYTES, ALL, &t->ma);
	t->rkey = rig_mr(&t->rig, 0, t->b.pdn, t->dst, BYTES, ALL, &t->mb);
}

static void bed_down(struct bed *t)
{
	rig_qp_down(&t->a);
	rig_qp_down(&t->b);
	if (t->list)
		mkey_destroy(t->rig.adapter[0], t->list);
	mkey_destroy(t->rig.adapter[0], t->mb);
	mkey_destroy(t->rig.adapter[0], t->ma);
	rig_down(&t->rig);
	free(t->src);
	free(t->dst);
}

static struct umr_klm klm(uint32_t bytes, uint32_t key, const void *addr)
{
	return (struct umr_klm){be32_of(bytes), be32_of(key), be64_of((uintptr_t)addr)};
}

static struct mkey_indirect_attr plain(uint32_t pdn, const struct umr_klm *e, uint32_t n,
				       uint64_t length)
{
	return (struct mkey_indirect_attr){
		.pdn = pdn,
		.access = ALL,
		.local_read = true,
		.variant = 0x5a,
		.qpn = MKEY_ANY_QPN,
		.umr = true,
		.length = length,
		.max_entries = n > 8 ? n : 8,
		.entries = n,
		.entry = e,
	};
}

static void make(struct bed *t, const struct mkey_indirect_attr *attr)
{
	if (t->list)
		mkey_destroy(t->rig.adapter[0], t->list);
	CHECK(!mkey_create_indirect(t->rig.adapter[0], attr, &t->list));
	t->key = mkey_key(t->list);
}

static void rdma(struct rig_qp *q, uint8_t opcode, uint64_t raddr, uint32_t rkey, uint64_t laddr,
		 uint32_t lkey, uint32_t len)
{
	struct rig_wqe w;

	rig_wqe_begin(q, &w, opcode, SIGNALED, 0);
	rig_wqe_raddr(&w, raddr, rkey);
	rig_wqe_data(&w, (void *)(uintptr_t)laddr, len, lkey);
	rig_wqe_end(&w);
}

static void send(struct rig_qp *q, uint64_t laddr, uint32_t lkey, uint32_t len)
{
	struct rig_wqe w;

	rig_wqe_begin(q, &w, WQE_OP_SEND, SIGNALED, 0);
	rig_wqe_data(&w, (void *)(uintptr_t)laddr, len, lkey);
	rig_wqe_end(&w);
}

/* 0, or the syndrome of the error. */
static uint8_t outcome(struct rig_qp *q)
{
	const struct cqe64 *c = rig_cq_poll(&q->cq);

	CHECK(c);
	switch (c->op_own >> 4) {
	case CQE_OP_REQ_ERR:
	case CQE_OP_RESP_ERR:
		return ((const struct cqe64_err *)c)->syndrome;
	default:
		return 0;
	}
}

/* What a peer would be told. */
static enum mkey_verdict verdict(struct bed *t, uint32_t key, uint64_t va, uint64_t len)
{
	enum mkey_verdict v;
	struct runs runs;

	runs_begin(&runs);
	rcu_enter();
	v = mkey_append_remote_runs(t->rig.adapter[0], key, t->b.pdn, qp_number(t->b.qp),
				    IB_ACCESS_REMOTE_WRITE, va, len, &runs);
	rcu_leave();
	return v;
}

/* The list: 3 pieces of b's memory, out of order. */
static void three_pieces(struct bed *t)
{
	const struct umr_klm e[3] = {klm(100, t->rkey, t->dst + 5000), klm(1000, t->rkey, t->dst),
				     klm(3000, t->rkey, t->dst + 8000)};
	const struct mkey_indirect_attr attr = plain(t->b.pdn, e, 3, 4100);

	make(t, &attr);
}

static void check_three(const struct bed *t, const uint8_t *want)
{
	CHECK(!memcmp(t->dst + 5000, want, 100));
	CHECK(!memcmp(t->dst, want + 100, 1000));
	CHECK(!memcmp(t->dst + 8000, want + 1100, 3000));
	CHECK(t->dst[1000] == 0xee && t->dst[4999] == 0xee && t->dst[5100] == 0xee);
}

static void all_roles(void)
{
	struct bed t;

	bed_up(&t);
	three_pieces(&t);
	rdma(&t.a, WQE_OP_RDMA_WRITE, 0, t.key, (uintptr_t)t.src, t.lkey, 4100);
	CHECK(!outcome(&t.a));
	check_three(&t, t.src);
	memset(t.src + 50000, 0, 4100);
	rdma(&t.a, WQE_OP_RDMA_READ, 0, t.key, (uintptr_t)t.src + 50000, t.lkey, 4100);
	CHECK(!outcome(&t.a));
	CHECK(!memcmp(t.src, t.src + 50000, 4100));

	memset(t.dst, 0xee, 20000);
	rig_recv(&t.b, NULL, 4100, t.key);
	send(&t.a, (uintptr_t)t.src, t.lkey, 4100);
	CHECK(!outcome(&t.b) && !outcome(&t.a));
	check_three(&t, t.src);

	/* and as the local side of b's own requests */
	memset(t.src + 50000, 0, 4100);
	rdma(&t.b, WQE_OP_RDMA_WRITE, (uintptr_t)t.src + 50000, t.lkey, 0, t.key, 4100);
	CHECK(!outcome(&t.b) && !memcmp(t.src, t.src + 50000, 4100));
	memset(t.dst, 0xee, 20000);
	rdma(&t.b, WQE_OP_RDMA_READ, (uintptr_t)t.src, t.lkey, 0, t.key, 4100);
	CHECK(!outcome(&t.b));
	check_three(&t, t.src);
	/* a part of the middle */
	rdma(&t.a, WQE_OP_RDMA_WRITE, 90, t.key, (uintptr_t)t.src + 7, t.lkey, 20);
	CHECK(!outcome(&t.a));
	CHECK(!memcmp(t.dst + 5090, t.src + 7, 10) && !memcmp(t.dst, t.src + 17, 10));
	bed_down(&t);
}

/* ---- work requests that change keys ---- */

struct change {
	struct umr_ctrl ctrl;
	struct umr_mkey_context context;
	struct umr_klm entry[16];
	uint32_t entries; /* in the work request */
	const uint8_t *bsf;
};

#define MASK_RIGHTS                                                  \
	(UMR_MASK_ACCESS_LOCAL_WRITE | UMR_MASK_ACCESS_REMOTE_READ | \
	 UMR_MASK_ACCESS_REMOTE_WRITE | UMR_MASK_ACCESS_ATOMIC)
#define CTX_ALL                                                      \
	(MKEY_CTX_ACCESS_LOCAL_WRITE | MKEY_CTX_ACCESS_REMOTE_READ | \
	 MKEY_CTX_ACCESS_REMOTE_WRITE | MKEY_CTX_ACCESS_ATOMIC)

/* As mlx5dv_wr_mkey_configure with access flags and a list. */
static struct change configure(const struct umr_klm *e, uint32_t n, uint64_t length)
{
	struct change c = {
		.ctrl = {.flags = UMR_INLINE,
			 .klm_octowords = be16_of((uint16_t)align_up(n, 4)),
			 .mkey_mask = be64_of(UMR_MASK_FREE | UMR_MASK_MKEY | UMR_MASK_LEN |
					      MASK_RIGHTS)},
		.context = {.access = CTX_ALL,
			    .qpn_mkey = be32_of(0xffffff5a),
			    .len = be64_of(length)},
		.entries = (uint32_t)align_up(n, 4),
	};

	memcpy(c.entry, e, n * sizeof(*e));
	return c;
}

static void post(struct rig_qp *q, uint32_t key, const struct change *c)
{
	struct rig_wqe w;

	rig_wqe_begin(q, &w, WQE_OP_UMR, SIGNALED, key);
	memcpy(w.bytes + w.at, &c->ctrl, sizeof(c->ctrl));
	w.at += sizeof(c->ctrl);
	memcpy(w.bytes + w.at, &c->context, sizeof(c->context));
	w.at += sizeof(c->context);
	memcpy(w.bytes + w.at, c->entry, c->entries * sizeof(c->entry[0]));
	w.at += c->entries * (uint32_t)sizeof(c->entry[0]);
	if (c->bsf) {
		memcpy(w.bytes + w.at, c->bsf, BSF_BYTES);
		w.at += BSF_BYTES;
	}
	rig_wqe_end(&w);
}

/* b changes its key. */
static uint8_t change(struct bed *t, const struct change *c)
{
	post(&t->b, t->key, c);
	return outcome(&t->b);
}

/* As mlx5dv_create_mkey: free, with room for 8 entries. */
static struct mkey_indirect_attr empty(uint32_t pdn)
{
	return (struct mkey_indirect_attr){
		.pdn = pdn,
		.local_read = true,
		.qpn = MKEY_ANY_QPN,
		.free = true,
		.umr = true,
		.max_entries = 8,
	};
}

static struct umr_klm header(uint32_t bytes, uint32_t repeat, uint16_t entries)
{
	const struct umr_stride_header h = {.byte_count = be32_of(bytes),
					    .op = be32_of(UMR_STRIDED),
					    .repeat_count = be32_of(repeat),
					    .entries = be16_of(entries)};
	struct umr_klm k;

	memcpy(&k, &h, sizeof(k));
	return k;
}

static struct umr_klm stride(uint16_t step, uint16_t bytes, uint32_t key, const void *addr)
{
	const struct umr_stride s = {be16_of(step), be16_of(bytes), be32_of(key),
				     be64_of((uintptr_t)addr)};
	struct umr_klm k;

	memcpy(&k, &s, sizeof(k));
	return k;
}

static uint8_t write_through(struct bed *t, uint32_t key, uint64_t at, uint32_t len)
{
	rdma(&t->a, WQE_OP_RDMA_WRITE, at, key, (uintptr_t)t->src, t->lkey, len);
	return outcome(&t->a);
}

static void bed_with_empty(struct bed *t)
{
	struct mkey_indirect_attr attr;

	bed_up(t);
	attr = empty(t->b.pdn);
	make(t, &attr);
}

static struct change of_b(const struct bed *t, uint32_t len)
{
	const struct umr_klm e = klm(len, t->rkey, t->dst);

	return configure(&e, 1, len);
}

static void configured(void)
{
	struct change c;
	struct bed t;

	bed_with_empty(&t);
	/* free: nobody may use it */
	CHECK(write_through(&t, t.key, 0, 8) == CQE_SYN_REM_ACCESS);
	bed_down(&t);

	bed_with_empty(&t);
	c = of_b(&t, 1000);
	CHECK(!change(&t, &c));
	CHECK(!write_through(&t, t.key | 0x5a, 0, 1000) && !memcmp(t.dst, t.src, 1000));
	/* the old variant is stale */
	CHECK(write_through(&t, t.key, 0, 1000) == CQE_SYN_REM_ACCESS);
	bed_down(&t);

	/* one byte more than its length; than its list */
	for (unsigned i = 0; i < 2; i++) {
		bed_with_empty(&t);
		c = of_b(&t, 1000);
		if (i)
			c.context.len = be64_of(2000);
		CHECK(!change(&t, &c));
		CHECK(write_through(&t, t.key | 0x5a, 1, 1000) == CQE_SYN_REM_ACCESS);
		bed_down(&t);
	}

	/* where its first byte is */
	bed_with_empty(&t);
	c = of_b(&t, 1000);
	c.ctrl.mkey_mask = be64_of(be64_get(c.ctrl.mkey_mask) | UMR_MASK_START_ADDR);
	c.context.start_addr = be64_of(1ull << 60);
	CHECK(!change(&t, &c));
	CHECK(!write_through(&t, t.key | 0x5a, (1ull << 60) + 10, 990));
	CHECK(!memcmp(t.dst + 10, t.src, 990));
	CHECK(write_through(&t, t.key | 0x5a, 10, 8) == CQE_SYN_REM_ACCESS);
	bed_down(&t);
}

/* What is not in the mask stays as it was, whatever the context says. */
static void mask_is_law(void)
{
	struct change c, rest;
	struct bed t;

	bed_with_empty(&t);
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
	rdma(&t.a, WQE_OP_RDMA_READ, 0, t.key | 0x5a, (uintptr_t)t.src, t.lkey, 8);
	CHECK(outcome(&t.a) == CQE_SYN_REM_ACCESS);
	bed_down(&t);
}

/* The layout of mlx5dv_wr_mkey_configure(3): data and what belongs to it, side by side. */
static void strided(void)
{
	struct bed t;

	bed_with_empty(&t);
	{
		const struct umr_klm e[3] = {header(520, 2, 2), stride(516, 512, t.rkey, t.dst),
					     stride(8, 8, t.rkey, t.dst + 4096)};
		const struct change c = configure(e, 3, 1040);

		CHECK(!change(&t, &c));
	}
	CHECK(!write_through(&t, t.key | 0x5a, 0, 1040));
	CHECK(!memcmp(t.dst, t.src, 512) && !memcmp(t.dst + 4096, t.src + 512, 8));
	CHECK(!memcmp(t.dst + 516, t.src + 520, 512) && !memcmp(t.dst + 4104, t.src + 1032, 8));
	CHECK(t.dst[512] == 0xee && t.dst[515] == 0xee && t.dst[4112] == 0xee);
	bed_down(&t);
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

static void refusals(void)
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

	for (unsigned i = 0; i < WRONGS; i++) {
		static const uint8_t bsf[BSF_BYTES] = {0x80};
		struct mkey_indirect_attr attr;
		struct change c;
		struct bed t;
		uint32_t key;

		bed_with_empty(&t);
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
		post(&t.b, key, &c);
		CHECK(outcome(&t.b) == want[i]);
		bed_down(&t);
	}
}

#define ROWS 60u

static void parts_of_lists(void)
{
	struct umr_klm table[ROWS];
	struct mkey_indirect_attr attr;
	struct mkey *of_table;
	struct change c;
	struct bed t;

	bed_up(&t);
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
	c.entry[0] = klm(sizeof(table),
			 rig_mr(&t.rig, 0, t.b.pdn, table, sizeof(table), 0, &of_table), table);
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
	mkey_destroy(t.rig.adapter[0], of_table);
	bed_down(&t);
}

/* ---- keys of keys ---- */

static void nested(void)
{
	struct mkey_indirect_attr attr;
	struct mkey *level[8];
	struct umr_klm e[2];
	struct bed t;

	/* each level names the one below for its second half */
	bed_up(&t);
	for (unsigned i = 0; i < 8; i++) {
		e[0] = klm(100, t.rkey, t.dst + i * 1000);
		e[1] = klm(i * 100, i ? mkey_key(level[i - 1]) : 0, NULL);
		attr = plain(t.b.pdn, e, 2, (i + 1) * 100);
		/* what peers may do is for the outermost to say */
		attr.access = i < 3 ? IB_ACCESS_LOCAL_WRITE : ALL;
		CHECK(!mkey_create_indirect(t.rig.adapter[0], &attr, &level[i]));
	}
	CHECK(!write_through(&t, mkey_key(level[3]), 0, 400));
	for (unsigned i = 0; i < 4; i++)
		CHECK(!memcmp(t.dst + (3 - i) * 1000, t.src + i * 100, 100));
	/* as deep as a thread may be made to go */
	CHECK(!write_through(&t, mkey_key(level[7]), 0, 400));
	CHECK(write_through(&t, mkey_key(level[7]), 0, 401) == CQE_SYN_REM_ACCESS);
	for (unsigned i = 0; i < 8; i++)
		mkey_destroy(t.rig.adapter[0], level[i]);
	bed_down(&t);

	/* without rights of its own for peers */
	bed_up(&t);
	e[0] = klm(100, t.rkey, t.dst);
	attr = plain(t.b.pdn, e, 1, 100);
	attr.access = IB_ACCESS_LOCAL_WRITE;
	make(&t, &attr);
	CHECK(write_through(&t, t.key, 0, 8) == CQE_SYN_REM_ACCESS);
	bed_down(&t);

	/* one that names itself */
	bed_with_empty(&t);
	e[0] = klm(1000, t.key | 0x5a, NULL);
	{
		struct change c = configure(e, 1, 1000);

		CHECK(!change(&t, &c));
	}
	CHECK(write_through(&t, t.key | 0x5a, 0, 8) == CQE_SYN_REM_ACCESS);
	bed_down(&t);

	/* pieces of another domain, and of none */
	for (unsigned i = 0; i < 2; i++) {
		bed_up(&t);
		e[0] = klm(100, i ? 0x7fffff00 : t.lkey, t.src);
		attr = plain(t.b.pdn, e, 1, 100);
		make(&t, &attr);
		CHECK(write_through(&t, t.key, 0, 8) == CQE_SYN_REM_ACCESS);
		bed_down(&t);
	}
}

/* As the local side: domain and rights. */
static void local_rights(void)
{
	for (unsigned i = 0; i < 5; i++) {
		struct mkey_indirect_attr attr;
		struct umr_klm e;
		struct bed t;

		bed_up(&t);
		e = klm(100, t.rkey, t.dst);
		attr = plain(t.b.pdn, &e, 1, 100);
		attr.access = i == 1 ? 0 : IB_ACCESS_LOCAL_WRITE;
		attr.local_read = i != 2;
		attr.free = i == 3;
		make(&t, &attr);
		if (i == 4) /* a's domain is another */
			rdma(&t.a, WQE_OP_RDMA_WRITE, (uintptr_t)t.dst, t.rkey, 0, t.key, 8);
		else if (i == 2)
			rdma(&t.b, WQE_OP_RDMA_WRITE, (uintptr_t)t.src, t.lkey, 0, t.key, 8);
		else
			rdma(&t.b, WQE_OP_RDMA_READ, (uintptr_t)t.src, t.lkey, 0, t.key, 8);
		CHECK(outcome(i == 4 ? &t.a : &t.b) == (i ? CQE_SYN_LOCAL_PROT : 0));
		bed_down(&t);
	}
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

static uint8_t send_invalidate(struct bed *t, uint32_t key)
{
	struct rig_wqe w;

	rig_recv(&t->b, t->dst, 100, t->rkey);
	rig_wqe_begin(&t->a, &w, WQE_OP_SEND_INVAL, SIGNALED, key);
	rig_wqe_data(&w, t->src, 100, t->lkey);
	rig_wqe_end(&w);
	(void)outcome(&t->b);
	return outcome(&t->a);
}

static void invalidated(void)
{
	struct mkey_indirect_attr attr;
	struct change c, inv = local_invalidate();
	struct bed t;

	bed_with_empty(&t);
	c = of_b(&t, 1000);
	CHECK(!change(&t, &c) && !write_through(&t, t.key | 0x5a, 0, 8));
	post(&t.b, t.key | 0x5a, &inv);
	CHECK(!outcome(&t.b));
	/* and configured again */
	CHECK(!change(&t, &c) && !write_through(&t, t.key | 0x5a, 0, 8));
	post(&t.b, t.key | 0x5a, &inv);
	CHECK(!outcome(&t.b));
	CHECK(write_through(&t, t.key | 0x5a, 0, 8) == CQE_SYN_REM_ACCESS);
	bed_down(&t);

	/* by the peer: only if its owner wants that, and only the key as it is */
	for (unsigned i = 0; i < 3; i++) {
		bed_up(&t);
		attr = empty(t.b.pdn);
		attr.remote_invalidate = i != 1;
		make(&t, &attr);
		c = of_b(&t, 1000);
		CHECK(!change(&t, &c));
		CHECK(!write_through(&t, t.key | 0x5a, 0, 8));
		CHECK(send_invalidate(&t, t.key | (i == 2 ? 0x5b : 0x5a)) ==
		      (i ? CQE_SYN_REM_ACCESS : 0));
		if (!i)
			CHECK(write_through(&t, t.key | 0x5a, 0, 8) == CQE_SYN_REM_ACCESS);
		bed_down(&t);
	}
}

/* ---- protected signature values ---- */

static uint8_t set_psv(struct rig_qp *q, uint32_t number, uint64_t transient, bool cut)
{
	const struct wqe_set_psv p = {.psv_index = be32_of(number),
				      .transient_signature = be64_of(transient)};
	struct rig_wqe w;

	rig_wqe_begin(q, &w, WQE_OP_SET_PSV, SIGNALED, 0);
	if (!cut) {
		memcpy(w.bytes + w.at, &p, sizeof(p));
		w.at += sizeof(p);
	}
	rig_wqe_end(&w);
	return outcome(q);
}

static void psvs(void)
{
	for (unsigned i = 0; i < 4; i++) {
		uint64_t transient;
		struct psv *p;
		struct bed t;
		bool error;

		bed_up(&t);
		CHECK(!psv_create(t.rig.adapter[0], t.b.pdn, &p));
		CHECK(psv_number(p) && psv_number(p) <= PSV_INDEX_MASK);
		rcu_enter();
		CHECK(psv_note_error(t.rig.adapter[0], psv_number(p)));
		rcu_leave();
		psv_query(p, &transient, &error);
		CHECK(!transient && error);
		switch (i) {
		case 0:
			CHECK(!set_psv(&t.b, psv_number(p), 0x1122334455667788, false));
			psv_query(p, &transient, &error);
			CHECK(transient == 0x1122334455667788 && !error);
			break;
		case 1: /* of another domain */
			CHECK(set_psv(&t.a, psv_number(p), 1, false) == CQE_SYN_LOCAL_PROT);
			break;
		case 2:
			CHECK(set_psv(&t.b, psv_number(p) + 1, 1, false) == CQE_SYN_LOCAL_PROT);
			break;
		default:
			CHECK(set_psv(&t.b, psv_number(p), 1, true) == CQE_SYN_LOCAL_QP_OP);
			break;
		}
		psv_query(p, &transient, &error);
		CHECK(!i || (!transient && error));
		psv_destroy(t.rig.adapter[0], p);
		bed_down(&t);
	}
}

/* The work request that does nothing says so. */
static void nop(void)
{
	static const uint8_t fences[] = {0, WQE_CTRL_FENCE_INITIATOR_SMALL, 0x40,
					 WQE_CTRL_FENCE_STRONG, WQE_CTRL_FENCE};
	struct bed t;

	bed_up(&t);
	for (unsigned i = 0; i < array_size(fences); i++) {
		const struct cqe64 *cqe;
		struct rig_wqe w;

		rig_wqe_begin(&t.a, &w, WQE_OP_NOP, SIGNALED | fences[i], 0);
		rig_wqe_end(&w);
		cqe = rig_cq_poll(&t.a.cq);
		CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ);
		CHECK(be32_get(cqe->sop_drop_qpn) == qp_number(t.a.qp));
		CHECK(be16_get(cqe->wqe_counter) == i);
	}
	bed_down(&t);
}

int main(void)
{
	all_roles();
	configured();
	mask_is_law();
	strided();
	refusals();
	parts_of_lists();
	nested();
	local_rights();
	invalidated();
	psvs();
	nop();
	return 0;
}
