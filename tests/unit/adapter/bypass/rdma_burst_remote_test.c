// SPDX-License-Identifier: BSD-2-Clause
/*
 * Lists of plain RDMA WRITEs and READs to another process, many to a doorbell: bytes, completions,
 * sequence numbers and counters are those of the same requests one by one, and nothing of the target
 * runs.
 */
#include <string.h>

#include "base/rseq.h"
#include "check.h"
#include "exposed_pair.h"

#define ROUNDS	 1000u
#define LIST	 20u
#define HALF	 (EXPOSED_PAIR_BYTES / 2)
#define LEN_MOST 256u

struct remote_list {
	struct exposed_pair *p;
	struct rng rng;
	uint8_t source[EXPOSED_PAIR_BYTES], data[EXPOSED_PAIR_BYTES]; /* the model */
	/* what is expected of the requests that were put into the ring */
	struct {
		uint16_t block;
		uint8_t opcode;
		uint32_t len;
	} signaled[LIST];
	unsigned nsignaled;
};

static void remote_list_up(struct remote_list *l, enum key_way way, enum ib_qp_type type)
{
	*l = (struct remote_list){.p = exposed_pair_up_of(way, type), .rng = {99}};
	memcpy(l->source, l->p->source, sizeof(l->source));
	memcpy(l->data, l->p->to->data, sizeof(l->data));
}

static void put(struct remote_list *l, uint8_t opcode, uint32_t local, uint32_t remote,
		uint32_t len, bool signaled)
{
	struct exposed_pair *p = l->p;
	struct device_wqe w;

	if (signaled) {
		l->signaled[l->nsignaled].block = p->from.sq_pi;
		l->signaled[l->nsignaled].opcode = opcode;
		l->signaled[l->nsignaled++].len = len;
	}
	device_wqe_begin(&p->from, &w, opcode, signaled ? WQE_CTRL_CE_ALWAYS : 0, 0);
	device_wqe_raddr(&w, (uintptr_t)p->to->data + remote, p->target_key);
	device_wqe_data(&w, p->source + local, len, p->source_key);
	device_wqe_put(&w);
	if (opcode == WQE_OP_RDMA_READ)
		memcpy(l->source + local, l->data + remote, len);
	else
		memcpy(l->data + remote, l->source + local, len);
}

static void expect(struct remote_list *l)
{
	for (unsigned i = 0; i < l->nsignaled; i++) {
		const struct cqe64 *c = device_cq_poll(&l->p->from.cq);

		CHECK(c && c->op_own >> 4 == CQE_OP_REQ);
		CHECK(be16_get(c->wqe_counter) == l->signaled[i].block);
		CHECK(be32_get(c->sop_drop_qpn) >> 24 == l->signaled[i].opcode);
		if (l->signaled[i].opcode == WQE_OP_RDMA_READ)
			CHECK(be32_get(c->byte_cnt) == l->signaled[i].len);
	}
	CHECK(!device_cq_poll(&l->p->from.cq));
	l->nsignaled = 0;
	CHECK(!memcmp(l->p->source, l->source, sizeof(l->source)));
	CHECK(!memcmp(l->p->to->data, l->data, sizeof(l->data)));
}

/* Runs of a kind, so that there are bursts, and pieces that overlap. */
static void test_random(enum key_way way, enum ib_qp_type type)
{
	static const uint32_t lens[] = {1, 4, 7, 8, 64, 100, LEN_MOST};
	uint8_t opcode = WQE_OP_RDMA_READ;
	struct remote_list l;

	remote_list_up(&l, way, type);
	for (unsigned round = 0; round < ROUNDS; round++) {
		unsigned n = 1 + (unsigned)rng_below(&l.rng, LIST);
		uint32_t msn = exposed_pair_msn(l.p);

		for (unsigned i = 0; i < n; i++) {
			uint32_t len = lens[rng_below(&l.rng, array_size(lens))];

			if (!rng_below(&l.rng, 5))
				opcode ^= WQE_OP_RDMA_READ ^ WQE_OP_RDMA_WRITE;
			put(&l, opcode, (uint32_t)rng_below(&l.rng, EXPOSED_PAIR_BYTES - len),
			    (uint32_t)rng_below(&l.rng, EXPOSED_PAIR_BYTES - len), len,
			    !rng_below(&l.rng, 6));
		}
		device_ring(&l.p->from);
		expect(&l);
		CHECK(exposed_pair_msn(l.p) == ((msn + n) & IB_PSN_MASK));
	}
	exposed_pair_down(l.p);
}

static void count_list(struct remote_list *l, uint64_t got[EXPOSED_PAIR_COUNTS], bool packets)
{
	exposed_pair_count(l->p, got);
	for (unsigned i = 0; i < 7; i++)
		put(l, WQE_OP_RDMA_READ, i * LEN_MOST, HALF, 1 + i * 30, i == 6);
	for (unsigned i = 0; i < 5; i++)
		put(l, WQE_OP_RDMA_WRITE, HALF, i * LEN_MOST, 1 + i * 30, i == 4);
	device_ring(&l->p->from);
	if (packets)
		exposed_pair_progress(l->p);
	expect(l);
	exposed_pair_count(l->p, got);
}

static void test_counters(enum key_way way)
{
	uint64_t alone[EXPOSED_PAIR_COUNTS] = {0}, packets[EXPOSED_PAIR_COUNTS] = {0};
	struct tap tap = {.packet = exposed_pair_ignore};
	struct remote_list l;

	remote_list_up(&l, way, IB_QPT_RC);
	count_list(&l, alone, false);
	wire_tap_attach(l.p->initiator.device.host, &tap);
	count_list(&l, packets, true);
	wire_tap_detach(l.p->initiator.device.host, &tap);
	/* One acknowledgement may stand for several WRITEs, so only what the initiator sends is
	 * the same, and what the target has taken. */
	CHECK(alone[0] == packets[0] && alone[1] == packets[1]);
	CHECK(alone[8] == 5 && packets[8] == 5 && alone[9] == 7 && packets[9] == 7);
	exposed_pair_down(l.p);
}

/* What a bad READ among good ones says. */
struct bad_read {
	uint32_t key_flip, lkey_flip;
	uint32_t rights, lrights; /* that are missing there */
	uint8_t syndrome;
};

static void test_bad_one(enum key_way way, const struct bad_read *bad)
{
	struct mkey *narrow[2];
	struct remote_list l;
	struct device_wqe w;
	uint32_t lkey, rkey;
	uint8_t kept;

	remote_list_up(&l, way, IB_QPT_RC);
	kept = l.source[HALF];
	rkey = device_mr(&l.p->target.device, 0, l.p->to->qp.pdn, l.p->to->data, EXPOSED_PAIR_BYTES,
			 EXPOSED_PAIR_RIGHTS & ~bad->rights, &narrow[0]);
	exposed_pair_data(l.p, narrow[0]);
	lkey = device_mr(&l.p->initiator.device, 0, l.p->from.pdn, l.p->source, EXPOSED_PAIR_BYTES,
			 EXPOSED_PAIR_RIGHTS & ~bad->lrights, &narrow[1]);
	memset(l.data, 0x77, sizeof(l.data));
	memset(l.p->to->data, 0x77, sizeof(l.data));
	for (unsigned i = 0; i < 4; i++)
		put(&l, WQE_OP_RDMA_READ, i * 8, i * 8, 8, false);
	device_wqe_begin(&l.p->from, &w, WQE_OP_RDMA_READ, 0, 0);
	device_wqe_raddr(&w, (uintptr_t)l.p->to->data, rkey ^ bad->key_flip);
	device_wqe_data(&w, l.p->source + HALF, 8, lkey ^ bad->lkey_flip);
	device_wqe_put(&w);
	device_wqe_begin(&l.p->from, &w, WQE_OP_RDMA_READ, 0, 0);
	device_wqe_raddr(&w, (uintptr_t)l.p->to->data, l.p->target_key);
	device_wqe_data(&w, l.p->source + HALF, 8, l.p->source_key);
	device_wqe_put(&w);
	device_ring(&l.p->from);
	exposed_pair_progress(l.p);
	for (unsigned i = 0; i < 2; i++) {
		const struct cqe64 *c = device_cq_poll(&l.p->from.cq);
		struct cqe64_err e;

		CHECK(c && c->op_own >> 4 == CQE_OP_REQ_ERR);
		memcpy(&e, c, sizeof(e));
		CHECK(e.syndrome == (i ? CQE_SYN_WR_FLUSH : bad->syndrome));
	}
	expect(&l); /* the four, and nothing else */
	CHECK(l.p->source[HALF] == kept);
	mkey_destroy(l.p->target.device.adapter[0], narrow[0]);
	mkey_destroy(l.p->initiator.device.adapter[0], narrow[1]);
	exposed_pair_down(l.p);
}

/* The data of a READ cannot stand in the ring, and UC has no READs. */
static void test_malformed(enum ib_qp_type type, bool inlined)
{
	struct remote_list l;
	struct device_wqe w;
	struct cqe64_err e;
	const struct cqe64 *c;

	remote_list_up(&l, KEY_MAPPED, type);
	device_wqe_begin(&l.p->from, &w, WQE_OP_RDMA_READ, 0, 0);
	device_wqe_raddr(&w, (uintptr_t)l.p->to->data, l.p->target_key);
	if (inlined)
		device_wqe_inline(&w, l.p->source, 8);
	else
		device_wqe_data(&w, l.p->source, 8, l.p->source_key);
	device_wqe_end(&w);
	c = device_cq_poll(&l.p->from.cq);
	CHECK(c && c->op_own >> 4 == CQE_OP_REQ_ERR);
	memcpy(&e, c, sizeof(e));
	CHECK(e.syndrome == CQE_SYN_LOCAL_QP_OP);
	expect(&l);
	exposed_pair_down(l.p);
}

int main(void)
{
	static const struct bad_read bad[] = {
		{.key_flip = 0x100, .syndrome = CQE_SYN_REM_ACCESS},
		{.rights = IB_ACCESS_REMOTE_READ, .syndrome = CQE_SYN_REM_ACCESS},
		{.lkey_flip = 0x100, .syndrome = CQE_SYN_LOCAL_PROT},
		{.lrights =
			 IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC,
		 .syndrome = CQE_SYN_LOCAL_PROT},
	};
	static const enum key_way ways[] = {KEY_MAPPED, KEY_KERNEL};

	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	for (unsigned i = 0; i < array_size(ways); i++) {
		test_random(ways[i], IB_QPT_RC);
		test_counters(ways[i]);
		for (unsigned b = 0; b < array_size(bad); b++)
			test_bad_one(ways[i], &bad[b]);
	}
	test_malformed(IB_QPT_RC, true);
	test_malformed(IB_QPT_UC, false);
	return 0;
}
