// SPDX-License-Identifier: BSD-2-Clause
/*
 * The control path beside the data path: a request that is posted while a queue pair is modified,
 * queried or refused a modification is executed without another doorbell.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "adapter/qp/qp.h"
#include "adapter_device.h"
#include "check.h"

#define BYTES 64u
/* At least so many of both. */
#define REQUESTS 20000u
#define CONTROLS 5000u
/* Only a request that is lost takes so long. */
#define HANG_SECONDS 60

struct qp_control_case {
	struct test_device device;
	struct device_qp a, b;
	uint8_t src[BYTES], dst[BYTES];
	struct mkey *ma, *mb;
	uint32_t lkey, rkey;
	_Atomic(bool) over;
	_Atomic(uint32_t) controls; /* done by the other thread */
};

static void qp_control_case_up(struct qp_control_case *t)
{
	memset(t, 0, sizeof(*t));
	device_up(&t->device);
	device_qp_up(&t->device, 0, &t->a, IB_QPT_RC);
	device_qp_up(&t->device, 0, &t->b, IB_QPT_RC);
	device_connect(&t->device, 0, &t->a, &t->b);
	t->lkey = device_mr(&t->device, 0, t->a.pdn, t->src, BYTES, DEVICE_ALL_ACCESS, &t->ma);
	t->rkey = device_mr(&t->device, 0, t->b.pdn, t->dst, BYTES, DEVICE_ALL_ACCESS, &t->mb);
}

static void qp_control_case_down(struct qp_control_case *t)
{
	device_qp_down(&t->a);
	device_qp_down(&t->b);
	mkey_destroy(t->device.adapter[0], t->ma);
	mkey_destroy(t->device.adapter[0], t->mb);
	device_down(&t->device);
}

static void post_request(struct qp_control_case *t)
{
	struct device_wqe w;

	device_wqe_begin(&t->a, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)t->dst, t->rkey);
	device_wqe_data(&w, t->src, BYTES, t->lkey);
	device_wqe_end(&w);
}

/* Whoever holds the queue pair for the control path does what a doorbell asked for meanwhile. */
static void test_doorbell_under_lock(void)
{
	static struct qp_control_case t;

	qp_control_case_up(&t);
	qp_lock(t.a.qp);
	post_request(&t);
	CHECK(!device_cq_poll(&t.a.cq));
	qp_unlock(t.a.qp);
	CHECK(device_cq_poll(&t.a.cq));
	qp_control_case_down(&t);
}

static void *modify_in_vain(void *arg)
{
	const struct qp_attr attr = {.state = IB_QPS_RTS, .cur_state = IB_QPS_SQD};
	struct qp_control_case *t = arg;

	for (; !atomic_load(&t->over); t->controls++)
		CHECK(qp_modify(t->a.qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE) == -EINVAL);
	return NULL;
}

static void *modify_loop(void *arg)
{
	const struct qp_attr attr = {.state = IB_QPS_RTS, .min_rnr_timer = 1};
	struct qp_control_case *t = arg;

	for (; !atomic_load(&t->over); t->controls++)
		CHECK(!qp_modify(t->a.qp, &attr, IB_QP_STATE | IB_QP_MIN_RNR_TIMER));
	return NULL;
}

static void *query_loop(void *arg)
{
	struct qp_control_case *t = arg;

	for (; !atomic_load(&t->over); t->controls++) {
		struct qp_attr attr;
		uint16_t hw, sw;

		qp_query(t->a.qp, &attr);
		CHECK(attr.state == IB_QPS_RTS);
		qp_sq_counters(t->a.qp, &hw, &sw);
		qp_set_udp_sport(t->a.qp, 0xc000);
	}
	return NULL;
}

/* Nobody else would run the queue pair: there is no engine here, and no thread that progresses. */
static void expect_completion(struct qp_control_case *t)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	for (uint32_t i = 0; !device_cq_poll(&t->a.cq); i++) {
		CHECK(i < HANG_SECONDS * 1000);
		if (i < 1000)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
}

static void test_beside(void *(*control)(void *))
{
	static struct qp_control_case t;
	pthread_t thread;

	qp_control_case_up(&t);
	CHECK(!pthread_create(&thread, NULL, control, &t));
	for (uint32_t i = 0; i < REQUESTS || t.controls < CONTROLS; i++) {
		memset(t.src, (int)i, BYTES);
		post_request(&t);
		expect_completion(&t);
		CHECK(!memcmp(t.src, t.dst, BYTES));
	}
	atomic_store(&t.over, true);
	CHECK(!pthread_join(thread, NULL));
	qp_control_case_down(&t);
}

int main(void)
{
	test_doorbell_under_lock();
	test_beside(modify_in_vain);
	test_beside(modify_loop);
	test_beside(query_loop);
	return 0;
}
