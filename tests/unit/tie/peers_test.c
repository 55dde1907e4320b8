// SPDX-License-Identifier: BSD-2-Clause
/* What a carrier notes of other machines: rows by address, repeated requests, the time of answers. */
#include "tie/peers.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"
#include "wire/tied_peers.h"

static struct peers *p;
static struct slot *slot;

static union ib_gid gid_of(uint32_t n)
{
	union ib_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	for (unsigned i = 0; i < 4; i++)
		gid.raw[15 - i] = (uint8_t)(n >> 8 * i);
	return gid;
}

static uint64_t count(const struct tied_peer *t, enum tied_peer_count what)
{
	return atomic_load(&t->count[what]);
}

static void rows(void)
{
	union ib_gid gid;

	for (uint32_t n = 0; n < TIED_PEERS; n++) {
		struct tied_peer *t;

		gid = gid_of(0x0a000000 + n);
		t = peers_find(p, &gid);
		CHECK(t && t == &p->mem->peer[n] && peers_find(p, &gid) == t);
	}
	gid = gid_of(0x0b000000);
	CHECK(!peers_find(p, &gid) && !peers_find(p, &gid));
	CHECK(atomic_load(&p->mem->n) == TIED_PEERS && atomic_load(&p->mem->unlisted) == 2);
	for (uint32_t n = 0; n < TIED_PEERS; n++) {
		gid = gid_of(0x0a000000 + n);
		CHECK(peers_find(p, &gid) == &p->mem->peer[n]);
		CHECK(tied_peer_find(p->mem, &gid) == &p->mem->peer[n]);
	}
	/* Addresses of IPv6 are others, whatever they end with. */
	gid.half[0] = 1;
	CHECK(!tied_peer_find(p->mem, &gid));
}

#define OWN   0x1234u
#define OTHER (OWN + 1)
#define TIMED (OWN + 2)

static struct pkt request(uint32_t qpn, uint32_t psn, uint32_t npkts)
{
	return (struct pkt){.opcode = BTH_RC | (npkts > 1 ? BTH_READ_REQUEST : BTH_WRITE_ONLY),
			    .sqpn = qpn,
			    .dqpn = qpn,
			    .psn = psn & IB_PSN_MASK,
			    .npkts = npkts,
			    .ack_req = true};
}

static void send(struct tied_peer *t, uint32_t qpn, uint32_t psn, uint32_t npkts)
{
	const struct pkt pkt = request(qpn, psn, npkts);

	peers_send(p, t, &pkt);
}

static void take(struct tied_peer *t, uint32_t qpn, uint32_t psn)
{
	const struct pkt pkt = request(qpn, psn, 1);

	peers_take(p, t, &pkt, clock_ns());
}

static void answer(struct tied_peer *t, uint32_t qpn, uint32_t psn, uint8_t aeth, uint64_t at_ns)
{
	const struct pkt pkt = {.opcode = BTH_RC | BTH_ACK,

				.dqpn = qpn,
				.psn = psn & IB_PSN_MASK,
				.npkts = 1,
				.aeth = aeth};

	peers_take(p, t, &pkt, at_ns);
}

/* Also around the end of the numbers, which have 24 bits. */
static void repeats(struct tied_peer *t)
{
	const uint32_t first = 0xfffffe;

	for (uint32_t i = 0; i < 5; i++)
		send(t, OWN, first + i, 1);
	CHECK(!count(t, PEER_OUT_REPEATED));
	send(t, OWN, first + 3, 1);
	send(t, OWN, first + 4, 1);
	CHECK(count(t, PEER_OUT_REPEATED) == 2);
	/* A READ takes a number for each packet of its answer. */
	send(t, OWN, first + 5, 10);
	send(t, OWN, first + 15, 1);
	CHECK(count(t, PEER_OUT_REPEATED) == 2);
	send(t, OWN, first + 9, 6);
	CHECK(count(t, PEER_OUT_REPEATED) == 3);
	/* Another connection of the same number, and one of another. */
	send(t, OWN, first - 100000, 1);
	send(t, OTHER, first, 1);
	CHECK(count(t, PEER_OUT_REPEATED) == 3 && !count(t, PEER_IN_REPEATED));
	take(t, OWN, 7);
	take(t, OWN, 9);
	take(t, OWN, 9);
	take(t, OWN, 8);
	CHECK(count(t, PEER_IN_REPEATED) == 2 && count(t, PEER_OUT_REPEATED) == 3);
}

static void missed(struct tied_peer *t)
{
	struct pkt nak = {.opcode = BTH_RC | BTH_ACK, .sqpn = OWN, .npkts = 1, .aeth = AETH_NAK};

	peers_send(p, t, &nak);
	nak.aeth = AETH_NAK | NAK_REMOTE_ACCESS;
	peers_send(p, t, &nak);
	CHECK(count(t, PEER_IN_MISSED) == 1 && !count(t, PEER_OUT_MISSED));
	answer(t, OTHER + 9, 1, AETH_NAK | NAK_PSN_SEQUENCE, clock_ns());
	answer(t, OTHER + 9, 1, AETH_ACK, clock_ns());
	CHECK(count(t, PEER_IN_MISSED) == 1 && count(t, PEER_OUT_MISSED) == 1);
}

static uint64_t asked_ns(void)
{
	return atomic_load(&p->out[(TIMED ^ TIMED >> 12) % PEER_FLOWS].asked_ns);
}

static void times(struct tied_peer *t)
{
	send(t, TIMED, 500, 1);
	send(t, TIMED, 501, 1);
	/* To one before it. */
	answer(t, TIMED, 499, AETH_ACK, asked_ns() + 1000);
	CHECK(!atomic_load(&t->rtt_ns));
	answer(t, TIMED, 500, AETH_ACK, asked_ns() + 80000);
	CHECK(atomic_load(&t->rtt_ns) == 80000 && atomic_load(&t->rtt_least_ns) == 80000);
	/* 501 was not asked for, and nothing else is. */
	answer(t, TIMED, 501, AETH_ACK, asked_ns() + 8);
	CHECK(atomic_load(&t->rtt_least_ns) == 80000);
	send(t, TIMED, 502, 1);
	answer(t, TIMED, 502, AETH_ACK, asked_ns() + 16000);
	CHECK(atomic_load(&t->rtt_ns) == 72000 && atomic_load(&t->rtt_least_ns) == 16000);
	/* What was sent twice says nothing. */
	send(t, TIMED, 503, 1);
	send(t, TIMED, 503, 1);
	answer(t, TIMED, 503, AETH_ACK, asked_ns() + 1);
	CHECK(atomic_load(&t->rtt_least_ns) == 16000);
	/* Nor what nobody has answered for long. */
	send(t, TIMED, 504, 1);
	answer(t, TIMED, 504, AETH_ACK, asked_ns() + 2000000000);
	CHECK(atomic_load(&t->rtt_ns) == 72000);
}

int main(void)
{
	union ib_gid gid = gid_of(0x0a000001);
	struct tied_peer *t;
	const struct tied_peers *read;

	p = calloc(1, sizeof(*p));
	slot = aligned_alloc(64, align_up(sizeof(*slot), 64));
	CHECK(p && slot);
	*slot = (struct slot){0};
	CHECK(!peers_open(p, slot));
	t = peers_find(p, &gid);
	repeats(t);
	missed(t);
	times(t);
	/* Anybody who may look at the process reads it. */
	slot->pid = getpid();
	read = tied_peers_map(slot);
	CHECK(read && tied_peer_find(read, &gid) == &read->peer[0]);
	CHECK(count(&read->peer[0], PEER_OUT_REPEATED) == count(t, PEER_OUT_REPEATED));
	tied_peers_unmap(read);
	atomic_fetch_add(&slot->peers_id, 1);
	CHECK(!tied_peers_map(slot));
	atomic_fetch_sub(&slot->peers_id, 1);
	peers_close(p, slot);
	CHECK(!tied_peers_map(slot));
	CHECK(!peers_open(p, slot));
	rows();
	peers_close(p, slot);
	free(slot);
	free(p);
	return 0;
}
