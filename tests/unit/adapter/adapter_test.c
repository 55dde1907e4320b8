// SPDX-License-Identifier: BSD-2-Clause
/*
 * The adapter alone, on loopback:
 *
 *     device_qp a --- wire (loopback) --- device_qp b
 *
 * Each operation moves the right bytes and completes as it should; each error completes with the
 * status of the specification on both sides.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "adapter_device.h"
#include "check.h"
#include "test_fault.h"
#include "test_subnet.h"

#define BUF	 65536u
#define SIGNALED WQE_CTRL_CE_ALWAYS

struct pair {
	struct test_device device;
	unsigned dev;
	struct device_qp a, b;
	uint8_t *src, *dst;
	struct mkey *ma, *mb;
	uint32_t lkey, rkey;
};

static void pair_up(struct pair *p, unsigned dev, enum ib_qp_type type)
{
	device_up(&p->device);
	p->dev = dev;
	device_qp_up(&p->device, dev, &p->a, type);
	device_qp_up(&p->device, dev, &p->b, type);
	device_connect(&p->device, dev, &p->a, &p->b);
	p->src = malloc(BUF);
	p->dst = malloc(BUF);
	CHECK(p->src && p->dst);
	for (unsigned i = 0; i < BUF; i++)
		p->src[i] = (uint8_t)(i * 7 + (i >> 8));
	memset(p->dst, 0xee, BUF);
	p->lkey = device_mr(&p->device, dev, p->a.pdn, p->src, BUF, DEVICE_ALL_ACCESS, &p->ma);
	p->rkey = device_mr(&p->device, dev, p->b.pdn, p->dst, BUF, DEVICE_ALL_ACCESS, &p->mb);
}

static void pair_down(struct pair *p)
{
	device_qp_down(&p->a);
	device_qp_down(&p->b);
	mkey_destroy(p->device.adapter[p->dev], p->ma);
	mkey_destroy(p->device.adapter[p->dev], p->mb);
	device_down(&p->device);
	free(p->src);
	free(p->dst);
}

static void expect_req(struct device_qp *q, uint8_t opcode)
{
	const struct cqe64 *c = device_cq_poll(&q->cq);

	CHECK(c);
	CHECK(c->op_own >> 4 == CQE_OP_REQ);
	CHECK(be32_get(c->sop_drop_qpn) == ((uint32_t)opcode << 24 | qp_number(q->qp)));
}

static const struct cqe64 *expect_recv(struct device_qp *q, uint8_t op, uint32_t bytes,
				       uint32_t imm)
{
	const struct cqe64 *c = device_cq_poll(&q->cq);

	CHECK(c);
	CHECK(c->op_own >> 4 == op);
	CHECK(be32_get(c->byte_cnt) == bytes);
	CHECK(be32_get(c->imm_inval_pkey) == imm);
	return c;
}

/* What devices are seen to write beside a syndrome; 0 where nobody says. */
static uint8_t local_prot_err; /* of the next requests */

static uint8_t vendor_err(uint8_t op, uint8_t syndrome)
{
	if (op == CQE_OP_RESP_ERR)
		return syndrome == CQE_SYN_WR_FLUSH ? 0xf9 : 0;
	switch (syndrome) {
	case CQE_SYN_LOCAL_PROT:
		return local_prot_err;
	case CQE_SYN_WR_FLUSH:
		return 0xf9;
	case CQE_SYN_RNR_RETRY_EXC:
		return 0x87;
	case CQE_SYN_RETRY_EXC:
		return 0x81;
	case CQE_SYN_REM_ACCESS:
		return 0x88;
	case CQE_SYN_REM_OP:
		return 0x89;
	case CQE_SYN_REM_INVAL_REQ:
		return 0x8a;
	default:
		return 0;
	}
}

static void expect_error(struct device_qp *q, uint8_t op, uint8_t syndrome)
{
	const struct cqe64_err *c = (const void *)device_cq_poll(&q->cq);

	CHECK(c);
	CHECK((c->op_own & 0xfe) == (op << 4 | CQE_SOLICITED));
	CHECK(c->syndrome == syndrome);
	CHECK(c->vendor_err_synd == vendor_err(op, syndrome));
}

static void expect_nothing(struct device_qp *q)
{
	CHECK(!device_cq_poll(&q->cq));
}

static enum ib_qp_state state_of(struct device_qp *q)
{
	struct qp_attr attr;

	qp_query(q->qp, &attr);
	return attr.state;
}

static void write_to(struct pair *p, uint64_t va, uint32_t rkey, const void *from, uint32_t len,
		     uint32_t lkey)
{
	struct device_wqe w;

	device_wqe_begin(&p->a, &w, WQE_OP_RDMA_WRITE, SIGNALED, 0);
	device_wqe_raddr(&w, va, rkey);
	device_wqe_data(&w, from, len, lkey);
	device_wqe_end(&w);
}

/* Lengths around every border there is: block, MTU, nothing. */
static const uint32_t lengths[] = {0, 1, 7, 8, 63, 64, 65, 1023, 1024, 1025, 4096, 40000};

static void test_send(unsigned dev, enum ib_qp_type type)
{
	struct pair p;

	pair_up(&p, dev, type);
	for (size_t i = 0; i < array_size(lengths); i++) {
		struct device_wqe w;

		memset(p.dst, 0xee, BUF);
		device_recv(&p.b, p.dst + 64, 50000, p.rkey);
		device_wqe_begin(&p.a, &w, WQE_OP_SEND_IMM, SIGNALED, 0x1234 + (uint32_t)i);
		if (lengths[i])
			device_wqe_data(&w, p.src, lengths[i], p.lkey);
		device_wqe_end(&w);
		expect_req(&p.a, WQE_OP_SEND_IMM);
		expect_recv(&p.b, CQE_OP_RESP_SEND_IMM, lengths[i], 0x1234 + (uint32_t)i);
		CHECK(!memcmp(p.dst + 64, p.src, lengths[i]));
		CHECK(p.dst[63] == 0xee && p.dst[64 + lengths[i]] == 0xee);
	}
	pair_down(&p);
}

/* To or from the fifth byte of the target's memory. */
static void post_rdma(struct pair *p, uint8_t opcode, uint8_t *local, uint32_t n)
{
	struct device_wqe w;

	device_wqe_begin(&p->a, &w, opcode, SIGNALED, 0);
	device_wqe_raddr(&w, (uintptr_t)p->dst + 5, p->rkey);
	if (n)
		device_wqe_data(&w, local, n, p->lkey);
	device_wqe_end(&w);
}

static void test_write_and_read(void)
{
	struct pair p;

	pair_up(&p, 0, IB_QPT_RC);
	for (size_t i = 0; i < array_size(lengths); i++) {
		uint32_t n = lengths[i];

		memset(p.dst, 0xee, BUF);
		post_rdma(&p, WQE_OP_RDMA_WRITE, p.src + 3, n);
		expect_req(&p.a, WQE_OP_RDMA_WRITE);
		CHECK(!memcmp(p.dst + 5, p.src + 3, n) && p.dst[4] == 0xee && p.dst[5 + n] == 0xee);

		memset(p.src, 0x55, BUF);
		post_rdma(&p, WQE_OP_RDMA_READ, p.src + 9, n);
		expect_req(&p.a, WQE_OP_RDMA_READ);
		CHECK(!memcmp(p.src + 9, p.dst + 5, n) && p.src[8] == 0x55 && p.src[9 + n] == 0x55);
		expect_nothing(&p.b);
		for (unsigned k = 0; k < BUF; k++)
			p.src[k] = (uint8_t)(k * 11 + i);
	}
	pair_down(&p);
}

/* All four completion modes on the three ways of execution: a burst, a bypass, packets. */
static void test_completion_modes(void)
{
	struct pair p;

	pair_up(&p, 0, IB_QPT_RC);
	for (unsigned way = 0; way < 3; way++)
		for (uint8_t mode = 0; mode < 4; mode++) {
			uint8_t op = way == 2 ? WQE_OP_RDMA_WRITE_IMM : WQE_OP_RDMA_WRITE;
			struct device_wqe w;

			if (way == 2)
				device_recv(&p.b, p.dst, 8, p.rkey);
			device_wqe_begin(&p.a, &w, op, (uint8_t)(mode << 2), 0);
			device_wqe_raddr(&w, (uintptr_t)p.dst, p.rkey);
			device_wqe_data(&w, p.src, way ? 3000 : 8, p.lkey);
			device_wqe_end(&w);
			if (mode >= 2)
				expect_req(&p.a, op);
			expect_nothing(&p.a);
			if (way == 2)
				expect_recv(&p.b, CQE_OP_RESP_WRITE_IMM, 3000, 0);
		}
	pair_down(&p);
}

static void test_write_imm_and_inline(void)
{
	struct pair p;
	struct device_wqe w;

	pair_up(&p, 0, IB_QPT_RC);
	for (uint32_t n = 0; n <= 400; n += 13) {
		device_recv(&p.b, p.dst + 60000, 16, p.rkey);
		device_wqe_begin(&p.a, &w, WQE_OP_RDMA_WRITE_IMM, SIGNALED, n);
		device_wqe_raddr(&w, (uintptr_t)p.dst, p.rkey);
		device_wqe_inline(&w, p.src + n, n);
		device_wqe_end(&w);
		expect_req(&p.a, WQE_OP_RDMA_WRITE_IMM);
		expect_recv(&p.b, CQE_OP_RESP_WRITE_IMM, n, n);
		CHECK(!memcmp(p.dst, p.src + n, n));
	}
	pair_down(&p);
}

static void test_atomics(void)
{
	struct pair p;
	struct device_wqe w;
	uint64_t got;

	pair_up(&p, 0, IB_QPT_RC);
	memset(p.dst, 0, 64);
	p.dst[8] = 40;
	device_wqe_begin(&p.a, &w, WQE_OP_ATOMIC_FA, SIGNALED, 0);
	device_wqe_raddr(&w, (uintptr_t)p.dst + 8, p.rkey);
	device_wqe_atomic(&w, 2, 0);
	device_wqe_data(&w, p.src, 8, p.lkey);
	device_wqe_end(&w);
	expect_req(&p.a, WQE_OP_ATOMIC_FA);
	memcpy(&got, p.src, 8);
	CHECK(got == 40 && p.dst[8] == 42);

	for (unsigned hit = 0; hit < 2; hit++) {
		device_wqe_begin(&p.a, &w, WQE_OP_ATOMIC_CS, SIGNALED, 0);
		device_wqe_raddr(&w, (uintptr_t)p.dst + 8, p.rkey);
		device_wqe_atomic(&w, 99, hit ? 42 : 41);
		device_wqe_data(&w, p.src, 8, p.lkey);
		device_wqe_end(&w);
		expect_req(&p.a, WQE_OP_ATOMIC_CS);
		memcpy(&got, p.src, 8);
		CHECK(got == 42 && p.dst[8] == (hit ? 99 : 42));
	}
	/* not aligned: refused, untouched */
	device_wqe_begin(&p.a, &w, WQE_OP_ATOMIC_FA, SIGNALED, 0);
	device_wqe_raddr(&w, (uintptr_t)p.dst + 1, p.rkey);
	device_wqe_atomic(&w, 1, 0);
	device_wqe_data(&w, p.src, 8, p.lkey);
	device_wqe_end(&w);
	expect_error(&p.a, CQE_OP_REQ_ERR, CQE_SYN_REM_INVAL_REQ);
	CHECK(p.dst[8] == 99);
	pair_down(&p);
}

/* One row: what is wrong with a write of 16 bytes, and what both sides see. */
static void test_write_errors(void)
{
	enum { RKEY, LKEY, BEYOND, BEFORE, WRAP, FOREIGN_PD, NO_RIGHT, LOCAL_RANGE, CASES };
	static const uint8_t syndrome[CASES] = {
		[RKEY] = CQE_SYN_REM_ACCESS,	 [LKEY] = CQE_SYN_LOCAL_PROT,
		[BEYOND] = CQE_SYN_REM_ACCESS,	 [BEFORE] = CQE_SYN_REM_ACCESS,
		[WRAP] = CQE_SYN_REM_ACCESS,	 [FOREIGN_PD] = CQE_SYN_REM_ACCESS,
		[NO_RIGHT] = CQE_SYN_REM_ACCESS, [LOCAL_RANGE] = CQE_SYN_LOCAL_PROT,
	};

	for (unsigned c = 0; c < CASES; c++) {
		struct pair p;
		struct mkey *odd = NULL;
		uint32_t rkey, lkey;
		uint64_t va;
		const uint8_t *from;
		uint8_t before[BUF];

		pair_up(&p, 0, IB_QPT_RC);
		va = (uintptr_t)p.dst;
		rkey = p.rkey;
		lkey = p.lkey;
		from = p.src;
		switch (c) {
		case RKEY:
			rkey++;
			break;
		case LKEY:
			lkey++;
			break;
		case BEYOND:
			va += BUF - 15;
			break;
		case BEFORE:
			va -= 1;
			break;
		case WRAP:
			va = UINT64_MAX - 7;
			break;
		case FOREIGN_PD:
			rkey = device_mr(&p.device, 0, p.a.pdn, p.dst, BUF, DEVICE_ALL_ACCESS,
					 &odd);
			break;
		case NO_RIGHT:
			rkey = device_mr(&p.device, 0, p.b.pdn, p.dst, BUF,
					 DEVICE_ALL_ACCESS & ~(uint32_t)IB_ACCESS_REMOTE_WRITE,
					 &odd);
			break;
		default:
			from += BUF - 15;
			break;
		}
		memcpy(before, p.dst, BUF);
		write_to(&p, va, rkey, from, 16, lkey);
		local_prot_err = c == LKEY ? 0x52 : 0x53;
		expect_error(&p.a, CQE_OP_REQ_ERR, syndrome[c]);
		CHECK(state_of(&p.a) == IB_QPS_ERR);
		CHECK(!memcmp(before, p.dst, BUF));
		if (syndrome[c] == CQE_SYN_REM_ACCESS) {
			CHECK(p.b.async[IB_EVENT_QP_ACCESS_ERR] == 1);
			CHECK(state_of(&p.b) == IB_QPS_ERR);
		} else {
			CHECK(state_of(&p.b) == IB_QPS_RTS);
		}
		/* what is posted afterwards is flushed */
		write_to(&p, (uintptr_t)p.dst, p.rkey, p.src, 16, p.lkey);
		expect_error(&p.a, CQE_OP_REQ_ERR, CQE_SYN_WR_FLUSH);
		expect_nothing(&p.a);
		if (odd)
			mkey_destroy(p.device.adapter[0], odd);
		pair_down(&p);
	}
}

static void test_receive_errors(void)
{
	struct pair p;
	struct device_wqe w;

	/* receive too short */
	pair_up(&p, 0, IB_QPT_RC);
	device_recv(&p.b, p.dst, 15, p.rkey);
	device_recv(&p.b, p.dst, 15, p.rkey);
	device_wqe_begin(&p.a, &w, WQE_OP_SEND, SIGNALED, 0);
	device_wqe_data(&w, p.src, 16, p.lkey);
	device_wqe_end(&w);
	expect_error(&p.a, CQE_OP_REQ_ERR, CQE_SYN_REM_INVAL_REQ);
	expect_error(&p.b, CQE_OP_RESP_ERR, CQE_SYN_LOCAL_LENGTH);
	expect_error(&p.b, CQE_OP_RESP_ERR, CQE_SYN_WR_FLUSH);
	CHECK(p.dst[0] == 0xee);
	pair_down(&p);

	/* receive list with a bad key */
	pair_up(&p, 0, IB_QPT_RC);
	device_recv(&p.b, p.dst, 16, p.rkey + 1);
	device_wqe_begin(&p.a, &w, WQE_OP_SEND, SIGNALED, 0);
	device_wqe_data(&w, p.src, 16, p.lkey);
	device_wqe_end(&w);
	expect_error(&p.a, CQE_OP_REQ_ERR, CQE_SYN_REM_OP);
	expect_error(&p.b, CQE_OP_RESP_ERR, CQE_SYN_LOCAL_PROT);
	pair_down(&p);
}

/* Memory that was registered and has been unmapped: an error on the side that it belonged to. */
static void test_unmapped(bool source)
{
	struct pair p;
	struct mkey *m;
	uint8_t *page =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t key;

	CHECK(page != MAP_FAILED);
	pair_up(&p, 0, IB_QPT_RC);
	key = device_mr(&p.device, 0, source ? p.a.pdn : p.b.pdn, page, 8192, DEVICE_ALL_ACCESS,
			&m);
	CHECK(!munmap(page + 4096, 4096));
	if (source)
		write_to(&p, (uintptr_t)p.dst, p.rkey, page, 8192, key);
	else
		write_to(&p, (uintptr_t)page, key, p.src, 8192, p.lkey);
	local_prot_err = 0x51;
	expect_error(&p.a, CQE_OP_REQ_ERR, source ? CQE_SYN_LOCAL_PROT : CQE_SYN_REM_ACCESS);
	CHECK(state_of(&p.b) == (source ? IB_QPS_RTS : IB_QPS_ERR));
	mkey_destroy(p.device.adapter[0], m);
	pair_down(&p);
	munmap(page, 4096);
}

/* Partitions: limited members hear full ones but not each other; nothing else is heard. */
static void test_partitions(void)
{
	static const struct {
		uint16_t a, b;
		bool heard;
	} row[] = {
		{0xffff, 0xffff, true},	 {0x8001, 0x8001, true},  {0x8001, 0x0001, true},
		{0x0001, 0x0001, false}, {0x8001, 0x8002, false}, {0x8000, 0x8000, false},
	};

	for (size_t i = 0; i < array_size(row); i++) {
		struct pair p;
		struct device_wqe w;
		struct qp_attr attr = {.state = IB_QPS_RESET};

		CHECK(!!pkey_match(row[i].a, row[i].b) == row[i].heard);
		pair_up(&p, 0, IB_QPT_RC);
		p.device.subnet->ports[0].pkeys[0] = row[i].a;
		p.device.subnet->ports[0].pkeys[1] = row[i].b;
		for (unsigned end = 0; end < 2; end++)
			CHECK(!qp_modify((end ? p.b : p.a).qp, &attr, IB_QP_STATE));
		device_connect(&p.device, 0, &p.a, &p.b);
		attr.pkey_index = 1;
		attr.state = IB_QPS_SQD;
		CHECK(!qp_modify(p.b.qp, &attr, IB_QP_STATE));
		CHECK(!qp_modify(p.b.qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX));
		device_recv(&p.b, p.dst, 64, p.rkey);
		device_wqe_begin(&p.a, &w, WQE_OP_SEND, SIGNALED, 0);
		device_wqe_data(&w, p.src, 64, p.lkey);
		device_wqe_end(&w);
		if (row[i].heard)
			expect_req(&p.a, WQE_OP_SEND);
		else
			expect_nothing(&p.b);
		CHECK(!memcmp(p.dst, p.src, 64) == row[i].heard);
		pair_down(&p);
	}
}

/* No receive: RNR NAK, wait, again; then a receive comes, or the retries run out. */
static void test_rnr(bool rescue)
{
	struct pair p;
	struct device_wqe w;
	int rounds = 0;

	pair_up(&p, 0, IB_QPT_RC);
	device_wqe_begin(&p.a, &w, WQE_OP_SEND, SIGNALED, 0);
	device_wqe_data(&w, p.src, 5000, p.lkey);
	device_wqe_end(&w);
	expect_nothing(&p.a);
	if (rescue)
		device_recv(&p.b, p.dst, 8192, p.rkey);
	while (p.a.cq.ring[0].op_own >> 4 == CQE_OP_INVALID && rounds++ < 100000000)
		adapter_progress(p.device.adapter[0], NULL);
	if (rescue) {
		expect_req(&p.a, WQE_OP_SEND);
		expect_recv(&p.b, CQE_OP_RESP_SEND, 5000, 0);
		CHECK(!memcmp(p.dst, p.src, 5000));
	} else {
		expect_error(&p.a, CQE_OP_REQ_ERR, CQE_SYN_RNR_RETRY_EXC);
	}
	pair_down(&p);
}

/* The peer's QP is gone: the transport timer, then retry exceeded. */
static void test_dead_peer(void)
{
	struct pair p;
	int rounds = 0;

	pair_up(&p, 1, IB_QPT_RC);
	CHECK(!qp_modify(p.b.qp, &(struct qp_attr){.state = IB_QPS_RESET}, IB_QP_STATE));
	write_to(&p, (uintptr_t)p.dst, p.rkey, p.src, 16, p.lkey);
	expect_nothing(&p.a);
	CHECK(p.device.kicks > 0);
	while (p.a.cq.ring[0].op_own >> 4 == CQE_OP_INVALID && rounds++ < 100000000)
		adapter_progress(p.device.adapter[1], NULL);
	expect_error(&p.a, CQE_OP_REQ_ERR, CQE_SYN_RETRY_EXC);
	pair_down(&p);
}

static void test_datagram(unsigned dev)
{
	const struct cqe64 *c;
	struct pair p;
	struct device_wqe w;
	struct wqe_av av = {
		.dc_key_or_qkey = be64_of(0x11111111ull << 32),
		.rlid = be16_of(dev ? 0 : 7),
		.hop_limit = 1,
		.grh_gid_fl = be32_of(dev ? WQE_AV_GRH : 0),
	};

	pair_up(&p, dev, IB_QPT_UD);
	memcpy(av.rgid, test_subnet_gid_of(p.device.subnet, dev).raw, 16);
	for (unsigned bad_qkey = 0; bad_qkey < 2; bad_qkey++) {
		av.dqp_dct = be32_of(WQE_AV_EXTENDED | qp_number(p.b.qp));
		av.dc_key_or_qkey = be64_of((0x11111111ull + bad_qkey) << 32);
		device_recv(&p.b, p.dst, 4096 + 40, p.rkey);
		device_wqe_begin(&p.a, &w, WQE_OP_SEND_IMM, SIGNALED, 77);
		memcpy(w.bytes + w.at, &av, sizeof(av));
		w.at += sizeof(av);
		device_wqe_data(&w, p.src, 1000, p.lkey);
		device_wqe_end(&w);
		expect_req(&p.a, WQE_OP_SEND_IMM);
		if (bad_qkey) {
			expect_nothing(&p.b);
			continue;
		}
		c = expect_recv(&p.b, CQE_OP_RESP_SEND_IMM, 1040, 77);
		CHECK((be32_get(c->flags_rqpn) >> CQE_FLAGS_SL_SHIFT & 15) ==
		      (dev ? CQE_ROCE_IPV6 : 0));
		CHECK(!memcmp(p.dst + 40, p.src, 1000));
		CHECK(dev ? p.dst[0] >> 4 == 6 : p.dst[0] == 0xee);
	}
	pair_down(&p);
}

/* Events: armed once, one event; stale after it; solicited-only waits for solicited. */
static void test_arm(void)
{
	struct pair p;

	pair_up(&p, 0, IB_QPT_RC);
	write_to(&p, (uintptr_t)p.dst, p.rkey, p.src, 8, p.lkey);
	CHECK(p.a.cq.events == 0);
	expect_req(&p.a, WQE_OP_RDMA_WRITE);
	/* sn 0, any completion, ci 1 */
	p.a.cq.dbrec[DBREC_CQ_ARM] = be32_of(1);
	cq_doorbell(p.a.cq.cq);
	CHECK(p.a.cq.events == 0);
	write_to(&p, (uintptr_t)p.dst, p.rkey, p.src, 8, p.lkey);
	write_to(&p, (uintptr_t)p.dst, p.rkey, p.src, 8, p.lkey);
	CHECK(p.a.cq.events == 1);
	/* armed late: what came after the event counts, what it reported does not */
	p.a.cq.dbrec[DBREC_CQ_ARM] = be32_of(1u << 28 | 1);
	cq_doorbell(p.a.cq.cq);
	CHECK(p.a.cq.events == 2);
	/* solicited only */
	p.a.cq.dbrec[DBREC_CQ_ARM] = be32_of(2u << 28 | DBREC_CQ_ARM_SOLICITED | 3);
	cq_doorbell(p.a.cq.cq);
	write_to(&p, (uintptr_t)p.dst, p.rkey, p.src, 8, p.lkey);
	CHECK(p.a.cq.events == 2);
	write_to(&p, (uintptr_t)p.dst, p.rkey + 1, p.src, 8, p.lkey);
	CHECK(p.a.cq.events == 3);
	pair_down(&p);
}

static void arm_sent(struct pair *p, uint32_t sn, uint32_t solicited, uint32_t ci)
{
	p->a.cq.dbrec[DBREC_CQ_ARM] = be32_of(sn << 28 | solicited | ci);
	cq_doorbell(p->a.cq.cq);
}

/* Asking for solicited completions only does not take back that any completion was asked for. */
static void test_arm_twice(void)
{
	struct pair p;

	pair_up(&p, 0, IB_QPT_RC);
	arm_sent(&p, 0, 0, 0);
	arm_sent(&p, 0, DBREC_CQ_ARM_SOLICITED, 0);
	write_to(&p, (uintptr_t)p.dst, p.rkey, p.src, 8, p.lkey);
	CHECK(p.a.cq.events == 1);
	/* the event was the answer to both */
	arm_sent(&p, 1, DBREC_CQ_ARM_SOLICITED, 1);
	write_to(&p, (uintptr_t)p.dst, p.rkey, p.src, 8, p.lkey);
	CHECK(p.a.cq.events == 1);
	/* the other way round, the wider wish counts */
	arm_sent(&p, 1, 0, 2);
	write_to(&p, (uintptr_t)p.dst, p.rkey, p.src, 8, p.lkey);
	CHECK(p.a.cq.events == 2);
	pair_down(&p);
}

int main(void)
{
	test_send(0, IB_QPT_RC);
	test_send(1, IB_QPT_RC);
	test_send(0, IB_QPT_UC);
	test_write_and_read();
	test_write_imm_and_inline();
	test_completion_modes();
	test_atomics();
	test_write_errors();
	test_receive_errors();
	test_partitions();
	test_fault_catch();
	test_unmapped(true);
	test_unmapped(false);
	test_rnr(true);
	test_rnr(false);
	test_dead_peer();
	test_datagram(0);
	test_datagram(1);
	test_arm();
	test_arm_twice();
	return 0;
}
