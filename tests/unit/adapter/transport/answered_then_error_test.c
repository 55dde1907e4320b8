// SPDX-License-Identifier: BSD-2-Clause
/*
 * A request that the other side has acknowledged ends well, although nobody has looked at the acknowledgement
 * when the program moves the queue pair to the error state.
 *
 *     side 0, sends and never polls --- channel --- side 1, receives
 */
#include "adapter/qp/qp.h"
#include "signed_pair.h"

#define BYTES 64u

static struct signed_pair pair;

static void send_some(unsigned n)
{
	struct signed_pair_side *s = &pair.side[0];
	struct device_wqe w;

	while (n--) {
		device_wqe_begin(&s->q, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_data(&w, s->memory, BYTES, s->lkey);
		device_wqe_end(&w);
	}
}

static void side_1_receives(unsigned n)
{
	struct signed_pair_side *s = &pair.side[1];

	while (n) {
		const struct cqe64 *c;

		(void)wire_process_progress(pair.process[1].host);
		(void)adapter_progress(pair.device.adapter[1], NULL);
		c = device_cq_poll(&s->q.cq);
		CHECK(!c || cqe_op(c) == CQE_OP_RESP_SEND);
		n -= c != NULL;
	}
	/* Its acknowledgement goes at the latest when it finds nothing else. */
	for (int i = 0; i < 10; i++) {
		(void)wire_process_progress(pair.process[1].host);
		(void)adapter_progress(pair.device.adapter[1], NULL);
	}
}

/* 'receives' of the sent messages find a receive. */
static void test_error(unsigned sent, unsigned receives)
{
	const struct qp_attr error = {.state = IB_QPS_ERR};
	const struct cqe64 *c;

	signed_pair_up(&pair, true);
	signed_pair_connect(&pair, IB_MTU_1024);
	for (unsigned i = 0; i < receives; i++)
		device_recv(&pair.side[1].q, pair.side[1].memory, BYTES, pair.side[1].lkey);
	signed_pair_progress(&pair);
	send_some(sent);
	side_1_receives(receives);
	CHECK(!device_cq_poll(&pair.side[0].q.cq));
	CHECK(!qp_modify(pair.side[0].q.qp, &error, IB_QP_STATE));
	for (unsigned i = 0; i < receives; i++) {
		c = device_cq_poll(&pair.side[0].q.cq);
		CHECK(c && cqe_op(c) == CQE_OP_REQ);
	}
	for (unsigned i = receives; i < sent; i++) {
		c = signed_pair_wait(&pair, &pair.side[0].q.cq);
		CHECK(cqe_op(c) == CQE_OP_REQ_ERR);
	}
	signed_pair_down(&pair);
}

int main(void)
{
	test_error(1, 1);
	test_error(3, 3);
	test_error(3, 1);
	return 0;
}
