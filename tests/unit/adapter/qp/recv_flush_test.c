// SPDX-License-Identifier: BSD-2-Clause
/* A receive that is posted at the moment when its queue pair goes to the error state is flushed. */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "adapter/core/device.h"
#include "adapter_device.h"
#include "base/clock.h"
#include "check.h"

#define ROUNDS CHECK_TIMES(100000u)
/* On a busy machine each round waits for the other thread's turn: then there are fewer. */
#define LIMIT_NS 30000000000ull
#define NO_MORE	 UINT32_MAX
/* Stores to memory that is in no cache, in front of the doorbell's, which so comes late. */
#define STORES	   20u
#define STRIDE	   4160u
#define SLOW_BYTES (64u << 20)

static struct {
	struct test_device device;
	struct device_qp q;
	uint8_t mem[64];
	uint32_t key;
	/* The number of the round that the poster may begin, and of the last that it has ended. */
	_Atomic(uint32_t) begin, end;
	pthread_t poster;
} t;

static uint8_t slow[SLOW_BYTES];

static void store_slowly(uint32_t round)
{
	size_t at = (size_t)round * STORES * STRIDE;

	for (uint32_t i = 0; i < STORES; i++)
		*(volatile uint8_t *)&slow[(at + i * STRIDE) % SLOW_BYTES] = 1;
}

static void wait_for(_Atomic(uint32_t) *word, uint32_t value)
{
	for (uint32_t n = 1, now; (now = atomic_load(word)) != value && now != NO_MORE; n++) {
		if (n % 256)
			cpu_relax();
		else
			sched_yield();
	}
}

/* By and by at each point of the other thread's way. */
static void delay_turns(uint32_t n)
{
	while (n--)
		cpu_relax();
}

static void *post_loop(void *arg)
{
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		wait_for(&t.begin, round);
		if (atomic_load(&t.begin) == NO_MORE)
			break;
		delay_turns(round * 7 % 61);
		store_slowly(round);
		device_recv(&t.q, t.mem, sizeof(t.mem), t.key);
		atomic_store(&t.end, round);
	}
	return arg;
}

static void qp_to_state(enum ib_qp_state state, uint32_t mask)
{
	struct qp_attr attr;

	device_attr(&t.device, 0, &t.q, &attr);
	attr.state = state;
	CHECK(!qp_modify(t.q.qp, &attr, IB_QP_STATE | mask));
}

int main(void)
{
	uint64_t end = clock_ns() + LIMIT_NS;
	struct mkey *m;

	device_up(&t.device);
	device_qp_up(&t.device, 0, &t.q, IB_QPT_UD);
	t.key = device_mr(&t.device, 0, t.q.pdn, t.mem, sizeof(t.mem), DEVICE_ALL_ACCESS, &m);
	CHECK(!pthread_create(&t.poster, NULL, post_loop, NULL));
	for (uint32_t round = 1; round <= ROUNDS && clock_ns() < end; round++) {
		const struct cqe64 *cqe;

		qp_to_state(IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_QKEY);
		atomic_store(&t.begin, round);
		delay_turns(round % 600);
		qp_to_state(IB_QPS_ERR, 0);
		wait_for(&t.end, round);
		adapter_run(t.device.adapter[0]);
		cqe = device_cq_poll(&t.q.cq);
		CHECK(cqe && cqe->op_own >> 4 == CQE_OP_RESP_ERR);
		CHECK(!device_cq_poll(&t.q.cq));
		qp_to_state(IB_QPS_RESET, 0);
		memset(t.q.dbrec, 0, sizeof(t.q.dbrec));
		t.q.rq_pi = 0;
	}
	atomic_store(&t.begin, NO_MORE);
	CHECK(!pthread_join(t.poster, NULL));
	device_qp_down(&t.q);
	mkey_destroy(t.device.adapter[0], m);
	device_down(&t.device);
	return 0;
}
