// SPDX-License-Identifier: BSD-2-Clause
/* A packet that stands for several: taken apart as they are on a cable, and joined from what came. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "tie/packets.h"

#define MTUS	    5u
#define BYTES_MAX   (PACKETS_JOINED_MAX * 4096u)
#define ROUNDS	    20000u
#define FIRST_PSN   0xfffffau /* the numbers turn within a message */
#define MOST	    65536u
#define DESTINATION 0x1234u

static uint8_t memory[BYTES_MAX];

/* Each kind of message as the specification lists its operations (IBTA table 38). */
static const struct kind {
	uint8_t first, middle, last, only;
} kinds[] = {
	{BTH_SEND_FIRST, BTH_SEND_MIDDLE, BTH_SEND_LAST, BTH_SEND_ONLY},
	{BTH_SEND_FIRST, BTH_SEND_MIDDLE, BTH_SEND_LAST_IMM, BTH_SEND_ONLY_IMM},
	{BTH_SEND_FIRST, BTH_SEND_MIDDLE, BTH_SEND_LAST_INV, BTH_SEND_ONLY_INV},
	{BTH_WRITE_FIRST, BTH_WRITE_MIDDLE, BTH_WRITE_LAST, BTH_WRITE_ONLY},
	{BTH_WRITE_FIRST, BTH_WRITE_MIDDLE, BTH_WRITE_LAST_IMM, BTH_WRITE_ONLY_IMM},
	{BTH_READ_RESP_FIRST, BTH_READ_RESP_MIDDLE, BTH_READ_RESP_LAST, BTH_READ_RESP_ONLY},
};

static uint32_t below(uint32_t n)
{
	return (uint32_t)random() % n;
}

static uint8_t op_of(const struct kind *k, bool begins, bool ends)
{
	return begins ? (ends ? k->only : k->first) : ends ? k->last : k->middle;
}

/* A message, or a piece of one; pieces that do not end it are full. */
static struct pkt message(const struct kind *k, struct run *run, const struct path *path,
			  uint32_t *mtu, bool *begins, bool *ends)
{
	uint32_t n = 1 + below(PACKETS_JOINED_MAX), bytes;

	*mtu = 256u << below(MTUS);
	*begins = below(2);
	*ends = below(2);
	bytes = *ends ? (n - 1) * *mtu + 1 + below(*mtu) : n * *mtu;
	*run = (struct run){memory, bytes};
	return (struct pkt){
		.opcode = BTH_RC | op_of(k, *begins, *ends),
		.ack_req = below(2),
		.solicited = below(2),
		.dqpn = DESTINATION,
		.psn = FIRST_PSN + below(6),
		.npkts = n,
		.imm = 0xabcd,
		.path = path,
		.payload_len = bytes,
		.nruns = 1,
		.runs = run,
	};
}

static void part_is_right(const struct kind *k, const struct pkt *whole, const struct pkt *part,
			  uint32_t mtu, uint32_t i)
{
	bool last = i + 1 == whole->npkts;

	CHECK(pkt_transport(part) == BTH_RC);
	CHECK(pkt_op(part) ==
	      op_of(k, pkt_props(whole)->first && !i, pkt_props(whole)->last && last));
	CHECK(part->psn == ((whole->psn + i) & IB_PSN_MASK) && part->npkts == 1);
	CHECK(part->ack_req == (last && whole->ack_req) &&
	      part->solicited == (last && whole->solicited));
	CHECK(part->payload_len == (last ? whole->payload_len - i * mtu : mtu));
	CHECK(part->nruns == 1 && part->runs[0].addr == memory + (size_t)i * mtu &&
	      part->runs[0].len == part->payload_len);
}

static void as_decoded(struct roce_packet *packet, const struct pkt *part, const struct path *path)
{
	packet->pkt = *part;
	packet->path = *path;
	packet->run = part->runs[0];
	packet->pkt.path = &packet->path;
	packet->pkt.runs = &packet->run;
}

/* Any message is the same after it has been taken apart and joined. */
static void apart_and_joined(void)
{
	static struct packets_joined j;
	const struct path path = {0};

	for (unsigned round = 0; round < ROUNDS; round++) {
		const struct kind *k = &kinds[below(array_size(kinds))];
		struct run run, part_run;
		struct roce_packet packet;
		struct pkt whole, part;
		bool begins, ends;
		uint32_t mtu, at = 0;

		whole = message(k, &run, &path, &mtu, &begins, &ends);
		if (whole.npkts == 1) /* any MTU is right that is large enough */
			mtu = pkt_parts_mtu(&whole);
		CHECK(pkt_parts_mtu(&whole) == mtu && pkt_fills(&whole, mtu));
		for (uint32_t i = 0; i < whole.npkts; i++) {
			pkt_part(&whole, mtu, i, &part, &part_run);
			part_is_right(k, &whole, &part, mtu, i);
			as_decoded(&packet, &part, &path);
			if (i)
				CHECK(packets_join(&j, &packet));
			else
				packets_join_begin(&j, &packet, MOST);
		}
		CHECK(j.packet.pkt.opcode == whole.opcode && j.packet.pkt.psn == whole.psn);
		CHECK(j.packet.pkt.npkts == whole.npkts && j.n == whole.npkts);
		CHECK(j.packet.pkt.payload_len == whole.payload_len && j.packet.pkt.nruns == j.n);
		CHECK(j.packet.pkt.ack_req == whole.ack_req &&
		      j.packet.pkt.solicited == whole.solicited && j.packet.pkt.imm == whole.imm);
		for (uint32_t i = 0; i < j.n; at += (uint32_t)j.runs[i++].len)
			CHECK(j.packet.pkt.runs[i].addr == memory + at);
		CHECK(at == whole.payload_len);
	}
}

/* What no message of the specification can be has no parts. */
static void no_parts(void)
{
	struct run run = {memory, 1000};
	struct pkt p = {.opcode = BTH_WRITE_ONLY,
			.npkts = 4,
			.payload_len = 1000,
			.nruns = 1,
			.runs = &run};

	CHECK(pkt_parts_mtu(&p) == 256 && pkt_fills(&p, 256) && !pkt_fills(&p, 512));
	p.npkts = 5;
	CHECK(!pkt_parts_mtu(&p));
	p.npkts = 0xffffffff;
	CHECK(!pkt_parts_mtu(&p));
	p.npkts = 2;
	p.payload_len = 2 * 4096 + 1;
	CHECK(!pkt_parts_mtu(&p));
	p.payload_len = 2 * 4096;
	CHECK(pkt_parts_mtu(&p) == 4096);
	p.nruns = 2;
	CHECK(!pkt_parts_mtu(&p));
	p.nruns = 1;
	p.opcode = BTH_READ_REQUEST;
	CHECK(!pkt_parts_mtu(&p));
	p = (struct pkt){.npkts = 1};
	CHECK(pkt_fills(&p, 256));
	p.npkts = 2;
	CHECK(!pkt_fills(&p, 256));
}

/* Two packets in a row; 'change' makes the second one, or the first, one that cannot be joined. */
static bool joins(void (*change)(struct roce_packet *was, struct roce_packet *next), uint32_t most)
{
	static struct packets_joined j;
	const struct path path = {0};
	struct run runs[] = {{memory, 1024}, {memory + 1024, 1024}};
	struct pkt p = {.opcode = BTH_WRITE_FIRST,
			.dqpn = DESTINATION,
			.psn = 7,
			.npkts = 1,
			.payload_len = 1024,
			.nruns = 1,
			.runs = &runs[0]};
	struct roce_packet was, next;

	as_decoded(&was, &p, &path);
	p.opcode = BTH_WRITE_MIDDLE;
	p.psn = 8;
	p.runs = &runs[1];
	as_decoded(&next, &p, &path);
	if (change)
		change(&was, &next);
	packets_join_begin(&j, &was, most);
	return packets_join(&j, &next);
}

static void next_psn(struct roce_packet *was, struct roce_packet *next)
{
	(void)was;
	next->pkt.psn = 9;
}

static void same_psn(struct roce_packet *was, struct roce_packet *next)
{
	next->pkt.psn = was->pkt.psn;
}

static void other_queue(struct roce_packet *was, struct roce_packet *next)
{
	(void)was;
	next->pkt.dqpn++;
}

static void other_partition(struct roce_packet *was, struct roce_packet *next)
{
	(void)was;
	next->pkt.pkey++;
}

static void other_kind(struct roce_packet *was, struct roce_packet *next)
{
	(void)was;
	next->pkt.opcode = BTH_SEND_MIDDLE;
}

static void other_transport(struct roce_packet *was, struct roce_packet *next)
{
	(void)was;
	next->pkt.opcode |= BTH_UC;
}

static void other_message(struct roce_packet *was, struct roce_packet *next)
{
	was->pkt.opcode = BTH_WRITE_LAST;
	next->pkt.opcode = BTH_WRITE_FIRST;
}

static void asks(struct roce_packet *was, struct roce_packet *next)
{
	(void)next;
	was->pkt.ack_req = true;
}

static void is_longer(struct roce_packet *was, struct roce_packet *next)
{
	(void)was;
	next->run.len = next->pkt.payload_len = 1028;
}

static void is_marked(struct roce_packet *was, struct roce_packet *next)
{
	(void)was;
	next->path.traffic_class = IP_ECN_MARKED;
}

static void is_empty(struct roce_packet *was, struct roce_packet *next)
{
	(void)was;
	next->run.len = next->pkt.payload_len = 0;
}

static void not_joined(void)
{
	void (*const changes[])(struct roce_packet *, struct roce_packet *) = {
		next_psn,      same_psn, other_queue, other_partition, other_kind, other_transport,
		other_message, asks,	 is_longer,   is_marked,       is_empty};

	CHECK(joins(NULL, MOST) && joins(NULL, 2048));
	CHECK(!joins(NULL, 2047) && !joins(NULL, 0));
	for (size_t i = 0; i < array_size(changes); i++)
		CHECK(!joins(changes[i], MOST));
}

int main(void)
{
	srandom(1);
	apart_and_joined();
	no_parts();
	not_joined();
	return 0;
}
