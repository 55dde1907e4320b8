// SPDX-License-Identifier: BSD-2-Clause
/*
 * Responses that do not come from the connection's peer: side 1 does not look, and what reaches
 * side 0 in its place is dropped, unless all that says who sent it is right.
 */
#include <string.h>
#include <unistd.h>

#include "adapter/qp/qp.h"
#include "signed_pair.h"
#include "test_fault.h"
#include "wire/tap.h"

static struct signed_pair pair;
static uint64_t answer[2];

/* What is outstanding, and what ends it. */
static const struct kind {
	uint8_t request, response, aeth, cqe;
	uint32_t payload_len;
} kinds[] = {
	{WQE_OP_RDMA_WRITE, BTH_ACK, AETH_ACK | AETH_NO_CREDIT, CQE_OP_REQ, 0},
	{WQE_OP_RDMA_WRITE, BTH_ACK, AETH_NAK | NAK_REMOTE_ACCESS, CQE_OP_REQ_ERR, 0},
	{WQE_OP_RDMA_READ, BTH_READ_RESP_ONLY, AETH_ACK | AETH_NO_CREDIT, CQE_OP_REQ, 8},
	{WQE_OP_ATOMIC_FA, BTH_ATOMIC_ACK, AETH_ACK | AETH_NO_CREDIT, CQE_OP_REQ, 0},
};

static void ignore_tap(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
		       const struct pkt *p)
{
	(void)t, (void)at, (void)ns, (void)port_row, (void)p;
}

static void post_request(const struct kind *k)
{
	struct device_wqe w;

	device_wqe_begin(&pair.side[0].q, &w, k->request, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, (uintptr_t)pair.side[1].memory, pair.side[1].lkey);
	if (k->request == WQE_OP_ATOMIC_FA)
		device_wqe_atomic(&w, 1, 0);
	device_wqe_data(&w, pair.side[0].memory, 8, pair.side[0].lkey);
	device_wqe_end(&w);
}

/* The response as side 1 would send it. */
static struct pkt response_to(const struct kind *k, struct path *path)
{
	static const struct run run = {answer, 8};
	const struct qp *from = pair.side[1].q.qp, *to = pair.side[0].q.qp;

	*path = from->path;
	path->route = NULL;
	return (struct pkt){
		.opcode = (uint8_t)(BTH_RC | k->response),
		.pkey = from->pkey,
		.sqpn = from->qpn,
		.dqpn = to->qpn,
		.psn = psn_add(to->req.psn, IB_PSN_MASK),
		.npkts = 1,
		.aeth = k->aeth,
		.atomic_orig = answer[0],
		.path = path,
		.payload_len = k->payload_len,
		.nruns = k->payload_len ? 1 : 0,
		.runs = &run,
	};
}

/* Side 0 hears it, and nothing else. */
static const struct cqe64 *hear_packet(const struct pkt *p)
{
	const struct cqe64 *c = NULL;

	CHECK(wire_xmit(pair.device.wire[1], p) == WIRE_SENT);
	for (int i = 0; i < 10 && !c; i++) {
		(void)wire_process_progress(pair.process[0].host);
		(void)adapter_progress(pair.device.adapter[0], NULL);
		c = device_cq_poll(&pair.side[0].q.cq);
	}
	return c;
}

static uint64_t pkey_violations(void)
{
	uint64_t sum = 0;

	for (unsigned shard = 0; shard < SLOT_SHARDS; shard++)
		sum += pair.fabric->slots[0].counters[shard][0][PORT_PKEY_VIOLATIONS];
	return sum;
}

static void send_strangers(const struct kind *k)
{
	struct path path;
	struct pkt p = response_to(k, &path);

	p.sqpn++; /* another queue pair of the same port */
	CHECK(!hear_packet(&p));
	p = response_to(k, &path);
	path.src_port = 0; /* that number at another port */
	CHECK(!hear_packet(&p));
	p = response_to(k, &path);
	p.pkey = 0x8123;
	CHECK(!hear_packet(&p));
	CHECK(pkey_violations() == 1);
}

static void run_kind(const struct kind *k, bool exposed, bool watched)
{
	struct tap tap = {.packet = ignore_tap};
	const struct cqe64 *c;
	struct path path;
	struct pkt p;

	if (exposed)
		signed_pair_up_exposed(&pair);
	else
		signed_pair_up(&pair, true);
	signed_pair_connect(&pair, IB_MTU_1024);
	signed_pair_progress(&pair);
	/* The requester's answers are packets like any others then. */
	wire_tap_attach(pair.process[watched ? 0 : 1].host, &tap);
	memset(pair.side[0].memory, 0, 8);
	answer[0] = 0x1122334455667788;
	post_request(k);
	send_strangers(k);
	CHECK(!*(const uint64_t *)(const void *)pair.side[0].memory);
	p = response_to(k, &path);
	c = hear_packet(&p);
	CHECK(c && cqe_op(c) == k->cqe);
	wire_tap_detach(pair.process[watched ? 0 : 1].host, &tap);
	signed_pair_down(&pair);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_fault_catch();
	for (size_t i = 0; i < array_size(kinds); i++)
		for (unsigned how = 0; how < 4; how++)
			run_kind(&kinds[i], how & 1, how & 2);
	return 0;
}
