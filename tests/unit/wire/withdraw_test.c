// SPDX-License-Identifier: BSD-2-Clause
/*
 * Payloads that go by reference and that their sender takes back before the receiver has read them:
 *
 *      process a  -- packets -->  process b         both in this process
 *
 * See tests/robust/stopped.c for the same between processes, seen by programs.
 */
#include <string.h>

#include "test_fabric.h"
#include "wire/channel.h"
#include "wire/payload.h"
#include "test_fault.h"

static unsigned char block[64u << 10];

static void ignore_packet(void *user, const struct pkt *p)
{
	(void)user;
	(void)p;
}

#define BIG	   (CHANNEL_REFERENCE_MIN * 2)
#define FIRST_SQPN 0x111u
#define OTHER_SQPN 0x222u

/* The receiver's side. */
static struct taking {
	struct test_process a, b;
	unsigned whole, withdrawn;
	uint32_t sqpn; /* of the last */
	bool in_midst; /* the sender takes it back when it has arrived and is not read yet */
	unsigned lost;
	unsigned reads, offers; /* of places for their answers */
} taking;

static void take_packet(void *user, const struct pkt *p)
{
	static unsigned char got[BIG];
	struct taking *t = user;
	struct run to = {got, BIG};

	memset(got, 0, BIG);
	t->sqpn = p->sqpn;
	if (pkt_props(p)->read) {
		CHECK(!p->nruns || p->foreign);
		t->reads++;
		t->offers += p->nruns != 0;
		return;
	}
	CHECK(p->foreign && p->payload_len == BIG && !pkt_withdrawn(p));
	if (t->in_midst)
		wire_withdraw(t->a.wire, p->dqpn, p->sqpn);
	if (payload_pull(&to, 1, p)) {
		CHECK(!t->in_midst && !memcmp(got, block, BIG));
		t->whole++;
	} else {
		CHECK(pkt_withdrawn(p) && !got[BIG - 1]);
		t->withdrawn++;
	}
}

/* The second half of each payload has the queue pair's own key. */
#define COMMON_KEY 0x4200u
#define NO_KEY	   0x4300u

static enum wire_verdict send_big(struct taking *t, uint32_t sqpn, const _Atomic(uint32_t) *word)
{
	const uint32_t keys[2] = {COMMON_KEY, sqpn};
	struct run run[2] = {{block, BIG / 2}, {block + BIG / 2, BIG / 2}};
	struct pkt p = {.opcode = BTH_RC | BTH_SEND_ONLY,
			.ack_req = true,
			.dqpn = test_fabric_qpn(1),
			.sqpn = sqpn,
			.npkts = 1,
			.va = sqpn == OTHER_SQPN, /* some have optional parts */
			.path = &t->a.path,
			.payload_len = BIG,
			.runs = run,
			.run_keys = keys,
			.nruns = 2,
			.withdrawn = word};

	return wire_xmit(t->a.wire, &p);
}

static void expect_taken(struct taking *t, unsigned whole, unsigned withdrawn)
{
	while (wire_process_progress(t->b.host))
		;
	CHECK(t->whole == whole && t->withdrawn == withdrawn);
	t->whole = t->withdrawn = 0;
}

static void note_lost(void *user, uint32_t sqpn)
{
	struct taking *t = user;

	CHECK(sqpn == FIRST_SQPN || sqpn == OTHER_SQPN);
	t->lost++;
}

static void taking_up(struct taking *t)
{
	struct test_fabric *fabric = test_fabric_create();

	*t = (struct taking){0};
	test_process_up(&t->a, fabric, 0, ignore_packet, NULL);
	test_process_up(&t->b, fabric, 1, take_packet, t);
	test_process_live(&t->a);
	test_process_add_channel(&t->a);
	test_process_add_channel(&t->b);
	while (wire_max_payload(t->a.wire, &t->a.path, test_fabric_qpn(1), 4096, true) !=
	       CHANNEL_REFERENCE_MAX) {
		wire_process_progress(t->b.host);
		wire_process_progress(t->a.host);
	}
}

/* What the sender has given up does not arrive, be it not looked at yet or in the midst of it. */
static void taken_back(void)
{
	_Atomic(uint32_t) word = 0;
	struct taking *t = &taking;

	taking_up(t);
	CHECK(send_big(t, FIRST_SQPN, &word) == WIRE_SENT);
	CHECK(send_big(t, OTHER_SQPN, &word) == WIRE_SENT);
	expect_taken(t, 2, 0);
	/* of one queue pair */
	CHECK(send_big(t, FIRST_SQPN, &word) == WIRE_SENT);
	CHECK(send_big(t, OTHER_SQPN, &word) == WIRE_SENT);
	CHECK(send_big(t, FIRST_SQPN, &word) == WIRE_SENT);
	wire_withdraw(t->a.wire, test_fabric_qpn(1), FIRST_SQPN);
	expect_taken(t, 1, 0);
	CHECK(t->sqpn == OTHER_SQPN);
	/* in the midst; another try arrives */
	t->in_midst = true;
	CHECK(send_big(t, FIRST_SQPN, &word) == WIRE_SENT);
	expect_taken(t, 0, 1);
	t->in_midst = false;
	CHECK(send_big(t, FIRST_SQPN, &word) == WIRE_SENT);
	expect_taken(t, 1, 0);
	/* who comes too late finds the word set */
	atomic_store(&word, 1);
	CHECK(send_big(t, FIRST_SQPN, &word) == WIRE_LOST);
	expect_taken(t, 0, 0);
	test_process_down(&t->a);
	test_process_down(&t->b);
}

static void withdraw_key(struct taking *t, uint32_t key, size_t from, size_t bytes)
{
	wire_withdraw_key(t->a.wire, key, (struct run){block + from, bytes}, note_lost, t);
}

static void taken_back_by_key(void)
{
	struct taking *t = &taking;

	taking_up(t);
	CHECK(send_big(t, FIRST_SQPN, NULL) == WIRE_SENT);
	CHECK(send_big(t, OTHER_SQPN, NULL) == WIRE_SENT);
	withdraw_key(t, COMMON_KEY, BIG, 4096);
	withdraw_key(t, COMMON_KEY, BIG / 2, BIG / 2); /* that is another key's */
	withdraw_key(t, NO_KEY, 0, BIG);
	withdraw_key(t, 0, 0, BIG);
	wire_withdraw_key(t->b.wire, COMMON_KEY, (struct run){block, BIG}, note_lost, t);
	CHECK(!t->lost);
	expect_taken(t, 2, 0);
	CHECK(send_big(t, FIRST_SQPN, NULL) == WIRE_SENT);
	CHECK(send_big(t, OTHER_SQPN, NULL) == WIRE_SENT);
	withdraw_key(t, OTHER_SQPN, BIG - 1, 1);
	expect_taken(t, 1, 0);
	CHECK(t->sqpn == FIRST_SQPN && t->lost);
	t->lost = 0;
	CHECK(send_big(t, FIRST_SQPN, NULL) == WIRE_SENT);
	CHECK(send_big(t, OTHER_SQPN, NULL) == WIRE_SENT);
	withdraw_key(t, COMMON_KEY, BIG / 2 - 1, 1);
	CHECK(t->lost >= 2); /* those that have been read and may be overwritten count as well */
	expect_taken(t, 0, 0);
	t->lost = 0;
	for (unsigned i = 0; i < 1000; i++) /* beyond the end of the ring */
		CHECK(send_big(t, FIRST_SQPN, NULL) == WIRE_SENT);
	withdraw_key(t, COMMON_KEY, 0, 1);
	CHECK(t->lost >= 1000);
	expect_taken(t, 0, 0);
	test_process_down(&t->a);
	test_process_down(&t->b);
}

static void send_read(struct taking *t, uint32_t sqpn)
{
	const uint32_t key = COMMON_KEY;
	const struct run run = {block, BIG};
	struct pkt p = {.opcode = BTH_RC | BTH_READ_REQUEST,
			.ack_req = true,
			.dqpn = test_fabric_qpn(1),
			.sqpn = sqpn,
			.npkts = 1,
			.path = &t->a.path,
			.dma_len = BIG,
			.runs = &run,
			.run_keys = &key,
			.nruns = 1};

	CHECK(wire_xmit(t->a.wire, &p) == WIRE_SENT);
}

static void expect_reads(struct taking *t, unsigned reads, unsigned offers)
{
	while (wire_process_progress(t->b.host))
		;
	CHECK(t->reads == reads && t->offers == offers);
	t->reads = t->offers = 0;
}

/* A READ that is given up does not arrive; one whose places have gone does, without them. */
static void places_taken_back(void)
{
	struct taking *t = &taking;

	taking_up(t);
	send_read(t, FIRST_SQPN);
	expect_reads(t, 1, 1);
	send_read(t, FIRST_SQPN);
	send_read(t, OTHER_SQPN);
	wire_withdraw(t->a.wire, test_fabric_qpn(1), FIRST_SQPN);
	expect_reads(t, 1, 1);
	CHECK(t->sqpn == OTHER_SQPN);
	send_read(t, FIRST_SQPN);
	withdraw_key(t, COMMON_KEY, 0, BIG);
	CHECK(t->lost);
	expect_reads(t, 1, 0);
	/* both, in either order */
	for (unsigned first = 0; first < 2; first++) {
		send_read(t, FIRST_SQPN);
		for (unsigned n = 0; n < 2; n++)
			if (n == first)
				withdraw_key(t, COMMON_KEY, 0, BIG);
			else
				wire_withdraw(t->a.wire, test_fabric_qpn(1), FIRST_SQPN);
		expect_reads(t, 0, 0);
	}
	test_process_down(&t->a);
	test_process_down(&t->b);
}

int main(void)
{
	alarm(120); /* nothing may hang */
	test_fault_catch();
	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (unsigned char)(i * 7 + 1);
	taken_back();
	taken_back_by_key();
	places_taken_back();
	return 0;
}
