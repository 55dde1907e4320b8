// SPDX-License-Identifier: BSD-2-Clause
/*
 * Frames of any bytes.  The first byte says whether the CRC is made right, without which hardly an input would be
 * taken; a frame that is taken says the same when it is made anew.  If its second bit is set, the bytes are a
 * datagram that a socket has given, of the family that the third bit says, and the CRC is made right for the
 * identification that the next two bytes are.
 */
#include <string.h>

#include "fuzz.h"
#include "wire/roce_datagram.h"

void target_init(void)
{
}

static bool same_header(const struct roce_packet *a, const struct roce_packet *b)
{
	const struct pkt *p = &a->pkt, *q = &b->pkt;

	return p->opcode == q->opcode && p->psn == q->psn && p->dqpn == q->dqpn &&
	       p->sqpn == q->sqpn && p->qkey == q->qkey && p->srqn == q->srqn && p->va == q->va &&
	       p->rkey == q->rkey && p->dma_len == q->dma_len && p->swap_add == q->swap_add &&
	       p->compare == q->compare && p->aeth == q->aeth && p->msn == q->msn &&
	       p->imm == q->imm && p->atomic_orig == q->atomic_orig && p->pkey == q->pkey &&
	       p->payload_len == q->payload_len && !memcmp(&a->path.sgid, &b->path.sgid, 32);
}

static void taken_must_agree(const struct roce_packet *got, const uint8_t *frame, size_t size)
{
	uint8_t *copy = malloc(ROCE_FRAME_MAX);
	struct roce_packet again;
	uint32_t n;

	MUST(copy && got->pkt.payload_len <= 4096 && got->pkt.npkts == 1);
	MUST(!got->pkt.payload_len ||
	     ((const uint8_t *)got->run.addr >= frame &&
	      (const uint8_t *)got->run.addr + got->run.len <= frame + size));
	n = roce_encode(&got->pkt, got->smac, got->dmac, copy, ROCE_FRAME_MAX);
	MUST(n && roce_decode(copy, n, &again) == ROCE_TAKEN && same_header(got, &again));
	free(copy);
}

/* As if its sender had made it: the last four bytes of what the headers cover. */
static void icrc_make_right(uint8_t *frame, size_t size)
{
	bool v1 = size > 14 && frame[12] == 0x89, v4 = size > 14 && frame[12] == 0x08;
	uint32_t ip_bytes = v4 ? 20 : 40, least = 14 + ip_bytes + (v1 ? 0 : 8) + 12 + 4, crc;

	if (size < least)
		return;
	crc = roce_icrc(frame + 14, ip_bytes, !v1, (uint32_t)size - 14 - 4);
	for (unsigned i = 0; i < 4; i++)
		frame[size - 4 + i] = (uint8_t)(crc >> 8 * i);
}

/* A frame's headers of IP and UDP are ours then, whatever the bytes are. */
static void datagram_try(const uint8_t *data, size_t size)
{
	struct roce_datagram d = {.sport = 0xc123, .traffic_class = data[0], .hop_limit = 64};
	size_t n = size - 3;
	/* A block that ends where the datagram does. */
	uint8_t *block = malloc(ROCE_ROUTING_MAX + n), *payload = block + ROCE_ROUTING_MAX, *frame;
	bool v4 = data[0] & 4;
	struct roce_rewritten was;
	struct roce_packet got;
	uint32_t bytes;

	MUST(block);
	d.dgid.raw[15] = 1;
	if (v4)
		d.dgid.raw[10] = d.dgid.raw[11] = 0xff;
	d.sgid = d.dgid;
	memcpy(payload, data + 3, n);
	frame = roce_datagram_frame(&d, payload, (uint32_t)n);
	MUST(frame >= block);
	bytes = (uint32_t)(payload + n - frame);
	if (data[0] & 1 && v4)
		memcpy(frame + 18, data + 1, 2);
	if (data[0] & 1)
		icrc_make_right(frame, bytes);
	if (v4)
		memset(frame + 18, 0, 2);
	if (roce_datagram_decode(frame, bytes, &got) == ROCE_TAKEN)
		taken_must_agree(&got, frame, bytes);
	else if (data[0] & 1)
		MUST(roce_decode(frame, bytes, &got) != ROCE_TAKEN);
	MUST(roce_datagram_rewritten(frame, bytes, &was) ==
	     (v4 && bytes >= 58 && bytes <= ROCE_FRAME_MAX));
	free(block);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct roce_packet got;
	uint8_t *frame;
	size_t n;

	if (!size || size > ROCE_FRAME_MAX)
		return 0;
	if (data[0] & 2) {
		if (size > 3)
			datagram_try(data, size);
		return 0;
	}
	/* A block of its own size: whoever looks behind its end is found. */
	n = size - 1;
	frame = malloc(n);
	MUST(frame);
	memcpy(frame, data + 1, n);
	if (data[0] & 1)
		icrc_make_right(frame, n);
	if (roce_decode(frame, (uint32_t)n, &got) == ROCE_TAKEN)
		taken_must_agree(&got, frame, n);
	free(frame);
	return 0;
}

/* One of each operation and form. */
void target_seeds(struct seed *s)
{
	static const uint8_t smac[6] = {2, 0, 0, 0, 0, 1}, dmac[6] = {2, 0, 0, 0, 0, 2};
	uint8_t bytes[8] = "payload", frame[ROCE_FRAME_MAX];
	const struct run run = {bytes, sizeof(bytes)};

	for (unsigned i = 0; i < 3 * 256; i++) {
		struct path path = {.grh = true, .roce_v1 = i / 256 == 0, .udp_sport = 0xc000};
		uint8_t opcode = (uint8_t)i;
		uint32_t payload = bth_props_of(opcode)->payload ? 8 : 0, n;
		struct pkt p = {.opcode = opcode,
				.pkey = 0xffff,
				.path = &path,
				.payload_len = payload,
				.nruns = payload / 8,
				.runs = &run};
		char name[16];

		if (i / 256 == 1)
			path.sgid.raw[10] = path.sgid.raw[11] = 0xff;
		path.dgid = path.sgid;
		n = roce_encode(&p, smac, dmac, frame, sizeof(frame));
		if (!n)
			continue;
		put_u8(s, 1);
		for (uint32_t k = 0; k < n; k++)
			put_u8(s, frame[k]);
		snprintf(name, sizeof(name), "op%03x", i);
		put_end(s, name);
		if (path.roce_v1)
			continue;
		put_u8(s, (uint8_t)(3 | (i / 256 == 1 ? 4 : 0)));
		put_u8(s, 0x12);
		put_u8(s, 0x34);
		for (uint32_t k = roce_routing_octets(&path); k < n; k++)
			put_u8(s, frame[k]);
		snprintf(name, sizeof(name), "dg%03x", i);
		put_end(s, name);
	}
}
