// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs of SENDs from one process to another, whose threads look, post receives and poll at once; and the receiver
 * leaves the connection in the middle.  Each receive completes once, in its order, and holds the next message.
 *
 *     side 0: a sender --- channel --- side 1: a thread that polls and posts, others that look
 */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "adapter/qp/qp.h"
#include "base/hazard.h"
#include "signed_pair.h"
#include "test_fault.h"

#define RUN	 16u
#define LOOKERS	 2u
#define MESSAGES 4000u

struct threads_case {
	struct signed_pair pair;
	_Atomic(bool) over;
	_Atomic(uint32_t) received, flushed;
	_Atomic(uint32_t) posted;
	uint32_t stop_at;
	unsigned sent, send_completed;
	bool failed;
};

static struct threads_case t;

static void look(unsigned side)
{
	(void)adapter_progress(t.pair.device.adapter[side], NULL);
	(void)wire_process_progress(t.pair.process[side].host);
}

static void *look_on(void *arg)
{
	(void)arg;
	while (!atomic_load(&t.over)) {
		look(1);
		sched_yield();
	}
	return NULL;
}

static uint64_t *word_at(uint32_t n)
{
	return (uint64_t *)(void *)(t.pair.side[1].memory + (size_t)(n % DEVICE_RECVS) * 64);
}

static void post_receives(void)
{
	while (t.posted < MESSAGES && t.posted - atomic_load(&t.received) < DEVICE_RECVS)
		device_recv(&t.pair.side[1].q, word_at(t.posted++), 64, t.pair.side[1].lkey);
}

static void take_receive(const struct cqe64 *c)
{
	uint32_t n = atomic_load(&t.received);

	CHECK(be16_get(c->wqe_counter) == (uint16_t)(n + t.flushed));
	if (cqe_op(c) == CQE_OP_RESP_ERR) {
		CHECK(t.stop_at && ((const struct cqe64_err *)c)->syndrome == CQE_SYN_WR_FLUSH);
		atomic_fetch_add(&t.flushed, 1);
		return;
	}
	CHECK(!t.flushed && cqe_op(c) == CQE_OP_RESP_SEND && be32_get(c->byte_cnt) == 8);
	CHECK(*word_at(n) == n);
	atomic_store(&t.received, n + 1);
}

static void *receive_all(void *arg)
{
	const struct cqe64 *c;

	(void)arg;
	while (!atomic_load(&t.over)) {
		look(1);
		while ((c = device_cq_poll(&t.pair.side[1].q.cq)))
			take_receive(c);
		if (!t.stop_at || atomic_load(&t.received) < t.stop_at)
			post_receives();
	}
	return NULL;
}

/* Takes the receiver away. */
static void *stop_receiver(void *arg)
{
	const struct qp_attr err = {.state = IB_QPS_ERR};

	(void)arg;
	while (atomic_load(&t.received) < t.stop_at)
		sched_yield();
	CHECK(!qp_modify(t.pair.side[1].q.qp, &err, IB_QP_STATE));
	return NULL;
}

static void send_run(void)
{
	struct device_qp *q = &t.pair.side[0].q;
	struct device_wqe w;

	for (unsigned i = 0; i < RUN; i++) {
		uint64_t word = t.sent++;

		device_wqe_begin(q, &w, WQE_OP_SEND, i + 1 < RUN ? 0 : WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_inline(&w, &word, sizeof(word));
		device_wqe_put(&w);
	}
	device_ring(q);
}

static void take_sent(void)
{
	const struct cqe64 *c;

	while ((c = device_cq_poll(&t.pair.side[0].q.cq))) {
		if (cqe_op(c) == CQE_OP_REQ) {
			CHECK(!t.failed);
			t.send_completed += RUN;
			continue;
		}
		CHECK(t.stop_at);
		if (!t.failed)
			CHECK(((const struct cqe64_err *)c)->syndrome == CQE_SYN_RETRY_EXC);
		t.failed = true;
	}
}

static void run_case(bool exposed, uint32_t stop_at)
{
	pthread_t looker[LOOKERS], receiver, stopper;
	struct qp_attr retry = {.state = IB_QPS_SQD, .timeout = 12, .retry_cnt = 1, .rnr_retry = 7};
	const struct qp_attr sqd = {.state = IB_QPS_SQD}, rts = {.state = IB_QPS_RTS};

	memset(&t, 0, sizeof(t));
	t.stop_at = stop_at;
	if (exposed)
		signed_pair_up_exposed(&t.pair);
	else
		signed_pair_up(&t.pair, true);
	signed_pair_connect(&t.pair, IB_MTU_1024);
	if (stop_at) {
		CHECK(!qp_modify(t.pair.side[0].q.qp, &sqd, IB_QP_STATE));
		CHECK(!qp_modify(t.pair.side[0].q.qp, &retry,
				 IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT));
		CHECK(!qp_modify(t.pair.side[0].q.qp, &rts, IB_QP_STATE));
	}
	signed_pair_progress(&t.pair);
	signed_pair_progress(&t.pair);
	CHECK(!pthread_create(&receiver, NULL, receive_all, NULL));
	for (unsigned i = 0; i < LOOKERS; i++)
		CHECK(!pthread_create(&looker[i], NULL, look_on, NULL));
	if (stop_at)
		CHECK(!pthread_create(&stopper, NULL, stop_receiver, NULL));
	while (!t.failed && t.send_completed < MESSAGES) {
		uint64_t deadline = UINT64_MAX;

		if (t.sent < MESSAGES && t.sent - t.send_completed + RUN <= DEVICE_BLOCKS)
			send_run();
		(void)adapter_progress(t.pair.device.adapter[0], &deadline);
		(void)wire_process_progress(t.pair.process[0].host);
		take_sent();
	}
	if (stop_at) {
		CHECK(!pthread_join(stopper, NULL));
		while (t.received + t.flushed < t.posted)
			sched_yield();
	} else {
		while (atomic_load(&t.received) < MESSAGES)
			sched_yield();
	}
	atomic_store(&t.over, true);
	CHECK(!pthread_join(receiver, NULL));
	for (unsigned i = 0; i < LOOKERS; i++)
		CHECK(!pthread_join(looker[i], NULL));
	/* What the sender was told of is here. */
	CHECK(t.received + t.flushed == t.posted && t.received >= t.send_completed);
	signed_pair_down(&t.pair);
}

int main(void)
{
	alarm(300);
	test_fault_catch();
	for (unsigned exposed = 0; exposed < 2; exposed++) {
		run_case(exposed, 0);
		for (unsigned i = 0; i < 4; i++)
			run_case(exposed, 200 + i * 131);
	}
	return 0;
}
