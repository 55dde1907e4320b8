// SPDX-License-Identifier: BSD-2-Clause
/*
 * A thread is held up while it retires a request: it has counted the request as ended, and has not
 * written the completion.  What another thread does meanwhile comes behind that completion: a
 * request that the bypass executes, and the event SQ_DRAINED.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "adapter/qp/send_cqe.h"
#include "exposed_pair.h"

/* The thread that is held up. */
static _Thread_local bool held;
static _Atomic(bool) is_held, let_go;

void __real_send_cqe_success(struct qp *qp, const struct send_op *op);
void __wrap_send_cqe_success(struct qp *qp, const struct send_op *op);

void __wrap_send_cqe_success(struct qp *qp, const struct send_op *op)
{
	if (held) {
		atomic_store(&is_held, true);
		while (!atomic_load(&let_go))
			usleep(10);
	}
	__real_send_cqe_success(qp, op);
}

static void *take_answer(void *pair)
{
	held = true;
	exposed_pair_progress(pair);
	return NULL;
}

/* A SEND whose answer another thread is about to complete. */
static pthread_t hold_send(struct exposed_pair *p)
{
	pthread_t thread;

	atomic_store(&is_held, false);
	atomic_store(&let_go, false);
	device_recv(&p->to->qp, p->to->data, EXPOSED_PAIR_BYTES, p->target_key);
	exposed_pair_post(p, WQE_OP_SEND, 0, 64);
	CHECK(!device_cq_poll(&p->from.cq));
	CHECK(!pthread_create(&thread, NULL, take_answer, p));
	while (!atomic_load(&is_held))
		usleep(10);
	return thread;
}

static void release(pthread_t thread)
{
	atomic_store(&let_go, true);
	CHECK(!pthread_join(thread, NULL));
}

static uint8_t next_opcode(struct exposed_pair *p)
{
	const struct cqe64 *cqe = device_cq_poll(&p->from.cq);

	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ);
	return (uint8_t)(be32_get(((const struct cqe64_err *)cqe)->s_wqe_opcode_qpn) >> 24);
}

/* A request that needs no packets if nothing is outstanding, posted meanwhile. */
static void test_bypass(uint8_t opcode)
{
	struct exposed_pair *p = exposed_pair_up(KEY_MAPPED);
	pthread_t thread;

	/* the bypass is open once the peer has been found */
	exposed_pair_post(p, opcode, 0, 64);
	exposed_pair_progress(p);
	CHECK(next_opcode(p) == opcode);
	thread = hold_send(p);
	exposed_pair_post(p, opcode, 0, 64);
	CHECK(!device_cq_poll(&p->from.cq));
	release(thread);
	exposed_pair_progress(p);
	CHECK(next_opcode(p) == WQE_OP_SEND);
	CHECK(next_opcode(p) == opcode);
	exposed_pair_down(p);
}

static void test_drained(void)
{
	struct exposed_pair *p = exposed_pair_up(KEY_MAPPED);
	struct qp_attr attr = {.state = IB_QPS_SQD, .en_sqd_async_notify = true};
	pthread_t thread;

	device_recv(&p->to->qp, p->to->data, EXPOSED_PAIR_BYTES, p->target_key);
	exposed_pair_post(p, WQE_OP_SEND, 0, 64);
	CHECK(!qp_modify(p->from.qp, &attr, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY));
	CHECK(!p->from.async[IB_EVENT_SQ_DRAINED] && !device_cq_poll(&p->from.cq));
	atomic_store(&is_held, false);
	atomic_store(&let_go, false);
	CHECK(!pthread_create(&thread, NULL, take_answer, p));
	while (!atomic_load(&is_held))
		usleep(10);
	/* somebody looks at the queue */
	device_ring(&p->from);
	CHECK(!p->from.async[IB_EVENT_SQ_DRAINED]);
	release(thread);
	exposed_pair_progress(p);
	CHECK(p->from.async[IB_EVENT_SQ_DRAINED] == 1);
	CHECK(next_opcode(p) == WQE_OP_SEND);
	exposed_pair_down(p);
}

int main(void)
{
	test_bypass(WQE_OP_RDMA_READ);
	test_bypass(WQE_OP_RDMA_WRITE);
	test_drained();
	return 0;
}
