/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The null key (zeros out of it, nothing into it), what keys tell of themselves, and completion
 * queues with time stamps and moderated events.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "adapter_device.h"
#include "base/clock.h"
#include "check.h"
#include "usermem/usermem.h"

#define BYTES 8192u
#define ALL   (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

struct bench {
	struct test_device device;
	struct device_qp a, b;
	uint8_t src[BYTES], dst[BYTES];
	struct mkey *src_mr, *dst_mr;
	uint32_t lkey, rkey;
	uint32_t null_key;
};

static struct bench bench;

static void bench_up(void)
{
	struct bench *t = &bench;
	int64_t key;

	device_up(&t->device);
	device_qp_up(&t->device, 0, &t->a, IB_QPT_RC);
	device_qp_up(&t->device, 0, &t->b, IB_QPT_RC);
	device_connect(&t->device, 0, &t->a, &t->b);
	for (unsigned i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i % 251 + 1);
	memset(t->dst, 0xee, BYTES);
	t->lkey = device_mr(&t->device, 0, t->a.pdn, t->src, BYTES, ALL, &t->src_mr);
	t->rkey = device_mr(&t->device, 0, t->b.pdn, t->dst, BYTES, ALL, &t->dst_mr);
	key = adapter_null_key(t->device.adapter[0]);
	CHECK(key > 0 && key == adapter_null_key(t->device.adapter[0]));
	t->null_key = (uint32_t)key;
}

static void bench_down(void)
{
	struct bench *t = &bench;

	device_qp_down(&t->a);
	device_qp_down(&t->b);
	mkey_destroy(t->device.adapter[0], t->src_mr);
	mkey_destroy(t->device.adapter[0], t->dst_mr);
	device_down(&t->device);
}

static uint8_t expect_cqe(struct device_qp *q)
{
	const struct cqe64 *cqe = device_cq_poll(&q->cq);

	CHECK(cqe);
	return cqe->op_own >> 4;
}

static void post_rdma(uint8_t opcode, uint64_t va, uint32_t lkey, uint32_t rkey, uint32_t len)
{
	struct bench *t = &bench;
	struct device_wqe w;

	device_wqe_begin(&t->a, &w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)t->dst, rkey);
	device_wqe_data(&w, (void *)(uintptr_t)va, len, lkey);
	device_wqe_end(&w);
}

/* Pages of address space. */
static unsigned long address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages;
}

static void null_key(void)
{
	struct bench *t = &bench;
	struct device_wqe w;
	unsigned long before = address_space();

	bench_up();
	/* Every program has the key; only those that read through it pay for the zeros. */
	CHECK(address_space() - before < IB_MAX_MSG_BYTES / 4096);
	/* zeros out, whatever the address */
	post_rdma(WQE_OP_RDMA_WRITE, UINT64_MAX - 3, t->null_key, t->rkey, BYTES);
	CHECK(expect_cqe(&t->a) == CQE_OP_REQ);
	for (unsigned i = 0; i < BYTES; i++)
		CHECK(!t->dst[i]);
	/* an answer that nobody wants */
	post_rdma(WQE_OP_RDMA_READ, 0, t->null_key, t->rkey, BYTES);
	CHECK(expect_cqe(&t->a) == CQE_OP_REQ);

	/* a receive of which the middle is dropped */
	device_recv(&t->b, t->dst, 2048, t->rkey);
	memcpy(t->b.rq,
	       (struct wqe_data[3]){{be32_of(100), be32_of(t->rkey), be64_of((uintptr_t)t->dst)},
				    {be32_of(1000), be32_of(t->null_key), be64_of(5)},
				    {be32_of(100), be32_of(t->rkey),
				     be64_of((uintptr_t)t->dst + 100)}},
	       3 * sizeof(struct wqe_data));
	device_wqe_begin(&t->a, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_data(&w, t->src, 1200, t->lkey);
	device_wqe_end(&w);
	CHECK(expect_cqe(&t->b) == CQE_OP_RESP_SEND && expect_cqe(&t->a) == CQE_OP_REQ);
	CHECK(!memcmp(t->dst, t->src, 100) && !memcmp(t->dst + 100, t->src + 1100, 100));
	CHECK(!t->dst[200]);

	/* not for peers; and not one bit beside */
	post_rdma(WQE_OP_RDMA_WRITE, (uintptr_t)t->src, t->lkey, t->null_key, 8);
	CHECK(expect_cqe(&t->a) == CQE_OP_REQ_ERR);
	bench_down();
	bench_up();
	post_rdma(WQE_OP_RDMA_WRITE, 0, t->null_key + 1, t->rkey, 8);
	CHECK(expect_cqe(&t->a) == CQE_OP_REQ_ERR);
	bench_down();
}

static void discard_between_lists(void)
{
	char from[64], head[16] = {0}, tail[16] = {0};
	struct run src[2] = {{from, 40}, {from + 40, 24}};
	struct run dst[3] = {{head, 16}, {RUN_DISCARD, 32}, {tail, 16}};
	struct run none = {RUN_DISCARD, 64};

	for (unsigned i = 0; i < sizeof(from); i++)
		from[i] = (char)i;
	CHECK(usermem_pull(dst, 3, src, 2));
	CHECK(!memcmp(head, from, 16) && !memcmp(tail, from + 48, 16));
	CHECK(usermem_pull(&none, 1, src, 2));
	CHECK(!usermem_pull(&none, 1, src, 1));
}

static void keys_tell(void)
{
	struct bench *t = &bench;
	struct mkey_attr attr;

	bench_up();
	CHECK(!mkey_query(t->device.adapter[0], t->lkey, &attr));
	CHECK(attr.addr == t->src && attr.length == BYTES && attr.access == ALL);
	CHECK(attr.pdn == t->a.pdn && attr.iova == (uintptr_t)t->src);
	CHECK(mkey_query(t->device.adapter[0], t->lkey + 1, &attr) == -ENOENT);
	CHECK(mkey_query(t->device.adapter[0], 0, &attr) == -ENOENT);
	CHECK(mkey_query(t->device.adapter[0], UINT32_MAX, &attr) == -ENOENT);
	bench_down();
}

static void write_some(unsigned n)
{
	while (n--)
		post_rdma(WQE_OP_RDMA_WRITE, (uintptr_t)bench.src, bench.lkey, bench.rkey, 8);
}

static void arm_cq(uint32_t sn)
{
	struct device_cq *cq = &bench.a.cq;

	cq->dbrec[DBREC_CQ_ARM] = be32_of(sn << 28 | (cq->ci & 0xffffff));
	cq_doorbell(cq->cq);
}

static void drain_cq(unsigned n)
{
	while (n--)
		CHECK(expect_cqe(&bench.a) == CQE_OP_REQ);
	CHECK(!device_cq_poll(&bench.a.cq));
}

static void test_moderation(void)
{
	struct bench *t = &bench;
	struct device_cq *cq = &t->a.cq;
	uint64_t deadline = UINT64_MAX, before;

	bench_up();
	/* by number: those that were polled before arming do not count */
	cq_moderate(cq->cq, 4, 0);
	write_some(10);
	drain_cq(10);
	arm_cq(0);
	write_some(3);
	CHECK(!cq->events);
	(void)adapter_progress(t->device.adapter[0], &deadline);
	CHECK(deadline > clock_ns() + 1000000000);
	write_some(1);
	CHECK(cq->events == 1);
	drain_cq(4);

	/* by time: from the first one */
	cq_moderate(cq->cq, 100, 2000);
	arm_cq(1);
	before = clock_ns();
	write_some(1);
	(void)adapter_progress(t->device.adapter[0], &deadline);
	CHECK(deadline >= before + 2000000 && deadline <= clock_ns() + 2000000);
	write_some(5);
	while (cq->events == 1 && clock_ns() < before + 1000000000)
		(void)adapter_progress(t->device.adapter[0], NULL);
	CHECK(cq->events == 2 && clock_ns() >= before + 2000000);
	drain_cq(6);

	/* consumed in time: no event, and the next one is timed anew */
	arm_cq(2);
	write_some(1);
	drain_cq(1);
	usleep(2100);
	(void)adapter_progress(t->device.adapter[0], NULL);
	CHECK(cq->events == 2);
	/* off: what waits is told at once */
	arm_cq(2);
	write_some(2);
	CHECK(cq->events == 2);
	cq_moderate(cq->cq, 0, 0);
	CHECK(cq->events == 3);
	drain_cq(2);
	arm_cq(3);
	write_some(1);
	CHECK(cq->events == 4);
	/* destroyed while one waits */
	cq_moderate(cq->cq, 100, 1000);
	drain_cq(1);
	arm_cq(4);
	write_some(1);
	bench_down();
}

static void test_timestamps(void)
{
	static struct device_cq cq;
	struct bench *t = &bench;
	struct cq_attr attr = {
		.buf = cq.ring,
		.entries = DEVICE_CQES,
		.cqe_bytes = CQE_BYTES,
		.dbrec = cq.dbrec,
		.timestamps = true,
	};
	struct device_qp *q = &t->a;
	struct cq *plain;
	uint64_t before;

	bench_up();
	before = clock_ns();
	/* without: nothing there */
	write_some(1);
	CHECK(!be64_get(q->cq.ring[0].timestamp));
	drain_cq(1);

	/* the same queue pair's completions in a CQ that says when */
	qp_destroy(q->qp);
	plain = q->cq.cq;
	for (unsigned i = 0; i < DEVICE_CQES; i++)
		cq.ring[i].op_own = CQE_OP_INVALID << 4;
	CHECK(!cq_create(t->device.adapter[0], &attr, &cq.cq));
	memset(q->dbrec, 0, sizeof(q->dbrec));
	q->sq_pi = q->rq_pi = 0;
	CHECK(!qp_create(t->device.adapter[0],
			 &(struct qp_create_attr){.type = IB_QPT_RC,
						  .pdn = q->pdn,
						  .send_cq = cq.cq,
						  .recv_cq = cq.cq,
						  .sq_buf = q->sq,
						  .sq_blocks = DEVICE_BLOCKS,
						  .rq_buf = q->rq,
						  .rq_wqes = DEVICE_RECVS,
						  .rq_wqe_bytes = DEVICE_RQ_BYTES,
						  .dbrec = q->dbrec},
			 &q->qp));
	device_connect(&t->device, 0, q, q);
	mkey_destroy(t->device.adapter[0], t->dst_mr);
	t->rkey = device_mr(&t->device, 0, q->pdn, t->dst, BYTES, ALL, &t->dst_mr);
	write_some(2);
	for (unsigned i = 0; i < 2; i++) {
		const struct cqe64 *cqe = device_cq_poll(&cq);

		CHECK(cqe && be64_get(cqe->timestamp) >= before);
		before = be64_get(cqe->timestamp);
	}
	CHECK(before <= clock_ns());
	/* an error's syndrome lies in the same place */
	post_rdma(WQE_OP_RDMA_WRITE, (uintptr_t)t->src, t->lkey + 1, t->rkey, 8);
	CHECK(((const struct cqe64_err *)device_cq_poll(&cq))->syndrome == CQE_SYN_LOCAL_PROT);
	qp_destroy(q->qp);
	CHECK(!cq_destroy(cq.cq) && !cq_destroy(plain));
	device_qp_down(&t->b);
	mkey_destroy(t->device.adapter[0], t->src_mr);
	mkey_destroy(t->device.adapter[0], t->dst_mr);
	device_down(&t->device);
}

int main(void)
{
	null_key();
	discard_between_lists();
	keys_tell();
	test_moderation();
	test_timestamps();
	return 0;
}
