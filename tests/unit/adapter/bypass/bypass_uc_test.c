// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA WRITEs of UC at a peer of another process: the initiator executes them alone, as on RC, but
 * never past a packet that it has sent before and that may still be under way.
 */
#include <stdlib.h>
#include <string.h>

#include "base/rseq.h"
#include "check.h"
#include "exposed_pair.h"
#include "wire/tap.h"

#define LEN 2500u

static void write_of(struct exposed_pair *p, uint8_t value)
{
	memset(p->source, value, LEN);
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, LEN);
	exposed_pair_sent(p, CQE_OP_REQ);
}

static bool target_has(const struct exposed_pair *p, uint8_t value)
{
	return p->to->data[0] == value && !memcmp(p->to->data, p->to->data + 1, LEN - 1);
}

/* Nothing of the target runs, and counters cannot tell: no acknowledgement counts either way. */
static void test_initiator_alone(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up_of(way, IB_QPT_UC);
	uint64_t alone[EXPOSED_PAIR_COUNTS] = {0}, packets[EXPOSED_PAIR_COUNTS] = {0};
	struct tap tap = {.packet = exposed_pair_ignore};
	struct qp_attr attr;
	uint32_t psn;

	exposed_pair_count(p, alone);
	write_of(p, 0x11);
	exposed_pair_count(p, alone);
	CHECK(target_has(p, 0x11));
	qp_query(p->to->qp.qp, &attr);
	psn = attr.rq_psn;
	qp_query(p->from.qp, &attr);
	CHECK(psn != 0xfffff0 && attr.sq_psn == psn);
	exposed_pair_count(p, packets);
	wire_tap_attach(p->initiator.device.host, &tap);
	write_of(p, 0x22);
	CHECK(target_has(p, 0x11));
	exposed_pair_progress(p);
	wire_tap_detach(p->initiator.device.host, &tap);
	CHECK(target_has(p, 0x22));
	exposed_pair_count(p, packets);
	CHECK(!memcmp(alone, packets, sizeof(alone)) && alone[7] && !alone[2] && alone[8] == 1);
	exposed_pair_down(p);
}

/* A message completes when it is sent; what is written behind it does not overtake it. */
static void test_behind_a_message(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up_of(way, IB_QPT_UC);

	for (unsigned i = 0; i < 3; i++) {
		device_recv(&p->to->qp, p->to->data, sizeof(p->to->data), p->target_key);
		memset(p->source, 0x33, 8);
		exposed_pair_post(p, WQE_OP_SEND, 0, 8);
		exposed_pair_sent(p, CQE_OP_REQ);
		write_of(p, (uint8_t)(0x44 + i));
		CHECK(!device_cq_poll(&p->to->qp.cq) && !target_has(p, (uint8_t)(0x44 + i)));
		exposed_pair_progress(p);
		exposed_pair_received(p, CQE_OP_RESP_SEND, 8);
		CHECK(target_has(p, (uint8_t)(0x44 + i)));
		/* all of it has arrived: alone again */
		write_of(p, (uint8_t)(0x54 + i));
		CHECK(target_has(p, (uint8_t)(0x54 + i)));
	}
	exposed_pair_down(p);
}

/* A message without a receive is lost, and the responder waits for its number until the next packet
 * says another. */
static void test_behind_a_loss(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up_of(way, IB_QPT_UC);

	exposed_pair_post(p, WQE_OP_SEND, 0, 8);
	exposed_pair_sent(p, CQE_OP_REQ);
	exposed_pair_progress(p);
	write_of(p, 0x66);
	CHECK(!target_has(p, 0x66));
	exposed_pair_progress(p);
	CHECK(target_has(p, 0x66));
	/* the responder has heard of a gap, which the next number ends */
	write_of(p, 0x67);
	exposed_pair_progress(p);
	write_of(p, 0x68);
	CHECK(target_has(p, 0x68) && !device_cq_poll(&p->to->qp.cq));
	exposed_pair_down(p);
}

/* What is lost on the way leaves a gap, which the next packet ends at once. */
static void test_behind_a_gap(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up_of(way, IB_QPT_UC);

	write_of(p, 0x69);
	subnet_set_state(&p->subnet, 1, IB_PORT_DOWN);
	write_of(p, 0x6a);
	subnet_set_state(&p->subnet, 1, IB_PORT_ACTIVE);
	write_of(p, 0x6b);
	CHECK(target_has(p, 0x69));
	exposed_pair_progress(p);
	CHECK(target_has(p, 0x6b));
	write_of(p, 0x6c);
	CHECK(target_has(p, 0x6c));
	exposed_pair_down(p);
}

/* The numbers begin again where the target still expects them, before it has seen what was sent. */
static void test_reset(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up_of(way, IB_QPT_UC);
	const struct qp_attr reset = {.state = IB_QPS_RESET};

	device_recv(&p->to->qp, p->to->data, sizeof(p->to->data), p->target_key);
	exposed_pair_post(p, WQE_OP_SEND, 0, 8);
	exposed_pair_sent(p, CQE_OP_REQ);
	write_of(p, 0x71);
	CHECK(!target_has(p, 0x71));
	CHECK(!qp_modify(p->from.qp, &reset, IB_QP_STATE));
	p->from.sq_pi = 0;
	memset(p->from.dbrec, 0, sizeof(p->from.dbrec));
	exposed_pair_connect(p, &p->from, &p->to->qp, 1);
	write_of(p, 0x72);
	exposed_pair_progress(p);
	CHECK(target_has(p, 0x72));
	exposed_pair_down(p);
}

/* A responder of another transport drops the request, whatever it expects. */
static void test_other_transport(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct device_qp *uc = calloc(1, sizeof(*uc));
	struct device_wqe w;
	struct mkey *mr;
	uint32_t key;

	CHECK(uc);
	device_qp_up(&p->initiator.device, 0, uc, IB_QPT_UC);
	key = device_mr(&p->initiator.device, 0, uc->pdn, p->source, LEN, EXPOSED_PAIR_RIGHTS, &mr);
	/* the RC responder listens to the UC queue pair */
	CHECK(!qp_modify(p->to->qp.qp, &(struct qp_attr){.state = IB_QPS_RESET}, IB_QP_STATE));
	exposed_pair_connect(p, &p->to->qp, uc, 0);
	exposed_pair_connect(p, uc, &p->to->qp, 1);
	device_wqe_begin(uc, &w, WQE_OP_RDMA_WRITE, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)p->to->data, p->target_key);
	device_wqe_data(&w, p->source, LEN, key);
	device_wqe_end(&w);
	exposed_pair_progress(p);
	for (unsigned i = 0; i < LEN; i++)
		CHECK(!p->to->data[i]);
	CHECK(device_cq_poll(&uc->cq));
	device_qp_down(uc);
	mkey_destroy(p->initiator.device.adapter[0], mr);
	free(uc);
	exposed_pair_down(p);
}

static void test_all(enum key_way way)
{
	test_initiator_alone(way);
	test_behind_a_message(way);
	test_behind_a_loss(way);
	test_behind_a_gap(way);
	test_reset(way);
	test_other_transport(way);
}

int main(void)
{
	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	test_all(KEY_MAPPED);
	test_all(KEY_KERNEL);
	return 0;
}
