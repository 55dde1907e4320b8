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

int main(void)
{
	all_roles();
	return 0;
}
