// SPDX-License-Identifier: BSD-2-Clause
/*
 * RDMA WRITEs and READs at a peer of another process: the initiator executes them alone; what is
 * out of the ordinary goes by packets with the outcome that it always has, and so does every
 * message.
 */
#include <string.h>
#include <unistd.h>

#include "adapter/memory/mkey_indirect.h"
#include "adapter/qp/qp.h"
#include "base/hazard.h"
#include "base/rseq.h"
#include "check.h"
#include "exposed_pair.h"
#include "prm/wqe.h"
#include "wire/tap.h"

/* At the initiator and at the target: what is counted while a request goes this way or by
 * packets. */
static void count_one(struct exposed_pair *p, bool observed, uint8_t opcode, uint64_t got[8])
{
	static const enum port_counter c[] = {PORT_XMIT_DATA, PORT_XMIT_PACKETS, PORT_RCV_DATA,
					      PORT_RCV_PACKETS};
	struct tap tap = {.packet = exposed_pair_ignore};
	uint64_t before[8];

	for (unsigned i = 0; i < 8; i++)
		before[i] = exposed_pair_counted(i < 4 ? &p->initiator : &p->target, c[i % 4]);
	if (observed)
		wire_tap_attach(p->initiator.device.host, &tap);
	exposed_pair_post(p, opcode, 1, 2500);
	if (observed) {
		CHECK(!device_cq_poll(&p->from.cq));
		exposed_pair_progress(p);
		wire_tap_detach(p->initiator.device.host, &tap);
	}
	exposed_pair_sent(p, CQE_OP_REQ);
	for (unsigned i = 0; i < 8; i++)
		got[i] = exposed_pair_counted(i < 4 ? &p->initiator : &p->target, c[i % 4]) -
			 before[i];
}

/* The counters cannot tell which way a request went. */
static void test_counters(enum key_way way)
{
	static const uint8_t opcode[] = {WQE_OP_RDMA_WRITE, WQE_OP_RDMA_READ};

	for (unsigned i = 0; i < array_size(opcode); i++) {
		struct exposed_pair *p = exposed_pair_up(way);
		uint64_t by_initiator[8], by_packets[8];

		count_one(p, false, opcode[i], by_initiator);
		count_one(p, true, opcode[i], by_packets);
		CHECK(!memcmp(by_initiator, by_packets, sizeof(by_initiator)));
		exposed_pair_down(p);
	}
}

/* Nothing of the target runs: what it finds, the initiator has put there. */
static void test_initiator_alone(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct qp_attr attr;
	uint32_t psn;

	for (unsigned i = 0; i < 3 * DEVICE_CQES; i++) {
		uint32_t len = 1 + i * 37 % 2500;

		memset(p->to->data, 0, sizeof(p->to->data));
		p->source[len - 1] = (uint8_t)(i | 1);
		exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, len);
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK(!memcmp(p->to->data, p->source, len) && !p->to->data[len]);
		p->to->data[len / 2] ^= 0xff;
		exposed_pair_post(p, WQE_OP_RDMA_READ, 0, len);
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK(!memcmp(p->to->data, p->source, len));
	}
	CHECK(!device_cq_poll(&p->to->qp.cq) && !device_cq_poll(&p->from.cq));
	/* both ends count as if packets had gone */
	qp_query(p->to->qp.qp, &attr);
	psn = attr.rq_psn;
	qp_query(p->from.qp, &attr);
	CHECK(psn != 0xfffff0 && attr.sq_psn == psn);
	CHECK(exposed_pair_counted(&p->initiator, PORT_XMIT_PACKETS) ==
	      exposed_pair_counted(&p->target, PORT_RCV_PACKETS));
	CHECK(exposed_pair_counted(&p->initiator, PORT_XMIT_DATA) ==
	      exposed_pair_counted(&p->target, PORT_RCV_DATA));
	CHECK(exposed_pair_counted(&p->target, PORT_XMIT_PACKETS) ==
	      exposed_pair_counted(&p->initiator, PORT_RCV_PACKETS));
	exposed_pair_down(p);
}

/* A message is executed by its receiver, and requests go on past the packets behind it. */
static void test_message_by_packets(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);

	for (unsigned i = 0; i < 3; i++) {
		device_recv(&p->to->qp, p->to->data, sizeof(p->to->data), p->target_key);
		exposed_pair_post(p, i % 2 ? WQE_OP_SEND_IMM : WQE_OP_SEND, i, 100 + i);
		CHECK(!device_cq_poll(&p->from.cq) && !device_cq_poll(&p->to->qp.cq));
		exposed_pair_progress(p);
		exposed_pair_received(p, i % 2 ? CQE_OP_RESP_SEND_IMM : CQE_OP_RESP_SEND, 100 + i);
		exposed_pair_sent(p, CQE_OP_REQ);
		exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 8);
		exposed_pair_sent(p, CQE_OP_REQ);
	}
	exposed_pair_down(p);
}

/* Messages of one batch are acknowledged together; requests go on past them when they are. */
static void test_batch_by_packets(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);

	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < 5; i++)
			device_recv(&p->to->qp, p->to->data, sizeof(p->to->data), p->target_key);
		for (unsigned i = 0; i < 5; i++)
			exposed_pair_post(p, WQE_OP_SEND, 0, 100 + i);
		CHECK(!device_cq_poll(&p->from.cq) && !device_cq_poll(&p->to->qp.cq));
		exposed_pair_progress(p);
		for (unsigned i = 0; i < 5; i++) {
			exposed_pair_received(p, CQE_OP_RESP_SEND, 100 + i);
			exposed_pair_sent(p, CQE_OP_REQ);
		}
		exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 8);
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK(exposed_pair_msn(p) == 6 * (round + 1));
	}
	exposed_pair_down(p);
}

/* More requests than one call takes; only the last is signaled. */
static void test_list(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);

	for (unsigned i = 0; i < WAY_REQUESTS + 5; i++) {
		struct device_wqe w;

		device_wqe_begin(&p->from, &w, WQE_OP_RDMA_WRITE,
				 i == WAY_REQUESTS + 4 ? WQE_CTRL_CE_ALWAYS : 0, 0);
		device_wqe_raddr(&w, (uintptr_t)p->to->data + 32 * i, p->target_key);
		device_wqe_data(&w, p->source + 32 * i, 1 + i, p->source_key);
		device_wqe_put(&w);
	}
	device_ring(&p->from);
	exposed_pair_sent(p, CQE_OP_REQ);
	for (unsigned i = 0; i < WAY_REQUESTS + 5; i++)
		CHECK(!memcmp(p->to->data + 32 * i, p->source + 32 * i, 1 + i) &&
		      !p->to->data[32 * i + 1 + i]);
	CHECK(exposed_pair_msn(p) == WAY_REQUESTS + 5);
	exposed_pair_down(p);
}

/* A request whose local side is this list of so many places; executed by the initiator alone. */
static void post_listed(struct exposed_pair *p, uint8_t opcode, uint64_t va, uint32_t key,
			uint32_t len)
{
	struct device_wqe w;

	device_wqe_begin(&p->from, &w, opcode, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_raddr(&w, va, p->target_key);
	device_wqe_data(&w, NULL, len, key);
	device_wqe_end(&w);
}

/* More places than one access describes: the message is made on the way, both ways. */
static void test_many_places(enum key_way way)
{
	enum { PLACES = 2 * RUNS_MAX, LEN = PLACES * 16 };
	struct exposed_pair *p = exposed_pair_up(way);
	struct umr_klm e[PLACES];
	const struct mkey_indirect_attr attr = {
		.pdn = p->from.pdn,
		.access = EXPOSED_PAIR_RIGHTS,
		.local_read = true,
		.qpn = MKEY_ANY_QPN,
		.length = LEN,
		.max_entries = PLACES,
		.entries = PLACES,
		.entry = e,
	};
	struct mkey *list;
	uint32_t key;

	/* backwards */
	for (unsigned i = 0; i < PLACES; i++) {
		const uint8_t *at = p->source + (PLACES - 1 - i) * 16;

		e[i] = (struct umr_klm){be32_of(16), be32_of(p->source_key),
					be64_of((uintptr_t)at)};
	}
	CHECK(!mkey_create_indirect(p->initiator.device.adapter[0], &attr, &list));
	key = mkey_key(list);
	post_listed(p, WQE_OP_RDMA_WRITE, (uintptr_t)p->to->data + 1, key, LEN);
	exposed_pair_sent(p, CQE_OP_REQ);
	for (unsigned i = 0; i < PLACES; i++)
		CHECK(!memcmp(p->to->data + 1 + i * 16, p->source + (PLACES - 1 - i) * 16, 16));
	CHECK(!p->to->data[0] && !p->to->data[1 + LEN]);
	memset(p->source, 0, LEN);
	post_listed(p, WQE_OP_RDMA_READ, (uintptr_t)p->to->data + 1, key, LEN);
	exposed_pair_sent(p, CQE_OP_REQ);
	for (unsigned i = 0; i < PLACES; i++)
		CHECK(!memcmp(p->to->data + 1 + i * 16, p->source + (PLACES - 1 - i) * 16, 16));
	/* what the target's key refuses is left to packets, and they place what fits of it */
	memset(p->source, 0xa5, LEN);
	memset(p->to->data, 0, sizeof(p->to->data));
	post_listed(p, WQE_OP_RDMA_WRITE, (uintptr_t)p->to->data + sizeof(p->to->data) - LEN + 1,
		    key, LEN);
	CHECK(!device_cq_poll(&p->from.cq));
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ_ERR);
	for (unsigned i = 0; i < sizeof(p->to->data); i++) {
		unsigned from = sizeof(p->to->data) - LEN + 1;
		bool fits = i >= from && i < from + (LEN - 1) / 1024 * 1024;

		CHECK(p->to->data[i] == (fits ? 0xa5 : 0));
	}
	mkey_destroy(p->initiator.device.adapter[0], list);
	exposed_pair_down(p);
}

/* Does the path lead from the initiator to the target's memory? */
static bool is_reached(struct exposed_pair *p, struct path path)
{
	bool reached;

	hazard_enter();
	reached = wire_remote(p->initiator.device.wire[0], &path, qp_number(p->to->qp.qp));
	hazard_leave();
	return reached;
}

/* A responder that says it is at another port is not the one that the path leads to. */
static void test_other_port(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct qp_block *b = exposed_pair_block(p);

	CHECK(b->view.port == 1 && b->view.dest_port == 0);
	b->view.port = 0;
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	CHECK(!device_cq_poll(&p->from.cq) && !p->to->data[1]); /* packets go by the path */
	b->view.port = 1;
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(!memcmp(p->to->data, p->source, 100));
	exposed_pair_down(p);
}

/* With the address of its own host a queue pair reaches no peer of another, in no way, though that
 * peer would take it for its own. */
static void test_wrong_address(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct qp_block *b = exposed_pair_block(p);

	device_qp_down(&p->from);
	device_qp_up(&p->initiator.device, 0, &p->from, IB_QPT_RC);
	mkey_destroy(p->initiator.device.adapter[0], p->mr[0]);
	p->source_key = device_mr(&p->initiator.device, 0, p->from.pdn, p->source,
				  sizeof(p->source), EXPOSED_PAIR_RIGHTS, &p->mr[0]);
	exposed_pair_connect(p, &p->from, &p->to->qp, 0);
	b->view.dest_qpn = qp_number(p->from.qp);
	CHECK(!is_reached(p, (struct path){.src_port = 0, .dst_port = 0}));
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	exposed_pair_progress(p);
	CHECK(!device_cq_poll(&p->from.cq) && !p->to->data[1]);
	CHECK(exposed_pair_counted(&p->initiator, PORT_XMIT_DISCARDS) &&
	      !exposed_pair_counted(&p->initiator, PORT_XMIT_PACKETS));
	exposed_pair_down(p);
}

/* The bypass heeds the state of both ports, and works again when they are up. */
static void test_port_down(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);

	for (uint32_t row = 0; row < EXPOSED_PAIR_PORTS; row++) {
		exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
		exposed_pair_sent(p, CQE_OP_REQ);
		subnet_set_state(&p->subnet, row, IB_PORT_DOWN);
		CHECK(!is_reached(p, (struct path){.src_port = 0, .dst_port = 1}));
		subnet_set_state(&p->subnet, row, IB_PORT_ACTIVE);
	}
	exposed_pair_down(p);
}

/* A key that is not laid open is reached by packets; a key of another domain by nobody. */
static void test_other_keys(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct mkey *elsewhere, *foreign;

	p->target_key = device_mr(&p->target.device, 0, p->to->qp.pdn, p->to->data, 256,
				  EXPOSED_PAIR_RIGHTS, &elsewhere);
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	CHECK(!device_cq_poll(&p->from.cq) && !p->to->data[1]);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(!memcmp(p->to->data, p->source, 100));

	memset(p->to->data, 0, 100);
	p->target_key = device_mr(&p->target.device, 0, pd_alloc(p->target.device.adapter[0]),
				  p->to->data, 256, EXPOSED_PAIR_RIGHTS, &foreign);
	exposed_pair_data(p, foreign);
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ_ERR);
	CHECK(!p->to->data[1]);
	mkey_destroy(p->target.device.adapter[0], elsewhere);
	mkey_destroy(p->target.device.adapter[0], foreign);
	exposed_pair_down(p);
}

/* A request that comes by packets, and one that comes again, leave the word as open as it was. */
static void test_packets_between(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	uint64_t before = qp_word_load(&exposed_pair_block(p)->word), now;
	struct tap tap = {.packet = exposed_pair_ignore};

	CHECK(qp_word_is_open(before));
	wire_tap_attach(p->initiator.device.host, &tap);
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ);
	now = qp_word_load(&exposed_pair_block(p)->word);
	CHECK(now == qp_word_with(before, qp_word_epsn(before) + 1, qp_word_msn(before) + 1));
	wire_tap_detach(p->initiator.device.host, &tap);
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 100);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(exposed_pair_msn(p) == 2);
	exposed_pair_down(p);
}

struct watcher {
	struct tap tap;
	unsigned packets;
};

static void count_packet(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
			 const struct pkt *p)
{
	struct watcher *w = container_of(t, struct watcher, tap);

	(void)at;
	(void)ns, (void)port_row;
	if (pkt_props(p)->write) {
		CHECK(p->npkts == 1 && psn_diff(p->psn, 0xfffff0) == 1 + (int32_t)w->packets);
		w->packets++;
	}
}

/* While either of the two processes is observed, nothing goes past who looks. */
static void test_observed(enum key_way way)
{
	for (unsigned i = 0; i < 2; i++) {
		struct exposed_pair *p = exposed_pair_up(way);
		struct wire_process *host = i ? p->target.device.host : p->initiator.device.host;
		struct watcher w = {.tap.packet = count_packet};

		exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 8);
		exposed_pair_sent(p, CQE_OP_REQ);
		wire_tap_attach(host, &w.tap);
		exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 3500);
		CHECK(!device_cq_poll(&p->from.cq));
		exposed_pair_progress(p);
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK(w.packets == 4);
		wire_tap_detach(host, &w.tap);
		exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 8);
		exposed_pair_sent(p, CQE_OP_REQ);
		CHECK(w.packets == 4);
		exposed_pair_down(p);
	}
}

/*
 * A responder in RTR gets the first request in a packet, and those behind it follow.  When one has been answered, no
 * more of them do: they wait until nothing is outstanding, here until the SEND has found a receive.
 */
static void test_first_in_rtr(enum key_way way)
{
	struct exposed_pair *p = exposed_pair_up(way);
	struct qp *to = p->to->qp.qp;

	resp_lock(to);
	atomic_store(&to->state, IB_QPS_RTR);
	resp_close(to);
	resp_unlock(to);
	p->from.qp->comp.rnr_left = p->from.qp->attr.rnr_retry = 7; /* for ever */
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 2500);
	exposed_pair_post(p, WQE_OP_SEND, 0, 64);
	CHECK(!device_cq_poll(&p->from.cq) && !p->to->qp.async[IB_EVENT_COMM_EST]);
	exposed_pair_progress(p);
	exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(p->to->qp.async[IB_EVENT_COMM_EST] == 1 && !device_cq_poll(&p->from.cq));
	exposed_pair_post(p, WQE_OP_RDMA_WRITE, 0, 2500);
	exposed_pair_post(p, WQE_OP_RDMA_READ, 0, 2500);
	device_recv(&p->to->qp, p->to->data, EXPOSED_PAIR_BYTES, p->target_key);
	for (unsigned i = 0; i < 1000 && atomic_load(&p->from.qp->comp.completed) != 2; i++) {
		exposed_pair_progress(p);
		usleep(1000);
	}
	for (unsigned i = 0; i < 3; i++)
		exposed_pair_sent(p, CQE_OP_REQ);
	CHECK(atomic_load(&p->from.qp->req.tail) == 2);
	exposed_pair_down(p);
}

static void test_all(enum key_way way)
{
	test_first_in_rtr(way);
	test_initiator_alone(way);
	test_counters(way);
	test_message_by_packets(way);
	test_batch_by_packets(way);
	test_list(way);
	test_other_port(way);
	test_wrong_address(way);
	test_port_down(way);
	test_other_keys(way);
	test_packets_between(way);
	test_observed(way);
}

int main(void)
{
	if (!rseq_available())
		SKIP("the C library registers no restartable sequences");
	test_all(KEY_MAPPED);
	test_many_places(KEY_MAPPED);
	test_all(KEY_KERNEL);
	test_many_places(KEY_KERNEL);
	return 0;
}
