// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA of XRC at a target of another process: the shared receive queue that a request names says in
 * which protection domain it is executed.  The initiator executes it alone as long as there is such
 * a queue in the target's XRC domain; everything else goes by packets, with their outcome.
 */
#include <string.h>

#include "adapter/bypass/bypass_peer.h"
#include "adapter/bypass/remote_memory.h"
#include "base/hazard.h"
#include "base/rseq.h"
#include "check.h"
#include "exposed_pair.h"
#include "srq_device.h"
#include "wire/tap.h"

#define LEN 2500u

/* Of the target: two queues of its XRC domain, and one of another. */
enum { SRQ_OF_DATA, SRQ_OF_OTHER_PD, SRQ_OF_OTHER_DOMAIN, SRQS };

struct xrc_pair {
	struct exposed_pair *p; /* its own queue pairs are not used */
	struct device_qp ini, tgt;
	struct device_srq srq[SRQS];
	uint32_t key, lkey;
	struct mkey *data, *source;
};

static void half_connect(struct xrc_pair *t, struct device_qp *q, struct device_qp *peer,
			 uint16_t lid, uint32_t rtr, uint32_t rts)
{
	struct qp_attr attr;

	device_attr(&t->p->initiator.device, 0, peer, &attr);
	attr.ah.dlid = lid;
	attr.timeout = 0;
	attr.state = IB_QPS_INIT;
	CHECK(!qp_modify(q->qp, &attr,
			 IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS));
	attr.state = IB_QPS_RTR;
	CHECK(!qp_modify(q->qp, &attr,
			 IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				 rtr));
	attr.state = IB_QPS_RTS;
	CHECK(!qp_modify(q->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT | rts));
}

static void qps_up(struct xrc_pair *t, uint32_t xrcdn)
{
	struct qp_create_attr attr = {.type = IB_QPT_XRC_TGT, .xrcdn = xrcdn};

	CHECK(!qp_create(t->p->target.device.adapter[0], &attr, &t->tgt.qp));
	t->ini.pdn = pd_alloc(t->p->initiator.device.adapter[0]);
	device_cq_up(&t->p->initiator.device, 0, &t->ini.cq);
	attr = (struct qp_create_attr){
		.type = IB_QPT_XRC_INI,
		.pdn = t->ini.pdn,
		.send_cq = t->ini.cq.cq,
		.sq_buf = t->ini.sq,
		.sq_blocks = DEVICE_BLOCKS,
		.dbrec = t->ini.dbrec,
	};
	CHECK(!qp_create(t->p->initiator.device.adapter[0], &attr, &t->ini.qp));
	half_connect(t, &t->tgt, &t->ini, 7, IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER, 0);
	half_connect(t, &t->ini, &t->tgt, 8, 0,
		     IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

static struct xrc_pair *xrc_pair_up(enum key_way way)
{
	struct xrc_pair *t = aligned_alloc(64, align_up(sizeof(*t), 64));
	struct test_device *far;
	uint32_t xrcdn;

	CHECK(t);
	memset(t, 0, sizeof(*t));
	t->p = exposed_pair_up(way);
	far = &t->p->target.device;
	xrcdn = xrcd_alloc(far->adapter[0]);
	for (unsigned i = 0; i < SRQS; i++)
		device_srq_up(far, 0, &t->srq[i],
			      i == SRQ_OF_OTHER_DOMAIN ? xrcd_alloc(far->adapter[0]) : xrcdn, 0);
	qps_up(t, xrcdn);
	t->key = device_mr(far, 0, t->srq[SRQ_OF_DATA].pdn, t->p->to->data, EXPOSED_PAIR_BYTES,
			   EXPOSED_PAIR_RIGHTS, &t->data);
	exposed_pair_data(t->p, t->data);
	t->lkey = device_mr(&t->p->initiator.device, 0, t->ini.pdn, t->p->source,
			    EXPOSED_PAIR_BYTES, EXPOSED_PAIR_RIGHTS, &t->source);
	return t;
}

static void xrc_pair_down(struct xrc_pair *t)
{
	qp_destroy(t->ini.qp);
	if (t->tgt.qp)
		qp_destroy(t->tgt.qp);
	CHECK(!cq_destroy(t->ini.cq.cq));
	for (unsigned i = 0; i < SRQS; i++)
		device_srq_down(&t->p->target.device, 0, &t->srq[i]);
	mkey_destroy(t->p->target.device.adapter[0], t->data);
	mkey_destroy(t->p->initiator.device.adapter[0], t->source);
	exposed_pair_down(t->p);
	free(t);
}

static void post(struct xrc_pair *t, uint8_t opcode, uint32_t srqn)
{
	struct wqe_xrc x = {.xrc_srqn = be32_of(srqn)};
	struct device_wqe w;

	device_wqe_begin(&t->ini, &w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	memcpy(w.bytes + w.at, &x, sizeof(x));
	w.at += sizeof(x);
	device_wqe_raddr(&w, (uintptr_t)t->p->to->data, t->key);
	device_wqe_data(&w, t->p->source, LEN, t->lkey);
	device_wqe_end(&w);
}

static uint32_t number_of(const struct xrc_pair *t, unsigned srq)
{
	return srq_number(t->srq[srq].srq);
}

static void expect(struct xrc_pair *t, uint8_t op)
{
	const struct cqe64 *cqe = device_cq_poll(&t->ini.cq);

	CHECK(cqe && cqe->op_own >> 4 == op);
}

static bool target_has(const struct xrc_pair *t, uint8_t value)
{
	return t->p->to->data[0] == value && !memcmp(t->p->to->data, t->p->to->data + 1, LEN - 1) &&
	       !t->p->to->data[LEN];
}

static void write_and_read(struct xrc_pair *t, uint8_t value, bool packets)
{
	uint32_t srqn = number_of(t, SRQ_OF_DATA);

	memset(t->p->source, value, LEN);
	post(t, WQE_OP_RDMA_WRITE, srqn);
	if (packets) {
		CHECK(!target_has(t, value));
		exposed_pair_progress(t->p);
	}
	expect(t, CQE_OP_REQ);
	CHECK(target_has(t, value));
	memset(t->p->source, 0, LEN);
	post(t, WQE_OP_RDMA_READ, srqn);
	if (packets)
		exposed_pair_progress(t->p);
	expect(t, CQE_OP_REQ);
	CHECK(!memcmp(t->p->source, t->p->to->data, LEN));
}

/* Nothing of the target runs, and counters and numbers cannot tell. */
static void test_initiator_alone(enum key_way way)
{
	struct xrc_pair *t = xrc_pair_up(way);
	uint64_t alone[EXPOSED_PAIR_COUNTS] = {0}, packets[EXPOSED_PAIR_COUNTS] = {0};
	struct tap tap = {.packet = exposed_pair_ignore};
	struct qp_attr tgt, ini;

	exposed_pair_count(t->p, alone);
	write_and_read(t, 0x11, false);
	exposed_pair_count(t->p, alone);
	exposed_pair_count(t->p, packets);
	wire_tap_attach(t->p->initiator.device.host, &tap);
	write_and_read(t, 0x22, true);
	wire_tap_detach(t->p->initiator.device.host, &tap);
	exposed_pair_count(t->p, packets);
	CHECK(!memcmp(alone, packets, sizeof(alone)) && alone[8] == 1 && alone[9] == 1);
	write_and_read(t, 0x33, false);
	qp_query(t->tgt.qp, &tgt);
	qp_query(t->ini.qp, &ini);
	CHECK(tgt.rq_psn == ini.sq_psn && tgt.rq_psn != 0xfffff0);
	xrc_pair_down(t);
}

/* The i-th small request of a list. */
static void put_small(struct xrc_pair *t, uint32_t srqn, unsigned i, bool last)
{
	struct wqe_xrc x = {.xrc_srqn = be32_of(srqn)};
	uint32_t len = 1 + i % 12;
	struct device_wqe w;

	device_wqe_begin(&t->ini, &w, WQE_OP_RDMA_WRITE, last ? WQE_CTRL_CE_ALWAYS : 0, 0);
	memcpy(w.bytes + w.at, &x, sizeof(x));
	w.at += sizeof(x);
	device_wqe_raddr(&w, (uintptr_t)t->p->to->data + 16 * i, t->key);
	if (i % 3)
		device_wqe_inline(&w, t->p->source + 16 * i, len);
	else
		device_wqe_data(&w, t->p->source + 16 * i, len, t->lkey);
	device_wqe_put(&w);
}

static bool small_arrived(const struct xrc_pair *t, unsigned i)
{
	const uint8_t *at = t->p->to->data + 16 * i;
	uint32_t len = 1 + i % 12;

	return !memcmp(at, t->p->source + 16 * i, len) && !at[len];
}

/* Plain requests of one doorbell, in the ring's blocks as they stand there, round and round. */
static void test_lists(enum key_way way)
{
	enum { N = DEVICE_BLOCKS - 5 };
	struct xrc_pair *t = xrc_pair_up(way);

	for (unsigned round = 0; round < 5; round++) {
		memset(t->p->to->data, 0, sizeof(t->p->to->data));
		for (unsigned i = 0; i < N; i++)
			put_small(t, number_of(t, SRQ_OF_DATA), i, i == N - 1);
		device_ring(&t->ini);
		expect(t, CQE_OP_REQ);
		for (unsigned i = 0; i < N; i++)
			CHECK(small_arrived(t, i));
	}
	CHECK(exposed_pair_counted(&t->p->target, HW_RX_WRITE_REQUESTS) == 5 * N);
	xrc_pair_down(t);
}

/* One in the midst of a list names another queue, in whose domain the key is not. */
static void test_list_refused(enum key_way way)
{
	struct xrc_pair *t = xrc_pair_up(way);

	for (unsigned i = 0; i < 10; i++)
		put_small(t, number_of(t, i == 6 ? SRQ_OF_OTHER_PD : SRQ_OF_DATA), i, i == 9);
	device_ring(&t->ini);
	exposed_pair_progress(t->p);
	expect(t, CQE_OP_REQ_ERR);
	for (unsigned i = 0; i < 10; i++)
		CHECK(i < 6 ? small_arrived(t, i) : !t->p->to->data[16 * i]);
	xrc_pair_down(t);
}

/* Packets bring the error: to a queue of another domain, or of another protection domain than the
 * key's, or one that has gone. */
static void test_refused(enum key_way way, unsigned srq, bool gone)
{
	struct xrc_pair *t = xrc_pair_up(way);
	uint32_t srqn = number_of(t, srq);

	write_and_read(t, 0x11, false);
	if (gone) {
		CHECK(!srq_destroy(t->srq[srq].srq));
		t->srq[srq].srq = NULL;
	}
	memset(t->p->source, 0x22, LEN);
	post(t, WQE_OP_RDMA_WRITE, srqn);
	exposed_pair_progress(t->p);
	expect(t, CQE_OP_REQ_ERR);
	CHECK(target_has(t, 0x11));
	xrc_pair_down(t);
}

/* The request has found its target when the queue goes, or the target: nothing is written. */
static void test_goes_under_way(enum key_way way, bool target)
{
	struct xrc_pair *t = xrc_pair_up(way);
	const struct run from = {t->p->source, 8};
	const struct remote_range at = {t->key, (uintptr_t)t->p->to->data, 8};
	struct key_memo memo = {0};
	struct remote_move m = {.right = IB_ACCESS_REMOTE_WRITE,
				.ranges = &at,
				.n = 1,
				.local = &from,
				.nlocal = 1,
				.memo = &memo};
	struct bypass_peer r;

	hazard_enter();
	CHECK(bypass_peer_enter(t->ini.qp, IB_ACCESS_REMOTE_WRITE, &r) && r.remote);
	r.srq = remote_srq(r.remote, number_of(t, SRQ_OF_DATA));
	r.srq_word = atomic_load(r.srq);
	CHECK(srq_word_is(r.srq_word, number_of(t, SRQ_OF_DATA), r.xrcdn));
	r.pdn = srq_word_pdn(r.srq_word);
	/* as often as it is remembered how */
	for (unsigned i = 0; i < 2; i++) {
		remote_move(&r, &m);
		CHECK(m.done == 1 && t->p->to->data[0] == t->p->source[0]);
	}
	CHECK(!bypass_peer_leave(t->ini.qp, &r, NULL));
	hazard_leave();
	if (target) {
		qp_destroy(t->tgt.qp);
		t->tgt.qp = NULL;
	} else {
		CHECK(!srq_destroy(t->srq[SRQ_OF_DATA].srq));
		t->srq[SRQ_OF_DATA].srq = NULL;
	}
	memset(t->p->to->data, 0, 8);
	hazard_enter();
	remote_move(&r, &m);
	hazard_leave();
	CHECK(!m.done && !t->p->to->data[0]);
	xrc_pair_down(t);
}

/* A queue with the number of one that has gone, in another protection domain: what is remembered of
 * a key of the first does not hold. */
static void test_number_again(enum key_way way)
{
	struct xrc_pair *t = xrc_pair_up(way);
	struct expose *e = exposed_pair_expose(t->p);
	uint32_t srqn = number_of(t, SRQ_OF_DATA);
	uint64_t word;

	write_and_read(t, 0x11, false);
	word = atomic_load(&e->mem->xrc_srqs[srqn % EXPOSE_BLOCKS]);
	expose_srq_end(e, srqn);
	CHECK(expose_srq(e, srqn, srq_word_domain(word), srq_word_pdn(word) + 1));
	post(t, WQE_OP_RDMA_WRITE, srqn);
	/* the target itself knows nothing of this, and executes it */
	CHECK(!device_cq_poll(&t->ini.cq));
	exposed_pair_progress(t->p);
	expect(t, CQE_OP_REQ);
	/* a number that has the same place */
	CHECK(!expose_srq(e, srqn + EXPOSE_BLOCKS, 1, 1));
	xrc_pair_down(t);
}

static void test_all(enum key_way way)
{
	test_initiator_alone(way);
	test_lists(way);
	test_list_refused(way);
	test_refused(way, SRQ_OF_OTHER_DOMAIN, false);
	test_refused(way, SRQ_OF_OTHER_PD, false);
	test_refused(way, SRQ_OF_DATA, true);
	test_goes_under_way(way, false);
	test_goes_under_way(way, true);
	test_number_again(way);
}

int main(void)
{
	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	test_all(KEY_MAPPED);
	test_all(KEY_KERNEL);
	return 0;
}
