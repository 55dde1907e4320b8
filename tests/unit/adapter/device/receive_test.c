// SPDX-License-Identifier: BSD-2-Clause
/*
 * Packets that arrive at an adapter: what belongs to no queue pair, or to one of another kind, is
 * dropped and disturbs nobody; when there is work, adapter_owes and the deadline say so.
 */
#include <string.h>

#include "adapter/qp/qp.h"
#include "adapter_device.h"
#include "base/clock.h"
#include "check.h"

#define BYTES 64u

static struct test_device device;
static struct device_qp a, b;
static uint8_t src[BYTES], dst[BYTES];
static uint32_t lkey, rkey;

static enum wire_verdict inject_packet(uint32_t dqpn, uint8_t opcode, uint32_t psn)
{
	struct run run = {src, BYTES};
	struct path self = {.src_port = 0, .dst_port = 0};
	struct pkt p = {
		.opcode = opcode,
		.dqpn = dqpn,
		.sqpn = qp_number(a.qp),
		.psn = psn,
		.npkts = 1,
		.path = &self,
		.payload_len = BYTES,
		.runs = &run,
		.nruns = 1,
	};

	p.pkey = SUBNET_PKEY_DEFAULT;
	p.va = (uintptr_t)dst;
	p.rkey = rkey;
	p.dma_len = BYTES;
	return wire_xmit(device.wire[0], &p);
}

static bool is_clear(const uint8_t *bytes)
{
	for (unsigned i = 0; i < BYTES; i++)
		if (bytes[i])
			return false;
	return true;
}

/* A request that works, so that all is as it was. */
static void expect_working(void)
{
	struct device_wqe w;
	const struct cqe64 *cqe;

	memset(dst, 0, sizeof(dst));
	device_wqe_begin(&a, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)dst, rkey);
	device_wqe_data(&w, src, BYTES, lkey);
	device_wqe_end(&w);
	cqe = device_cq_poll(&a.cq);
	CHECK(cqe && cqe->op_own >> 4 == CQE_OP_REQ && !memcmp(src, dst, BYTES));
	CHECK(!device_cq_poll(&a.cq) && !device_cq_poll(&b.cq));
	memset(dst, 0, sizeof(dst));
}

static uint32_t next_psn(void)
{
	struct qp_attr attr;

	qp_query(b.qp, &attr);
	return attr.rq_psn;
}

static void test_dropped(void)
{
	/* a number of this process that no queue pair has */
	uint32_t nobody = qp_number(b.qp) + 100, psn = next_psn();

	CHECK(inject_packet(nobody, BTH_RC | BTH_WRITE_ONLY, psn) == WIRE_SENT && is_clear(dst));
	/* another transport than the queue pair's */
	CHECK(inject_packet(qp_number(b.qp), BTH_UC | BTH_WRITE_ONLY, psn) == WIRE_SENT &&
	      is_clear(dst));
	CHECK(inject_packet(qp_number(b.qp), BTH_UD | BTH_SEND_ONLY, psn) == WIRE_SENT &&
	      is_clear(dst));
	CHECK(inject_packet(qp_number(b.qp), BTH_DC | BTH_WRITE_ONLY, psn) == WIRE_SENT &&
	      is_clear(dst));
	expect_working();
}

static void test_destroyed(void)
{
	struct device_qp gone;
	uint32_t qpn;

	device_qp_up(&device, 0, &gone, IB_QPT_RC);
	qpn = qp_number(gone.qp);
	device_connect(&device, 0, &gone, &gone);
	device_qp_down(&gone);
	CHECK(inject_packet(qpn, BTH_RC | BTH_WRITE_ONLY, 0) == WIRE_SENT && is_clear(dst));
	expect_working();
}

/* The same packet is taken if its transport and number are right: nothing else was wrong with it. */
static void test_taken(void)
{
	CHECK(inject_packet(qp_number(b.qp), BTH_RC | BTH_WRITE_ONLY, next_psn()) == WIRE_SENT);
	CHECK(!memcmp(src, dst, BYTES));
}

/* An adapter without work has no deadline, and one with a timer has that of the timer. */
static void test_deadline(void)
{
	uint64_t deadline = UINT64_MAX, earlier = clock_ns();

	CHECK(!adapter_owes(device.adapter[0]));
	CHECK(!adapter_progress(device.adapter[0], &deadline) && deadline == UINT64_MAX);
	deadline = earlier; /* of somebody else */
	CHECK(!adapter_progress(device.adapter[0], &deadline) && deadline == earlier);
	adapter_batch_end(device.adapter[0]);
	CHECK(!adapter_owes(device.adapter[0]));
}

int main(void)
{
	struct mkey *from, *to;

	device_up(&device);
	device_qp_up(&device, 0, &a, IB_QPT_RC);
	device_qp_up(&device, 0, &b, IB_QPT_RC);
	device_connect(&device, 0, &a, &b);
	memset(src, 0x5a, sizeof(src));
	lkey = device_mr(&device, 0, a.pdn, src, BYTES, DEVICE_ALL_ACCESS, &from);
	rkey = device_mr(&device, 0, b.pdn, dst, BYTES, DEVICE_ALL_ACCESS, &to);
	expect_working();
	test_dropped();
	test_destroyed();
	test_deadline();
	test_taken();
	device_qp_down(&a);
	device_qp_down(&b);
	mkey_destroy(device.adapter[0], from);
	mkey_destroy(device.adapter[0], to);
	device_down(&device);
	return 0;
}
