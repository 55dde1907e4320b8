// SPDX-License-Identifier: BSD-2-Clause
/*
 * Unreliable messages that come to no end: their receives are those of the next messages, in order,
 * and no other message sees them (IBTA 9.8.2.2).  Packets are made here, as a sender's in the midst
 * of an error; b receives them.
 */
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "adapter/qp/path.h"
#include "adapter/core/device.h"
#include "adapter_device.h"
#include "check.h"
#include "test_fault.h"

#define MTU	 1024u
#define BYTES	 8192u
#define PSN	 0xfffff0u
#define SIGNALED WQE_CTRL_CE_ALWAYS

struct uc_case {
	struct test_device device;
	struct device_qp a, b;
	uint8_t src[BYTES], dst[BYTES], received[BYTES];
	struct mkey *ms, *md, *mr;
	uint32_t psn;
};

static void uc_case_up(struct uc_case *t)
{
	memset(t, 0, sizeof(*t));
	device_up(&t->device);
	device_qp_up(&t->device, 0, &t->a, IB_QPT_UC);
	device_qp_up(&t->device, 0, &t->b, IB_QPT_UC);
	device_connect(&t->device, 0, &t->a, &t->b);
	for (unsigned i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i * 11 + 1);
	(void)device_mr(&t->device, 0, t->a.pdn, t->src, BYTES, DEVICE_ALL_ACCESS, &t->ms);
	(void)device_mr(&t->device, 0, t->b.pdn, t->dst, BYTES, DEVICE_ALL_ACCESS, &t->md);
	(void)device_mr(&t->device, 0, t->b.pdn, t->received, BYTES, DEVICE_ALL_ACCESS, &t->mr);
	t->psn = PSN;
	for (unsigned i = 0; i < 3; i++)
		device_recv(&t->b, t->received, BYTES, mkey_key(t->mr));
}

static void uc_case_down(struct uc_case *t)
{
	device_qp_down(&t->a);
	device_qp_down(&t->b);
	mkey_destroy(t->device.adapter[0], t->ms);
	mkey_destroy(t->device.adapter[0], t->md);
	mkey_destroy(t->device.adapter[0], t->mr);
	device_down(&t->device);
}

/* From a to b: the first bytes of src; a write is of message bytes. */
static void send_packet(struct uc_case *t, uint8_t op, uint32_t bytes, uint32_t rkey,
			uint32_t message)
{
	const struct run run = {t->src, bytes};
	const struct ib_ah ah = {.dlid = 7, .port_num = 1};
	struct path path;
	struct pkt p = {
		.opcode = BTH_UC | op,
		.pkey = 0xffff,
		.sqpn = qp_number(t->a.qp),
		.dqpn = qp_number(t->b.qp),
		.psn = t->psn,
		.npkts = 1,
		.path = &path,
		.va = (uintptr_t)t->dst,
		.rkey = rkey,
		.dma_len = message,
		.payload_len = bytes,
		.nruns = 1,
		.runs = &run,
	};

	path_from_ah(t->device.adapter[0], &ah, &path);
	CHECK(wire_xmit(t->device.wire[0], &p) == WIRE_SENT);
	t->psn = psn_add(t->psn, 1);
}

static void expect_sent(struct uc_case *t, uint8_t op, uint32_t bytes)
{
	send_packet(t, op, bytes, 0, 0);
}

static void expect_cqe(struct uc_case *t, uint8_t op, uint16_t index, uint32_t bytes)
{
	const struct cqe64 *c = device_cq_poll(&t->b.cq);

	CHECK(c && c->op_own >> 4 == op && be16_get(c->wqe_counter) == index);
	CHECK(op == CQE_OP_RESP_ERR || be32_get(c->byte_cnt) == bytes);
	if (op == CQE_OP_RESP_SEND)
		CHECK(!memcmp(t->received, t->src, bytes));
}

/* A message has just been aborted: its receive is seen once, by what needs one. */
static void expect_reuse(struct uc_case *t)
{
	CHECK(!device_cq_poll(&t->b.cq));
	send_packet(t, BTH_WRITE_ONLY, 64, mkey_key(t->md), 64);
	CHECK(!memcmp(t->dst, t->src, 64) && !device_cq_poll(&t->b.cq));
	expect_sent(t, BTH_SEND_ONLY, 100);
	expect_cqe(t, CQE_OP_RESP_SEND, 0, 100);
	send_packet(t, BTH_WRITE_ONLY_IMM, 64, mkey_key(t->md), 64);
	expect_cqe(t, CQE_OP_RESP_WRITE_IMM, 1, 64);
	expect_sent(t, BTH_SEND_FIRST, MTU);
	expect_sent(t, BTH_SEND_LAST, 7);
	expect_cqe(t, CQE_OP_RESP_SEND, 2, MTU + 7);
	expect_sent(t, BTH_SEND_ONLY, 100);
	CHECK(!device_cq_poll(&t->b.cq));
}

/* ---- ways for a message to end early ---- */

static void by_gap(struct uc_case *t)
{
	expect_sent(t, BTH_SEND_FIRST, MTU);
	t->psn = psn_add(t->psn, 5);
}

static void by_gap_in_midst(struct uc_case *t)
{
	expect_sent(t, BTH_SEND_FIRST, MTU);
	t->psn = psn_add(t->psn, 1);
	expect_sent(t, BTH_SEND_MIDDLE, MTU);
	expect_sent(t, BTH_SEND_LAST, 10);
}

static void by_old_numbers(struct uc_case *t)
{
	expect_sent(t, BTH_SEND_FIRST, MTU);
	t->psn = psn_add(t->psn, IB_PSN_MASK - 100);
}

/* The sender began anew and by chance with the number that was expected. */
static void by_beginning(struct uc_case *t)
{
	expect_sent(t, BTH_SEND_FIRST, MTU);
}

static void by_order(struct uc_case *t)
{
	expect_sent(t, BTH_SEND_FIRST, MTU);
	expect_sent(t, BTH_WRITE_LAST, 10);
}

static void by_short_middle(struct uc_case *t)
{
	expect_sent(t, BTH_SEND_FIRST, MTU);
	expect_sent(t, BTH_SEND_MIDDLE, MTU - 1);
}

static void by_read(struct uc_case *t)
{
	expect_sent(t, BTH_SEND_FIRST, MTU);
	expect_sent(t, BTH_READ_REQUEST, 0);
}

/* The last packet takes the receive, and then its bytes are refused. */
static void by_key(struct uc_case *t)
{
	send_packet(t, BTH_WRITE_ONLY_IMM, 64, mkey_key(t->md) ^ 0x55, 64);
}

static void by_twice(struct uc_case *t)
{
	by_gap(t);
	by_gap(t);
	by_key(t);
}

static void by_write(struct uc_case *t)
{
	send_packet(t, BTH_WRITE_FIRST, MTU, mkey_key(t->md), 2 * MTU);
	t->psn = psn_add(t->psn, 1);
}

static void test_aborted(void)
{
	static void (*const way[])(struct uc_case * t) = {
		by_gap,		 by_gap_in_midst, by_old_numbers, by_beginning, by_order,
		by_short_middle, by_read,	  by_key,	  by_twice,	by_write,
	};

	for (size_t i = 0; i < array_size(way); i++) {
		static struct uc_case t;

		uc_case_up(&t);
		way[i](&t);
		expect_reuse(&t);
		uc_case_down(&t);
	}
}

/* The receive of an aborted message is flushed with the others, and gone after a reset. */
static void test_end_of_queue(void)
{
	const struct qp_attr err = {.state = IB_QPS_ERR}, reset = {.state = IB_QPS_RESET};
	static struct uc_case t;

	uc_case_up(&t);
	by_gap(&t);
	CHECK(!qp_modify(t.b.qp, &err, IB_QP_STATE));
	for (uint16_t i = 0; i < 3; i++)
		expect_cqe(&t, CQE_OP_RESP_ERR, i, 0);
	CHECK(!device_cq_poll(&t.b.cq));
	uc_case_down(&t);

	uc_case_up(&t);
	by_gap(&t);
	CHECK(!qp_modify(t.b.qp, &reset, IB_QP_STATE));
	CHECK(!qp_modify(t.a.qp, &reset, IB_QP_STATE));
	t.b.dbrec[DBREC_RECV] = be32_of(0);
	t.b.rq_pi = 0;
	device_connect(&t.device, 0, &t.a, &t.b);
	t.psn = PSN;
	expect_sent(&t, BTH_SEND_ONLY, 100);
	CHECK(!device_cq_poll(&t.b.cq));
	device_recv(&t.b, t.received, BYTES, mkey_key(t.mr));
	expect_sent(&t, BTH_SEND_ONLY, 100);
	expect_cqe(&t, CQE_OP_RESP_SEND, 0, 100);
	uc_case_down(&t);
}

/* ---- the sender's memory is gone ---- */

static void send_from(struct device_qp *q, const struct device_qp *to, const void *addr,
		      uint32_t lkey)
{
	const struct wqe_av av = {
		.dc_key_or_qkey = be64_of(0x11111111ull << 32),
		.dqp_dct = be32_of(WQE_AV_EXTENDED | qp_number(to->qp)),
		.rlid = be16_of(7),
	};
	struct device_wqe w;

	device_wqe_begin(q, &w, WQE_OP_SEND, SIGNALED, 0);
	if (q->type == IB_QPT_UD) {
		memcpy(w.bytes + w.at, &av, sizeof(av));
		w.at += sizeof(av);
	}
	device_wqe_data(&w, addr, 64, lkey);
	device_wqe_end(&w);
}

/* It is the sender's error; the receiver notices nothing and keeps its receive. */
static void test_sender_gone(enum ib_qp_type type)
{
	const struct qp_attr rts = {.state = IB_QPS_RTS};
	static struct test_device device;
	static struct device_qp a, b;
	static uint8_t in[BYTES], out[BYTES];
	struct mkey *m[3];
	const struct cqe64_err *err;
	const struct cqe64 *c;
	void *gone = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(gone != MAP_FAILED);
	device_up(&device);
	device_qp_up(&device, 0, &a, type);
	device_qp_up(&device, 0, &b, type);
	device_connect(&device, 0, &a, &b);
	(void)device_mr(&device, 0, a.pdn, gone, BYTES, DEVICE_ALL_ACCESS, &m[0]);
	(void)device_mr(&device, 0, a.pdn, out, BYTES, DEVICE_ALL_ACCESS, &m[1]);
	device_recv(&b, in, BYTES,
		    device_mr(&device, 0, b.pdn, in, BYTES, DEVICE_ALL_ACCESS, &m[2]));
	CHECK(!munmap(gone, BYTES));
	send_from(&a, &b, gone, mkey_key(m[0]));
	err = (const struct cqe64_err *)device_cq_poll(&a.cq);
	CHECK(err && err->op_own >> 4 == CQE_OP_REQ_ERR && err->syndrome == CQE_SYN_LOCAL_PROT);
	CHECK(!device_cq_poll(&b.cq));
	CHECK(!qp_modify(a.qp, &rts, IB_QP_STATE));
	send_from(&a, &b, out, mkey_key(m[1]));
	c = device_cq_poll(&a.cq);
	CHECK(c && c->op_own >> 4 == CQE_OP_REQ);
	c = device_cq_poll(&b.cq);
	CHECK(c && c->op_own >> 4 == CQE_OP_RESP_SEND && !c->wqe_counter.raw);
	device_qp_down(&a);
	device_qp_down(&b);
	for (unsigned i = 0; i < array_size(m); i++)
		mkey_destroy(device.adapter[0], m[i]);
	device_down(&device);
}

int main(void)
{
	test_fault_catch();
	test_aborted();
	test_end_of_queue();
	test_sender_gone(IB_QPT_UC);
	test_sender_gone(IB_QPT_UD);
	return 0;
}
