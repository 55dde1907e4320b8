// SPDX-License-Identifier: BSD-2-Clause
/*
 * XRC: an initiator, a target, and two shared receive queues of the target's domain.
 *
 *     ini --- packets that name a queue ---> tgt --- receives of --> srq 0, CQ 0, PD 0
 *                                                \------------- --> srq 1, CQ 1, PD 1
 *                     a queue of another domain, which tgt must not use: srq 2
 */
#include <stdlib.h>
#include <string.h>

#include "adapter/qp/qp.h"
#include "adapter/qp/qp_state.h"
#include "adapter/transport/responder.h"
#include "adapter_device.h"
#include "check.h"
#include "srq_device.h"

#define BYTES	 DEVICE_SRQ_BYTES
#define SRQS	 3u
#define UIDX	 0x77u
#define SIGNALED WQE_CTRL_CE_ALWAYS

struct xrc_case {
	struct test_device device;
	unsigned dev;
	uint32_t xrcdn, other_xrcdn;
	struct device_qp ini, tgt;
	struct device_srq srq[SRQS];
	uint8_t src[BYTES];
	struct mkey *ms;
	uint32_t lkey;
};

static void on_async(void *user, enum ib_event event)
{
	((struct device_qp *)user)->async[event]++;
}

static void qps_up(struct xrc_case *t)
{
	struct adapter *a = t->device.adapter[t->dev];
	struct qp_create_attr attr = {
		.type = IB_QPT_XRC_TGT, .xrcdn = t->xrcdn, .async = on_async, .user = &t->tgt};

	t->ini.pdn = pd_alloc(a);
	device_cq_up(&t->device, t->dev, &t->ini.cq);
	CHECK(!qp_create(a, &attr, &t->tgt.qp));
	attr = (struct qp_create_attr){
		.type = IB_QPT_XRC_INI,
		.pdn = t->ini.pdn,
		.send_cq = t->ini.cq.cq,
		.sq_buf = t->ini.sq,
		.sq_blocks = DEVICE_BLOCKS,
		.dbrec = t->ini.dbrec,
		.async = on_async,
		.user = &t->ini,
	};
	CHECK(!qp_create(a, &attr, &t->ini.qp));
}

#define TO_INIT (IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS)
#define TO_RTR	(IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN)
#define TO_RTS	(IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT)

static void connect_half(struct xrc_case *t, struct device_qp *q, struct device_qp *peer,
			 uint32_t rtr, uint32_t rts)
{
	struct qp_attr attr;

	device_attr(&t->device, t->dev, peer, &attr);
	attr.state = IB_QPS_INIT;
	CHECK(!qp_modify(q->qp, &attr, TO_INIT));
	attr.state = IB_QPS_RTR;
	CHECK(!qp_modify(q->qp, &attr, TO_RTR | rtr));
	attr.state = IB_QPS_RTS;
	CHECK(!qp_modify(q->qp, &attr, TO_RTS | rts));
}

static void xrc_case_up(struct xrc_case *t, unsigned dev)
{
	memset(t, 0, sizeof(*t));
	device_up(&t->device);
	t->dev = dev;
	t->xrcdn = xrcd_alloc(t->device.adapter[dev]);
	t->other_xrcdn = xrcd_alloc(t->device.adapter[dev]);
	CHECK(t->xrcdn && t->other_xrcdn && t->xrcdn != t->other_xrcdn);
	for (unsigned i = 0; i < SRQS; i++)
		device_srq_up(&t->device, dev, &t->srq[i], i == 2 ? t->other_xrcdn : t->xrcdn,
			      UIDX + i);
	qps_up(t);
	connect_half(t, &t->tgt, &t->ini, IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER, 0);
	connect_half(t, &t->ini, &t->tgt, 0,
		     IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
	for (unsigned i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i * 5 + (i >> 7));
	t->lkey = device_mr(&t->device, dev, t->ini.pdn, t->src, BYTES, DEVICE_ALL_ACCESS, &t->ms);
}

static void xrc_case_down(struct xrc_case *t)
{
	qp_destroy(t->ini.qp);
	qp_destroy(t->tgt.qp);
	CHECK(!cq_destroy(t->ini.cq.cq));
	for (unsigned i = 0; i < SRQS; i++)
		device_srq_down(&t->device, t->dev, &t->srq[i]);
	mkey_destroy(t->device.adapter[t->dev], t->ms);
	device_down(&t->device);
}

static void begin_wqe(struct xrc_case *t, struct device_wqe *w, uint8_t opcode, uint32_t imm,
		      uint32_t srqn)
{
	struct wqe_xrc x = {.xrc_srqn = be32_of(srqn)};

	device_wqe_begin(&t->ini, w, opcode, SIGNALED, imm);
	memcpy(w->bytes + w->at, &x, sizeof(x));
	w->at += sizeof(x);
}

static void post_send(struct xrc_case *t, uint32_t srqn, uint32_t len)
{
	struct device_wqe w;

	begin_wqe(t, &w, WQE_OP_SEND_IMM, 0xabcd, srqn);
	device_wqe_data(&w, t->src, len, t->lkey);
	device_wqe_end(&w);
}

static void expect_sent(struct xrc_case *t, uint8_t opcode)
{
	const struct cqe64 *c = device_cq_poll(&t->ini.cq);

	CHECK(c && c->op_own >> 4 == CQE_OP_REQ);
	CHECK(be32_get(c->sop_drop_qpn) == ((uint32_t)opcode << 24 | qp_number(t->ini.qp)));
}

static void expect_failed(struct xrc_case *t, uint8_t syndrome)
{
	const struct cqe64_err *e = (const struct cqe64_err *)device_cq_poll(&t->ini.cq);

	CHECK(e && e->op_own >> 4 == CQE_OP_REQ_ERR && e->syndrome == syndrome);
}

/* Each message goes to the queue that it names, and completes there. */
static void test_send(unsigned dev)
{
	struct xrc_case t;

	xrc_case_up(&t, dev);
	for (unsigned round = 0; round < 20; round++) {
		struct device_srq *s = &t.srq[round & 1];
		uint32_t len = round % 3 ? 200 : BYTES;
		const struct cqe64 *c;

		device_srq_post(s, BYTES);
		post_send(&t, srq_number(s->srq), len);
		expect_sent(&t, WQE_OP_SEND_IMM);
		c = device_cq_poll(&s->cq);
		CHECK(c && c->op_own >> 4 == CQE_OP_RESP_SEND_IMM);
		CHECK(be32_get(c->byte_cnt) == len && be32_get(c->imm_inval_pkey) == 0xabcd);
		CHECK(be32_get(c->srqn_uidx) == UIDX + (round & 1));
		CHECK(be32_get(c->sop_drop_qpn) == qp_number(t.tgt.qp));
		CHECK((be32_get(c->flags_rqpn) & IB_QPN_MASK) == qp_number(t.ini.qp));
		CHECK(be16_get(c->wqe_counter) == round / 2 % DEVICE_SRQ_WQES);
		CHECK(!memcmp(s->mem, t.src, len));
		memset(s->mem, 0, BYTES);
	}
	xrc_case_down(&t);
}

/* Keys are looked up in the protection domain of the queue named. */
static void test_remote_access(void)
{
	struct xrc_case t;
	struct device_wqe w;
	struct device_srq *s;
	uint64_t word = 40;

	xrc_case_up(&t, 0);
	s = &t.srq[1];
	begin_wqe(&t, &w, WQE_OP_RDMA_WRITE, 0, srq_number(s->srq));
	device_wqe_raddr(&w, (uintptr_t)s->mem, s->key);
	device_wqe_data(&w, t.src, BYTES, t.lkey);
	device_wqe_end(&w);
	expect_sent(&t, WQE_OP_RDMA_WRITE);
	CHECK(!memcmp(s->mem, t.src, BYTES));

	memset(t.src, 0, BYTES);
	begin_wqe(&t, &w, WQE_OP_RDMA_READ, 0, srq_number(s->srq));
	device_wqe_raddr(&w, (uintptr_t)s->mem, s->key);
	device_wqe_data(&w, t.src, BYTES, t.lkey);
	device_wqe_end(&w);
	expect_sent(&t, WQE_OP_RDMA_READ);
	CHECK(!memcmp(s->mem, t.src, BYTES));

	memcpy(s->mem, &word, sizeof(word));
	begin_wqe(&t, &w, WQE_OP_ATOMIC_FA, 0, srq_number(s->srq));
	device_wqe_raddr(&w, (uintptr_t)s->mem, s->key);
	device_wqe_atomic(&w, 2, 0);
	device_wqe_data(&w, t.src, 8, t.lkey);
	device_wqe_end(&w);
	expect_sent(&t, WQE_OP_ATOMIC_FA);
	memcpy(&word, s->mem, sizeof(word));
	CHECK(word == 42);

	begin_wqe(&t, &w, WQE_OP_RDMA_WRITE, 0, srq_number(t.srq[0].srq));
	device_wqe_raddr(&w, (uintptr_t)s->mem, s->key);
	device_wqe_data(&w, t.src, 8, t.lkey);
	device_wqe_end(&w);
	expect_failed(&t, CQE_SYN_REM_ACCESS);
	CHECK(t.tgt.async[IB_EVENT_QP_ACCESS_ERR] == 1);
	xrc_case_down(&t);
}

/* A queue of another domain, one that is gone, none at all. */
static void test_wrong_queue(void)
{
	for (unsigned what = 0; what < 3; what++) {
		struct xrc_case t;
		uint32_t srqn;

		xrc_case_up(&t, 0);
		srqn = what == 2 ? 0xffffff : srq_number(t.srq[what ? 1 : 2].srq);
		if (what == 1) {
			CHECK(!srq_destroy(t.srq[1].srq));
			t.srq[1].srq = NULL;
		}
		for (unsigned i = 0; i < SRQS; i++)
			device_srq_post(&t.srq[i], BYTES);
		post_send(&t, srqn, 100);
		expect_failed(&t, CQE_SYN_REM_INVAL_REQ);
		for (unsigned i = 0; i < SRQS; i++)
			CHECK(!device_cq_poll(&t.srq[i].cq));
		CHECK(t.tgt.async[IB_EVENT_QP_REQ_ERR] == 1);
		xrc_case_down(&t);
	}
}

/* An empty queue is not the other queue's business; the message arrives when there is a receive. */
static void test_not_ready(void)
{
	struct xrc_case t;

	xrc_case_up(&t, 0);
	device_srq_post(&t.srq[0], BYTES);
	post_send(&t, srq_number(t.srq[1].srq), 100);
	CHECK(!device_cq_poll(&t.ini.cq) && !device_cq_poll(&t.srq[0].cq));
	device_srq_post(&t.srq[1], BYTES);
	while (!device_cq_poll(&t.srq[1].cq))
		adapter_progress(t.device.adapter[0], NULL);
	expect_sent(&t, WQE_OP_SEND_IMM);
	xrc_case_down(&t);
}

/* A message is too long, which its sender hears behind an answer that waits.  Until then the queue may go, and
 * the receive has nowhere to complete. */
static void test_queue_goes(void)
{
	struct xrc_case t;
	struct responder *r;

	xrc_case_up(&t, 0);
	r = &t.tgt.qp->resp;
	r->rd[0] = (struct rd_resource){
		.atomic = true, .first_psn = psn_add(r->epsn, IB_PSN_MASK), .npkts = 1};
	r->rd_count = 1;
	device_srq_post(&t.srq[0], 8);
	post_send(&t, srq_number(t.srq[0].srq), 100);
	CHECK(qp_state(t.tgt.qp) == IB_QPS_RTS && !device_cq_poll(&t.srq[0].cq));
	CHECK(!srq_destroy(t.srq[0].srq));
	t.srq[0].srq = NULL;
	(void)responder_continue(t.tgt.qp);
	adapter_progress(t.device.adapter[0], NULL);
	CHECK(qp_state(t.tgt.qp) == IB_QPS_ERR);
	expect_failed(&t, CQE_SYN_REM_INVAL_REQ);
	CHECK(!device_cq_poll(&t.srq[0].cq));
	xrc_case_down(&t);
}

/* An answer that waits for room goes on only while its queue exists, whose domain gives the right to read. */
static void test_queue_of_answer_goes(void)
{
	struct xrc_case t;
	struct device_srq *s;
	struct responder *r;

	xrc_case_up(&t, 0);
	s = &t.srq[0];
	r = &t.tgt.qp->resp;
	r->rd[0] = (struct rd_resource){.first_psn = psn_add(r->epsn, IB_PSN_MASK),
					.npkts = 1,
					.va = (uintptr_t)s->mem,
					.rkey = s->key,
					.pdn = srq_pdn(s->srq),
					.srqn = srq_number(s->srq),
					.len = BYTES};
	r->rd_count = 1;
	CHECK(!srq_destroy(s->srq));
	s->srq = NULL;
	(void)responder_continue(t.tgt.qp);
	adapter_progress(t.device.adapter[0], NULL);
	CHECK(qp_state(t.tgt.qp) == IB_QPS_ERR);
	xrc_case_down(&t);
}

/* The WQE must have room for the queue's number. */
static void test_short_wqe(void)
{
	struct xrc_case t;
	struct device_wqe w;

	xrc_case_up(&t, 0);
	device_wqe_begin(&t.ini, &w, WQE_OP_SEND, SIGNALED, 0);
	device_wqe_end(&w);
	expect_failed(&t, CQE_SYN_LOCAL_QP_OP);
	xrc_case_down(&t);
}

static void test_creation(void)
{
	struct xrc_case t;
	struct adapter *a;
	struct qp *qp;
	struct srq *srq;
	struct qp_create_attr attr = {.type = IB_QPT_XRC_TGT};
	struct srq_attr sattr = {.wqe_count = 4, .wqe_bytes = 32, .dbrec = &t.srq[0].dbrec};

	xrc_case_up(&t, 0);
	a = t.device.adapter[0];
	/* a target needs a domain and has no ring and no CQ */
	CHECK(qp_create(a, &attr, &qp) < 0);
	attr.xrcdn = t.xrcdn;
	attr.send_cq = t.ini.cq.cq;
	CHECK(qp_create(a, &attr, &qp) < 0);
	attr.send_cq = NULL;
	attr.sq_blocks = 4;
	CHECK(qp_create(a, &attr, &qp) < 0);
	/* an initiator is in no domain and receives nothing */
	attr = (struct qp_create_attr){
		.type = IB_QPT_XRC_INI, .send_cq = t.ini.cq.cq, .xrcdn = t.xrcdn};
	CHECK(qp_create(a, &attr, &qp) < 0);
	attr.xrcdn = 0;
	attr.rq_wqes = 4;
	attr.rq_wqe_bytes = 16;
	CHECK(qp_create(a, &attr, &qp) < 0);
	/* an XRC queue has its own CQ */
	sattr.xrcdn = t.xrcdn;
	CHECK(srq_create(a, &sattr, &srq) < 0);
	/* which stays while the queue is there */
	CHECK(cq_destroy(t.srq[0].cq.cq) < 0);
	xrc_case_down(&t);
}

static void test_states(void)
{
	const uint32_t init = TO_INIT, rtr = TO_RTR, rts = TO_RTS;
	const uint32_t resp = IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	const uint32_t req = IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC;
	const enum ib_qp_type ini = IB_QPT_XRC_INI, tgt = IB_QPT_XRC_TGT;

	CHECK(qp_transition_ok(ini, IB_QPS_RESET, IB_QPS_INIT, init));
	CHECK(qp_transition_ok(tgt, IB_QPS_RESET, IB_QPS_INIT, init));
	CHECK(qp_transition_ok(ini, IB_QPS_INIT, IB_QPS_RTR, rtr));
	CHECK(!qp_transition_ok(ini, IB_QPS_INIT, IB_QPS_RTR, rtr | resp));
	CHECK(qp_transition_ok(tgt, IB_QPS_INIT, IB_QPS_RTR, rtr | resp));
	CHECK(!qp_transition_ok(tgt, IB_QPS_INIT, IB_QPS_RTR, rtr));
	CHECK(qp_transition_ok(ini, IB_QPS_RTR, IB_QPS_RTS, rts | req));
	CHECK(!qp_transition_ok(ini, IB_QPS_RTR, IB_QPS_RTS, rts));
	CHECK(qp_transition_ok(tgt, IB_QPS_RTR, IB_QPS_RTS, rts));
	CHECK(!qp_transition_ok(tgt, IB_QPS_RTR, IB_QPS_RTS, rts | req));
	CHECK(!qp_transition_ok(ini, IB_QPS_SQD, IB_QPS_SQD, IB_QP_MIN_RNR_TIMER));
	CHECK(!qp_transition_ok(tgt, IB_QPS_SQD, IB_QPS_SQD, IB_QP_RETRY_CNT));
}

int main(void)
{
	test_states();
	test_send(0);
	test_send(1);
	test_remote_access();
	test_wrong_queue();
	test_not_ready();
	test_queue_goes();
	test_queue_of_answer_goes();
	test_short_wqe();
	test_creation();
	return 0;
}
