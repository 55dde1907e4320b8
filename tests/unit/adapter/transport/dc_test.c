// SPDX-License-Identifier: BSD-2-Clause
/* Dynamically connected transport.  Each request names its target. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "adapter/bypass/bypass.h"
#include "adapter/qp/path.h"
#include "adapter/core/device.h"
#include "adapter/qp/qp_state.h"
#include "adapter/transport/completer.h"
#include "adapter_device.h"
#include "base/explain.h"
#include "captured.h"
#include "check.h"
#include "dc_pair.h"
#include "srq_device.h"

#define SIGNALED WQE_CTRL_CE_ALWAYS

static void test_send(unsigned dev)
{
	struct dc_pair t;

	dc_pair_up(&t, dev, -1);
	for (unsigned i = 0; i < 40; i++) {
		struct dc_to to = {i % 3 % 2, DC_KEY, 0};
		unsigned dci = i / 2 % 2;

		device_srq_post(&t.dct[to.dct].q, DC_BYTES);
		dc_send(&t, dci, to, i, 1000 + 100 * i);
		dc_expect_received(&t, to.dct, dci, i, 1000 + 100 * i);
		dc_expect_sent(&t, dci, WQE_OP_SEND_IMM);
	}
	dc_pair_down(&t);
}

static void test_remote_access(void)
{
	const struct dc_to to = {1, DC_KEY, 0}, other = {0, DC_KEY, 0};
	struct dc_pair t;
	struct device_wqe w;
	struct dc_target *s;
	uint64_t word = 40;

	dc_pair_up(&t, 0, -1);
	s = &t.dct[1];
	dc_write(&t, 0, to, s->q.key, mkey_key(t.ms[0]));
	dc_expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
	CHECK(!memcmp(s->q.mem, t.src, DC_BYTES));

	memset(t.src, 0, DC_BYTES);
	dc_begin(&t, 0, &w, WQE_OP_RDMA_READ, 0, to);
	device_wqe_raddr(&w, (uintptr_t)s->q.mem, s->q.key);
	device_wqe_data(&w, t.src, DC_BYTES, mkey_key(t.ms[0]));
	device_wqe_end(&w);
	dc_expect_sent(&t, 0, WQE_OP_RDMA_READ);
	CHECK(!memcmp(s->q.mem, t.src, DC_BYTES));

	memcpy(s->q.mem, &word, sizeof(word));
	dc_begin(&t, 0, &w, WQE_OP_ATOMIC_FA, 0, to);
	device_wqe_raddr(&w, (uintptr_t)s->q.mem, s->q.key);
	device_wqe_atomic(&w, 2, 0);
	device_wqe_data(&w, t.src, 8, mkey_key(t.ms[0]));
	device_wqe_end(&w);
	dc_expect_sent(&t, 0, WQE_OP_ATOMIC_FA);
	memcpy(&word, s->q.mem, sizeof(word));
	CHECK(word == 42);

	/* a key of another domain: the initiator's error, the target serves on */
	dc_write(&t, 0, other, s->q.key, mkey_key(t.ms[0]));
	dc_expect_failed(&t, 0, CQE_SYN_REM_ACCESS);
	CHECK(dc_state_of(t.dci[0].qp) == IB_QPS_ERR);
	dc_write(&t, 1, other, t.dct[0].q.key, mkey_key(t.ms[1]));
	dc_expect_sent(&t, 1, WQE_OP_RDMA_WRITE);
	/* and serves the same initiator again, whose numbers begin anew */
	CHECK(!qp_modify(t.dci[0].qp, &(struct qp_attr){.state = IB_QPS_RESET}, IB_QP_STATE));
	t.dci[0].sq_pi = 0;
	t.dci[0].dbrec[DBREC_SEND] = be32_of(0);
	dc_dci_to_rts(&t, &t.dci[0]);
	dc_write(&t, 0, other, t.dct[0].q.key, mkey_key(t.ms[0]));
	dc_expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
	dc_pair_down(&t);
}

/* The access key, targets that are not (yet, or any more) there, a DCI as the target. */
static void test_wrong_target(void)
{
	static const char *const said[] = {
		"NAK remote access: the request has the access key 0x1122334455667789, the DC "
		"target 0x1122334455667788 ",
		"", /* nothing arrives anywhere */
		"dropped: the DC target is in state RESET",
		"dropped: the QP is a DC initiator",
	};

	for (unsigned what = 0; what < 4; what++) {
		struct dc_to to = {0, DC_KEY, 0};
		struct qp *gone;
		struct dc_pair t;

		dc_pair_up(&t, 0, -1);
		gone = t.dct[0].qp;
		device_srq_post(&t.dct[0].q, DC_BYTES);
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
						      .dc_key = DC_KEY};

			CHECK(!qp_create(t.device.adapter[0], &attr, &t.dct[0].qp));
		}
		if (what == 3)
			t.dct[0].qp = t.dci[1].qp;
		explain_on = true;
		capture_begin();
		dc_send(&t, 0, to, 0, 100);
		CHECK(strstr(capture_end(), said[what]));
		explain_on = false;
		if (what == 3)
			t.dct[0].qp = gone;
		dc_expect_failed(&t, 0, what ? CQE_SYN_RETRY_EXC : CQE_SYN_REM_ACCESS);
		CHECK(!device_cq_poll(&t.dct[0].q.cq));
		CHECK(dc_state_of(t.dci[0].qp) == IB_QPS_ERR);
		if (what == 2)
			qp_destroy(gone);
		dc_pair_down(&t);
	}
}

/* A target without receives keeps its initiator waiting, and with it what is for the other one. */
static void test_not_ready(void)
{
	const struct dc_to first = {0, DC_KEY, 0}, second = {1, DC_KEY, 0};
	struct dc_pair t;

	dc_pair_up(&t, 0, -1);
	device_srq_post(&t.dct[1].q, DC_BYTES);
	dc_send(&t, 0, first, 0, 100);
	dc_send(&t, 0, second, 50, 200);
	CHECK(!device_cq_poll(&t.dct[0].q.cq) && !device_cq_poll(&t.dct[1].q.cq));
	/* another initiator does not wait */
	dc_write(&t, 1, second, t.dct[1].q.key, mkey_key(t.ms[1]));
	dc_expect_sent(&t, 1, WQE_OP_RDMA_WRITE);
	device_srq_post(&t.dct[0].q, DC_BYTES);
	while (t.dct[0].q.cq.ring[0].op_own >> 4 == CQE_OP_INVALID)
		adapter_progress(t.device.adapter[0], NULL);
	adapter_progress(t.device.adapter[0], NULL);
	dc_expect_received(&t, 0, 0, 0, 100);
	dc_expect_received(&t, 1, 0, 50, 200);
	dc_expect_sent(&t, 0, WQE_OP_SEND_IMM);
	dc_expect_sent(&t, 0, WQE_OP_SEND_IMM);
	dc_pair_down(&t);
}

/* An error stays in its stream until there are too many of them. */
static void test_streams(void)
{
	struct dc_pair t;

	dc_pair_up(&t, 0, 1);
	for (uint16_t stream = 7; stream < 9; stream++) {
		const struct dc_to to = {0, DC_KEY, stream}, other = {0, DC_KEY, 300};

		/* the local key is another initiator's */
		dc_write(&t, 0, to, t.dct[0].q.key, mkey_key(t.ms[1]));
		dc_expect_failed(&t, 0, CQE_SYN_LOCAL_PROT);
		if (stream == 8)
			break;
		dc_write(&t, 0, to, t.dct[0].q.key, mkey_key(t.ms[0]));
		dc_expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
		dc_write(&t, 0, other, t.dct[0].q.key, mkey_key(t.ms[0]));
		dc_expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
		CHECK(dc_state_of(t.dci[0].qp) == IB_QPS_RTS);
		CHECK(qp_reset_stream(t.dci[0].qp, 300) == -EINVAL);
		CHECK(qp_reset_stream(t.dci[1].qp, stream) == -EINVAL);
		CHECK(!qp_reset_stream(t.dci[0].qp, stream));
		CHECK(qp_reset_stream(t.dci[0].qp, stream) == -EINVAL);
		/* as the command does that resets one */
		CHECK(!qp_modify(t.dci[0].qp, &(struct qp_attr){.state = IB_QPS_RTS}, IB_QP_STATE));
		dc_write(&t, 0, to, t.dct[0].q.key, mkey_key(t.ms[0]));
		dc_expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
		/* in error once more, by what the target says: the second one is too many */
		dc_write(&t, 0, to, t.dct[1].q.key, mkey_key(t.ms[0]));
		dc_expect_failed(&t, 0, CQE_SYN_REM_ACCESS);
		CHECK(dc_state_of(t.dci[0].qp) == IB_QPS_RTS);
	}
	CHECK(dc_state_of(t.dci[0].qp) == IB_QPS_ERR);
	dc_write(&t, 0, (struct dc_to){0, DC_KEY, 400}, t.dct[0].q.key, mkey_key(t.ms[0]));
	dc_expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
	dc_pair_down(&t);
}

/* The completion waits until peers have left what was given up.  A modification, which waits for them, too, ends
 * that wait and tells nobody. */
static void test_wait_ends(void)
{
	const struct dc_to to = {0, DC_KEY, 7};
	struct dc_pair t;
	struct qp *dci;

	dc_pair_up(&t, 0, 1);
	dci = t.dci[0].qp;
	/* There is no receive, so it stays outstanding. */
	dc_send(&t, 0, to, 0, 100);
	atomic_store(&dci->comp.withdrawn, 1);
	atomic_fetch_add(&dci->comp.given_up, 1);
	completer_done(dci, atomic_load(&dci->comp.head), CQE_SYN_RNR_RETRY_EXC);
	CHECK(!device_cq_poll(&t.dci[0].cq));
	bypass_revoke_qp(dci);
	atomic_store(&dci->waiting, 0);
	(void)adapter_progress(t.device.adapter[0], NULL);
	dc_expect_failed(&t, 0, CQE_SYN_RNR_RETRY_EXC);
	CHECK(dc_state_of(dci) == IB_QPS_RTS);
	dc_pair_down(&t);
}

/* A malformed read fails at once: a fence of another stream does not wait for its answer. */
static void test_malformed_read(void)
{
	const struct dc_to broken = {0, DC_KEY, 1}, other = {0, DC_KEY, 2};
	struct device_wqe w;
	struct dc_pair t;

	dc_pair_up(&t, 0, 4);
	dc_begin(&t, 0, &w, WQE_OP_RDMA_READ, 0, broken);
	device_wqe_end(&w);
	dc_expect_failed(&t, 0, CQE_SYN_LOCAL_QP_OP);
	CHECK(dc_state_of(t.dci[0].qp) == IB_QPS_RTS);
	dc_begin(&t, 0, &w, WQE_OP_RDMA_WRITE, 0, other);
	w.bytes[11] |= WQE_CTRL_FENCE;
	device_wqe_raddr(&w, (uintptr_t)t.dct[0].q.mem, t.dct[0].q.key);
	device_wqe_data(&w, t.src, DC_BYTES, mkey_key(t.ms[0]));
	device_wqe_end(&w);
	dc_expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
	dc_pair_down(&t);
}

/* A request that tells of the first error alone tells of its own, whatever happened in other streams; what
 * is flushed in its stream is silent. */
static void test_first_errors(void)
{
	struct device_wqe w;
	struct dc_pair t;

	dc_pair_up(&t, 0, 4);
	for (uint16_t stream = 1; stream < 4; stream++) {
		const struct dc_to to = {0, DC_KEY, stream};

		for (unsigned i = 0; i < 3; i++) {
			dc_begin(&t, 0, &w, WQE_OP_RDMA_READ, 0, to);
			w.bytes[11] = (uint8_t)((w.bytes[11] & ~WQE_CTRL_CE_MASK) |
						WQE_CTRL_CE_FIRST_ERROR);
			device_wqe_end(&w);
		}
		dc_expect_failed(&t, 0, CQE_SYN_LOCAL_QP_OP);
		CHECK(!device_cq_poll(&t.dci[0].cq));
	}
	CHECK(dc_state_of(t.dci[0].qp) == IB_QPS_RTS);
	dc_pair_down(&t);
}

/* What was posted behind a request that fails: its own stream is flushed, in order. */
static void test_stream_queue(void)
{
	const struct dc_to a = {0, DC_KEY, 1}, b = {1, DC_KEY, 2};
	struct dc_pair t;

	dc_pair_up(&t, 0, 2);
	/* The receiver is not ready, so all of these are in the queue when it gives up. */
	dc_send(&t, 0, a, 0, 100);
	dc_send(&t, 0, a, 0, 100);
	dc_write(&t, 0, a, t.dct[0].q.key, mkey_key(t.ms[0]));
	dc_write(&t, 0, b, t.dct[1].q.key, mkey_key(t.ms[0]));
	dc_write(&t, 0, a, t.dct[0].q.key, mkey_key(t.ms[0]));
	dc_write(&t, 0, b, t.dct[1].q.key, mkey_key(t.ms[0]));
	dc_expect_failed(&t, 0, CQE_SYN_RNR_RETRY_EXC);
	dc_expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
	dc_expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
	adapter_progress(t.device.adapter[0], NULL);
	dc_expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
	dc_expect_failed(&t, 0, CQE_SYN_WR_FLUSH);
	dc_expect_sent(&t, 0, WQE_OP_RDMA_WRITE);
	CHECK(!memcmp(t.dct[1].q.mem, t.src, DC_BYTES) && !t.dct[0].q.mem[5]);
	dc_pair_down(&t);
}

/* ---- several initiators at the same targets, each in a thread of its own ---- */

#define THREADS 3u
#define ROUNDS	400u

struct worker {
	struct dc_pair *pair;
	struct device_qp dci;
	uint64_t answer;
	struct mkey *mkey;
	pthread_t thread;
};

static void add_one(struct worker *w, unsigned dct)
{
	struct dc_target *s = &w->pair->dct[dct];
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of(DC_KEY),
		.dqp_dct = be32_of(qp_number(s->qp)),
		.rlid = be16_of(7),
	};
	struct device_wqe wqe;

	device_wqe_begin(&w->dci, &wqe, WQE_OP_ATOMIC_FA, SIGNALED, 0);
	/* the short form of an address */
	memcpy(wqe.bytes + wqe.at, &av, 16);
	wqe.at += 16;
	device_wqe_raddr(&wqe, (uintptr_t)s->q.mem, s->q.key);
	device_wqe_atomic(&wqe, 1, 0);
	device_wqe_data(&wqe, &w->answer, sizeof(w->answer), mkey_key(w->mkey));
	device_wqe_end(&wqe);
}

static void *work_loop(void *arg)
{
	struct worker *w = arg;
	const struct cqe64 *cqe;

	for (unsigned i = 0; i < ROUNDS; i++) {
		add_one(w, i / 3 % 2);
		while (!(cqe = device_cq_poll(&w->dci.cq)))
			adapter_progress(w->pair->device.adapter[0], NULL);
		CHECK(cqe->op_own >> 4 == CQE_OP_REQ);
	}
	return NULL;
}

static void test_threads(void)
{
	static struct worker w[THREADS];
	static struct dc_pair t;
	uint64_t sum = 0;

	dc_pair_up(&t, 0, -1);
	for (unsigned i = 0; i < THREADS; i++) {
		w[i].pair = &t;
		dc_dci_up(&t, &w[i].dci, -1);
		(void)device_mr(&t.device, 0, w[i].dci.pdn, &w[i].answer, sizeof(w[i].answer),
				DEVICE_ALL_ACCESS, &w[i].mkey);
	}
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&w[i].thread, NULL, work_loop, &w[i]));
	for (unsigned i = 0; i < THREADS; i++) {
		CHECK(!pthread_join(w[i].thread, NULL));
		qp_destroy(w[i].dci.qp);
		CHECK(!cq_destroy(w[i].dci.cq.cq));
		mkey_destroy(t.device.adapter[0], w[i].mkey);
	}
	for (unsigned i = 0; i < 2; i++) {
		uint64_t count;

		memcpy(&count, t.dct[i].q.mem, sizeof(count));
		CHECK(count);
		sum += count;
	}
	CHECK(sum == THREADS * ROUNDS);
	dc_pair_down(&t);
}

static void test_creation(void)
{
	struct dc_pair t;
	struct adapter *a;
	struct qp_create_attr dct, dci;
	struct qp *qp;

	dc_pair_up(&t, 0, -1);
	a = t.device.adapter[0];
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
	dc_pair_down(&t);
}

static void test_states(void)
{
	const enum ib_qp_type i = IB_QPT_DCI, t = IB_QPT_DCT;
	const uint32_t rtr = IB_QP_PATH_MTU;

	CHECK(qp_transition_ok(i, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | DC_DCI_INIT));
	CHECK(!qp_transition_ok(i, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | DC_DCT_INIT));
	CHECK(!qp_transition_ok(i, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | IB_QP_PORT));
	CHECK(qp_transition_ok(i, IB_QPS_INIT, IB_QPS_RTR, IB_QP_STATE | rtr | IB_QP_AV));
	CHECK(!qp_transition_ok(i, IB_QPS_INIT, IB_QPS_RTR, IB_QP_STATE | rtr | IB_QP_DEST_QPN));
	CHECK(qp_transition_ok(i, IB_QPS_RTR, IB_QPS_RTS, IB_QP_STATE | DC_DCI_RTS));
	CHECK(qp_transition_ok(i, IB_QPS_RTS, IB_QPS_RTS, IB_QP_STATE));
	CHECK(!qp_transition_ok(i, IB_QPS_RTS, IB_QPS_SQD, IB_QP_STATE));
	CHECK(qp_transition_ok(i, IB_QPS_RTS, IB_QPS_ERR, IB_QP_STATE));
	CHECK(!qp_transition_ok(i, IB_QPS_RESET, IB_QPS_ERR, IB_QP_STATE));
	CHECK(qp_transition_ok(i, IB_QPS_ERR, IB_QPS_RESET, IB_QP_STATE));
	CHECK(qp_transition_ok(t, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | DC_DCT_INIT));
	CHECK(!qp_transition_ok(t, IB_QPS_RESET, IB_QPS_INIT, IB_QP_STATE | DC_DCI_INIT));
	CHECK(qp_transition_ok(t, IB_QPS_INIT, IB_QPS_RTR, IB_QP_STATE | DC_DCT_RTR));
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
	test_wait_ends();
	test_malformed_read();
	test_stream_queue();
	test_first_errors();
	test_threads();
	return 0;
}
