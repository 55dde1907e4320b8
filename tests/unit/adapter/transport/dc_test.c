// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dynamically connected transport: two initiators, two targets, each target with a shared receive
 * queue, a CQ and memory of its own.  Each request names its target.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "adapter/qp/path.h"
#include "adapter/core/device.h"
#include "adapter/qp/qp_state.h"
#include "adapter_rig.h"
#include "check.h"
#include "srq_rig.h"

#define BYTES	 RIG_SRQ_BYTES
#define KEY	 0x1122334455667788ull
#define UIDX	 0x55u
#define SIGNALED WQE_CTRL_CE_ALWAYS

struct target {
	struct rig_srq q;
	struct qp *qp;
};

struct bed {
	struct rig rig;
	unsigned dev;
	struct rig_qp dci[2];
	struct target dct[2];
	uint8_t src[BYTES];
	struct mkey *ms[2];
};

static void async(void *user, enum ib_event event)
{
	((struct rig_qp *)user)->async[event]++;
}

static void move(struct qp *qp, struct qp_attr *attr, enum ib_qp_state state, uint32_t mask)
{
	attr->state = state;
	CHECK(!qp_modify(qp, attr, IB_QP_STATE | mask));
}

#define DCI_INIT (IB_QP_PKEY_INDEX | IB_QP_PORT)
#define DCI_RTS \
	(IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC | IB_QP_SQ_PSN)
#define DCT_INIT (DCI_INIT | IB_QP_ACCESS_FLAGS)
#define DCT_RTR	 (IB_QP_AV | IB_QP_PATH_MTU | IB_QP_MIN_RNR_TIMER)

static void dci_to_rts(struct bed *t, struct rig_qp *q)
{
	struct qp_attr attr;

	rig_attr(&t->rig, t->dev, q, &attr);
	move(q->qp, &attr, IB_QPS_INIT, DCI_INIT);
	move(q->qp, &attr, IB_QPS_RTR, IB_QP_PATH_MTU);
	move(q->qp, &attr, IB_QPS_RTS, DCI_RTS);
}

static void dci_up(struct bed *t, struct rig_qp *q, int log_errored)
{
	struct qp_create_attr attr;

	memset(q, 0, sizeof(*q));
	q->pdn = pd_alloc(t->rig.adapter[t->dev]);
	rig_cq_up(&t->rig, t->dev, &q->cq);
	attr = (struct qp_create_attr){
		.type = IB_QPT_DCI,
		.pdn = q->pdn,
		.send_cq = q->cq.cq,
		.sq_buf = q->sq,
		.sq_blocks = RIG_BLOCKS,
		.dbrec = q->dbrec,
		.dc_streams = log_errored >= 0,
		.log_dc_errored = (uint8_t)(log_errored < 0 ? 0 : log_errored),
		.async = async,
		.user = q,
	};
	CHECK(!qp_create(t->rig.adapter[t->dev], &attr, &q->qp));
	dci_to_rts(t, q);
}

static void dct_create_qp(struct bed *t, struct target *s)
{
	struct qp_create_attr attr = {
		.type = IB_QPT_DCT,
		.pdn = s->q.pdn,
		.uidx = UIDX,
		.recv_cq = s->q.cq.cq,
		.srq = s->q.srq,
		.dc_key = KEY,
	};
	struct qp_attr to;

	CHECK(!qp_create(t->rig.adapter[t->dev], &attr, &s->qp));
	rig_attr(&t->rig, t->dev, &t->dci[0], &to);
	move(s->qp, &to, IB_QPS_INIT, DCT_INIT);
	move(s->qp, &to, IB_QPS_RTR, DCT_RTR);
}

static void dct_up(struct bed *t, struct target *s)
{
	rig_srq_up(&t->rig, t->dev, &s->q, 0, 0);
	dct_create_qp(t, s);
}

static void bed_up(struct bed *t, unsigned dev, int log_errored)
{
	memset(t, 0, sizeof(*t));
	rig_up(&t->rig);
	t->dev = dev;
	for (unsigned i = 0; i < 2; i++)
		dci_up(t, &t->dci[i], log_errored);
	for (unsigned i = 0; i < 2; i++)
		dct_up(t, &t->dct[i]);
	for (unsigned i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i * 5 + (i >> 7));
	for (unsigned i = 0; i < 2; i++)
		(void)rig_mr(&t->rig, dev, t->dci[i].pdn, t->src, BYTES, RIG_ALL_ACCESS, &t->ms[i]);
}

static void bed_down(struct bed *t)
{
	for (unsigned i = 0; i < 2; i++) {
		struct target *s = &t->dct[i];

		qp_destroy(t->dci[i].qp);
		CHECK(!cq_destroy(t->dci[i].cq.cq));
		if (s->qp)
			qp_destroy(s->qp);
		rig_srq_down(&t->rig, t->dev, &s->q);
		mkey_destroy(t->rig.adapter[t->dev], t->ms[i]);
	}
	rig_down(&t->rig);
}

struct to {
	unsigned dct;
	uint64_t key;
	uint16_t stream;
};

static void begin(struct bed *t, unsigned dci, struct rig_wqe *w, uint8_t opcode, uint32_t imm,
		  struct to to)
{
	struct target *s = &t->dct[to.dct];
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of(to.key),
		.dqp_dct = be32_of((s->qp ? qp_number(s->qp) : 0xfffff0) | WQE_AV_EXTENDED),
		.rlid = be16_of(7),
		.hop_limit = 1,
	};

	memcpy(av.rgid, t->rig.registry->ports[t->dev].gids[0].gid.raw, sizeof(av.rgid));
	rig_wqe_begin(&t->dci[dci], w, opcode, SIGNALED, imm);
	w->bytes[9] = (uint8_t)(to.stream >> 8);
	w->bytes[10] = (uint8_t)to.stream;
	memcpy(w->bytes + w->at, &av, sizeof(av));
	w->at += sizeof(av);
}

static void send(struct bed *t, unsigned dci, struct to to, uint32_t off, uint32_t len)
{
	struct rig_wqe w;

	begin(t, dci, &w, WQE_OP_SEND_IMM, 0x1234, to);
	rig_wqe_data(&w, t->src + off, len, mkey_key(t->ms[dci]));
	rig_wqe_end(&w);
}

static void write(struct bed *t, unsigned dci, struct to to, uint32_t rkey, uint32_t lkey)
{
	struct rig_wqe w;

	begin(t, dci, &w, WQE_OP_RDMA_WRITE, 0, to);
	rig_wqe_raddr(&w, (uintptr_t)t->dct[to.dct].q.mem, rkey);
	rig_wqe_data(&w, t->src, BYTES, lkey);
	rig_wqe_end(&w);
}

static void expect_sent(struct bed *t, unsigned dci, uint8_t opcode)
{
	const struct cqe64 *cqe = rig_cq_poll(&t->dci[dci].cq);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ);
	CHECK(be32_get(cqe->sop_drop_qpn) == ((uint32_t)opcode << 24 | qp_number(t->dci[dci].qp)));
}

static void expect_failed(struct bed *t, unsigned dci, uint8_t syndrome)
{
	const struct cqe64_err *cqe = NULL;

	for (unsigned i = 0; !cqe; i++) {
		CHECK(i < 1u << 30);
		cqe = (const struct cqe64_err *)rig_cq_poll(&t->dci[dci].cq);
		if (!cqe)
			adapter_progress(t->rig.adapter[t->dev], NULL);
	}
	CHECK(cqe->op_own >> 4 == CQE_OP_REQ_ERR);
	CHECK(cqe->syndrome == syndrome);
}

static void expect_received(struct bed *t, unsigned dct, unsigned dci, uint32_t off, uint32_t len)
{
	struct target *s = &t->dct[dct];
	const struct cqe64 *cqe = rig_cq_poll(&s->q.cq);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_RESP_SEND_IMM);
	CHECK(be32_get(cqe->byte_cnt) == len && be32_get(cqe->imm_inval_pkey) == 0x1234);
	CHECK(be32_get(cqe->srqn_uidx) == UIDX);
	CHECK((be32_get(cqe->flags_rqpn) & IB_QPN_MASK) == qp_number(t->dci[dci].qp));
	CHECK((be32_get(cqe->sop_drop_qpn) & IB_QPN_MASK) == qp_number(s->qp));
	CHECK(!memcmp(s->q.mem, t->src + off, len));
}

static enum ib_qp_state state_of(struct qp *qp)
{
	struct qp_attr attr;

	qp_query(qp, &attr);
	return attr.state;
}

static void test_send(unsigned dev)
{
	struct bed t;

	bed_up(&t, dev, -1);
	for (unsigned i = 0; i < 40; i++) {
		struct to to = {i % 3 % 2, KEY, 0};
		unsigned dci = i / 2 % 2;

		rig_srq_post(&t.dct[to.dct].q, BYTES);
		send(&t, dci, to, i, 1000 + 100 * i);
		expect_received(&t, to.dct, dci, i, 1000 + 100 * i);
		expect_sent(&t, dci, WQE_OP_SEND_IMM);
	}
	bed_down(&t);
}

static void test_remote_access(void)
{
	const struct to to = {1, KEY, 0}, other = {0, KEY, 0};
	struct bed t;
	struct rig_wqe w;
	struct target *s;
	uint64_t word = 40;

	bed_up(&t, 0, -1);
	s = &t.dct[1];
	write(&t, 0, to, s->q.key, mkey_key(t.ms[0]));
	expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
	CHECK(!memcmp(s->q.mem, t.src, BYTES));

	memset(t.src, 0, BYTES);
	begin(&t, 0, &w, WQE_OP_RDMA_READ, 0, to);
	rig_wqe_raddr(&w, (uintptr_t)s->q.mem, s->q.key);
	rig_wqe_data(&w, t.src, BYTES, mkey_key(t.ms[0]));
	rig_wqe_end(&w);
	expect_sent(&t, 0, WQE_OP_RDMA_READ);
	CHECK(!memcmp(s->q.mem, t.src, BYTES));

	memcpy(s->q.mem, &word, sizeof(word));
	begin(&t, 0, &w, WQE_OP_ATOMIC_FA, 0, to);
	rig_wqe_raddr(&w, (uintptr_t)s->q.mem, s->q.key);
	rig_wqe_atomic(&w, 2, 0);
	rig_wqe_data(&w, t.src, 8, mkey_key(t.ms[0]));
	rig_wqe_end(&w);
	expect_sent(&t, 0, WQE_OP_ATOMIC_FA);
	memcpy(&word, s->q.mem, sizeof(word));
	CHECK(word == 42);

	/* a key of another domain: the initiator's error, the target serves on */
	write(&t, 0, other, s->q.key, mkey_key(t.ms[0]));
	expect_failed(&t, 0, CQE_SYN_REM_ACCESS);
	CHECK(state_of(t.dci[0].qp) == IB_QPS_ERR);
	write(&t, 1, other, t.dct[0].q.key, mkey_key(t.ms[1]));
	expect_sent(&t, 1, WQE_OP_RDMA_WRITE);
	/* and serves the same initiator again, whose numbers begin anew */
	CHECK(!qp_modify(t.dci[0].qp, &(struct qp_attr){.state = IB_QPS_RESET}, IB_QP_STATE));
	t.dci[0].sq_pi = 0;
	t.dci[0].dbrec[DBREC_SEND] = be32_of(0);
	dci_to_rts(&t, &t.dci[0]);
	write(&t, 0, other, t.dct[0].q.key, mkey_key(t.ms[0]));
	expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
	bed_down(&t);
}

/* The access key, targets that are not (yet, or any more) there, a DCI as the target. */
static void test_wrong_target(void)
{
	for (unsigned what = 0; what < 4; what++) {
		struct to to = {0, KEY, 0};
		struct qp *gone;
		struct bed t;

		bed_up(&t, 0, -1);
		gone = t.dct[0].qp;
		rig_srq_post(&t.dct[0].q, BYTES);
		if (what == 0)
			to.key++;
		if (what == 1) {
			qp_destroy(gone);
			t.dct[0].qp = NULL;
		}
		if (what == 2) {
			struct qp_create_attr attr = {.type = IB_QPT_DCT,
						      .pdn = t.dct[0].q.pdn,
						      .recv_cq = t.dct[0].q.cq.cq,
						      .srq = t.dct[0].q.srq,
						      .dc_key = KEY};

			CHECK(!qp_create(t.rig.adapter[0], &attr, &t.dct[0].qp));
		}
		if (what == 3)
			t.dct[0].qp = t.dci[1].qp;
		send(&t, 0, to, 0, 100);
		if (what == 3)
			t.dct[0].qp = gone;
		expect_failed(&t, 0, what ? CQE_SYN_RETRY_EXC : CQE_SYN_REM_ACCESS);
		CHECK(!rig_cq_poll(&t.dct[0].q.cq));
		CHECK(state_of(t.dci[0].qp) == IB_QPS_ERR);
		if (what == 2)
			qp_destroy(gone);
		bed_down(&t);
	}
}

/* A target without receives keeps its initiator waiting, and with it what is for the other one. */
static void test_not_ready(void)
{
	const struct to first = {0, KEY, 0}, second = {1, KEY, 0};
	struct bed t;

	bed_up(&t, 0, -1);
	rig_srq_post(&t.dct[1].q, BYTES);
	send(&t, 0, first, 0, 100);
	send(&t, 0, second, 50, 200);
	CHECK(!rig_cq_poll(&t.dct[0].q.cq) && !rig_cq_poll(&t.dct[1].q.cq));
	/* another initiator does not wait */
	write(&t, 1, second, t.dct[1].q.key, mkey_key(t.ms[1]));
	expect_sent(&t, 1, WQE_OP_RDMA_WRITE);
	rig_srq_post(&t.dct[0].q, BYTES);
	while (t.dct[0].q.cq.ring[0].op_own >> 4 == CQE_OP_INVALID)
		adapter_progress(t.rig.adapter[0], NULL);
	adapter_progress(t.rig.adapter[0], NULL);
	expect_received(&t, 0, 0, 0, 100);
	expect_received(&t, 1, 0, 50, 200);
	expect_sent(&t, 0, WQE_OP_SEND_IMM);
	expect_sent(&t, 0, WQE_OP_SEND_IMM);
	bed_down(&t);
}

/* An error stays in its stream until there are too many of them. */
static void test_streams(void)
{
	struct bed t;

	bed_up(&t, 0, 1);
	for (uint16_t stream = 7; stream < 9; stream++) {
		const struct to to = {0, KEY, stream}, other = {0, KEY, 300};

		/* the local key is another initiator's */
		write(&t, 0, to, t.dct[0].q.key, mkey_key(t.ms[1]));
		expect_failed(&t, 0, CQE_SYN_LOCAL_PROT);
		if (stream == 8)
			break;
		write(&t, 0, to, t.dct[0].q.key, mkey_key(t.ms[0]));
		expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
		write(&t, 0, other, t.dct[0].q.key, mkey_key(t.ms[0]));
		expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
		CHECK(state_of(t.dci[0].qp) == IB_QPS_RTS);
		CHECK(qp_reset_stream(t.dci[0].qp, 300) == -EINVAL);
		CHECK(qp_reset_stream(t.dci[1].qp, stream) == -EINVAL);
		CHECK(!qp_reset_stream(t.dci[0].qp, stream));
		CHECK(qp_reset_stream(t.dci[0].qp, stream) == -EINVAL);
		/* as the command does that resets one */
		CHECK(!qp_modify(t.dci[0].qp,
				 &(struct qp_attr){.state = IB_QPS_RTS, .cur_state = IB_QPS_RTS},
				 IB_QP_STATE | IB_QP_CUR_STATE));
		write(&t, 0, to, t.dct[0].q.key, mkey_key(t.ms[0]));
		expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
		/* in error once more, by what the target says: the second one is too many */
		write(&t, 0, to, t.dct[1].q.key, mkey_key(t.ms[0]));
		expect_failed(&t, 0, CQE_SYN_REM_ACCESS);
		CHECK(state_of(t.dci[0].qp) == IB_QPS_RTS);
	}
	CHECK(state_of(t.dci[0].qp) == IB_QPS_ERR);
	write(&t, 0, (struct to){0, KEY, 400}, t.dct[0].q.key, mkey_key(t.ms[0]));
	expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
	bed_down(&t);
}

/* What was posted behind a request that fails: its own stream is flushed, in order. */
static void test_stream_queue(void)
{
	const struct to a = {0, KEY, 1}, b = {1, KEY, 2};
	struct bed t;

	bed_up(&t, 0, 2);
	/* The receiver is not ready, so all of these are in the queue when it gives up. */
	send(&t, 0, a, 0, 100);
	send(&t, 0, a, 0, 100);
	write(&t, 0, a, t.dct[0].q.key, mkey_key(t.ms[0]));
	write(&t, 0, b, t.dct[1].q.key, mkey_key(t.ms[0]));
	write(&t, 0, a, t.dct[0].q.key, mkey_key(t.ms[0]));
	write(&t, 0, b, t.dct[1].q.key, mkey_key(t.ms[0]));
	expect_failed(&t, 0, CQE_SYN_RNR_RETRY_EXC);
	expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
	expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
	adapter_progress(t.rig.adapter[0], NULL);
	expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
	expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
	expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
	CHECK(!memcmp(t.dct[1].q.mem, t.src, BYTES) && !t.dct[0].q.mem[5]);
	bed_down(&t);
}

/* ---- packets of initiators that are not there ---- */

#define STRANGER 0x812345u

static void packet(struct bed *t, uint32_t sqpn, uint8_t op, uint64_t connection, uint32_t psn,
		   uint32_t oldest, uint32_t bytes)
{
	const struct run run = {t->src, bytes};
	const struct pkt_dc dc = {.key = KEY, .connection = connection, .psn = oldest};
	const struct ib_ah ah = {.dlid = 7, .port_num = 1};
	struct path path;
	struct pkt p = {
		.opcode = BTH_DC | op,
		.pkey = 0xffff,
		.dqpn = qp_number(t->dct[0].qp),
		.sqpn = sqpn,
		.psn = psn,
		.npkts = 1,
		.dc = &dc,
		.path = &path,
		.payload_len = bytes,
		.nruns = bytes ? 1 : 0,
		.runs = &run,
	};

	path_from_ah(t->rig.adapter[0], &ah, &path);
	(void)wire_xmit(t->rig.wire[0], &p);
}

static void expect_message(struct bed *t, uint32_t bytes)
{
	const struct cqe64 *cqe = rig_cq_poll(&t->dct[0].q.cq);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_RESP_SEND && be32_get(cqe->byte_cnt) == bytes);
}

/* A message that its initiator gives up; what comes too late; what has no header. */
static void test_connections(void)
{
	const struct cqe64_err *err;
	struct bed t;

	bed_up(&t, 0, -1);
	for (unsigned i = 0; i < 4; i++)
		rig_srq_post(&t.dct[0].q, BYTES);
	packet(&t, STRANGER, BTH_SEND_FIRST, 10, 100, 100, 1024);
	packet(&t, STRANGER, BTH_SEND_ONLY, 12, 101, 101, 10);
	err = (const struct cqe64_err *)rig_cq_poll(&t.dct[0].q.cq);
	CHECK(err && err->op_own >> 4 == CQE_OP_RESP_ERR && err->syndrome == CQE_SYN_REM_ABORTED);
	expect_message(&t, 10);
	packet(&t, STRANGER, BTH_SEND_LAST, 10, 101, 100, 10);
	packet(&t, STRANGER, BTH_SEND_ONLY, 11, 102, 102, 10);
	/* of the second connection, and its first packet was lost */
	packet(&t, STRANGER + 1, BTH_SEND_ONLY, 1, 501, 500, 10);
	CHECK(!rig_cq_poll(&t.dct[0].q.cq));
	packet(&t, STRANGER + 1, BTH_SEND_ONLY, 1, 500, 500, 20);
	expect_message(&t, 20);
	/* one in the midst of a message when the target ends */
	packet(&t, STRANGER + 2, BTH_SEND_FIRST, 1, 1, 1, 1024);
	qp_destroy(t.dct[0].qp);
	t.dct[0].qp = NULL;
	err = (const struct cqe64_err *)rig_cq_poll(&t.dct[0].q.cq);
	CHECK(err && err->op_own >> 4 == CQE_OP_RESP_ERR && err->syndrome == CQE_SYN_WR_FLUSH);
	bed_down(&t);
}

/* More initiators than there are places: each is served, also one that comes back. */
static void test_many(void)
{
	const uint32_t n = (1u << ADAPTER_LOG_MAX_DCT_PEERS) + 100;
	struct bed t;

	bed_up(&t, 0, -1);
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < n; i++) {
			rig_srq_post(&t.dct[0].q, BYTES);
			packet(&t, STRANGER + i, BTH_SEND_ONLY, 5, 100 + round, 100 + round,
			       i % 99);
			expect_message(&t, i % 99);
		}
	bed_down(&t);
}

/* ---- several initiators at the same targets, each in a thread of its own ---- */

#define THREADS 3u
#define ROUNDS	400u

struct worker {
	struct bed *bed;
	struct rig_qp dci;
	uint64_t answer;
	struct mkey *mkey;
	pthread_t thread;
};

static void add_one(struct worker *w, unsigned dct)
{
	struct target *s = &w->bed->dct[dct];
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of(KEY),
		.dqp_dct = be32_of(qp_number(s->qp)),
		.rlid = be16_of(7),
	};
	struct rig_wqe wqe;

	rig_wqe_begin(&w->dci, &wqe, WQE_OP_ATOMIC_FA, SIGNALED, 0);
	/* the short form of an address */
	memcpy(wqe.bytes + wqe.at, &av, 16);
	wqe.at += 16;
	rig_wqe_raddr(&wqe, (uintptr_t)s->q.mem, s->q.key);
	rig_wqe_atomic(&wqe, 1, 0);
	rig_wqe_data(&wqe, &w->answer, sizeof(w->answer), mkey_key(w->mkey));
	rig_wqe_end(&wqe);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	const struct cqe64 *cqe;

	for (unsigned i = 0; i < ROUNDS; i++) {
		add_one(w, i / 3 % 2);
		while (!(cqe = rig_cq_poll(&w->dci.cq)))
			adapter_progress(w->bed->rig.adapter[0], NULL);
		CHECK(cqe->op_own >> 4 == CQE_OP_REQ);
	}
	return NULL;
}

static void test_threads(void)
{
	static struct worker w[THREADS];
	static struct bed t;
	uint64_t sum = 0;

	bed_up(&t, 0, -1);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i].bed = &t;
		dci_up(&t, &w[i].dci, -1);
		(void)rig_mr(&t.rig, 0, w[i].dci.pdn, &w[i].answer, sizeof(w[i].answer),
			     RIG_ALL_ACCESS, &w[i].mkey);
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&w[i].thread, NULL, work, &w[i]));
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK(!pthread_join(w[i].thread, NULL));
		qp_destroy(w[i].dci.qp);
		CHECK(!cq_destroy(w[i].dci.cq.cq));
		mkey_destroy(t.rig.adapter[0], w[i].mkey);
	}
	for (unsigned i = 0; i < 2; i++) {
		uint64_t count;

		memcpy(&count, t.dct[i].q.mem, sizeof(count));
		CHECK(count);
		sum += count;
	}
	CHECK(sum == THREADS * ROUNDS);
	bed_down(&t);
}

static void test_creation(void)
{
	struct bed t;
	struct adapter *a;
	struct qp_create_attr dct, dci;
	struct qp *qp;

	bed_up(&t, 0, -1);
	a = t.rig.adapter[0];
	dct = (struct qp_create_attr){
		.type = IB_QPT_DCT, .recv_cq = t.dct[0].q.cq.cq, .srq = t.dct[0].q.srq};
	dct.srq = NULL;
	CHECK(qp_create(a, &dct, &qp) == -EINVAL);
	dct.srq = t.dct[0].q.srq;
	dct.recv_cq = NULL;
	CHECK(qp_create(a, &dct, &qp) == -EINVAL);
	dct.recv_cq = t.dct[0].q.cq.cq;
	dct.send_cq = t.dct[0].q.cq.cq;
	CHECK(qp_create(a, &dct, &qp) == -EINVAL);
	dct.send_cq = NULL;
	dct.dc_streams = true;
	CHECK(qp_create(a, &dct, &qp) == -EINVAL);
	dci = (struct qp_create_attr){.type = IB_QPT_DCI, .send_cq = t.dct[0].q.cq.cq};
	dci.dc_streams = true;
	dci.log_dc_errored = ADAPTER_LOG_MAX_DC_ERRORED + 1;
	CHECK(qp_create(a, &dci, &qp) == -EINVAL);
	dci.log_dc_errored = 0;
	dci.srq = t.dct[0].q.srq;
	CHECK(qp_create(a, &dci, &qp) == -EINVAL);
	/* The target's queue and CQ stay while it is there. */
	CHECK(srq_destroy(t.dct[0].q.srq) == -EBUSY);
	CHECK(cq_destroy(t.dct[0].q.cq.cq) == -EBUSY);
	bed_down(&t);
}

static void test_states(void)
{
	const enum ib_qp_type i = IB_QPT_DCI, t = IB_QPT_DCT;
	const uint32_t rtr = IB_QP_PATH_MTU;

	CHECK(qp_transition_ok(i, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | DCI_INIT));
	CHECK(!qp_transition_ok(i, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | DCT_INIT));
	CHECK(!qp_transition_ok(i, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | IB_QP_PORT));
	CHECK(qp_transition_ok(i, IB_QPS_INIT, IB_QPS_RTR, IB_QP_STATE | rtr | IB_QP_AV));
	CHECK(!qp_transition_ok(i, IB_QPS_INIT, IB_QPS_RTR, IB_QP_STATE | rtr | IB_QP_DEST_QPN));
	CHECK(qp_transition_ok(i, IB_QPS_RTR, IB_QPS_RTS, IB_QP_STATE | DCI_RTS));
	CHECK(qp_transition_ok(i, IB_QPS_RTS, IB_QPS_RTS, IB_QP_STATE));
	CHECK(!qp_transition_ok(i, IB_QPS_RTS, IB_QPS_SQD, IB_QP_STATE));
	CHECK(qp_transition_ok(i, IB_QPS_RTS, IB_QPS_ERR, IB_QP_STATE));
	CHECK(!qp_transition_ok(i, IB_QPS_RESET, IB_QPS_ERR, IB_QP_STATE));
	CHECK(qp_transition_ok(i, IB_QPS_ERR, IB_QPS_RESET, IB_QP_STATE));
	CHECK(qp_transition_ok(t, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | DCT_INIT));
	CHECK(!qp_transition_ok(t, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | DCI_INIT));
	CHECK(qp_transition_ok(t, IB_QPS_INIT, IB_QPS_RTR, IB_QP_STATE | DCT_RTR));
	CHECK(!qp_transition_ok(t, IB_QPS_INIT, IB_QPS_RTR, IB_QP_STATE | rtr));
	CHECK(!qp_transition_ok(t, IB_QPS_RTR, IB_QPS_RTS, IB_QP_STATE));
	CHECK(!qp_transition_ok(t, IB_QPS_RTR, IB_QPS_RESET, IB_QP_STATE));
	CHECK(!qp_transition_ok(t, IB_QPS_RTR, IB_QPS_ERR, IB_QP_STATE));
}

int main(void)
{
	test_states();
	test_creation();
	test_send(0);
	test_send(1);
	test_remote_access();
	test_wrong_target();
	test_not_ready();
	test_streams();
	test_stream_queue();
	test_connections();
	test_many();
	test_threads();
	return 0;
}
