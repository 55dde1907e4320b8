// SPDX-License-Identifier: BSD-2-Clause
/*
 * Answers that show that one before them is missing, many of them: those that were under way behind a lost
 * one, or of an earlier connection of the same numbers.  They are one loss and use up one repetition, so that
 * the request ends well when side 1, which does not look before, answers.
 */
#include <string.h>
#include <unistd.h>

#include "adapter/qp/qp.h"
#include "signed_pair.h"
#include "test_fault.h"

#define MTU    1024u
#define BYTES  (8u * MTU)
#define STALES 40u /* more than any retry_cnt */

static struct signed_pair pair;

static void post_request_of(uint8_t opcode, uint32_t at, uint32_t bytes, uint32_t rkey)
{
	struct device_wqe w;

	device_wqe_begin(&pair.side[0].q, &w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)pair.side[1].memory + at, rkey);
	device_wqe_data(&w, pair.side[0].memory + at, bytes, pair.side[0].lkey);
	device_wqe_end(&w);
}

static void post_request(uint8_t opcode, uint32_t at, uint32_t bytes)
{
	post_request_of(opcode, at, bytes, pair.side[1].lkey);
}

static void side_0_runs(void)
{
	for (int i = 0; i < 10; i++) {
		(void)wire_process_progress(pair.process[0].host);
		(void)adapter_progress(pair.device.adapter[0], NULL);
		CHECK(!device_cq_poll(&pair.side[0].q.cq));
	}
}

/* As side 1 may have sent it: of the packet that many behind the first request. */
static void send_stale(uint8_t response, uint32_t first, uint32_t behind)
{
	static uint8_t other[MTU];
	const struct run run = {other, MTU};
	const struct qp *from = pair.side[1].q.qp, *to = pair.side[0].q.qp;
	struct path path = from->path;
	uint32_t bytes = response == BTH_ACK ? 0 : MTU;
	const struct pkt p = {
		.opcode = (uint8_t)(BTH_RC | response),
		.pkey = from->pkey,
		.sqpn = from->qpn,
		.dqpn = to->qpn,
		.psn = psn_add(first, behind),
		.npkts = 1,
		.aeth = AETH_ACK | AETH_NO_CREDIT,
		.path = &path,
		.payload_len = bytes,
		.nruns = bytes ? 1 : 0,
		.runs = &run,
	};

	path.route = NULL;
	CHECK(wire_xmit(pair.device.wire[1], &p) == WIRE_SENT);
	side_0_runs();
}

static void requests_end(unsigned n)
{
	const struct cqe64 *c;

	while (n--) {
		c = signed_pair_wait(&pair, &pair.side[0].q.cq);
		CHECK(cqe_op(c) == CQE_OP_REQ);
	}
	CHECK(!memcmp(pair.side[0].memory, pair.side[1].memory, BYTES));
}

static void make_pair(void)
{
	signed_pair_up(&pair, true);
	signed_pair_connect(&pair, IB_MTU_1024);
	signed_pair_progress(&pair);
	memset(pair.side[0].memory, 0, BYTES);
	for (uint32_t i = 0; i < BYTES; i++)
		pair.side[1].memory[i] = (uint8_t)(i * 5 + i / MTU);
}

static void later_answers(void)
{
	uint32_t first;

	make_pair();
	first = pair.side[0].q.qp->req.psn;
	post_request(WQE_OP_RDMA_READ, 0, BYTES);
	for (uint32_t i = 0; i < STALES; i++)
		send_stale(BTH_READ_RESP_MIDDLE, first, 1 + i % 6);
	CHECK(pair.side[0].q.qp->comp.retry_left == 6);
	requests_end(1);
	signed_pair_down(&pair);
}

/* What was behind the READ is acknowledged, but there was no answer to the READ. */
static void implied_losses(void)
{
	uint32_t first;

	make_pair();
	first = pair.side[0].q.qp->req.psn;
	post_request(WQE_OP_RDMA_READ, 0, BYTES);
	post_request(WQE_OP_RDMA_WRITE, BYTES, 8);
	for (uint32_t i = 0; i < STALES; i++)
		send_stale(BTH_ACK, first, 8);
	CHECK(pair.side[0].q.qp->comp.retry_left == 6);
	requests_end(2);
	signed_pair_down(&pair);
}

static void post_send(void)
{
	struct device_wqe w;

	device_wqe_begin(&pair.side[0].q, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_inline(&w, "message", 8);
	device_wqe_end(&w);
}

/* Side 1 answers, side 0 does not look; both connect again, with the same numbers. */
static void connect_again(void)
{
	(void)wire_process_progress(pair.process[1].host);
	(void)adapter_progress(pair.device.adapter[1], NULL);
	signed_pair_connect(&pair, IB_MTU_1024);
	while (device_cq_poll(&pair.side[0].q.cq) || device_cq_poll(&pair.side[1].q.cq))
		;
}

/* The answer to the SENDs of an earlier connection must not complete one that nobody has received. */
static void earlier_acknowledgement(void)
{
	make_pair();
	device_recv(&pair.side[1].q, pair.side[1].memory, BYTES, pair.side[1].lkey);
	post_send();
	connect_again();
	post_send();
	side_0_runs();
	device_recv(&pair.side[1].q, pair.side[1].memory, BYTES, pair.side[1].lkey);
	CHECK(cqe_op(signed_pair_wait(&pair, &pair.side[0].q.cq)) == CQE_OP_REQ);
	CHECK(!memcmp(pair.side[1].memory, "message", 8));
	signed_pair_down(&pair);
}

/* Nor does an earlier refusal. */
static void earlier_refusal(void)
{
	make_pair();
	post_request_of(WQE_OP_RDMA_READ, 0, BYTES, pair.side[1].lkey ^ 1);
	connect_again();
	post_request(WQE_OP_RDMA_READ, 0, BYTES);
	side_0_runs();
	requests_end(1);
	signed_pair_down(&pair);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_fault_catch();
	later_answers();
	implied_losses();
	earlier_acknowledgement();
	earlier_refusal();
	return 0;
}
