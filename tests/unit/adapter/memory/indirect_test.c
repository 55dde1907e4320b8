// SPDX-License-Identifier: BSD-2-Clause
/*
 * Use of indirect memory keys in all roles.  Each rule has a case that breaks it and nothing else.
 */
#include <pthread.h>
#include <string.h>

#include "keyed_pair.h"

/* The list: 3 pieces of b's memory, out of order. */
static void three_pieces(struct keyed_pair *t)
{
	const struct umr_klm e[3] = {klm(100, t->rkey, t->dst + 5000), klm(1000, t->rkey, t->dst),
				     klm(3000, t->rkey, t->dst + 8000)};
	const struct mkey_indirect_attr attr = plain(t->b.pdn, e, 3, 4100);

	make(t, &attr);
}

static void check_three(const struct keyed_pair *t, const uint8_t *want)
{
	CHECK(!memcmp(t->dst + 5000, want, 100));
	CHECK(!memcmp(t->dst, want + 100, 1000));
	CHECK(!memcmp(t->dst + 8000, want + 1100, 3000));
	CHECK(t->dst[1000] == 0xee && t->dst[4999] == 0xee && t->dst[5100] == 0xee);
}

static void all_roles(void)
{
	struct keyed_pair t;

	keyed_pair_up(&t);
	three_pieces(&t);
	keyed_pair_rdma(&t.a, WQE_OP_RDMA_WRITE, 0, t.key, (uintptr_t)t.src, t.lkey, 4100);
	CHECK(!outcome(&t.a));
	check_three(&t, t.src);
	memset(t.src + 50000, 0, 4100);
	keyed_pair_rdma(&t.a, WQE_OP_RDMA_READ, 0, t.key, (uintptr_t)t.src + 50000, t.lkey, 4100);
	CHECK(!outcome(&t.a));
	CHECK(!memcmp(t.src, t.src + 50000, 4100));

	memset(t.dst, 0xee, 20000);
	device_recv(&t.b, NULL, 4100, t.key);
	keyed_pair_send(&t.a, (uintptr_t)t.src, t.lkey, 4100);
	CHECK(!outcome(&t.b) && !outcome(&t.a));
	check_three(&t, t.src);

	/* and as the local side of b's own requests */
	memset(t.src + 50000, 0, 4100);
	keyed_pair_rdma(&t.b, WQE_OP_RDMA_WRITE, (uintptr_t)t.src + 50000, t.lkey, 0, t.key, 4100);
	CHECK(!outcome(&t.b) && !memcmp(t.src, t.src + 50000, 4100));
	memset(t.dst, 0xee, 20000);
	keyed_pair_rdma(&t.b, WQE_OP_RDMA_READ, (uintptr_t)t.src, t.lkey, 0, t.key, 4100);
	CHECK(!outcome(&t.b));
	check_three(&t, t.src);
	/* a part of the middle */
	keyed_pair_rdma(&t.a, WQE_OP_RDMA_WRITE, 90, t.key, (uintptr_t)t.src + 7, t.lkey, 20);
	CHECK(!outcome(&t.a));
	CHECK(!memcmp(t.dst + 5090, t.src + 7, 10) && !memcmp(t.dst, t.src + 17, 10));
	keyed_pair_down(&t);
}

/* The layout of mlx5dv_wr_mkey_configure(3): data and what belongs to it, side by side. */
static void test_strided(void)
{
	struct keyed_pair t;

	keyed_pair_with_empty(&t);
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
	keyed_pair_down(&t);
}

/* ---- keys of keys ---- */

static void test_nested(void)
{
	struct mkey_indirect_attr attr;
	struct mkey *level[8];
	struct umr_klm e[2];
	struct keyed_pair t;

	/* each level names the one below for its second half */
	keyed_pair_up(&t);
	for (unsigned i = 0; i < 8; i++) {
		e[0] = klm(100, t.rkey, t.dst + i * 1000);
		e[1] = klm(i * 100, i ? mkey_key(level[i - 1]) : 0, NULL);
		attr = plain(t.b.pdn, e, 2, (i + 1) * 100);
		/* what peers may do is for the outermost to say */
		attr.access = i < 3 ? IB_ACCESS_LOCAL_WRITE : DEVICE_ALL_ACCESS;
		CHECK(!mkey_create_indirect(t.device.adapter[0], &attr, &level[i]));
	}
	CHECK(!write_through(&t, mkey_key(level[3]), 0, 400));
	for (unsigned i = 0; i < 4; i++)
		CHECK(!memcmp(t.dst + (3 - i) * 1000, t.src + i * 100, 100));
	/* as deep as a thread may be made to go */
	CHECK(!write_through(&t, mkey_key(level[7]), 0, 400));
	CHECK(write_through(&t, mkey_key(level[7]), 0, 401) == CQE_SYN_REM_ACCESS);
	for (unsigned i = 0; i < 8; i++)
		mkey_destroy(t.device.adapter[0], level[i]);
	keyed_pair_down(&t);

	/* without rights of its own for peers */
	keyed_pair_up(&t);
	e[0] = klm(100, t.rkey, t.dst);
	attr = plain(t.b.pdn, e, 1, 100);
	attr.access = IB_ACCESS_LOCAL_WRITE;
	make(&t, &attr);
	CHECK(write_through(&t, t.key, 0, 8) == CQE_SYN_REM_ACCESS);
	keyed_pair_down(&t);

	/* one that names itself */
	keyed_pair_with_empty(&t);
	e[0] = klm(1000, t.key | 0x5a, NULL);
	{
		struct change c = configure(e, 1, 1000);

		CHECK(!change(&t, &c));
	}
	CHECK(write_through(&t, t.key | 0x5a, 0, 8) == CQE_SYN_REM_ACCESS);
	keyed_pair_down(&t);

	/* pieces of another domain, and of none */
	for (unsigned i = 0; i < 2; i++) {
		keyed_pair_up(&t);
		e[0] = klm(100, i ? 0x7fffff00 : t.lkey, t.src);
		attr = plain(t.b.pdn, e, 1, 100);
		make(&t, &attr);
		CHECK(write_through(&t, t.key, 0, 8) == CQE_SYN_REM_ACCESS);
		keyed_pair_down(&t);
	}
}

/* As the local side: domain and rights. */
static void local_rights(void)
{
	for (unsigned i = 0; i < 5; i++) {
		struct mkey_indirect_attr attr;
		struct umr_klm e;
		struct keyed_pair t;

		keyed_pair_up(&t);
		e = klm(100, t.rkey, t.dst);
		attr = plain(t.b.pdn, &e, 1, 100);
		attr.access = i == 1 ? 0 : IB_ACCESS_LOCAL_WRITE;
		attr.local_read = i != 2;
		attr.free = i == 3;
		make(&t, &attr);
		if (i == 4) /* a's domain is another */
			keyed_pair_rdma(&t.a, WQE_OP_RDMA_WRITE, (uintptr_t)t.dst, t.rkey, 0, t.key,
					8);
		else if (i == 2)
			keyed_pair_rdma(&t.b, WQE_OP_RDMA_WRITE, (uintptr_t)t.src, t.lkey, 0, t.key,
					8);
		else
			keyed_pair_rdma(&t.b, WQE_OP_RDMA_READ, (uintptr_t)t.src, t.lkey, 0, t.key,
					8);
		CHECK(outcome(i == 4 ? &t.a : &t.b) == (i ? CQE_SYN_LOCAL_PROT : 0));
		keyed_pair_down(&t);
	}
}

/* Of one queue pair: b's requests may use it, and requests to b; a's may not. */
static void of_one_qp(void)
{
	struct keyed_pair t;

	for (unsigned i = 0; i < 2; i++) {
		struct mkey_indirect_attr attr;
		struct umr_klm e;

		keyed_pair_up(&t);
		e = klm(5000, t.rkey, t.dst);
		attr = plain(t.b.pdn, &e, 1, 5000);
		attr.qpn = qp_number(i ? t.a.qp : t.b.qp);
		make(&t, &attr);
		keyed_pair_rdma(&t.b, WQE_OP_RDMA_READ, (uintptr_t)t.src, t.lkey, 0, t.key, 5000);
		CHECK(outcome(&t.b) == (i ? CQE_SYN_LOCAL_PROT : 0));
		CHECK(i || !memcmp(t.dst, t.src, 5000));
		if (!i) {
			keyed_pair_rdma(&t.b, WQE_OP_RDMA_WRITE, (uintptr_t)t.src, t.lkey, 0, t.key,
					5000);
			CHECK(!outcome(&t.b));
			device_recv(&t.b, NULL, 5000, t.key);
			keyed_pair_send(&t.a, (uintptr_t)t.src + 1, t.lkey, 5000);
			CHECK(!outcome(&t.b) && !outcome(&t.a));
			CHECK(!memcmp(t.dst, t.src + 1, 5000));
			CHECK(!write_through(&t, t.key, 0, 5000));
			CHECK(!memcmp(t.dst, t.src, 5000));
			device_recv(&t.a, t.src + 10000, 5000, t.lkey);
			keyed_pair_send(&t.b, 0, t.key, 5000);
			CHECK(!outcome(&t.a) && !outcome(&t.b));
		}
		keyed_pair_down(&t);
	}
	/* requests to b through a's key */
	keyed_pair_up(&t);
	{
		const struct umr_klm e = klm(5000, t.rkey, t.dst);
		struct mkey_indirect_attr attr = plain(t.b.pdn, &e, 1, 5000);

		attr.qpn = qp_number(t.a.qp);
		make(&t, &attr);
	}
	CHECK(write_through(&t, t.key, 0, 8) == CQE_SYN_REM_ACCESS);
	keyed_pair_down(&t);
}

/* ---- lists of more runs than a packet has ---- */

/* 8 bytes taken, 2 left out; a MiB of them. */
#define CYCLES (1u << 17)
#define LONG   (8 * CYCLES)

static uint8_t *nth_byte(uint8_t *base, uint32_t i)
{
	return base + i / 8 * 10 + i % 8;
}

static void check_long(uint8_t *strided_bytes, const uint8_t *flat)
{
	for (uint32_t i = 0; i < LONG; i++)
		CHECK(*nth_byte(strided_bytes, i) == flat[i]);
	for (uint32_t i = 0; i < CYCLES; i++)
		CHECK(strided_bytes[i * 10 + 8] == 0xee && strided_bytes[i * 10 + 9] == 0xee);
}

static void make_long(struct keyed_pair *t)
{
	const struct umr_klm e[2] = {header(8, CYCLES, 1), stride(10, 8, t->rkey, t->dst)};
	const struct mkey_indirect_attr attr = plain(t->b.pdn, e, 2, LONG);

	make(t, &attr);
}

static void long_lists(void)
{
	struct keyed_pair t;

	keyed_pair_up(&t);
	make_long(&t);
	CHECK(!write_through(&t, t.key, 0, LONG));
	check_long(t.dst, t.src);
	memset(t.src + LONG, 0, LONG);
	keyed_pair_rdma(&t.a, WQE_OP_RDMA_READ, 0, t.key, (uintptr_t)t.src + LONG, t.lkey, LONG);
	CHECK(!outcome(&t.a) && !memcmp(t.src, t.src + LONG, LONG));

	memset(t.dst, 0xee, KEYED_PAIR_BYTES);
	device_recv(&t.b, NULL, LONG, t.key);
	keyed_pair_send(&t.a, (uintptr_t)t.src, t.lkey, LONG);
	CHECK(!outcome(&t.b) && !outcome(&t.a));
	check_long(t.dst, t.src);

	memset(t.src + LONG, 0, LONG);
	keyed_pair_rdma(&t.b, WQE_OP_RDMA_WRITE, (uintptr_t)t.src + LONG, t.lkey, 0, t.key, LONG);
	CHECK(!outcome(&t.b) && !memcmp(t.src, t.src + LONG, LONG));
	memset(t.dst, 0xee, KEYED_PAIR_BYTES);
	keyed_pair_rdma(&t.b, WQE_OP_RDMA_READ, (uintptr_t)t.src, t.lkey, 0, t.key, LONG);
	CHECK(!outcome(&t.b));
	check_long(t.dst, t.src);
	memset(t.src + LONG, 0, LONG);
	device_recv(&t.a, t.src + LONG, LONG, t.lkey);
	keyed_pair_send(&t.b, 0, t.key, LONG);
	CHECK(!outcome(&t.a) && !outcome(&t.b));
	CHECK(!memcmp(t.src, t.src + LONG, LONG));
	/* beyond its end, which shows only behind many runs */
	CHECK(write_through(&t, t.key, 1, LONG) == CQE_SYN_REM_ACCESS);
	keyed_pair_down(&t);

	/* the last of many pieces is not the key's to give */
	keyed_pair_up(&t);
	{
		const struct umr_klm e[3] = {header(8, CYCLES, 2), stride(10, 7, t.rkey, t.dst),
					     stride(30, 1, t.rkey, t.dst)};
		const struct mkey_indirect_attr attr = plain(t.b.pdn, e, 3, LONG);

		make(&t, &attr);
		CHECK(write_through(&t, t.key, 0, LONG) == CQE_SYN_REM_ACCESS);
	}
	keyed_pair_down(&t);
}

/* ---- random lists against a list of bytes ---- */

#define MODEL_MAX 60000u

/* Where each byte of a key lies in b's memory. */
struct model {
	uint32_t n;
	uint32_t at[MODEL_MAX];
};

static uint32_t random_entries(struct keyed_pair *t, struct rng *rng, struct umr_klm *e,
			       struct model *m)
{
	uint32_t n = (uint32_t)(1 + rng_below(rng, 6));
	bool strides = rng_next(rng) & 1;
	uint32_t first[7], step[7], bytes[7], sum = 0, repeat = 1;

	if (strides)
		repeat = (uint32_t)(1 + rng_below(rng, 80));
	for (uint32_t i = 0; i < n; i++) {
		first[i] = (uint32_t)rng_below(rng, 60000);
		step[i] = (uint32_t)rng_below(rng, 200);
		bytes[i] = (uint32_t)rng_below(rng, strides ? 90 : 3000);
		sum += bytes[i];
		if (strides)
			e[i + 1] = stride((uint16_t)step[i], (uint16_t)bytes[i], t->rkey,
					  t->dst + first[i]);
		else
			e[i] = klm(bytes[i], t->rkey, t->dst + first[i]);
	}
	m->n = 0;
	for (uint32_t r = 0; r < repeat; r++)
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t b = 0; b < bytes[i]; b++)
				m->at[m->n++] = first[i] + r * step[i] + b;
	if (strides)
		e[0] = header(sum, repeat, (uint16_t)n);
	return n + strides;
}

/* A key of pieces of another. */
static uint32_t random_outer(struct rng *rng, struct umr_klm *e, uint32_t inner,
			     const struct model *in, struct model *m)
{
	uint32_t n = (uint32_t)(1 + rng_below(rng, 6));

	m->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t off = (uint32_t)rng_below(rng, in->n + 1);
		uint32_t len = (uint32_t)rng_below(rng, min_u32(in->n - off, MODEL_MAX / 6) + 1);

		e[i] = klm(len, inner, (void *)(uintptr_t)off);
		for (uint32_t b = 0; b < len; b++)
			m->at[m->n++] = in->at[off + b];
	}
	return n;
}

/* One operation with bytes [off, off + len) of the key; true if it moves data into it. */
static bool operate_once(struct keyed_pair *t, unsigned op, uint32_t off, uint32_t len,
			 uint8_t *flat)
{
	switch (op) {
	case 0:
		keyed_pair_rdma(&t->a, WQE_OP_RDMA_WRITE, off, t->key, (uintptr_t)flat, t->lkey,
				len);
		break;
	case 1:
		keyed_pair_rdma(&t->a, WQE_OP_RDMA_READ, off, t->key, (uintptr_t)flat, t->lkey,
				len);
		break;
	case 2:
		keyed_pair_rdma(&t->b, WQE_OP_RDMA_WRITE, (uintptr_t)flat, t->lkey, off, t->key,
				len);
		break;
	case 3:
		keyed_pair_rdma(&t->b, WQE_OP_RDMA_READ, (uintptr_t)flat, t->lkey, off, t->key,
				len);
		break;
	case 4:
		device_recv(&t->b, (void *)(uintptr_t)off, len, t->key);
		keyed_pair_send(&t->a, (uintptr_t)flat, t->lkey, len);
		break;
	default:
		device_recv(&t->a, flat, len, t->lkey);
		keyed_pair_send(&t->b, off, t->key, len);
		break;
	}
	CHECK(!outcome(op == 0 || op == 1 || op == 4 ? &t->a : &t->b));
	if (op > 3)
		CHECK(!outcome(op == 4 ? &t->b : &t->a));
	return op == 0 || op == 3 || op == 4;
}

static void random_lists(void)
{
	static struct model model, outer;
	static uint8_t want[KEYED_PAIR_BYTES];
	struct rng rng = {99};
	struct keyed_pair t;

	keyed_pair_up(&t);
	for (unsigned round = 0; round < 2000; round++) {
		struct model *m = &model;
		struct mkey_indirect_attr attr;
		struct mkey *inner = NULL;
		struct umr_klm e[8];
		uint32_t n, off, len;
		uint8_t *flat;

		n = random_entries(&t, &rng, e, m);
		attr = plain(t.b.pdn, e, n, m->n);
		if (rng_next(&rng) & 1) {
			CHECK(!mkey_create_indirect(t.device.adapter[0], &attr, &inner));
			m = &outer;
			n = random_outer(&rng, e, mkey_key(inner), &model, m);
			attr = plain(t.b.pdn, e, n, m->n);
		}
		make(&t, &attr);
		if (m->n < 2)
			goto next;
		off = (uint32_t)rng_below(&rng, m->n - 1);
		len = (uint32_t)(1 + rng_below(&rng, m->n - off));
		flat = t.src + rng_below(&rng, KEYED_PAIR_BYTES / 2);
		memcpy(want, t.dst, 100000);
		if (operate_once(&t, (unsigned)rng_below(&rng, 6), off, len, flat))
			for (uint32_t i = 0; i < len; i++)
				want[m->at[off + i]] = flat[i];
		else
			for (uint32_t i = 0; i < len; i++)
				CHECK(flat[i] == t.dst[m->at[off + i]]);
		CHECK(!memcmp(want, t.dst, 100000));
	next:
		if (inner) {
			mkey_destroy(t.device.adapter[0], t.list);
			mkey_destroy(t.device.adapter[0], inner);
			t.list = NULL;
		}
	}
	keyed_pair_down(&t);
}

/* ---- changed and destroyed while they are used ---- */

static void *reconfigure_loop(void *arg)
{
	struct keyed_pair *t = arg;

	for (unsigned i = 0; i < 3000; i++) {
		uint8_t *base = t->dst + (i & 1) * 5000;
		const struct umr_klm e[2] = {klm(500, t->rkey, base),
					     klm(500, t->rkey, base + 1000)};
		const struct change c = configure(e, 2, 1000);

		CHECK(!change(t, &c));
	}
	return NULL;
}

static void changed_while_used(void)
{
	pthread_t thread;
	struct change c;
	struct keyed_pair t;

	keyed_pair_with_empty(&t);
	c = of_b(&t, 1000);
	CHECK(!change(&t, &c));
	CHECK(!pthread_create(&thread, NULL, reconfigure_loop, &t));
	/* through the one or the other list, and never through neither */
	for (unsigned i = 0; i < 3000; i++)
		CHECK(!write_through(&t, t.key | 0x5a, i % 100, 900));
	CHECK(!pthread_join(thread, NULL));
	keyed_pair_down(&t);
}

static void *write_until_refused(void *arg)
{
	struct keyed_pair *t = arg;

	while (!write_through(t, t->key, 0, LONG / 16))
		;
	return NULL;
}

static void destroyed_while_used(void)
{
	for (unsigned i = 0; i < 20; i++) {
		pthread_t thread;
		struct mkey *list;
		struct keyed_pair t;

		keyed_pair_up(&t);
		make_long(&t);
		list = t.list;
		t.list = NULL;
		CHECK(!pthread_create(&thread, NULL, write_until_refused, &t));
		for (unsigned k = 0; k < 2 * i; k++)
			sched_yield();
		mkey_destroy(t.device.adapter[0], list);
		CHECK(!pthread_join(thread, NULL));
		keyed_pair_down(&t);
	}
}

int main(void)
{
	all_roles();
	test_strided();
	test_nested();
	local_rights();
	of_one_qp();
	long_lists();
	random_lists();
	changed_while_used();
	destroyed_while_used();
	return 0;
}
