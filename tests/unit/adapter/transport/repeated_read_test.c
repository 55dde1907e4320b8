// SPDX-License-Identifier: BSD-2-Clause
/*
 * READs that are asked for again while the way back is full: their answers wait, and what is asked
 * for meanwhile neither counts them nor takes their turn.  The requester is made here, at the other
 * end of a channel; it takes answers when the test says so.
 */
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "lone_responder.h"

#define MTU	 1024u
#define LARGE	 (768u << 10) /* more than the ring of one direction */
#define SMALL	 8u
#define PSN	 0xfffff0u
#define DEPTH	 2u
#define MAX_READ 8u

struct read {
	uint32_t psn, bytes;
	uint32_t got;	 /* of the last answer, in order */
	unsigned rounds; /* answers that came whole */
};

struct repeated_read_case {
	struct lone_responder lone;
	uint8_t memory[LARGE];
	uint32_t psn; /* of the next new request */
	struct read read[MAX_READ];
	unsigned reads, order, naks;
	unsigned finished[MAX_READ]; /* in which order answers came to their end */
	unsigned finished_at_nak;
};

/* An answer's packet: of which request, and are these its bytes? */
static void note_answer(struct repeated_read_case *t, const struct pkt *p)
{
	uint32_t offset, at = 0;
	unsigned i = 0;

	while (psn_diff(p->psn, t->read[i].psn) < 0 ||
	       psn_diff(p->psn, psn_add(t->read[i].psn, div_round_up(t->read[i].bytes, MTU))) >= 0)
		CHECK(++i < t->reads);
	offset = (uint32_t)psn_diff(p->psn, t->read[i].psn) * MTU;
	for (uint32_t n = 0; n < p->nruns; n++) {
		CHECK(!memcmp(p->runs[n].addr, t->memory + offset + at, p->runs[n].len));
		at += (uint32_t)p->runs[n].len;
	}
	CHECK(at == p->payload_len);
	/* the rest of one that is asked for in its midst begins there */
	t->read[i].got = pkt_props(p)->first || t->read[i].got == offset ? offset + at : 0;
	if (!pkt_props(p)->last)
		return;
	CHECK(t->read[i].got == t->read[i].bytes);
	t->read[i].rounds++;
	t->finished[t->order++ % MAX_READ] = i;
}

static void receive_packet(void *user, const struct pkt *p)
{
	struct repeated_read_case *t = user;

	CHECK(pkt_props(p)->response);
	if (pkt_op(p) != BTH_ACK) {
		note_answer(t, p);
	} else if ((p->aeth & AETH_KIND_MASK) == AETH_NAK) {
		t->naks++;
		t->finished_at_nak = t->order;
	}
}

static void repeated_read_case_up(struct repeated_read_case *t)
{
	const struct lone_attr attr = {.receive = receive_packet,
				       .user = t,
				       .memory = {t->memory, LARGE},
				       .psn = PSN,
				       .reads = DEPTH};

	memset(t, 0, sizeof(*t));
	for (uint32_t i = 0; i < LARGE; i++)
		t->memory[i] = (uint8_t)(i * 7 + i / MTU);
	lone_responder_up(&t->lone, &attr);
	t->psn = PSN;
}

static void repeated_read_case_down(struct repeated_read_case *t)
{
	lone_responder_down(&t->lone);
}

/* The responder's side runs, until it does nothing more. */
static void respond_all(struct repeated_read_case *t)
{
	for (unsigned i = 0; i < 20; i++)
		lone_responder_progress(&t->lone);
}

/* And so does the requester's: all answers are taken. */
static void take_answers(struct repeated_read_case *t)
{
	for (unsigned i = 0; i < 100; i++) {
		respond_all(t);
		(void)wire_process_progress(t->lone.st[1].host);
	}
	CHECK(t->lone.qp.qp->resp.rd_answered == t->lone.qp.qp->resp.rd_count);
}

/* Asks for a read from its byte from on. */
static void ask_read(struct repeated_read_case *t, unsigned i, uint32_t from)
{
	struct pkt p = {
		.opcode = BTH_RC | BTH_READ_REQUEST,
		.psn = psn_add(t->read[i].psn, from / MTU),
		.npkts = div_round_up(t->read[i].bytes - from, MTU),
		.ack_req = true,
		.va = (uintptr_t)t->memory + from,
		.rkey = mkey_key(t->lone.mr),
		.dma_len = t->read[i].bytes - from,
	};

	t->read[i].got = from;
	lone_responder_ask(&t->lone, &p);
	respond_all(t);
}

static void ask_new(struct repeated_read_case *t, uint32_t bytes)
{
	t->read[t->reads] = (struct read){.psn = t->psn, .bytes = bytes};
	t->psn = psn_add(t->psn, div_round_up(bytes, MTU));
	ask_read(t, t->reads++, 0);
}

static void expect_waiting(const struct repeated_read_case *t)
{
	CHECK(t->lone.qp.qp->resp.rd_answered != t->lone.qp.qp->resp.rd_count);
}

/* Two have been answered, and the first one is asked for again; the answer does not fit. */
static void repeat_first(struct repeated_read_case *t, uint32_t second)
{
	repeated_read_case_up(t);
	ask_new(t, LARGE);
	ask_new(t, second);
	take_answers(t);
	CHECK(t->read[0].rounds == 1 && t->read[1].rounds == 1);
	ask_read(t, 0, 0);
	expect_waiting(t);
}

/* The requester has had both answers, and may ask for as many again. */
static void test_more(unsigned turns)
{
	static struct repeated_read_case t;

	repeat_first(&t, SMALL);
	for (unsigned i = 0; i < turns; i++) {
		ask_new(&t, LARGE);
		ask_new(&t, SMALL);
		CHECK(!t.naks);
		take_answers(&t);
		CHECK(t.read[2 + 2 * i].rounds == 1 && t.read[3 + 2 * i].rounds == 1);
		ask_read(&t, 2 + 2 * i, 0);
		expect_waiting(&t);
	}
	CHECK(!t.naks && qp_state(t.lone.qp.qp) == IB_QPS_RTR);
	take_answers(&t);
	repeated_read_case_down(&t);
}

/* A WRITE of a few bytes. */
static void ask_write(struct repeated_read_case *t, uint8_t *to)
{
	static uint8_t bytes[SMALL];
	struct run run = {bytes, SMALL};
	struct pkt p = {
		.opcode = BTH_RC | BTH_WRITE_ONLY,
		.psn = t->psn,
		.npkts = 1,
		.ack_req = true,
		.va = (uintptr_t)to,
		.rkey = mkey_key(t->lone.mr),
		.dma_len = SMALL,
		.payload_len = SMALL,
		.nruns = 1,
		.runs = &run,
	};

	t->psn = psn_add(t->psn, 1);
	lone_responder_ask(&t->lone, &p);
	respond_all(t);
}

/* A message of no bytes, under the number of the read that was asked for last. */
static void send_in_place(struct repeated_read_case *t)
{
	struct pkt p = {
		.opcode = BTH_RC | BTH_SEND_ONLY,
		.psn = t->read[t->reads - 1].psn,
		.npkts = 1,
		.ack_req = true,
	};

	lone_responder_ask(&t->lone, &p);
	respond_all(t);
}

/* A request has been refused, of which the requester hears when so many reads have been answered. */
static void refused_in_order(struct repeated_read_case *t, unsigned reads)
{
	CHECK(qp_state(t->lone.qp.qp) == IB_QPS_RTR);
	expect_waiting(t);
	take_answers(t);
	CHECK(qp_state(t->lone.qp.qp) == IB_QPS_ERR && t->naks == 1);
	for (unsigned i = 0; i < reads; i++)
		CHECK(t->read[i].rounds && t->finished_at_nak > i);
}

/* More than it may: those that have never been answered count. */
static void test_too_many(void)
{
	static struct repeated_read_case t;

	repeat_first(&t, SMALL);
	ask_new(&t, LARGE);
	ask_new(&t, SMALL);
	CHECK(qp_state(t.lone.qp.qp) == IB_QPS_RTR);
	ask_new(&t, SMALL);
	/* Nor does anything count that takes its number. */
	device_recv(&t.lone.qp, t.memory, SMALL, mkey_key(t.lone.mr));
	send_in_place(&t);
	CHECK(!device_cq_poll(&t.lone.qp.cq));
	refused_in_order(&t, 4);
	repeated_read_case_down(&t);
}

/* A WRITE that is refused while answers to earlier requests wait: they come first, whole.  What comes
 * behind it is not executed. */
static void test_refusal(void)
{
	static struct repeated_read_case t;
	uint8_t before[SMALL];

	repeated_read_case_up(&t);
	memcpy(before, t.memory, SMALL);
	ask_new(&t, LARGE);
	ask_new(&t, SMALL);
	ask_write(&t, t.memory + LARGE);
	ask_write(&t, t.memory);
	/* One that was lost, as the requester thinks, may be asked for again. */
	ask_read(&t, 1, 0);
	refused_in_order(&t, 2);
	CHECK(!memcmp(before, t.memory, SMALL));
	CHECK(t.lone.qp.async[IB_EVENT_QP_ACCESS_ERR] == 1);
	repeated_read_case_down(&t);
}

/* Both are asked for again: both are answered, in their order. */
static void test_order(void)
{
	static struct repeated_read_case t;

	repeat_first(&t, SMALL);
	ask_read(&t, 1, 0);
	take_answers(&t);
	CHECK(t.read[0].rounds == 2 && t.read[1].rounds == 2);
	CHECK(t.finished[2] == 0 && t.finished[3] == 1 && !t.naks);
	repeated_read_case_down(&t);
}

/* Who asks for the rest of the second has the first. */
static void test_rest(void)
{
	static struct repeated_read_case t;

	repeat_first(&t, LARGE);
	ask_read(&t, 1, LARGE / 2);
	take_answers(&t);
	CHECK(t.read[1].rounds == 2 && t.finished[2] == 1 && !t.naks);
	repeated_read_case_down(&t);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_more(1);
	test_more(3);
	test_too_many();
	test_refusal();
	test_order();
	test_rest();
	return 0;
}
