// SPDX-License-Identifier: BSD-2-Clause
/*
 * Plain RDMA WRITEs, many to a doorbell, mixed with requests that are not plain: bytes,
 * completions, sequence numbers and counters are those of the same requests one by one.
 *
 *     device_qp a --- loopback --- device_qp b
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "adapter_device.h"
#include "base/trace.h"
#include "captured.h"
#include "check.h"
#include "test_fault.h"

#define BUF    8192u
#define MTU    1024u
#define ROUNDS 3000u
#define ALL    (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

struct rdma_burst_case {
	struct test_device device;
	unsigned dev;
	struct device_qp a, b;
	uint8_t *src, *dst, *model;
	struct mkey *ma, *mb;
	uint32_t lkey, rkey;
	struct rng rng;
	/* what is expected of the requests that were put into the ring */
	uint16_t signaled[DEVICE_BLOCKS];
	unsigned nsignaled;
	uint64_t packets, words, requests;
};

static void *map_pages(void)
{
	void *p = mmap(NULL, BUF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void rdma_burst_case_up(struct rdma_burst_case *d, unsigned dev)
{
	*d = (struct rdma_burst_case){.dev = dev, .rng = {12345 + dev}};
	device_up(&d->device);
	device_qp_up(&d->device, dev, &d->a, IB_QPT_RC);
	device_qp_up(&d->device, dev, &d->b, IB_QPT_RC);
	device_connect(&d->device, dev, &d->a, &d->b);
	d->src = map_pages();
	d->dst = map_pages();
	d->model = map_pages();
	for (unsigned i = 0; i < BUF; i++)
		d->src[i] = (uint8_t)rng_next(&d->rng);
	d->lkey = device_mr(&d->device, dev, d->a.pdn, d->src, BUF, ALL, &d->ma);
	d->rkey = device_mr(&d->device, dev, d->b.pdn, d->dst, BUF, ALL, &d->mb);
}

static void rdma_burst_case_down(struct rdma_burst_case *d)
{
	device_qp_down(&d->a);
	device_qp_down(&d->b);
	mkey_destroy(d->device.adapter[d->dev], d->ma);
	mkey_destroy(d->device.adapter[d->dev], d->mb);
	device_down(&d->device);
	munmap(d->src, BUF);
	munmap(d->dst, BUF);
	munmap(d->model, BUF);
}

/* Octets of a WRITE and its acknowledgement beside the payload (IBTA chapter 9, annex A17). */
static uint64_t headers_of_write(unsigned dev, uint32_t packets)
{
	/* LRH, BTH, ICRC; or Ethernet with its FCS, IPv6, UDP, BTH, ICRC */
	uint64_t each = dev ? 14 + 4 + 40 + 8 + 12 + 4 : 8 + 12 + 4;

	return packets * each + 16 /* RETH */ + each + 4 /* AETH */;
}

static uint64_t counter_of(struct rdma_burst_case *d, enum port_counter c)
{
	uint64_t sum = 0;

	for (unsigned shard = 0; shard < SLOT_SHARDS; shard++)
		sum += d->device.slots[0].counters[shard][d->dev][c];
	return sum;
}

/* The completion entry field of a request: "on error" and none; "always" and "always, with
 * event". */
#define CE_ON_ERROR	0x04u
#define CE_ALWAYS_EVENT 0x0cu

static const uint8_t ce_silent[] = {0, CE_ON_ERROR};
static const uint8_t ce_signaled[] = {WQE_CTRL_CE_ALWAYS, CE_ALWAYS_EVENT};

/* One request of random form; expects what it does. */
static void put_write(struct rdma_burst_case *d)
{
	static const uint32_t lens[] = {1, 4, 7, 8, 12, 13, 28, 29, 64, 200, MTU - 1, MTU};
	uint32_t len = lens[rng_below(&d->rng, array_size(lens))];
	uint32_t from = (uint32_t)rng_below(&d->rng, BUF - len);
	uint32_t to = (uint32_t)rng_below(&d->rng, BUF - len);
	bool signaled = !rng_below(&d->rng, 4);
	uint8_t ce = (signaled ? ce_signaled : ce_silent)[rng_below(&d->rng, 2)];
	unsigned form = (unsigned)rng_below(&d->rng, 4);
	uint32_t packets = div_round_up(len, MTU);
	struct device_wqe w;

	if (signaled)
		d->signaled[d->nsignaled++] = d->a.sq_pi;
	device_wqe_begin(&d->a, &w, WQE_OP_RDMA_WRITE, ce, 0);
	device_wqe_raddr(&w, (uintptr_t)d->dst + to, d->rkey);
	if (form == 0 && len <= 200) {
		device_wqe_inline(&w, d->src + from, len);
	} else if (form == 1 && len > 1) {
		device_wqe_data(&w, d->src + from, len / 2, d->lkey);
		device_wqe_data(&w, d->src + from + len / 2, len - len / 2, d->lkey);
	} else {
		device_wqe_data(&w, d->src + from, len, d->lkey);
	}
	device_wqe_put(&w);
	memcpy(d->model + to, d->src + from, len);
	d->packets += packets;
	d->words += (headers_of_write(d->dev, packets) + align_up(len, 4)) / 4;
	d->requests++;
}

static void expect_completions(struct rdma_burst_case *d)
{
	for (unsigned i = 0; i < d->nsignaled; i++) {
		const struct cqe64 *c = device_cq_poll(&d->a.cq);

		CHECK(c && c->op_own >> 4 == CQE_OP_REQ);
		CHECK(be16_get(c->wqe_counter) == d->signaled[i]);
		CHECK(be32_get(c->sop_drop_qpn) ==
		      ((uint32_t)WQE_OP_RDMA_WRITE << 24 | qp_number(d->a.qp)));
	}
	CHECK(!device_cq_poll(&d->a.cq) && !device_cq_poll(&d->b.cq));
	d->nsignaled = 0;
}

static void test_random_lists(unsigned dev)
{
	struct qp_attr before, a, b;
	struct rdma_burst_case d;

	rdma_burst_case_up(&d, dev);
	qp_query(d.a.qp, &before);
	for (unsigned round = 0; round < ROUNDS; round++) {
		/* of up to 5 blocks each: never more than the ring holds */
		for (uint64_t n = 1 + rng_below(&d.rng, DEVICE_BLOCKS / 5); n; n--)
			put_write(&d);
		device_ring(&d.a);
		expect_completions(&d);
		CHECK(!memcmp(d.dst, d.model, BUF));
	}
	qp_query(d.a.qp, &a);
	qp_query(d.b.qp, &b);
	CHECK(a.sq_psn == ((before.sq_psn + d.packets) & IB_PSN_MASK));
	CHECK(b.rq_psn == a.sq_psn && a.rq_psn == before.rq_psn);
	CHECK(counter_of(&d, HW_RX_WRITE_REQUESTS) == d.requests);
	CHECK(counter_of(&d, PORT_XMIT_PACKETS) == d.packets + d.requests);
	CHECK(counter_of(&d, PORT_RCV_PACKETS) == d.packets + d.requests);
	CHECK(counter_of(&d, PORT_XMIT_DATA) == d.words &&
	      counter_of(&d, PORT_RCV_DATA) == d.words);
	rdma_burst_case_down(&d);
}

static void put_plain(struct rdma_burst_case *d, uint64_t va, uint32_t rkey, const void *from,
		      uint32_t len, uint32_t lkey)
{
	struct device_wqe w;

	device_wqe_begin(&d->a, &w, WQE_OP_RDMA_WRITE, 0, 0);
	device_wqe_raddr(&w, va, rkey);
	device_wqe_data(&w, from, len, lkey);
	device_wqe_put(&w);
}

static struct cqe64_err poll_error(struct device_qp *q)
{
	const struct cqe64 *c = device_cq_poll(&q->cq);
	struct cqe64_err e;

	CHECK(c && c->op_own >> 4 == CQE_OP_REQ_ERR);
	memcpy(&e, c, sizeof(e));
	return e;
}

/*
 * One bad request among good ones: those before it have been executed, it names the error of the
 * specification, those behind it are flushed and move nothing.
 */
static void test_bad_one(uint8_t syndrome, uint64_t va_off, uint32_t rkey_flip, uint64_t from_off,
			 uint32_t lkey_flip, uint32_t len)
{
	struct cqe64_err e;
	struct rdma_burst_case d;

	rdma_burst_case_up(&d, 0);
	for (unsigned i = 0; i < 3; i++)
		put_plain(&d, (uintptr_t)d.dst + 8 * i, d.rkey, d.src, 8, d.lkey);
	put_plain(&d, (uintptr_t)d.dst + va_off, d.rkey ^ rkey_flip, d.src + from_off, len,
		  d.lkey ^ lkey_flip);
	put_plain(&d, (uintptr_t)d.dst + 4096, d.rkey, d.src, 8, d.lkey);
	device_ring(&d.a);

	e = poll_error(&d.a);
	CHECK(e.syndrome == syndrome && be16_get(e.wqe_counter) == 3);
	e = poll_error(&d.a);
	CHECK(e.syndrome == CQE_SYN_WR_FLUSH && be16_get(e.wqe_counter) == 4);
	CHECK(!device_cq_poll(&d.a.cq));
	for (unsigned i = 0; i < 3; i++)
		memcpy(d.model + 8 * i, d.src, 8);
	CHECK(!memcmp(d.dst, d.model, BUF));
	rdma_burst_case_down(&d);
}

static void test_malformed(uint32_t word, uint32_t flip)
{
	struct cqe64_err e;
	struct rdma_burst_case d;
	uint32_t *at;

	rdma_burst_case_up(&d, 0);
	put_plain(&d, (uintptr_t)d.dst, d.rkey, d.src, 8, d.lkey);
	at = (uint32_t *)(void *)d.a.sq + word;
	*at ^= htobe32(flip);
	device_ring(&d.a);
	e = poll_error(&d.a);
	CHECK(e.syndrome == CQE_SYN_LOCAL_QP_OP);
	CHECK(!memcmp(d.dst, d.model, BUF));
	rdma_burst_case_down(&d);
}

/* Memory that has gone, on either side. */
static void test_unmapped(bool source)
{
	struct cqe64_err e;
	struct rdma_burst_case d;

	rdma_burst_case_up(&d, 0);
	put_plain(&d, (uintptr_t)d.dst, d.rkey, d.src, 8, d.lkey);
	munmap(source ? d.src : d.dst, BUF);
	device_ring(&d.a);
	e = poll_error(&d.a);
	CHECK(e.syndrome == (source ? CQE_SYN_LOCAL_PROT : CQE_SYN_REM_ACCESS));
	CHECK(!device_cq_poll(&d.a.cq));
	rdma_burst_case_down(&d);
}

/* A sender that is ahead of its peer is refused, however plain the request. */
static void test_sequence(void)
{
	static const struct {
		enum ib_qp_state state;
		uint32_t mask;
	} steps[] = {
		{IB_QPS_RESET, 0},
		{IB_QPS_INIT, IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS},
		{IB_QPS_RTR, IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
				     IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER},
		{IB_QPS_RTS, IB_QP_SQ_PSN | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				     IB_QP_MAX_QP_RD_ATOMIC},
	};
	struct qp_attr attr;
	struct rdma_burst_case d;

	rdma_burst_case_up(&d, 0);
	device_attr(&d.device, 0, &d.b, &attr);
	attr.sq_psn = psn_add(attr.rq_psn, 5);
	for (size_t i = 0; i < array_size(steps); i++) {
		attr.state = steps[i].state;
		CHECK(!qp_modify(d.a.qp, &attr, IB_QP_STATE | steps[i].mask));
	}
	put_plain(&d, (uintptr_t)d.dst, d.rkey, d.src, 8, d.lkey);
	device_ring(&d.a);
	CHECK(!memcmp(d.dst, d.model, BUF));
	CHECK(counter_of(&d, HW_OUT_OF_SEQUENCE) == 1);
	rdma_burst_case_down(&d);
}

/* Its own peer: the responder and the requester are of one queue pair. */
static void test_self(void)
{
	struct mkey *key;
	uint32_t rkey;
	struct rdma_burst_case d;

	rdma_burst_case_up(&d, 0);
	device_qp_down(&d.a);
	device_qp_up(&d.device, 0, &d.a, IB_QPT_RC);
	device_connect(&d.device, 0, &d.a, &d.a);
	rkey = device_mr(&d.device, 0, d.a.pdn, d.dst, BUF, ALL, &key);
	for (unsigned i = 0; i < 40; i++) {
		struct device_wqe w;

		device_wqe_begin(&d.a, &w, WQE_OP_RDMA_WRITE, i == 39 ? WQE_CTRL_CE_ALWAYS : 0, 0);
		device_wqe_raddr(&w, (uintptr_t)d.dst + 8 * i, rkey);
		device_wqe_inline(&w, d.src + 8 * i, 8);
		device_wqe_put(&w);
	}
	device_ring(&d.a);
	d.signaled[d.nsignaled++] = 39;
	expect_completions(&d);
	memcpy(d.model, d.src, 40 * 8);
	CHECK(!memcmp(d.dst, d.model, BUF));
	mkey_destroy(d.device.adapter[0], key);
	rdma_burst_case_down(&d);
}

/* What is executed in one go, what is executed alone, and what makes packets. */
enum way { WAY_BURST, WAY_ALONE, WAY_PACKETS, WAY_SEND, WAYS };

static void put_by_way(struct rdma_burst_case *d, enum way way, uint8_t ce)
{
	uint8_t opcode = way == WAY_SEND ? WQE_OP_SEND : WQE_OP_RDMA_WRITE;
	struct device_wqe w;

	device_wqe_begin(&d->a, &w, opcode, ce, 0);
	if (way == WAY_SEND)
		device_recv(&d->b, d->dst, MTU, d->rkey);
	else
		device_wqe_raddr(&w, (uintptr_t)d->dst, d->rkey);
	device_wqe_data(&w, d->src, way == WAY_ALONE ? MTU + 1 : 8, d->lkey);
	device_wqe_put(&w);
}

/* A silent request and one with this field complete alike on all ways. */
static void test_ce_by_way(enum way way, uint8_t ce)
{
	static const char *const taken[WAYS] = {
		[WAY_BURST] = "requests=2",
		[WAY_ALONE] = "requests=1",
		[WAY_PACKETS] = "bypass.left",
		[WAY_SEND] = "bypass.left",
	};
	const struct cqe64 *c;
	struct rdma_burst_case d;
	const char *told;
	uint16_t second;

	rdma_burst_case_up(&d, 0);
	if (way == WAY_PACKETS)
		atomic_store(&d.device.slots[0].observers, 1);
	capture_begin();
	trace_select("bypass.*");
	put_by_way(&d, way, 0);
	second = d.a.sq_pi;
	put_by_way(&d, way, ce);
	device_ring(&d.a);
	trace_select("");
	told = capture_end();
	CHECK(captured_count(told, taken[way]) == (way == WAY_BURST ? 1u : 2u));
	CHECK(captured_count(told, "bypass.") == captured_count(told, taken[way]));

	c = device_cq_poll(&d.a.cq);
	if (ce & WQE_CTRL_CE_ALWAYS)
		CHECK(c && c->op_own >> 4 == CQE_OP_REQ && be16_get(c->wqe_counter) == second);
	else
		CHECK(!c);
	CHECK(!device_cq_poll(&d.a.cq));
	for (unsigned i = 0; way == WAY_SEND && i < 2; i++)
		CHECK(device_cq_poll(&d.b.cq));
	rdma_burst_case_down(&d);
}

static void test_ce(void)
{
	for (enum way way = 0; way < WAYS; way++)
		for (unsigned i = 0; i < 2; i++) {
			test_ce_by_way(way, ce_silent[i]);
			test_ce_by_way(way, ce_signaled[i]);
		}
}

int main(void)
{
	test_fault_catch();
	test_ce();
	test_random_lists(0);
	test_random_lists(1);
	test_bad_one(CQE_SYN_REM_ACCESS, 0, 0x100, 0, 0, 8);
	test_bad_one(CQE_SYN_REM_ACCESS, 0, 1, 0, 0, 8);
	test_bad_one(CQE_SYN_REM_ACCESS, BUF - 7, 0, 0, 0, 8);
	test_bad_one(CQE_SYN_REM_ACCESS, (uint64_t)-8, 0, 0, 0, 8);
	test_bad_one(CQE_SYN_LOCAL_PROT, 0, 0, 0, 0x100, 8);
	test_bad_one(CQE_SYN_LOCAL_PROT, 0, 0, 0, 1, 8);
	test_bad_one(CQE_SYN_LOCAL_PROT, 0, 0, BUF - 7, 0, 8);
	test_bad_one(CQE_SYN_LOCAL_PROT, 0, 0, (uint64_t)-8, 0, 8);
	test_malformed(1, 0x100);		     /* another queue pair's number */
	test_malformed(0, WQE_OP_RDMA_WRITE ^ 0x3f); /* no operation */
	test_unmapped(true);
	test_unmapped(false);
	test_sequence();
	test_self();
	return 0;
}
