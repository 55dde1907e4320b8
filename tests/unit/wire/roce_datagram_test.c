// SPDX-License-Identifier: BSD-2-Clause
/* Datagrams of RoCE v2 as a socket gives them: completed to the frame that they were, and taken with
 * any identification that their sender has chosen. */
#include "wire/roce_datagram.h"

#include <string.h>

#include "check.h"

static const uint8_t none[6], mac[6] = {2, 0, 0, 0, 0, 9};

static struct path path_made(bool v4)
{
	struct path p = {.grh = true, .hop_limit = 9, .traffic_class = 0x42};

	p.udp_sport = ROCE_V2_UDP_PORT;
	for (uint8_t i = 0; i < 16; i++)
		p.sgid.raw[i] = (uint8_t)(0xfd - i);
	if (v4) {
		memset(p.sgid.raw, 0, 10);
		memset(p.sgid.raw + 10, 0xff, 2);
	}
	p.dgid = p.sgid;
	p.dgid.raw[15] ^= 5;
	return p;
}

struct sent {
	struct path path;
	uint8_t payload[4096];
	uint8_t frame[ROCE_FRAME_MAX];
	uint32_t bytes, routing;
	/* What a socket receives, with its room. */
	uint8_t room[ROCE_ROUTING_MAX + ROCE_FRAME_MAX];
};

static void send_made(struct sent *s, bool v4, uint32_t payload)
{
	const struct run run = {s->payload, payload};
	struct pkt p = {
		.opcode = BTH_RC | BTH_SEND_ONLY,
		.pkey = 0xffff,
		.dqpn = 0x123456,
		.psn = 0x654321,
		.path = &s->path,
		.payload_len = payload,
		.nruns = payload ? 1 : 0,
		.runs = &run,
	};

	s->path = path_made(v4);
	for (uint32_t i = 0; i < payload; i++)
		s->payload[i] = (uint8_t)(i * 7 + payload);
	s->bytes = roce_encode(&p, none, none, s->frame, sizeof(s->frame));
	s->routing = roce_routing_octets(&s->path);
	CHECK(s->bytes > s->routing);
}

/* As if the sender's kernel or card had chosen these two words. */
static void words_set(struct sent *s, uint16_t id, uint16_t flags)
{
	uint8_t *ip = s->frame + ETHERNET_OCTETS, *end = s->frame + s->bytes - ICRC_OCTETS;
	uint32_t crc;

	ip[4] = (uint8_t)(id >> 8);
	ip[5] = (uint8_t)id;
	ip[6] = (uint8_t)(flags >> 8);
	ip[7] = (uint8_t)flags;
	crc = roce_icrc(ip, IPV4_OCTETS, true, (uint32_t)(end - ip));
	for (unsigned i = 0; i < ICRC_OCTETS; i++)
		end[i] = (uint8_t)(crc >> 8 * i);
}

static enum roce_verdict receive(struct sent *s, struct roce_packet *got)
{
	struct roce_datagram d = {.sgid = s->path.sgid,
				  .dgid = s->path.dgid,
				  .sport = s->path.udp_sport,
				  .traffic_class = s->path.traffic_class,
				  .hop_limit = s->path.hop_limit};
	uint32_t bytes = s->bytes - s->routing;
	uint8_t *payload = s->room + ROCE_ROUTING_MAX, *frame;

	memcpy(d.dmac, mac, sizeof(d.dmac));
	memcpy(payload, s->frame + s->routing, bytes);
	frame = roce_datagram_frame(&d, payload, bytes);
	CHECK(frame + s->routing == payload);
	return roce_datagram_decode(frame, s->bytes, got);
}

static void right(struct sent *s, uint32_t payload)
{
	struct roce_packet got;

	CHECK(receive(s, &got) == ROCE_TAKEN);
	CHECK(got.pkt.dqpn == 0x123456 && got.pkt.psn == 0x654321);
	CHECK(got.pkt.payload_len == payload && !memcmp(got.dmac, mac, 6));
	CHECK(!payload || !memcmp(got.run.addr, s->payload, payload));
	CHECK(got.path.traffic_class == 0x42 && got.path.hop_limit == 9);
	CHECK(!memcmp(&got.path.sgid, &s->path.sgid, 16));
	CHECK(!memcmp(&got.path.dgid, &s->path.dgid, 16));
}

static void headers_come_back(void)
{
	static const uint32_t sizes[] = {0, 1, 2, 3, 4, 5, 255, 256, 1023, 1024, 4095, 4096};
	static struct sent s;

	for (unsigned v4 = 0; v4 < 2; v4++)
		for (unsigned i = 0; i < array_size(sizes); i++) {
			send_made(&s, v4, sizes[i]);
			CHECK(s.routing == (v4 ? 42u : 62u));
			right(&s, sizes[i]);
			/* All of the frame is the one that was encoded, but for the MAC. */
			memcpy(s.frame, mac, 6);
			CHECK(!memcmp(s.room + ROCE_ROUTING_MAX - s.routing, s.frame, s.bytes));
		}
}

static void any_identification_is_found(void)
{
	static const uint32_t sizes[] = {0, 8, 1024, 4096};
	static struct sent s;

	for (unsigned i = 0; i < array_size(sizes); i++) {
		send_made(&s, true, sizes[i]);
		for (uint32_t id = 0; id < 65536; id += id < 256 ? 1 : 251) {
			words_set(&s, (uint16_t)id, 0x4000);
			right(&s, sizes[i]);
			words_set(&s, (uint16_t)id, 0);
			right(&s, sizes[i]);
		}
	}
}

/* A number gives the frame that a sender would have made who had known it. */
static void numbers_are_given(void)
{
	static const uint32_t sizes[] = {0, 8, 1023, 4096, 8};
	static struct sent s, other;

	for (unsigned i = 0; i < array_size(sizes); i++) {
		static const uint16_t numbers[] = {1, 63, 0x8001, 0xffff, 0};

		send_made(&s, true, sizes[i]);
		for (unsigned k = 0; k < array_size(numbers); k++) {
			send_made(&other, true, sizes[i]);
			words_set(&other, numbers[k], 0x4000);
			roce_datagram_number(s.frame, s.bytes, numbers[k]);
			/* The checksum of IP is none of words_set's. */
			memcpy(other.frame + 24, s.frame + 24, 2);
			CHECK(s.bytes == other.bytes && !memcmp(s.frame, other.frame, s.bytes));
			right(&s, sizes[i]);
		}
		CHECK(roce_decode(s.frame, s.bytes, &(struct roce_packet){0}) == ROCE_TAKEN);
	}
}

static void spoiled_is_found(void)
{
	static struct sent s;
	struct roce_packet got;
	uint32_t taken = 0, tried = 0;

	for (unsigned v4 = 0; v4 < 2; v4++) {
		send_made(&s, v4, 1024);
		for (uint32_t bit = 8 * (s.routing + BTH_OCTETS); bit < 8 * s.bytes; bit++) {
			s.frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
			tried++;
			taken += receive(&s, &got) != ROCE_CRC;
			s.frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		}
	}
	/* No flip of one bit looks like another identification, as the CRC is of that kind. */
	CHECK(tried > 16000 && taken <= tried / 8192);
	/* A fragment, or the evil bit, is no other identification. */
	send_made(&s, true, 64);
	words_set(&s, 7, 0x2000);
	CHECK(receive(&s, &got) == ROCE_CRC);
	words_set(&s, 7, 0x4001);
	CHECK(receive(&s, &got) == ROCE_CRC);
}

static void short_ones_are_refused(void)
{
	static struct sent s;
	struct roce_packet got;

	for (unsigned v4 = 0; v4 < 2; v4++) {
		uint32_t whole;

		send_made(&s, v4, 4);
		whole = s.bytes;
		for (s.bytes = s.routing; s.bytes < whole; s.bytes++)
			CHECK(receive(&s, &got) != ROCE_TAKEN);
	}
}

/* What a NAT has changed comes back. */
static void rewritten_is_found(void)
{
	static const uint32_t sizes[] = {0, 8, 1024, 4096};
	static struct sent s;

	for (unsigned i = 0; i < array_size(sizes); i++)
		for (unsigned what = 1; what < 8; what++) {
			struct roce_rewritten was;
			struct roce_packet got;
			struct path before;
			uint8_t copy[ETHERNET_OCTETS + IPV4_OCTETS + UDP_OCTETS], *frame;

			send_made(&s, true, sizes[i]);
			memcpy(&before, &s.path, sizeof(before));
			if (what & 1)
				s.path.sgid.raw[13] ^= 0x55;
			if (what & 2)
				s.path.udp_sport = 61234;
			if (what & 4)
				s.path.dgid.raw[14] ^= 1;
			CHECK(receive(&s, &got) == ROCE_CRC);
			frame = s.room + ROCE_ROUTING_MAX - s.routing;
			memcpy(copy, frame, sizeof(copy));
			CHECK(roce_datagram_rewritten(frame, s.bytes, &was));
			CHECK(!memcmp(copy, frame, sizeof(copy)));
			CHECK(!memcmp(was.source, before.sgid.raw + 12, 4) == (what == 1));
			CHECK(!memcmp(was.source_4791, before.sgid.raw + 12, 4) ==
			      (what == 1 || what == 3 || what == 2));
			CHECK(!memcmp(was.destination, before.dgid.raw + 12, 4) == (what == 4));
			CHECK((was.sport == before.udp_sport) == (what == 2));
			CHECK(!roce_datagram_rewritten(frame, 57, &was));
			frame[14] = 0x46;
			CHECK(!roce_datagram_rewritten(frame, s.bytes, &was));
		}
}

int main(void)
{
	headers_come_back();
	any_identification_is_found();
	numbers_are_given();
	spoiled_is_found();
	short_ones_are_refused();
	rewritten_is_found();
	return 0;
}
