// SPDX-License-Identifier: BSD-2-Clause
#include "dc_pair.h"

#include <string.h>

#include "check.h"
#include "test_subnet.h"

static void on_async(void *user, enum ib_event event)
{
	((struct device_qp *)user)->async[event]++;
}

static void qp_move(struct qp *qp, struct qp_attr *attr, enum ib_qp_state state, uint32_t mask)
{
	attr->state = state;
	CHECK(!qp_modify(qp, attr, IB_QP_STATE | mask));
}

void dc_dci_to_rts(struct dc_pair *t, struct device_qp *q)
{
	struct qp_attr attr;

	device_attr(&t->device, t->dev, q, &attr);
	qp_move(q->qp, &attr, IB_QPS_INIT, DC_DCI_INIT);
	qp_move(q->qp, &attr, IB_QPS_RTR, IB_QP_PATH_MTU);
	qp_move(q->qp, &attr, IB_QPS_RTS, DC_DCI_RTS);
}

void dc_dci_up(struct dc_pair *t, struct device_qp *q, int log_errored)
{
	struct qp_create_attr attr;

	memset(q, 0, sizeof(*q));
	q->pdn = pd_alloc(t->device.adapter[t->dev]);
	device_cq_up(&t->device, t->dev, &q->cq);
	attr = (struct qp_create_attr){
		.type = IB_QPT_DCI,
		.pdn = q->pdn,
		.send_cq = q->cq.cq,
		.sq_buf = q->sq,
		.sq_blocks = DEVICE_BLOCKS,
		.dbrec = q->dbrec,
		.dc_streams = log_errored >= 0,
		.log_dc_errored = (uint8_t)(log_errored < 0 ? 0 : log_errored),
		.async = on_async,
		.user = q,
	};
	CHECK(!qp_create(t->device.adapter[t->dev], &attr, &q->qp));
	dc_dci_to_rts(t, q);
}

static void dct_create_qp(struct dc_pair *t, struct dc_target *s)
{
	struct qp_create_attr attr = {
		.type = IB_QPT_DCT,
		.pdn = s->q.pdn,
		.uidx = DC_UIDX,
		.recv_cq = s->q.cq.cq,
		.srq = s->q.srq,
		.dc_key = DC_KEY,
	};
	struct qp_attr to;

	CHECK(!qp_create(t->device.adapter[t->dev], &attr, &s->qp));
	device_attr(&t->device, t->dev, &t->dci[0], &to);
	qp_move(s->qp, &to, IB_QPS_INIT, DC_DCT_INIT);
	qp_move(s->qp, &to, IB_QPS_RTR, DC_DCT_RTR);
}

static void dct_up(struct dc_pair *t, struct dc_target *s)
{
	device_srq_up(&t->device, t->dev, &s->q, 0, 0);
	dct_create_qp(t, s);
}

void dc_pair_up(struct dc_pair *t, unsigned dev, int log_errored)
{
	memset(t, 0, sizeof(*t));
	device_up(&t->device);
	t->dev = dev;
	for (unsigned i = 0; i < 2; i++)
		dc_dci_up(t, &t->dci[i], log_errored);
	for (unsigned i = 0; i < 2; i++)
		dct_up(t, &t->dct[i]);
	for (unsigned i = 0; i < DC_BYTES; i++)
		t->src[i] = (uint8_t)(i * 5 + (i >> 7));
	for (unsigned i = 0; i < 2; i++)
		(void)device_mr(&t->device, dev, t->dci[i].pdn, t->src, DC_BYTES, DEVICE_ALL_ACCESS,
				&t->ms[i]);
}

void dc_pair_down(struct dc_pair *t)
{
	for (unsigned i = 0; i < 2; i++) {
		struct dc_target *s = &t->dct[i];

		qp_destroy(t->dci[i].qp);
		CHECK(!cq_destroy(t->dci[i].cq.cq));
		if (s->qp)
			qp_destroy(s->qp);
		device_srq_down(&t->device, t->dev, &s->q);
		mkey_destroy(t->device.adapter[t->dev], t->ms[i]);
	}
	device_down(&t->device);
}

void dc_begin(struct dc_pair *t, unsigned dci, struct device_wqe *w, uint8_t opcode, uint32_t imm,
	      struct dc_to to)
{
	struct dc_target *s = &t->dct[to.dct];
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of(to.key),
		.dqp_dct = be32_of((s->qp ? qp_number(s->qp) : 0xfffff0) | WQE_AV_EXTENDED),
		.rlid = be16_of(7),
		.hop_limit = 1,
	};

	memcpy(av.rgid, test_subnet_gid_of(t->device.subnet, t->dev).raw, sizeof(av.rgid));
	device_wqe_begin(&t->dci[dci], w, opcode, WQE_CTRL_CE_ALWAYS, imm);
	w->bytes[9] = (uint8_t)(to.stream >> 8);
	w->bytes[10] = (uint8_t)to.stream;
	memcpy(w->bytes + w->at, &av, sizeof(av));
	w->at += sizeof(av);
}

void dc_send(struct dc_pair *t, unsigned dci, struct dc_to to, uint32_t off, uint32_t len)
{
	struct device_wqe w;

	dc_begin(t, dci, &w, WQE_OP_SEND_IMM, 0x1234, to);
	device_wqe_data(&w, t->src + off, len, mkey_key(t->ms[dci]));
	device_wqe_end(&w);
}

void dc_write(struct dc_pair *t, unsigned dci, struct dc_to to, uint32_t rkey, uint32_t lkey)
{
	struct device_wqe w;

	dc_begin(t, dci, &w, WQE_OP_RDMA_WRITE, 0, to);
	device_wqe_raddr(&w, (uintptr_t)t->dct[to.dct].q.mem, rkey);
	device_wqe_data(&w, t->src, DC_BYTES, lkey);
	device_wqe_end(&w);
}

void dc_expect_sent(struct dc_pair *t, unsigned dci, uint8_t opcode)
{
	const struct cqe64 *cqe = device_cq_poll(&t->dci[dci].cq);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ);
	CHECK(be32_get(cqe->sop_drop_qpn) == ((uint32_t)opcode << 24 | qp_number(t->dci[dci].qp)));
}

void dc_expect_failed(struct dc_pair *t, unsigned dci, uint8_t syndrome)
{
	const struct cqe64_err *cqe = NULL;

	for (unsigned i = 0; !cqe; i++) {
		CHECK(i < 1u << 30);
		cqe = (const struct cqe64_err *)device_cq_poll(&t->dci[dci].cq);
		if (!cqe)
			adapter_progress(t->device.adapter[t->dev], NULL);
	}
	CHECK(cqe->op_own >> 4 == CQE_OP_REQ_ERR);
	CHECK(cqe->syndrome == syndrome);
}

void dc_expect_received(struct dc_pair *t, unsigned dct, unsigned dci, uint32_t off, uint32_t len)
{
	struct dc_target *s = &t->dct[dct];
	const struct cqe64 *cqe = device_cq_poll(&s->q.cq);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_RESP_SEND_IMM);
	CHECK(be32_get(cqe->byte_cnt) == len && be32_get(cqe->imm_inval_pkey) == 0x1234);
	CHECK(be32_get(cqe->srqn_uidx) == DC_UIDX);
	CHECK((be32_get(cqe->flags_rqpn) & IB_QPN_MASK) == qp_number(t->dci[dci].qp));
	CHECK((be32_get(cqe->sop_drop_qpn) & IB_QPN_MASK) == qp_number(s->qp));
	CHECK(!memcmp(s->q.mem, t->src + off, len));
}

enum ib_qp_state dc_state_of(struct qp *qp)
{
	struct qp_attr attr;

	qp_query(qp, &attr);
	return attr.state;
}
