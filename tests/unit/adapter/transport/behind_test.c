// SPDX-License-Identifier: BSD-2-Clause
/*
 * Answers that are late.  While the peer's process could go on, it waits for a processor, and the
 * request waits with it; a process that is stopped does not answer.  Nor is anything lost while the
 * answer lies here, or while the peer says that it is not ready.  But what is lost, is: whatever
 * else goes on between the two processes.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "adapter/qp/qp.h"
#include "base/clock.h"
#include "signed_pair.h"

#define BYTES 512u
/* The requester's whole patience is 8 times 1.05 ms. */
#define LONG_NS 200000000u
/* Longer than one timeout. */
#define WAIT_US 1500u

static struct signed_pair pair;
static unsigned asked;

bool __real_task_goes_on(pid_t pid);
bool __wrap_task_goes_on(pid_t pid);

/* Opens files: nobody may have to spin for that. */
bool __wrap_task_goes_on(pid_t pid)
{
	struct spin *l = &pair.side[0].q.qp->comp.lock;

	CHECK(spin_try(l));
	spin_unlock(l);
	asked++;
	return __real_task_goes_on(pid);
}

static void put_write(void)
{
	struct device_wqe w;

	device_wqe_begin(&pair.side[0].q, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)pair.side[1].memory, pair.side[1].lkey);
	device_wqe_data(&w, pair.side[0].memory, BYTES, pair.side[0].lkey);
	device_wqe_put(&w);
}

static void post_write(void)
{
	put_write();
	device_ring(&pair.side[0].q);
}

static void post_send(void)
{
	struct device_wqe w;

	device_wqe_begin(&pair.side[0].q, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_data(&w, pair.side[0].memory, BYTES, pair.side[0].lkey);
	device_wqe_end(&w);
}

static void pair_up(pid_t peer)
{
	signed_pair_up(&pair, true);
	pair.fabric->slots[0].pid = getpid();
	pair.fabric->slots[1].pid = peer;
	signed_pair_connect(&pair, IB_MTU_1024);
	memset(pair.side[0].memory, 5, BYTES);
	memset(pair.side[1].memory, 0, BYTES);
}

/* Side 0 goes on alone. */
static const struct cqe64 *completes_alone(uint64_t ns)
{
	const struct cqe64 *c = NULL;

	for (uint64_t end = clock_ns() + ns; !c && clock_ns() < end;) {
		(void)wire_process_progress(pair.process[0].host);
		(void)adapter_progress(pair.device.adapter[0], NULL);
		c = device_cq_poll(&pair.side[0].q.cq);
	}
	return c;
}

static void test_waits_for_a_processor(void)
{
	pair_up(getpid());
	post_write();
	CHECK(!completes_alone(LONG_NS));
	CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
	CHECK(!memcmp(pair.side[0].memory, pair.side[1].memory, BYTES));
	signed_pair_down(&pair);
}

static void test_is_stopped(void)
{
	const struct cqe64_err *err;
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		raise(SIGSTOP);
		_exit(0);
	}
	CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
	pair_up(child);
	post_write();
	err = (const struct cqe64_err *)completes_alone(30000000000u);
	CHECK(err && err->op_own >> 4 == CQE_OP_REQ_ERR && err->syndrome == CQE_SYN_RETRY_EXC);
	CHECK(!kill(child, SIGKILL) && waitpid(child, &status, 0) == child);
	signed_pair_down(&pair);
}

static void hear(unsigned side)
{
	(void)wire_process_progress(pair.process[side].host);
}

/* Runs the timers that are due, and what they ask for. */
static void go_on(unsigned side)
{
	uint64_t deadline = UINT64_MAX;

	(void)adapter_progress(pair.device.adapter[side], &deadline);
}

static void time_out(void)
{
	usleep(WAIT_US);
	go_on(0);
}

static void answer(void)
{
	hear(1);
	go_on(1);
}

static void set_patience(uint8_t retry_cnt)
{
	const struct qp_attr sqd = {.state = IB_QPS_SQD}, rts = {.state = IB_QPS_RTS};
	const struct qp_attr retry = {.state = IB_QPS_SQD, .retry_cnt = retry_cnt};
	struct qp *qp = pair.side[0].q.qp;

	CHECK(!qp_modify(qp, &sqd, IB_QP_STATE));
	CHECK(!qp_modify(qp, &retry, IB_QP_STATE | IB_QP_RETRY_CNT));
	CHECK(!qp_modify(qp, &rts, IB_QP_STATE));
}

/* The timer fires while the answer is here, and nobody has had the time to take it. */
static void test_answer_is_here(void)
{
	pair_up(getpid());
	set_patience(0);
	for (unsigned i = 0; i < 20; i++) {
		post_write();
		/* The timer forgives the first time, in which the request was sent; the second one,
		 * in which the peer has not said yet how far it is; and the third one, in which it
		 * has. */
		for (unsigned late = 0; late < 4; late++) {
			answer();
			time_out();
		}
		CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
	}
	signed_pair_down(&pair);
}

/* The peer's process takes what was sent just before the timer fires, and then has no processor. */
static void test_answer_is_owed(void)
{
	pair_up(getpid());
	set_patience(0);
	for (unsigned i = 0; i < 20; i++) {
		/* The answer to several waits for the end of what has come. */
		put_write();
		post_write();
		time_out();
		time_out();
		hear(1);
		hear(1);
		time_out();
		go_on(1);
		CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
		CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
	}
	signed_pair_down(&pair);
}

/* Now and then an answer is late, and what comes at last is that there is no receive. */
static void test_not_ready(void)
{
	pair_up(getpid());
	post_send();
	for (unsigned i = 0; i < 20; i++) {
		go_on(0);
		answer();
		for (unsigned late = 0; late < 4; late++)
			time_out();
		hear(0);
		usleep(WAIT_US);
	}
	CHECK(!device_cq_poll(&pair.side[0].q.cq));
	device_recv(&pair.side[1].q, pair.side[1].memory, BYTES, pair.side[1].lkey);
	CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
	signed_pair_down(&pair);
}

/* What a queue pair sends is lost, while another one keeps the peer's process busy. */
static void test_lost_beside_a_stream(void)
{
	static struct device_qp lost;
	const struct cqe64_err *err = NULL;
	struct device_wqe w;
	struct qp_attr attr;

	pair_up(getpid());
	device_qp_up(&pair.device, 0, &lost, IB_QPT_RC);
	device_attr(&pair.device, 0, &pair.side[1].q, &attr);
	attr.ah.dlid = 9; /* the peer's */
	attr.dest_qpn++;  /* nobody */
	device_qp_ready(&lost, &attr);
	device_wqe_begin(&lost, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_inline(&w, "lost", 4);
	device_wqe_end(&w);
	for (unsigned i = 0; !err; i++) {
		CHECK(i < 100);
		post_write();
		time_out();
		err = (const struct cqe64_err *)device_cq_poll(&lost.cq);
		CHECK(cqe_op(next(&pair, 0)) == CQE_OP_REQ);
	}
	CHECK(err->op_own >> 4 == CQE_OP_REQ_ERR && err->syndrome == CQE_SYN_RETRY_EXC);
	device_qp_down(&lost);
	signed_pair_down(&pair);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_waits_for_a_processor();
	test_is_stopped();
	test_answer_is_here();
	test_answer_is_owed();
	test_not_ready();
	test_lost_beside_a_stream();
	CHECK(asked);
	return 0;
}
