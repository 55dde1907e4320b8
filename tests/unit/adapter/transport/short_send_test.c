// SPDX-License-Identifier: BSD-2-Clause
/*
 * SENDs between two processes, plain ones and others mixed, both ways at once: with and without
 * somebody who looks at the packets, which makes each of them a packet of its own on the long way.
 * Completions, counters, sequence numbers and memory are the same.
 *
 *     side 0 --- channel --- side 1
 */
#include <stdlib.h>
#include <string.h>

#include "adapter/qp/qp.h"
#include "adapter/transport/responder.h"
#include "base/hazard.h"
#include "signed_pair.h"
#include "test_fault.h"
#include "wire/channel.h"
#include "wire/tap.h"

#define MTU	1024u
#define SLOT	4096u /* a receive's part of the memory */
#define SCRIPTS CHECK_TIMES(200u)
#define STEPS	60u
#define MOST	256u

struct side_outcome {
	unsigned nsent, nreceived;
	struct cqe64 sent[MOST], received[MOST];
	int events, async[32];
	uint64_t counters[PORT_COUNTERS];
	uint32_t sq_psn, rq_psn;
	enum ib_qp_state state;
	uint8_t memory[DEVICE_RECVS * SLOT];
};

struct outcome {
	struct side_outcome side[2];
};

struct watcher {
	struct tap tap;
	unsigned packets;
};

static struct signed_pair pair;
static struct watcher watchers[2];

static void pair_up(bool exposed)
{
	if (exposed)
		signed_pair_up_exposed(&pair);
	else
		signed_pair_up(&pair, true);
	signed_pair_connect(&pair, IB_MTU_1024);
}

static void tap_packet(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
		       const struct pkt *p)
{
	(void)at, (void)ns, (void)port_row, (void)p;
	container_of(t, struct watcher, tap)->packets++;
}

static uint8_t *receive_at(unsigned side, unsigned n)
{
	return pair.side[side].memory + (size_t)(n % DEVICE_RECVS) * SLOT;
}

static unsigned short_receive[2]; /* which of them is too short for most messages */

static void post_receive(unsigned side, unsigned n)
{
	device_recv(&pair.side[side].q, receive_at(side, n), n == short_receive[side] ? 4 : SLOT,
		    pair.side[side].lkey);
}

/* Behind the receives: what is sent. */
static uint8_t *data_at(unsigned side, uint64_t off)
{
	return pair.side[side].memory + DEVICE_RECVS * SLOT + off;
}

static void put_send(struct rng *rng, unsigned side)
{
	static const uint32_t lens[] = {1, 3, 8, 8, 8, 12, 16, 60, 200, 1000, MTU, MTU + 1, 3000};
	uint32_t len = lens[rng_below(rng, array_size(lens))];
	struct signed_pair_side *s = &pair.side[side];
	uint8_t *from = data_at(side, rng_below(rng, 50000));
	bool imm = !rng_below(rng, 4);
	uint8_t flags = (uint8_t)((rng_below(rng, 3) ? WQE_CTRL_CE_ALWAYS : 0) |
				  (rng_below(rng, 4) ? 0 : WQE_CTRL_SOLICITED) |
				  (rng_below(rng, 8) ? 0 : WQE_CTRL_FENCE));
	struct device_wqe w;

	device_wqe_begin(&s->q, &w, imm ? WQE_OP_SEND_IMM : WQE_OP_SEND, flags,
			 (uint32_t)rng_next(rng));
	switch (rng_below(rng, 4)) {
	case 0:
		device_wqe_inline(&w, from, min_u32(len, 200));
		break;
	case 1:
		device_wqe_data(&w, from, len, s->lkey);
		device_wqe_data(&w, from + 7, 5, s->lkey);
		break;
	case 2: /* of no bytes */
		if (!rng_below(rng, 4))
			break;
		/* fall through */
	default:
		device_wqe_data(&w, from, len, s->lkey);
	}
	device_wqe_put(&w);
}

/* Some that differ in their bytes alone. */
static void put_alike(struct rng *rng, unsigned side, uint64_t n)
{
	static const uint32_t lens[] = {1, 4, 8, 8, 8, 12, 24, 63, 64, 65};
	uint32_t len = lens[rng_below(rng, array_size(lens))], imm = (uint32_t)rng_next(rng);
	struct signed_pair_side *s = &pair.side[side];
	uint8_t op = rng_below(rng, 4) ? WQE_OP_SEND : WQE_OP_SEND_IMM;
	uint8_t solicited = rng_below(rng, 4) ? 0 : WQE_CTRL_SOLICITED;
	bool inlined = !rng_below(rng, 2);
	struct device_wqe w;

	while (n--) {
		uint8_t *from = data_at(side, rng_below(rng, 50000));

		device_wqe_begin(&s->q, &w, op, solicited | (n ? 0 : WQE_CTRL_CE_ALWAYS), imm);
		if (inlined)
			device_wqe_inline(&w, from, len);
		else
			device_wqe_data(&w, from, len, s->lkey);
		device_wqe_put(&w);
	}
}

/* Sometimes more than are delivered at a time. */
static void put_some(struct rng *rng, unsigned side)
{
	uint64_t n = 1 + rng_below(rng, rng_below(rng, 4) ? 5 : 24);

	if (!rng_below(rng, 3)) {
		put_alike(rng, side, n);
		return;
	}
	for (; n; n--)
		put_send(rng, side);
}

/* What ends the connection, on one of the two sides. */
static void put_bad(struct rng *rng, unsigned side)
{
	struct signed_pair_side *s = &pair.side[side];
	unsigned kind = (unsigned)rng_below(rng, 4);
	struct device_wqe w;

	device_wqe_begin(&s->q, &w, kind ? WQE_OP_SEND : 0x3f, WQE_CTRL_CE_ALWAYS, 0);
	if (kind == 1)
		device_wqe_data(&w, data_at(side, 0), 8, s->lkey ^ 0x100);
	else if (kind == 2)
		device_wqe_data(&w, s->memory + SIGNED_PAIR_BYTES - 7, 8, s->lkey);
	else
		device_wqe_data(&w, data_at(side, 0), MTU, s->lkey);
	device_wqe_put(&w);
	if (kind == 3) /* another queue pair's */
		s->q.sq[(size_t)((s->q.sq_pi - 1u) % DEVICE_BLOCKS) * WQE_BLOCK + 4] ^= 1;
}

static void collect_completions(unsigned side, struct side_outcome *o)
{
	const struct cqe64 *c;

	while ((c = device_cq_poll(&pair.side[side].q.cq))) {
		uint8_t op = c->op_own >> 4;
		bool sent = op == CQE_OP_REQ || op == CQE_OP_REQ_ERR;
		struct cqe64 *to = sent ? &o->sent[o->nsent++] : &o->received[o->nreceived++];

		CHECK(o->nsent < MOST && o->nreceived < MOST);
		*to = *c;
		/* which turn of the ring it is depends on the order of both kinds */
		to->op_own &= 0xf0;
	}
}

static void look_at_side(unsigned side)
{
	(void)adapter_progress(pair.device.adapter[side], NULL);
	(void)wire_process_progress(pair.process[side].host);
}

static uint64_t counter_of(unsigned side, enum port_counter c)
{
	uint64_t sum = 0;

	for (unsigned shard = 0; shard < SLOT_SHARDS; shard++)
		for (unsigned port = 0; port < SLOT_PORTS; port++)
			sum += pair.fabric->slots[side].counters[shard][port][c];
	return sum;
}

static void settle_pair(struct outcome *o)
{
	for (unsigned i = 0; i < 50; i++)
		for (unsigned side = 0; side < 2; side++) {
			look_at_side(side);
			collect_completions(side, &o->side[side]);
		}
}

static void finish_script(struct outcome *o)
{
	settle_pair(o);
	for (unsigned side = 0; side < 2; side++) {
		struct side_outcome *s = &o->side[side];
		struct device_qp *q = &pair.side[side].q;
		struct qp_attr attr;

		qp_query(q->qp, &attr);
		s->sq_psn = attr.sq_psn;
		s->rq_psn = attr.rq_psn;
		s->state = attr.state;
		s->events = q->cq.events;
		memcpy(s->async, q->async, sizeof(s->async));
		for (unsigned c = 0; c < PORT_COUNTERS; c++)
			s->counters[c] = counter_of(side, c);
		memcpy(s->memory, pair.side[side].memory, sizeof(s->memory));
	}
}

/* Each side has always more receives than the other has sends. */
static void run_script(uint64_t seed, bool exposed, bool watched, struct outcome *o)
{
	unsigned received[2] = {0}, posted[2] = {0};
	struct rng rng = {seed};
	uint64_t bad_at = rng_below(&rng, 2 * STEPS);

	memset(o, 0, sizeof(*o));
	pair_up(exposed);
	for (unsigned side = 0; side < 2; side++) {
		watchers[side] = (struct watcher){.tap = {.packet = tap_packet}};
		if (watched)
			wire_tap_attach(pair.process[side].host, &watchers[side].tap);
		for (unsigned i = 0; i < SIGNED_PAIR_BYTES; i++)
			pair.side[side].memory[i] = (uint8_t)(i * 7 + i / 251 + side);
		short_receive[side] = (unsigned)rng_below(&rng, 300);
		while (posted[side] < DEVICE_RECVS)
			post_receive(side, posted[side]++);
	}
	/* Both channels are open, and payloads go along. */
	settle_pair(o);
	for (unsigned step = 0; step < STEPS; step++) {
		unsigned side = (unsigned)rng_below(&rng, 2);

		switch (rng_below(&rng, 4)) {
		case 0:
			look_at_side(side);
			break;
		case 1:
			collect_completions(side, &o->side[side]);
			break;
		default:
			put_some(&rng, side);
			if (step == bad_at)
				put_bad(&rng, side);
			device_ring(&pair.side[side].q);
			look_at_side(!side);
			look_at_side(side);
			for (unsigned i = 0; i < 2; i++) {
				collect_completions(i, &o->side[i]);
				for (; received[i] < o->side[i].nreceived; received[i]++)
					if (cqe_op(&o->side[i].received[received[i]]) !=
					    CQE_OP_RESP_ERR)
						post_receive(i, posted[i]++);
			}
		}
	}
	finish_script(o);
	for (unsigned side = 0; side < 2; side++) {
		CHECK(watched == !!watchers[side].packets);
		if (watched)
			wire_tap_detach(pair.process[side].host, &watchers[side].tap);
	}
	signed_pair_down(&pair);
}

/* How many have succeeded. */
static unsigned count_received(const struct side_outcome *o)
{
	unsigned n = 0;

	while (n < o->nreceived && cqe_op(&o->received[n]) != CQE_OP_RESP_ERR)
		n++;
	return n;
}

/*
 * If a connection has failed, only the beginning is the same: an acknowledgement that comes with a
 * request and not behind it may end an earlier request, and so bring on the failure before more
 * messages have come.
 */
static void same_outcome(const struct side_outcome *a, const struct side_outcome *b, bool failed)
{
	unsigned n = min_u32(count_received(a), count_received(b));

	CHECK(!memcmp(a->received, b->received, n * sizeof(*a->received)));
	CHECK(a->state == b->state && !memcmp(a->async, b->async, sizeof(a->async)));
	if (failed)
		return;
	CHECK(a->nreceived == n && b->nreceived == n);
	CHECK(a->nsent == b->nsent && !memcmp(a->sent, b->sent, sizeof(a->sent)));
	CHECK(a->sq_psn == b->sq_psn && a->rq_psn == b->rq_psn);
	CHECK(!memcmp(a->counters, b->counters, sizeof(a->counters)));
	CHECK(!memcmp(a->memory, b->memory, sizeof(a->memory)));
}

static void test_scripts(void)
{
	static struct outcome shortly, at_length;
	unsigned failed = 0;
	bool bad;

	for (uint64_t seed = 1; seed <= SCRIPTS; seed++) {
		run_script(seed, seed & 1, false, &shortly);
		run_script(seed, seed & 1, true, &at_length);
		bad = shortly.side[0].state == IB_QPS_ERR || shortly.side[1].state == IB_QPS_ERR;
		for (unsigned side = 0; side < 2; side++)
			same_outcome(&shortly.side[side], &at_length.side[side], bad);
		failed += bad;
	}
	CHECK(failed > SCRIPTS / 10 && failed < SCRIPTS);
}

/* ---- what goes through the channel ---- */

/* Bytes that the side has sent so far. */
static uint64_t sent_bytes(unsigned side)
{
	struct channel_mem *mem = mmap(NULL, TEST_FABRIC_CHANNEL_BYTES, PROT_READ, MAP_SHARED,
				       pair.fabric->channel_fd, 0);
	uint64_t head;

	CHECK(mem != MAP_FAILED);
	head = atomic_load(&mem->ring[side].head);
	CHECK(!munmap(mem, TEST_FABRIC_CHANNEL_BYTES));
	return head;
}

static void send_word(unsigned side)
{
	struct signed_pair_side *s = &pair.side[side];
	struct device_wqe w;

	device_wqe_begin(&s->q, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_inline(&w, data_at(side, 0), 8);
	device_wqe_end(&w);
}

static void expect_cqe(unsigned side, uint8_t op)
{
	const struct cqe64 *c = device_cq_poll(&pair.side[side].q.cq);

	CHECK(c && cqe_op(c) == op);
}

static void begin_script(bool exposed)
{
	pair_up(exposed);
	short_receive[0] = short_receive[1] = MOST;
	for (unsigned n = 0; n < 20; n++)
		for (unsigned side = 0; side < 2; side++)
			post_receive(side, n);
	signed_pair_progress(&pair);
	signed_pair_progress(&pair);
}

/* An answer that is itself a message takes one cache line, and brings the acknowledgement. */
static void ping_pong(bool exposed)
{
	begin_script(exposed);
	send_word(0);
	for (unsigned n = 0; n < 20; n++) {
		unsigned side = !(n % 2);
		uint64_t before = sent_bytes(side);

		look_at_side(side);
		if (n)
			expect_cqe(side, CQE_OP_REQ);
		expect_cqe(side, CQE_OP_RESP_SEND);
		send_word(side);
		CHECK(sent_bytes(side) == before + RING_ALIGN);
	}
	signed_pair_down(&pair);
}

/* Nobody answers: whoever looks next after the receive's completion sends the acknowledgement. */
static void no_answer(bool exposed)
{
	uint64_t before;

	begin_script(exposed);
	send_word(0);
	look_at_side(1);
	expect_cqe(1, CQE_OP_RESP_SEND);
	before = sent_bytes(1);
	CHECK(adapter_owes(pair.device.adapter[1]));
	look_at_side(1);
	CHECK(sent_bytes(1) == before + RING_ALIGN && !adapter_owes(pair.device.adapter[1]));
	look_at_side(0);
	expect_cqe(0, CQE_OP_REQ);
	signed_pair_down(&pair);
}

/* The request that an acknowledgement was to go with cannot be read: it goes nevertheless. */
static void unreadable_answer(void)
{
	struct signed_pair_side *s = &pair.side[1];
	uint8_t *gone =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct device_wqe w;
	struct mkey *m;
	uint32_t key;

	begin_script(true);
	key = device_mr(&pair.device, 1, s->q.pdn, gone, 4096, DEVICE_ALL_ACCESS, &m);
	send_word(0);
	look_at_side(1);
	expect_cqe(1, CQE_OP_RESP_SEND);
	device_wqe_begin(&s->q, &w, WQE_OP_SEND, WQE_CTRL_CE_ALWAYS, 0);
	device_wqe_data(&w, gone, 8, key);
	CHECK(!munmap(gone, 4096));
	device_wqe_end(&w);
	expect_cqe(1, CQE_OP_REQ_ERR);
	look_at_side(1);
	look_at_side(0);
	expect_cqe(0, CQE_OP_REQ);
	mkey_destroy(pair.device.adapter[1], m);
	signed_pair_down(&pair);
}

/* No receive is there: the sender hears of it, and the message comes again. */
static void not_ready(bool exposed)
{
	pair_up(exposed);
	signed_pair_progress(&pair);
	send_word(0);
	signed_pair_progress(&pair);
	CHECK(!device_cq_poll(&pair.side[0].q.cq) && !device_cq_poll(&pair.side[1].q.cq));
	CHECK(counter_of(1, HW_OUT_OF_BUFFER) == 1);
	post_receive(1, 0);
	CHECK(cqe_op(signed_pair_wait(&pair, &pair.side[1].q.cq)) == CQE_OP_RESP_SEND);
	CHECK(cqe_op(signed_pair_wait(&pair, &pair.side[0].q.cq)) == CQE_OP_REQ);
	CHECK(!memcmp(receive_at(1, 0), data_at(0, 0), 8));
	signed_pair_down(&pair);
}

/* A list of words, of which the last one is signaled. */
static void put_words(unsigned side, unsigned n)
{
	struct signed_pair_side *s = &pair.side[side];
	struct device_wqe w;

	for (unsigned i = 0; i < n; i++) {
		device_wqe_begin(&s->q, &w, WQE_OP_SEND, i + 1 < n ? 0 : WQE_CTRL_CE_ALWAYS, 0);
		device_wqe_data(&w, data_at(side, 8ull * i), 8, s->lkey);
		device_wqe_put(&w);
	}
}

/* Each is a message of its own, and they share a record: 48 bytes and their words. */
static void short_list(bool exposed)
{
	struct qp *qp;
	uint64_t before;
	uint32_t psn;

	begin_script(exposed);
	qp = pair.side[1].q.qp;
	psn = qp->resp.epsn;
	before = sent_bytes(0);
	put_words(0, 16);
	device_ring(&pair.side[0].q);
	CHECK(sent_bytes(0) == before + align_up(48 + 16 * 8, RING_ALIGN));
	look_at_side(1);
	for (unsigned i = 0; i < 16; i++) {
		expect_cqe(1, CQE_OP_RESP_SEND);
		CHECK(!memcmp(receive_at(1, i), data_at(0, 8ull * i), 8));
	}
	CHECK(!device_cq_poll(&pair.side[1].q.cq));
	CHECK(qp->resp.epsn == psn_add(psn, 16) && counter_of(1, PORT_RCV_PACKETS) == 16);
	look_at_side(1);
	look_at_side(0);
	expect_cqe(0, CQE_OP_REQ);
	CHECK(!device_cq_poll(&pair.side[0].q.cq));
	signed_pair_down(&pair);
}

/* In the middle of a record there are no more receives: what was taken is not taken again, and the rest
 * comes when there are. */
static void list_not_ready(bool exposed)
{
	pair_up(exposed);
	short_receive[1] = MOST;
	for (unsigned i = 0; i < 5; i++)
		post_receive(1, i);
	signed_pair_progress(&pair);
	signed_pair_progress(&pair);
	put_words(0, 16);
	device_ring(&pair.side[0].q);
	look_at_side(1);
	for (unsigned i = 0; i < 5; i++)
		expect_cqe(1, CQE_OP_RESP_SEND);
	CHECK(!device_cq_poll(&pair.side[1].q.cq));
	CHECK(counter_of(1, HW_OUT_OF_BUFFER) == 1);
	for (unsigned i = 5; i < 20; i++)
		post_receive(1, i);
	for (unsigned i = 5; i < 16; i++) {
		CHECK(cqe_op(signed_pair_wait(&pair, &pair.side[1].q.cq)) == CQE_OP_RESP_SEND);
		CHECK(!memcmp(receive_at(1, i), data_at(0, 8ull * i), 8));
	}
	CHECK(cqe_op(signed_pair_wait(&pair, &pair.side[0].q.cq)) == CQE_OP_REQ);
	CHECK(!device_cq_poll(&pair.side[1].q.cq));
	CHECK(!memcmp(receive_at(1, 0), data_at(0, 0), 8));
	signed_pair_down(&pair);
}

/* As if side 0 had sent it to side 1. */
static struct short_send plain_short_send(uint32_t psn)
{
	const struct qp *qp = pair.side[1].q.qp;

	return (struct short_send){.opcode = BTH_RC | BTH_SEND_ONLY,
				   .ack_req = true,
				   .n = 1,
				   .pkey = qp->pkey,
				   .dqpn = qp->qpn,
				   .sqpn = qp_number(pair.side[0].q.qp),
				   .src_port = qp->path.dst_port,
				   .psn = psn};
}

/* Old requests, sent again and still under way: the peer may have begun something by itself since, and that
 * counts. */
static void old_requests(void)
{
	struct short_send b;
	struct qp *qp;

	begin_script(true);
	qp = pair.side[1].q.qp;
	send_word(0);
	send_word(0);
	signed_pair_progress(&pair);
	signed_pair_progress(&pair);
	CHECK(qp->resp.published);
	b = plain_short_send(psn_add(qp->resp.epsn, IB_PSN_MASK - 1));
	b.n = 2;
	qp->resp.have_recv = true; /* whoever closes the word cannot open it again */
	hazard_enter();
	CHECK(!responder_receive_short_sends(qp, &b));
	hazard_leave();
	CHECK(qp->resp.published);
	qp->resp.have_recv = false;
	signed_pair_down(&pair);
}

/* The peer has executed a request with that number by itself, and only the word says so. */
static void old_by_word(void)
{
	struct short_send b;
	struct qp *qp;

	begin_script(true);
	qp = pair.side[1].q.qp;
	send_word(0);
	send_word(0);
	signed_pair_progress(&pair);
	signed_pair_progress(&pair);
	CHECK(qp->resp.published && cqe_op(next(&pair, 1)) == CQE_OP_RESP_SEND);
	CHECK(cqe_op(next(&pair, 1)) == CQE_OP_RESP_SEND);
	b = plain_short_send(qp->resp.epsn);
	b.n = 2;
	CHECK(qp_word_commit(&qp->resp.shared->word, qp_word_load(&qp->resp.shared->word), 1, 1));
	hazard_enter();
	CHECK(!responder_receive_short_sends(qp, &b));
	hazard_leave();
	CHECK(qp->resp.epsn == psn_add(b.psn, 1) && !device_cq_poll(&pair.side[1].q.cq));
	signed_pair_down(&pair);
}

/* More than a packet of this path holds: the long way refuses it. */
static void longer_than_path(void)
{
	static const uint8_t payload[2 * MTU];
	struct short_send b;

	begin_script(true);
	b = plain_short_send(pair.side[1].q.qp->resp.epsn);
	b.payload_len = MTU + 1;
	b.payload = payload;
	hazard_enter();
	CHECK(!responder_receive_short_sends(pair.side[1].q.qp, &b));
	hazard_leave();
	CHECK(!device_cq_poll(&pair.side[1].q.cq));
	signed_pair_down(&pair);
}

int main(void)
{
	test_fault_catch();
	old_requests();
	old_by_word();
	longer_than_path();
	for (unsigned exposed = 0; exposed < 2; exposed++) {
		ping_pong(exposed);
		no_answer(exposed);
		not_ready(exposed);
		short_list(exposed);
		list_not_ready(exposed);
	}
	unreadable_answer();
	test_scripts();
	return 0;
}
