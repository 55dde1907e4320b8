// SPDX-License-Identifier: BSD-2-Clause
/*
 * Requests that their sender gives up while the responder takes them: as if they had been lost, and
 * the receive that was taken for one is that of the next.  Packets are made here, as from another
 * process; b receives them.
 */
#include <string.h>
#include <unistd.h>

#include "adapter/qp/path.h"
#include "adapter_device.h"
#include "check.h"
#include "test_fault.h"
#include "reach/way.h"
#include "test_life.h"
#include "wire/channel.h"

#define MTU	 1024u
#define BYTES	 8192u
#define PSN	 0xfffff0u
#define RECEIVES 3u
#define LEAVES	 true
#define STAYS	 false

struct withdrawn_case {
	struct test_device device;
	struct device_qp a, b;
	uint8_t src[BYTES], dst[BYTES], received[BYTES];
	struct mkey *md, *mr;
	uint32_t psn;
	/* The process that packets come from is this one. */
	struct access_table table;
	struct alive alive;
	struct test_life life;
	struct way_peer sender;
	_Atomic(uint32_t) readable;
	bool nobody; /* but now it is none */
};

static void withdrawn_case_up(struct withdrawn_case *t)
{
	memset(t, 0, sizeof(*t));
	device_up(&t->device);
	device_qp_up(&t->device, 0, &t->a, IB_QPT_RC);
	device_qp_up(&t->device, 0, &t->b, IB_QPT_RC);
	device_connect(&t->device, 0, &t->a, &t->b);
	for (unsigned i = 0; i < BYTES; i++)
		t->src[i] = (uint8_t)(i * 11 + 1);
	(void)device_mr(&t->device, 0, t->b.pdn, t->dst, BYTES, DEVICE_ALL_ACCESS, &t->md);
	(void)device_mr(&t->device, 0, t->b.pdn, t->received, BYTES, DEVICE_ALL_ACCESS, &t->mr);
	t->psn = PSN;
	test_life_begin(&t->life, &t->alive);
	t->sender = (struct way_peer){.table = &t->table, .alive = &t->alive, .pid = getpid()};
	atomic_store(&t->readable, READABLE_YES);
	for (unsigned i = 0; i < RECEIVES; i++)
		device_recv(&t->b, t->received, BYTES, mkey_key(t->mr));
}

static void withdrawn_case_down(struct withdrawn_case *t)
{
	test_life_end(&t->life);
	device_qp_down(&t->a);
	device_qp_down(&t->b);
	mkey_destroy(t->device.adapter[0], t->md);
	mkey_destroy(t->device.adapter[0], t->mr);
	device_down(&t->device);
}

/* Carries the first bytes of src, from this process's memory; unless it is withdrawn the next one
 * has the next number. */
static void send_packet(struct withdrawn_case *t, uint8_t op, uint32_t bytes, bool withdrawn)
{
	const _Atomic(uint32_t) word = withdrawn;
	const struct run run = {t->src, bytes};
	struct pkt_foreign foreign = {.process = t->nobody ? NULL : &t->sender,
				      .readable = &t->readable};
	const struct ib_ah ah = {.dlid = 7, .port_num = 1};
	struct path path;
	struct pkt p = {
		.opcode = BTH_RC | op,
		.pkey = 0xffff,
		.sqpn = qp_number(t->a.qp),
		.dqpn = qp_number(t->b.qp),
		.psn = t->psn,
		.npkts = 1,
		.path = &path,
		.va = (uintptr_t)t->dst,
		.rkey = mkey_key(t->md),
		.dma_len = bytes,
		.payload_len = bytes,
		.nruns = 1,
		.runs = &run,
		.foreign = &foreign,
		.withdrawn = &word,
	};

	path_from_ah(t->device.adapter[0], &ah, &path);
	CHECK(wire_xmit(t->device.wire[0], &p) == WIRE_SENT);
	if (!withdrawn)
		t->psn = psn_add(t->psn, 1);
}

static void expect_cqe(struct withdrawn_case *t, uint8_t op, uint16_t index, uint32_t bytes)
{
	const struct cqe64 *c = device_cq_poll(&t->b.cq);

	CHECK(c && c->op_own >> 4 == op && be16_get(c->wqe_counter) == index);
	CHECK(op == CQE_OP_RESP_ERR || be32_get(c->byte_cnt) == bytes);
	CHECK(!device_cq_poll(&t->b.cq));
}

static void test_again(void)
{
	static struct withdrawn_case t;

	withdrawn_case_up(&t);
	for (unsigned i = 0; i < 3; i++) {
		send_packet(&t, BTH_SEND_ONLY, 700, LEAVES);
		CHECK(!device_cq_poll(&t.b.cq));
	}
	send_packet(&t, BTH_SEND_ONLY, 700, STAYS);
	expect_cqe(&t, CQE_OP_RESP_SEND, 0, 700);
	CHECK(!memcmp(t.received, t.src, 700));
	/* in the midst of a message */
	send_packet(&t, BTH_SEND_FIRST, MTU, STAYS);
	send_packet(&t, BTH_SEND_LAST, 9, LEAVES);
	CHECK(!device_cq_poll(&t.b.cq));
	send_packet(&t, BTH_SEND_LAST, 9, STAYS);
	expect_cqe(&t, CQE_OP_RESP_SEND, 1, MTU + 9);
	withdrawn_case_down(&t);
}

/* A plain WRITE has no part in the receive, nor does it show as a completion. */
static void test_other_messages(void)
{
	static struct withdrawn_case t;

	withdrawn_case_up(&t);
	send_packet(&t, BTH_SEND_ONLY, 700, LEAVES);
	send_packet(&t, BTH_WRITE_ONLY, 64, STAYS);
	CHECK(!memcmp(t.dst, t.src, 64) && !device_cq_poll(&t.b.cq));
	send_packet(&t, BTH_WRITE_ONLY_IMM, 100, LEAVES);
	CHECK(!device_cq_poll(&t.b.cq));
	send_packet(&t, BTH_WRITE_ONLY_IMM, 100, STAYS);
	expect_cqe(&t, CQE_OP_RESP_WRITE_IMM, 0, 100);
	send_packet(&t, BTH_SEND_ONLY, 50, STAYS);
	expect_cqe(&t, CQE_OP_RESP_SEND, 1, 50);
	/* the last bytes, which programs look at, are not stored */
	memset(t.dst, 0, BYTES);
	send_packet(&t, BTH_WRITE_ONLY, 64, LEAVES);
	CHECK(!t.dst[63] && !device_cq_poll(&t.b.cq));
	withdrawn_case_down(&t);
}

/* The system does not let the receiver read the payload any more, here because nobody is
 * there: the sender is told, and the packet comes again. */
static void test_unreadable(void)
{
	static struct withdrawn_case t;

	withdrawn_case_up(&t);
	send_packet(&t, BTH_SEND_FIRST, MTU, STAYS);
	t.nobody = true;
	for (unsigned i = 0; i < 2; i++) {
		atomic_store(&t.readable, READABLE_YES);
		send_packet(&t, BTH_SEND_LAST, 9, STAYS);
		CHECK(atomic_load(&t.readable) == READABLE_NO && !device_cq_poll(&t.b.cq));
		t.psn = psn_add(t.psn, IB_PSN_MASK);
	}
	t.nobody = false;
	send_packet(&t, BTH_SEND_LAST, 9, STAYS);
	expect_cqe(&t, CQE_OP_RESP_SEND, 0, MTU + 9);
	withdrawn_case_down(&t);
}

/* In error it is flushed with the others, once. */
static void test_flush(void)
{
	const struct qp_attr err = {.state = IB_QPS_ERR};
	static struct withdrawn_case t;

	withdrawn_case_up(&t);
	send_packet(&t, BTH_SEND_ONLY, 700, LEAVES);
	CHECK(!qp_modify(t.b.qp, &err, IB_QP_STATE));
	for (uint16_t i = 0; i < RECEIVES; i++) {
		const struct cqe64 *c = device_cq_poll(&t.b.cq);

		CHECK(c && c->op_own >> 4 == CQE_OP_RESP_ERR && be16_get(c->wqe_counter) == i);
	}
	CHECK(!device_cq_poll(&t.b.cq));
	withdrawn_case_down(&t);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_fault_catch();
	test_again();
	test_other_messages();
	test_unreadable();
	test_flush();
	return 0;
}
