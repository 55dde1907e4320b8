// SPDX-License-Identifier: BSD-2-Clause
/*
 * A queue pair whose doorbells say the index, as those of a DPA, answers on InfiniBand as one with a
 * doorbell record does, as those of verbs: each field and each byte, whether a request is good,
 * doubled, early, without a receive, or forbidden.  The requester is made here, at the other end of a
 * channel.
 */
#include <string.h>

#include "check.h"
#include "lone_responder.h"
#include "wire/payload.h"
#include "wire/tap.h"

#define REGION	7u
#define MTU	1024u
#define BYTES	16384u
#define PSN	0xfffffcu /* numbers begin again */
#define ANSWERS 32u

#define POSITIVE  (AETH_ACK | AETH_NO_CREDIT)
#define NOT_READY (AETH_RNR_NAK | 1u)
#define SEQUENCE  (AETH_NAK | NAK_PSN_SEQUENCE)
#define INVALID	  (AETH_NAK | NAK_INVALID_REQUEST)
#define ACCESS	  (AETH_NAK | NAK_REMOTE_ACCESS)

/* A request of one packet. */
struct ask {
	uint8_t op;
	uint32_t bytes;	  /* that it carries, or asks for */
	uint32_t message; /* bytes of the whole message; 0: those */
	int at;		  /* where in the memory */
	int away;	  /* its number from the expected one */
	bool foreign;	  /* by a key that is nobody's */
	bool receives; /* a receive of 64 bytes is posted before it, or of a packet's if it is longer */
	/* answered by so many packets, of which the first one is this */
	uint32_t answers;
	uint8_t answer, aeth;
};

static const struct ask good[] = {
	{BTH_WRITE_ONLY, 8, .answers = 1, .answer = BTH_ACK, .aeth = POSITIVE},
	{BTH_WRITE_ONLY, 0, .answers = 1, .answer = BTH_ACK, .aeth = POSITIVE},
	{BTH_WRITE_FIRST, MTU, 2500},
	{BTH_WRITE_MIDDLE, MTU},
	{BTH_WRITE_LAST, 452, .answers = 1, .answer = BTH_ACK, .aeth = POSITIVE},
	{BTH_WRITE_LAST, 452, .away = -1, .answers = 1, .answer = BTH_ACK, .aeth = POSITIVE},
	{BTH_READ_REQUEST, 4000, .answers = 4, .answer = BTH_READ_RESP_FIRST, .aeth = POSITIVE},
	{BTH_READ_REQUEST, 4000, .away = -4, .answers = 4, .answer = BTH_READ_RESP_FIRST,
	 .aeth = POSITIVE},
	{BTH_READ_REQUEST, 0, .answers = 1, .answer = BTH_READ_RESP_ONLY, .aeth = POSITIVE},
	{BTH_FETCH_ADD, 8, .answers = 1, .answer = BTH_ATOMIC_ACK, .aeth = POSITIVE},
	{BTH_FETCH_ADD, 8, .away = -1, .answers = 1, .answer = BTH_ATOMIC_ACK, .aeth = POSITIVE},
	{BTH_COMPARE_SWAP, 8, .answers = 1, .answer = BTH_ATOMIC_ACK, .aeth = POSITIVE},
	{BTH_SEND_ONLY, 5, .answers = 1, .answer = BTH_ACK, .aeth = NOT_READY},
	{BTH_SEND_ONLY, 5, .receives = true, .answers = 1, .answer = BTH_ACK, .aeth = POSITIVE},
	{BTH_SEND_ONLY, 5, .away = -1, .answers = 1, .answer = BTH_ACK, .aeth = POSITIVE},
	{BTH_SEND_ONLY_IMM, 3, .receives = true, .answers = 1, .answer = BTH_ACK, .aeth = POSITIVE},
	{BTH_WRITE_ONLY_IMM, 9, .receives = true, .answers = 1, .answer = BTH_ACK,
	 .aeth = POSITIVE},
	{BTH_SEND_FIRST, MTU, .receives = true},
	{BTH_SEND_LAST_IMM, 100, .away = 2, .answers = 1, .answer = BTH_ACK, .aeth = SEQUENCE},
	{BTH_SEND_LAST_IMM, 100, .answers = 1, .answer = BTH_ACK, .aeth = POSITIVE},
};

/* After each of these the queue pair has failed. */
static const struct ask refused[] = {
	{BTH_WRITE_ONLY, 4, .foreign = true, .aeth = ACCESS},
	{BTH_READ_REQUEST, 2000, .foreign = true, .aeth = ACCESS},
	{BTH_FETCH_ADD, 8, .foreign = true, .aeth = ACCESS},
	{BTH_COMPARE_SWAP, 8, .foreign = true, .aeth = ACCESS},
	{BTH_WRITE_ONLY, 4, .at = -1, .aeth = ACCESS},
	{BTH_READ_REQUEST, 8, .at = BYTES - 4, .aeth = ACCESS},
	{BTH_FETCH_ADD, 8, .at = 4, .aeth = INVALID},
	{BTH_SEND_ONLY, 65, .receives = true, .aeth = INVALID},
	{BTH_SEND_MIDDLE, MTU, .aeth = INVALID},
	{BTH_WRITE_ONLY, 8, .message = 4, .aeth = INVALID},
};

/* An answer as it is on the wire, without whose it is: one word a field. */
struct seen {
	uint64_t field[14];
	uint64_t step;
	uint8_t payload[MTU];
};

struct run_of {
	struct tap tap;
	struct lone_responder lone;
	_Alignas(8) uint8_t memory[BYTES];
	uint32_t psn;
	uint32_t steps, count;
	struct seen seen[ANSWERS];
};

/* Nobody looks at what arrives: the tap has seen it leave. */
static void receive_packet(void *user, const struct pkt *p)
{
	(void)user;
	CHECK(pkt_props(p)->response);
}

static void record_answer(struct tap *t, enum tap_point at, uint64_t ns, uint32_t port_row,
			  const struct pkt *p)
{
	struct run_of *r = container_of(t, struct run_of, tap);
	const struct bth_props *props = pkt_props(p);
	struct seen *s = &r->seen[r->count];
	const uint64_t field[] = {
		p->opcode,
		p->solicited | p->ack_req << 1,
		p->pkey,
		p->psn,
		p->npkts,
		p->payload_len,
		props->aeth ? p->aeth | (uint64_t)p->msn << 8 : 0,
		props->atomic_ack ? p->atomic_orig : 0,
		p->path->src_port | (uint64_t)p->path->dst_port << 32,
		p->path->slid | (uint64_t)p->path->dlid << 32,
		p->path->sl,
		p->path->hop_limit,
		p->path->traffic_class | p->path->flow_label << 8,
		p->path->grh,
	};
	struct run run = {s->payload, p->payload_len};

	_Static_assert(sizeof(field) == sizeof(s->field), "one word a field");
	(void)ns, (void)port_row;
	if (at != TAP_SENT)
		return;
	CHECK(r->count++ < ANSWERS && p->payload_len <= MTU);
	CHECK(p->sqpn == qp_number(r->lone.qp.qp) && p->dqpn == LONE_PEER);
	memcpy(s->field, field, sizeof(field));
	s->step = r->steps;
	if (p->payload_len)
		CHECK(payload_pull(&run, 1, p));
}

static void run_up(struct run_of *r, uint32_t region)
{
	const struct lone_attr attr = {.receive = receive_packet,
				       .memory = {r->memory, BYTES},
				       .psn = PSN,
				       .region = region};

	memset(r, 0, sizeof(*r));
	r->tap.packet = record_answer;
	r->psn = PSN;
	for (uint32_t i = 0; i < BYTES; i++)
		r->memory[i] = (uint8_t)(i * 7 + i / 256);
	lone_responder_up(&r->lone, &attr);
	wire_tap_attach(r->lone.st[0].host, &r->tap);
}

static void run_down(struct run_of *r)
{
	wire_tap_detach(r->lone.st[0].host, &r->tap);
	lone_responder_down(&r->lone);
}

/* Both ends run until nothing more happens. */
static void run_all(struct run_of *r)
{
	for (unsigned i = 0; i < 20; i++) {
		lone_responder_progress(&r->lone);
		(void)wire_process_progress(r->lone.st[1].host);
	}
}

static void send_request(struct run_of *r, const struct ask *ask, uint32_t numbers)
{
	static uint8_t data[MTU];
	const struct bth_props *props = bth_props_of(BTH_RC | ask->op);
	struct run run = {data, ask->bytes};
	struct pkt p = {
		.opcode = BTH_RC | ask->op,
		.psn = (r->psn + (uint32_t)ask->away) & 0xffffff,
		.npkts = numbers,
		.ack_req = ask->answers > 0,
		.va = (uintptr_t)r->memory + (uint64_t)(int64_t)ask->at,
		.rkey = mkey_key(r->lone.mr) ^ (ask->foreign ? 0x5a00 : 0),
		.dma_len = ask->message ? ask->message : ask->bytes,
		.swap_add = 0x1122334455667788,
		.imm = 0x01020304,
	};

	if (props->payload && ask->bytes) {
		memset(data, ask->op, sizeof(data));
		p.payload_len = ask->bytes;
		p.nruns = 1;
		p.runs = &run;
	}
	lone_responder_ask(&r->lone, &p);
	run_all(r);
}

/* Asks, and the answer is the one that is due. */
static void run_ask(struct run_of *r, const struct ask *ask)
{
	uint32_t first = r->count, numbers = 1;
	const uint64_t *said = r->seen[first].field;

	if (ask->op == BTH_READ_REQUEST && ask->bytes)
		numbers = (ask->bytes + MTU - 1) / MTU;
	if (ask->receives)
		device_recv(&r->lone.qp, r->memory + BYTES / 2, ask->bytes > 65 ? 2 * MTU : 64,
			    mkey_key(r->lone.mr));
	send_request(r, ask, numbers);
	CHECK_SAY(r->count - first == ask->answers, "step %u: %u answers", r->steps,
		  r->count - first);
	if (ask->answers)
		CHECK_SAY(said[0] == (BTH_RC | ask->answer) && (said[6] & 0xff) == ask->aeth,
			  "step %u: operation 0x%x, syndrome 0x%x", r->steps, (unsigned)said[0],
			  (unsigned)said[6] & 0xff);
	if (!ask->away && (!ask->answers || ask->aeth == POSITIVE))
		r->psn = (r->psn + numbers) & 0xffffff;
	r->steps++;
}

static void run_good(struct run_of *r, uint32_t region)
{
	run_up(r, region);
	for (unsigned i = 0; i < array_size(good); i++)
		run_ask(r, &good[i]);
	CHECK(qp_state(r->lone.qp.qp) == IB_QPS_RTR);
	run_down(r);
}

static void run_refused(struct run_of *r, uint32_t region, const struct ask *ask)
{
	struct ask refusal = *ask;

	refusal.answers = 1;
	refusal.answer = BTH_ACK;
	run_up(r, region);
	run_ask(r, &good[0]);
	run_ask(r, &refusal);
	CHECK(qp_state(r->lone.qp.qp) == IB_QPS_ERR);
	run_down(r);
}

static void compare(const char *what, const struct run_of *a, const struct run_of *b)
{
	CHECK(a->count == b->count);
	for (uint32_t i = 0; i < a->count; i++)
		CHECK_SAY(!memcmp(&a->seen[i], &b->seen[i], sizeof(a->seen[i])),
			  "%s, step %u, answer %u", what, (unsigned)a->seen[i].step, i);
}

int main(void)
{
	static struct run_of by_record, by_value;

	run_good(&by_record, 0);
	run_good(&by_value, REGION);
	compare("good requests", &by_record, &by_value);
	for (unsigned i = 0; i < array_size(refused); i++) {
		run_refused(&by_record, 0, &refused[i]);
		run_refused(&by_value, REGION, &refused[i]);
		compare("what is refused", &by_record, &by_value);
	}
	return 0;
}
