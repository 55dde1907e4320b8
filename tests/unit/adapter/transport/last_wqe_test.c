// SPDX-License-Identifier: BSD-2-Clause
/*
 * A queue pair with a shared receive queue fails in the middle of a message: when its program hears
 * LAST_WQE_REACHED, the completion of the receive in use is in the completion queue.  The program
 * takes that, and then the queue pair apart.
 */
#include "adapter/qp/qp.h"
#include "check.h"
#include "srq_device.h"

static struct test_device device;
static struct device_srq srq;
static unsigned events;

static void on_async(void *user, enum ib_event event)
{
	const struct cqe64_err *cqe = (const void *)device_cq_poll(user);

	CHECK(event == IB_EVENT_QP_LAST_WQE_REACHED);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_RESP_ERR && cqe->syndrome == CQE_SYN_WR_FLUSH);
	events++;
}

static struct qp *make_qp(void)
{
	static _Alignas(64) uint8_t ring[DEVICE_BLOCKS * WQE_BLOCK];
	static be32 dbrec[2];
	const struct qp_create_attr create = {
		.type = IB_QPT_UC,
		.pdn = srq.pdn,
		.send_cq = srq.cq.cq,
		.recv_cq = srq.cq.cq,
		.srq = srq.srq,
		.sq_buf = ring,
		.sq_blocks = DEVICE_BLOCKS,
		.dbrec = dbrec,
		.async = on_async,
		.user = &srq.cq,
	};
	struct qp *qp;

	CHECK(!qp_create(device.adapter[0], &create, &qp));
	return qp;
}

/* Fails as the program or as the device lets it. */
static void test_failure(bool modify)
{
	const struct qp_attr attr = {.state = IB_QPS_ERR};
	struct qp *qp;

	device_up(&device);
	device_srq_up(&device, 0, &srq, 0, 0);
	qp = make_qp();
	device_srq_post(&srq, 64);
	/* the first packet of a message has come */
	qp->resp.have_recv = true;
	qp->resp.in_message = true;
	atomic_store(&qp->state, (uint32_t)IB_QPS_RTS);
	events = 0;
	if (modify) {
		CHECK(!qp_modify(qp, &attr, IB_QP_STATE));
	} else {
		qp_fail(qp, "test");
		adapter_run(device.adapter[0]);
	}
	CHECK(events == 1);
	qp_destroy(qp);
	device_srq_down(&device, 0, &srq);
	device_down(&device);
}

int main(void)
{
	test_failure(true);
	test_failure(false);
	return 0;
}
