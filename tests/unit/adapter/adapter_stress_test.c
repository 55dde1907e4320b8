// SPDX-License-Identifier: BSD-2-Clause
/*
 * Many threads on one adapter, to be run under ThreadSanitizer:
 *
 *     thread 0..3:  own RC pair, both ends;  all of them also send datagrams to one QP
 *     thread 4:     adapter_progress, as the engine would
 *     thread 5:     makes, connects, uses and destroys queue pairs and keys all the time
 *
 * Every thread checks its own data and counts its completions; the datagram QP counts what it gets.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "adapter_device.h"
#include "check.h"

#define WORKERS	 4
#define ROUNDS	 10000
#define BYTES	 3000u
#define ALL	 (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
#define SIGNALED WQE_CTRL_CE_ALWAYS

static struct test_device device;
static struct device_qp hub; /* the datagram QP */
static _Atomic(bool) over;

static const struct cqe64 *wait_cqe(struct device_qp *q)
{
	const struct cqe64 *c;

	while (!(c = device_cq_poll(&q->cq)))
		adapter_progress(device.adapter[0], NULL);
	return c;
}

static void write_and_read_back(struct device_qp *a, uint8_t *src, uint32_t lkey, uint8_t *dst,
				uint32_t rkey)
{
	for (unsigned op = 0; op < 2; op++) {
		struct device_wqe w;
		const struct cqe64 *c;

		device_wqe_begin(a, &w, op ? WQE_OP_RDMA_READ : WQE_OP_RDMA_WRITE, SIGNALED, 0);
		device_wqe_raddr(&w, (uintptr_t)dst, rkey);
		device_wqe_data(&w, op ? src + BYTES : src, BYTES, lkey);
		device_wqe_end(&w);
		c = wait_cqe(a);
		CHECK(c->op_own >> 4 == CQE_OP_REQ);
	}
	CHECK(!memcmp(src, dst, BYTES));
	CHECK(!memcmp(src, src + BYTES, BYTES));
}

static void send_datagram(struct device_qp *from, const uint8_t *src, uint32_t lkey)
{
	const struct wqe_av av = {
		.dc_key_or_qkey = be64_of(0x11111111ull << 32),
		.dqp_dct = be32_of(WQE_AV_EXTENDED | qp_number(hub.qp)),
		.rlid = be16_of(7),
	};
	struct device_wqe w;

	device_wqe_begin(from, &w, WQE_OP_SEND, SIGNALED, 0);
	memcpy(w.bytes + w.at, &av, sizeof(av));
	w.at += sizeof(av);
	device_wqe_data(&w, src, 100, lkey);
	device_wqe_end(&w);
	CHECK(wait_cqe(from)->op_own >> 4 == CQE_OP_REQ);
}

static void work_rounds(unsigned seed, unsigned rounds)
{
	struct device_qp *q = aligned_alloc(64, 3 * sizeof(*q));
	uint8_t *src = malloc((size_t)2 * BYTES), *dst = malloc(BYTES);
	struct mkey *m[3];
	uint32_t lkey, rkey, ud_lkey;

	CHECK(q && src && dst);
	device_qp_up(&device, 0, &q[0], IB_QPT_RC);
	device_qp_up(&device, 0, &q[1], IB_QPT_RC);
	device_qp_up(&device, 0, &q[2], IB_QPT_UD);
	device_connect(&device, 0, &q[0], &q[1]);
	device_connect(&device, 0, &q[2], &q[2]);
	lkey = device_mr(&device, 0, q[0].pdn, src, (uint64_t)2 * BYTES, ALL, &m[0]);
	rkey = device_mr(&device, 0, q[1].pdn, dst, BYTES, ALL, &m[1]);
	ud_lkey = device_mr(&device, 0, q[2].pdn, src, BYTES, ALL, &m[2]);
	for (unsigned i = 0; i < rounds; i++) {
		memset(src, (int)(seed + i), BYTES);
		write_and_read_back(&q[0], src, lkey, dst, rkey);
		send_datagram(&q[2], src, ud_lkey);
	}
	for (unsigned i = 0; i < 3; i++) {
		device_qp_down(&q[i]);
		mkey_destroy(device.adapter[0], m[i]);
	}
	free(q);
	free(src);
	free(dst);
}

static void *worker_loop(void *arg)
{
	work_rounds((unsigned)(uintptr_t)arg, ROUNDS);
	return NULL;
}

static void *churner_loop(void *arg)
{
	(void)arg;
	while (!atomic_load(&over))
		work_rounds(77, 3);
	return NULL;
}

static void *engine_loop(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		uint64_t deadline = UINT64_MAX;

		adapter_progress(device.adapter[0], &deadline);
	}
	return NULL;
}

int main(void)
{
	static uint8_t sink[4096];
	struct mkey *m;
	pthread_t t[WORKERS], helper[2];
	uint32_t key, got = 0;

	device_up(&device);
	device_qp_up(&device, 0, &hub, IB_QPT_UD);
	device_connect(&device, 0, &hub, &hub);
	key = device_mr(&device, 0, hub.pdn, sink, sizeof(sink), ALL, &m);
	for (unsigned i = 0; i < DEVICE_RECVS; i++)
		device_recv(&hub, sink, sizeof(sink), key);

	CHECK(!pthread_create(&helper[0], NULL, engine_loop, NULL));
	CHECK(!pthread_create(&helper[1], NULL, churner_loop, NULL));
	for (unsigned i = 0; i < WORKERS; i++)
		CHECK(!pthread_create(&t[i], NULL, worker_loop, (void *)(uintptr_t)i));
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(t[i], NULL);
	atomic_store(&over, true);
	pthread_join(helper[0], NULL);
	pthread_join(helper[1], NULL);

	/* as many as there were receives; the rest was dropped, as datagrams are */
	while (device_cq_poll(&hub.cq))
		got++;
	CHECK(got == DEVICE_RECVS);
	device_qp_down(&hub);
	mkey_destroy(device.adapter[0], m);
	device_down(&device);
	return 0;
}
