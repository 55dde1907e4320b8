// SPDX-License-Identifier: BSD-2-Clause
/* Frames of RoCE: against those that scapy makes, there and back, with any byte spoiled, and each
 * length in them against a plain model. */
#include "wire/roce.h"

#include <string.h>

#include "check.h"
#include "subnet/subnet.h"
#include "wire/pkt.h"

static const uint8_t smac[6] = {2, 0, 0, 0, 0, 1}, dmac[6] = {2, 0, 0, 0, 0, 2};

/* From scapy 2.5, with its checksum of UDP, which the CRC does not see. */
static const uint8_t ack_of_scapy[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00,
				       0x00, 0x00, 0x01, 0x08, 0x00, 0x45, 0x03, 0x00, 0x30,
				       0x00, 0x00, 0x40, 0x00, 0x11, 0x11, 0x55, 0xb6, 0x0a,
				       0x01, 0x00, 0x01, 0x0a, 0x01, 0x00, 0x02, 0xc1, 0x23,
				       0x12, 0xb7, 0x00, 0x1c, 0x62, 0x7c, 0x11, 0x40, 0xff,
				       0xff, 0x00, 0x12, 0x34, 0x56, 0x00, 0x65, 0x43, 0x21,
				       0x1f, 0x00, 0x00, 0x42, 0x60, 0xe8, 0xac, 0x01};
static const uint8_t send_of_scapy[] = {0x02, 0x00, 0x00, 0x00, 0x00, 0x02, 0x02, 0x00, 0x00,
					0x00, 0x00, 0x01, 0x08, 0x00, 0x45, 0x03, 0x00, 0x30,
					0x00, 0x00, 0x40, 0x00, 0x11, 0x11, 0x55, 0xb6, 0x0a,
					0x01, 0x00, 0x01, 0x0a, 0x01, 0x00, 0x02, 0xc1, 0x23,
					0x12, 0xb7, 0x00, 0x1c, 0x99, 0xb0, 0x04, 0xd0, 0xff,
					0xff, 0x00, 0x12, 0x34, 0x56, 0x80, 0x65, 0x43, 0x21,
					0x61, 0x62, 0x63, 0x00, 0xff, 0x31, 0xbd, 0xd2};

/* From the tests of scapy 2.6 (contrib/roce): a congestion notification captured on a ConnectX-4 Lx, and a
 * SEND of UC between ports of cards. */
static const uint8_t cnp_of_card[] = {
	0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2, 0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32, 0x08, 0x00, 0x45,
	0xc2, 0x00, 0x3c, 0x71, 0x8c, 0x40, 0x00, 0x40, 0x11, 0x91, 0x61, 0x0a, 0x00, 0x11, 0x01,
	0x0a, 0x00, 0x12, 0x01, 0x00, 0x00, 0x12, 0xb7, 0x00, 0x28, 0x00, 0x00, 0x81, 0x00, 0xff,
	0xff, 0x40, 0x00, 0x01, 0x18, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x82, 0xfd, 0x00, 0x2a};
static const uint8_t send_of_card[] = {0x24, 0x8a, 0x07, 0xa8, 0xfa, 0x22, 0x24, 0x8a, 0x07, 0xa8,
				       0xfa, 0x22, 0x08, 0x00, 0x45, 0x01, 0x00, 0x40, 0x04, 0x78,
				       0x40, 0x00, 0x40, 0x11, 0xb4, 0xd5, 0xc0, 0xa8, 0x00, 0x07,
				       0xc0, 0xa8, 0x00, 0x07, 0xc0, 0x00, 0x12, 0xb7, 0x00, 0x2c,
				       0xac, 0xa2, 0x24, 0x60, 0xff, 0xff, 0x00, 0x00, 0x00, 0xd3,
				       0x00, 0xcf, 0x17, 0x10, 0x46, 0x30, 0x81, 0x8b, 0xe2, 0x89,
				       0x35, 0xd9, 0x0e, 0x9a, 0x95, 0x50, 0x54, 0x01, 0xbe, 0x88,
				       0x5e, 0x50, 0x00, 0x00, 0x78, 0xf3, 0x53, 0xf3};

#define UDP_CHECKSUM 40u /* where it is in them */

static struct path path_made(bool v1, bool v4)
{
	struct path p = {
		.grh = true,
		.roce_v1 = v1,
		.hop_limit = 17,
		.traffic_class = 3,
		.flow_label = v4 ? 0 : 0xabcde,
		.udp_sport = v1 ? 0 : 0xc123,
		.src_port = SUBNET_NONE,
		.dst_port = SUBNET_NONE,
	};
	static const uint8_t v4_gid[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 0};

	if (v4) {
		memcpy(p.sgid.raw, v4_gid, sizeof(v4_gid));
		p.sgid.raw[15] = 1;
	} else {
		for (uint8_t i = 0; i < 16; i++)
			p.sgid.raw[i] = (uint8_t)(0xfe - i);
	}
	p.dgid = p.sgid;
	p.dgid.raw[15] ^= 3;
	return p;
}

/* Of these a frame says something. */
static bool same_path(const struct path *a, const struct path *b)
{
	return a->grh == b->grh && a->roce_v1 == b->roce_v1 && a->hop_limit == b->hop_limit &&
	       a->traffic_class == b->traffic_class && a->flow_label == b->flow_label &&
	       a->udp_sport == b->udp_sport && !memcmp(&a->sgid, &b->sgid, 16) &&
	       !memcmp(&a->dgid, &b->dgid, 16);
}

static void others_frame(const uint8_t *frame, uint32_t bytes, const struct pkt *as)
{
	const struct path path = path_made(false, true);
	uint8_t own[ROCE_FRAME_MAX], theirs[128];
	struct roce_packet got;
	struct pkt p = *as;

	p.path = &path;
	memcpy(theirs, frame, bytes);
	CHECK(roce_decode(theirs, bytes, &got) == ROCE_TAKEN);
	CHECK(same_path(&got.path, &path) && got.pkt.opcode == p.opcode && got.pkt.psn == p.psn);
	CHECK(got.pkt.dqpn == p.dqpn && got.pkt.pkey == p.pkey && got.pkt.aeth == p.aeth);
	CHECK(got.pkt.msn == p.msn && got.pkt.ack_req == p.ack_req);
	CHECK(got.pkt.solicited == p.solicited && got.pkt.payload_len == p.payload_len);
	CHECK(roce_encode(&p, smac, dmac, own, sizeof(own)) == bytes);
	memset(theirs + UDP_CHECKSUM, 0, 2);
	CHECK(!memcmp(own, theirs, bytes));
}

static void others_frames(void)
{
	const struct run abc = {(void *)(uintptr_t) "abc", 3};
	const struct pkt ack = {
		.opcode = BTH_RC | BTH_ACK,
		.dqpn = 0x123456,
		.psn = 0x654321,
		.pkey = 0xffff,
		.aeth = AETH_ACK | AETH_NO_CREDIT,
		.msn = 0x42,
	};
	const struct pkt send = {
		.opcode = BTH_RC | BTH_SEND_ONLY,
		.solicited = true,
		.ack_req = true,
		.dqpn = 0x123456,
		.psn = 0x654321,
		.pkey = 0xffff,
		.payload_len = 3,
		.nruns = 1,
		.runs = &abc,
	};

	others_frame(ack_of_scapy, sizeof(ack_of_scapy), &ack);
	others_frame(send_of_scapy, sizeof(send_of_scapy), &send);
}

/* What the headers of an operation do not have is 0. */
static struct pkt pkt_made(uint8_t opcode, const struct run *run, uint32_t payload)
{
	const struct bth_props *props = bth_props_of(opcode);
	const struct bth_transport_props *t = bth_transport_props_of(opcode);
	bool address = props->reth || props->atomic_eth;

	return (struct pkt){
		.opcode = opcode,
		.solicited = opcode & 1,
		.ack_req = opcode & 2,
		.migreq_clear = opcode & 4,
		.pkey = 0x8001,
		.dqpn = 0xfedcba,
		.psn = 0xabcdef,
		.npkts = 1,
		.sqpn = t->deth ? 0x123456 : PKT_SQPN_UNKNOWN,
		.qkey = t->deth ? 0x80012345 : 0,
		.srqn = t->xrceth && props->request ? 0x765432 : 0,
		.va = address ? 0x123456789abcdef0 : 0,
		.rkey = address ? 0xfeedbeef : 0,
		.dma_len = props->reth ? 0x7fffffff : 0,
		.swap_add = props->atomic_eth ? 0x1122334455667788 : 0,
		.compare = props->atomic_eth ? 0x99aabbccddeeff00 : 0,
		.aeth = props->aeth ? AETH_RNR_NAK | 7 : 0,
		.msn = props->aeth ? 0x13579b : 0,
		.atomic_orig = props->atomic_ack ? 0xcafef00ddeadbeef : 0,
		.imm = props->imm || props->ieth ? 0x31415926 : 0,
		.payload_len = payload,
		.nruns = payload ? 1 : 0,
		.runs = run,
	};
}

static void same_pkt(const struct pkt *a, const struct pkt *b)
{
	CHECK_SAY(a->opcode == b->opcode, "%02x %02x", a->opcode, b->opcode);
	CHECK(a->solicited == b->solicited && a->ack_req == b->ack_req && a->pkey == b->pkey);
	CHECK(a->migreq_clear == b->migreq_clear);
	CHECK(a->dqpn == b->dqpn && a->psn == b->psn && a->npkts == b->npkts);
	CHECK_SAY(a->sqpn == b->sqpn && a->qkey == b->qkey, "%02x", a->opcode);
	CHECK(a->srqn == b->srqn && a->va == b->va && a->rkey == b->rkey);
	CHECK(a->dma_len == b->dma_len && a->swap_add == b->swap_add);
	CHECK(a->compare == b->compare && a->aeth == b->aeth && a->msn == b->msn);
	CHECK(a->atomic_orig == b->atomic_orig && a->imm == b->imm);
	CHECK(a->payload_len == b->payload_len && a->nruns == b->nruns);
	CHECK(!a->nruns || !memcmp(a->runs->addr, b->runs->addr, a->payload_len));
}

static bool same_addresses(const struct path *a, const struct path *b)
{
	return !memcmp(&a->sgid, &b->sgid, 16) && !memcmp(&a->dgid, &b->dgid, 16);
}

/* Flips each bit: what does not change on the way shows. */
static void spoiled(uint8_t *frame, uint32_t bytes, const struct path *path)
{
	unsigned mutable = path->roce_v1 ? 8 + 20 + 8 : 0, taken = 0;
	struct roce_packet got;

	for (uint32_t bit = 0; bit < bytes * 8; bit++) {
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
		taken += bit >= 14 * 8 && roce_decode(frame, bytes, &got) == ROCE_TAKEN;
		frame[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	/* class, label, hops; UDP's checksum; the byte with marks.  That of IPv4 guards its own. */
	if (!path->roce_v1)
		mutable = ib_gid_is_ipv4(&path->dgid) ? 16 : 8 + 20 + 8 + 16;
	CHECK_SAY(taken == mutable + 8, "%u of %u", taken, mutable + 8);
	for (uint32_t n = 0; n < bytes; n++) {
		enum roce_verdict v = roce_decode(frame, n, &got);

		/* with all of its headers up to UDP's ports it says whose it is */
		CHECK(v == ROCE_FORM || (v == ROCE_NONE && n < 14 + 40 + 8));
		CHECK(v != ROCE_FORM || path->roce_v1 || same_addresses(&got.path, path));
	}
}

/* Octets behind the BTH and in front of the payload, as IBTA table 38 lists them. */
static uint32_t extended_headers(uint8_t opcode)
{
	static const uint8_t by_op[BTH_OP_COUNT] = {
		0,
		0,
		0,
		4,
		0,
		4,
		16,
		0,
		0,
		4,
		16,
		20,
		16, /* SEND, WRITE, READ */
		4,
		0,
		4,
		4, /* answers to a READ */
		4,
		12,
		28,
		28, /* ACK, ATOMIC ACK, atomics */
		[BTH_SEND_LAST_INV] = 4,
		[BTH_SEND_ONLY_INV] = 4,
	};
	uint8_t op = opcode & 0x1f, transport = opcode & 0xe0;
	bool answer = op >= 0x0d && op <= 0x12;

	if (opcode == BTH_CONGESTION)
		return 16;
	return by_op[op] + (transport == BTH_UD ? 8 : transport == BTH_XRC && !answer ? 4 : 0);
}

static uint32_t get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

/* Each length that a receiver, a capture or a counter sees. */
static void lengths(const struct pkt *p, const uint8_t *frame, uint32_t n)
{
	uint32_t payload = (p->payload_len + 3) / 4 * 4;
	uint32_t ib = 12 + extended_headers(p->opcode) + payload + 4;
	bool v1 = p->path->roce_v1, v4 = !v1 && ib_gid_is_ipv4(&p->path->sgid);
	const uint8_t *ip = frame + 14, *bth = ip + (v4 ? 20 : 40) + (v1 ? 0 : 8);
	uint32_t ip_octets = v4 ? get16(ip + 2) : 40 + get16(ip + 4);
	uint8_t seen[IB_GRH_BYTES], zero[20] = {0};
	struct path on_ib;
	struct pkt there;

	CHECK_SAY(ip_octets == (uint32_t)(bth - ip) + ib, "%02x: %u", p->opcode, ip_octets);
	CHECK_SAY(n == 14 + ip_octets, "%02x: %u and %u", p->opcode, n, ip_octets);
	CHECK(v1 || get16(bth - 4) == 8 + ib);
	CHECK(!(bth[1] & 0x40) == p->migreq_clear);
	CHECK(bth[0] == p->opcode && (bth[1] >> 4 & 3u) == payload - p->payload_len);
	CHECK(pkt_wire_octets(p, true) == n + 4);
	memcpy(&on_ib, p->path, sizeof(on_ib));
	on_ib.dlid = 7;
	there = *p;
	there.path = &on_ib;
	CHECK(pkt_wire_octets(&there, false) == 8 + 40 + ib);
	roce_global_header(p, seen);
	CHECK(!memcmp(seen + (v4 ? 20 : 0), ip, v4 ? 20 : 40) && (!v4 || !memcmp(seen, zero, 20)));
	roce_global_header(&there, seen);
	CHECK_SAY(get16(seen + 4) == ib && seen[6] == 0x1b, "%02x: %u", p->opcode, get16(seen + 4));
}

static void there_and_back(const struct path *path, uint8_t opcode, uint32_t payload)
{
	uint8_t bytes[4096], frame[ROCE_FRAME_MAX + 60];
	const struct run run = {bytes, payload};
	struct pkt p = pkt_made(opcode, &run, payload);
	struct roce_packet got;
	uint32_t n;

	for (uint32_t i = 0; i < payload; i++)
		bytes[i] = (uint8_t)(i * 7 + opcode);
	p.path = path;
	n = roce_encode(&p, smac, dmac, frame, ROCE_FRAME_MAX);
	CHECK_SAY(n && n <= ROCE_FRAME_MAX, "%02x: %u", opcode, n);
	lengths(&p, frame, n);
	/* A short one is filled up on some cables. */
	memset(frame + n, 0xee, 60);
	CHECK(roce_decode(frame, n + 60, &got) == ROCE_TAKEN);
	CHECK(same_path(&got.path, path) && !memcmp(got.smac, smac, 6));
	CHECK(!memcmp(got.dmac, dmac, 6));
	same_pkt(&got.pkt, &p);
	if (payload < 16)
		spoiled(frame, n, path);
	CHECK(!roce_encode(&p, smac, dmac, frame, ROCE_HEADERS_MAX - 1));
}

static void all_operations(void)
{
	static const uint8_t transports[] = {BTH_RC, BTH_UC, BTH_UD, BTH_XRC};
	unsigned n = 0;

	for (unsigned kind = 0; kind < 3; kind++) {
		const struct path path = path_made(kind == 0, kind == 1);

		for (unsigned t = 0; t < array_size(transports); t++) {
			for (unsigned op = 0; op < BTH_OP_COUNT; op++) {
				const struct bth_props *p = bth_props_of((uint8_t)op);
				bool datagram = transports[t] == BTH_UD;

				if (p->masked)
					continue;
				if (!p->request && (!p->response || t == 1 || datagram))
					continue;
				if ((t == 1 && (p->read || p->atomic || p->ieth)) ||
				    (datagram && !(p->send && p->first && p->last && !p->ieth)))
					continue;
				for (uint32_t len = 0; len <= 5 * p->payload; len++)
					there_and_back(&path, (uint8_t)(transports[t] | op), len);
				if (p->payload)
					there_and_back(&path, (uint8_t)(transports[t] | op), 4096);
				n++;
			}
		}
	}
	CHECK_SAY(n == 3 * (23 + 12 + 2 + 23), "%u operations", n);
}

/* A notification of congestion: its mark, and 16 reserved octets (IBTA A17.9.3). */
static void notification_of_congestion(void)
{
	static const uint8_t zeros[16];
	uint8_t frame[ROCE_FRAME_MAX];
	struct roce_packet got;

	for (unsigned kind = 0; kind < 2; kind++) {
		const struct path path = path_made(false, kind == 1);
		struct pkt p = pkt_made(BTH_CONGESTION, NULL, 0);
		uint32_t at = 14 + (kind == 1 ? 20 : 40) + 8, n;

		there_and_back(&path, BTH_CONGESTION, 0);
		p.path = &path;
		n = roce_encode(&p, smac, dmac, frame, sizeof(frame));
		CHECK(n == at + 12 + 16 + 4);
		CHECK(frame[at] == 0x81 && frame[at + 4] == 0x40);
		CHECK(!memcmp(frame + at + 12, zeros, sizeof(zeros)));
		/* With a payload it is none, whatever the operation of that number has. */
		p.opcode = BTH_RC | BTH_SEND_MIDDLE;
		p.payload_len = 20;
		p.nruns = 1;
		p.runs = &(struct run){frame, 20};
		n = roce_encode(&p, smac, dmac, frame, sizeof(frame));
		frame[at] = BTH_CONGESTION;
		CHECK(roce_decode(frame, n, &got) == ROCE_FORM);
	}
}

/* They go nowhere, and are not taken either. */
static void others_are_refused(void)
{
	static const uint8_t none[] = {
		BTH_DC | BTH_SEND_ONLY,	      BTH_RAW | BTH_SEND_ONLY, BTH_CNP | BTH_SEND_ONLY,
		BTH_RD | BTH_SEND_ONLY,	      BTH_RC | 0x15,	       BTH_RC | 0x1f,
		BTH_RC | BTH_MASKED_FETCH_ADD};
	static const uint8_t not_taken[] = {BTH_UC | BTH_ACK, BTH_UC | BTH_READ_REQUEST,
					    BTH_UD | BTH_SEND_FIRST, BTH_UD | BTH_WRITE_ONLY};
	const struct path path = path_made(false, true);
	uint8_t frame[ROCE_FRAME_MAX];
	struct roce_packet got;
	uint32_t n;

	for (size_t i = 0; i < array_size(none); i++) {
		struct pkt p = pkt_made(none[i], NULL, 0);

		p.path = &path;
		CHECK(!roce_encode(&p, smac, dmac, frame, sizeof(frame)));
	}
	for (size_t i = 0; i < array_size(not_taken); i++) {
		struct pkt p = pkt_made(not_taken[i], NULL, 0);

		p.path = &path;
		n = roce_encode(&p, smac, dmac, frame, sizeof(frame));
		CHECK(roce_decode(frame, n, &got) == ROCE_OPCODE);
	}
	memcpy(frame, ack_of_scapy, sizeof(ack_of_scapy));
	frame[36] ^= 1; /* another port */
	CHECK(roce_decode(frame, sizeof(ack_of_scapy), &got) == ROCE_NONE);
	memcpy(frame, ack_of_scapy, sizeof(ack_of_scapy));
	frame[54] ^= 1;
	CHECK(roce_decode(frame, sizeof(ack_of_scapy), &got) == ROCE_CRC);
}

static void crc_of_card(const uint8_t *frame, uint32_t bytes)
{
	const uint8_t *ip = frame + ETHERNET_OCTETS, *end = frame + bytes - ICRC_OCTETS;
	uint32_t crc = roce_icrc(ip, IPV4_OCTETS, true, (uint32_t)(end - ip));

	for (unsigned i = 0; i < 4; i++)
		CHECK(end[i] == (uint8_t)(crc >> 8 * i));
}

static void cards_frames(void)
{
	struct roce_packet got;

	crc_of_card(cnp_of_card, sizeof(cnp_of_card));
	crc_of_card(send_of_card, sizeof(send_of_card));
	CHECK(roce_decode(send_of_card, sizeof(send_of_card), &got) == ROCE_TAKEN);
	CHECK(got.pkt.opcode == (BTH_UC | BTH_SEND_ONLY) && got.pkt.dqpn == 211);
	CHECK(got.pkt.psn == 13571856 && got.pkt.payload_len == 18);
}

int main(void)
{
	others_frames();
	cards_frames();
	all_operations();
	notification_of_congestion();
	others_are_refused();
	return 0;
}
