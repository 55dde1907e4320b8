// SPDX-License-Identifier: BSD-2-Clause
/* See pcapng.h. */
#include "tool/pcapng.h"

#include <string.h>

enum block {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_STATISTICS = 5,
	BLOCK_PACKET = 6,
};

enum option {
	OPTION_END = 0,
	IF_NAME = 2,
	IF_TSRESOL = 9,
	SHB_USERAPPL = 4,
	EPB_FLAGS = 2,
	ISB_STARTTIME = 2,
	ISB_ENDTIME = 3,
	ISB_IFRECV = 4,
	ISB_IFDROP = 5,
};

#define BYTE_ORDER_MAGIC   0x1a2b3c4du
#define NANOSECONDS	   9u /* if_tsresol: 10 to the minus 9 */
#define FLAGS_INBOUND	   1u
#define FLAGS_OUTBOUND	   2u
#define LENGTH_UNKNOWN	   UINT64_MAX
#define BLOCK_FRAME_OCTETS 12u /* the type, and the length in front and behind */
#define OPTION_HEAD	   4u

static uint32_t octets_padded(uint32_t n)
{
	return (n + 3) & ~3u;
}

static void out_put(FILE *out, const void *bytes, size_t n)
{
	if (n)
		(void)fwrite(bytes, 1, n, out);
}

static void out_word(FILE *out, uint32_t v)
{
	out_put(out, &v, sizeof(v));
}

static void out_padded(FILE *out, const void *bytes, uint32_t n)
{
	out_put(out, bytes, n);
	out_put(out, "\0\0\0", octets_padded(n) - n);
}

static void option_put(FILE *out, enum option code, const void *value, uint32_t n)
{
	const uint16_t head[] = {(uint16_t)code, (uint16_t)n};

	out_put(out, head, sizeof(head));
	out_padded(out, value, n);
}

static void block_begin(FILE *out, enum block type, uint32_t body)
{
	out_word(out, (uint32_t)type);
	out_word(out, body + BLOCK_FRAME_OCTETS);
}

static void block_end(FILE *out, uint32_t body)
{
	out_word(out, body + BLOCK_FRAME_OCTETS);
}

void pcapng_begin(FILE *out, const char *application)
{
	const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint64_t length;
	} head = {BYTE_ORDER_MAGIC, 1, 0, LENGTH_UNKNOWN};
	uint32_t n = (uint32_t)strlen(application);
	uint32_t body = sizeof(head) + 2 * OPTION_HEAD + octets_padded(n);

	block_begin(out, BLOCK_SECTION, body);
	out_put(out, &head, sizeof(head));
	option_put(out, SHB_USERAPPL, application, n);
	option_put(out, OPTION_END, NULL, 0);
	block_end(out, body);
}

void pcapng_interface(FILE *out, uint32_t linktype, uint32_t snaplen, const char *name)
{
	const uint8_t resolution = NANOSECONDS;
	uint32_t n = (uint32_t)strlen(name);
	uint32_t body = 8 + 3 * OPTION_HEAD + octets_padded(n) + octets_padded(sizeof(resolution));

	block_begin(out, BLOCK_INTERFACE, body);
	out_word(out, linktype);
	out_word(out, snaplen);
	option_put(out, IF_NAME, name, n);
	option_put(out, IF_TSRESOL, &resolution, sizeof(resolution));
	option_put(out, OPTION_END, NULL, 0);
	block_end(out, body);
}

/* Writes a packet, 'head' in front of its bytes. */
static void packet_put(FILE *out, const struct pcapng_packet *p, const void *head, uint32_t nhead)
{
	const uint32_t flags = p->received ? FLAGS_INBOUND : FLAGS_OUTBOUND;
	uint32_t captured = nhead + p->captured;
	uint32_t body = 20 + octets_padded(captured) + 2 * OPTION_HEAD + sizeof(flags);

	block_begin(out, BLOCK_PACKET, body);
	out_word(out, p->interface);
	out_word(out, (uint32_t)(p->ns >> 32));
	out_word(out, (uint32_t)p->ns);
	out_word(out, captured);
	out_word(out, nhead + p->whole);
	out_put(out, head, nhead);
	out_put(out, p->bytes, p->captured);
	out_put(out, "\0\0\0", octets_padded(captured) - captured);
	option_put(out, EPB_FLAGS, &flags, sizeof(flags));
	option_put(out, OPTION_END, NULL, 0);
	block_end(out, body);
}

void pcapng_ethernet(FILE *out, const struct pcapng_packet *p)
{
	packet_put(out, p, NULL, 0);
}

/* ---- ERF ---- */

#define ERF_INFINIBAND	   21u
#define ERF_VARYING_LENGTH 4u
#define NS_PER_S	   1000000000u

void pcapng_infiniband(FILE *out, const struct pcapng_packet *p)
{
	uint64_t stamp = p->ns / NS_PER_S << 32 | (p->ns % NS_PER_S << 32) / NS_PER_S;
	uint32_t record = ERF_OCTETS + p->captured;
	uint8_t head[ERF_OCTETS] = {
		[8] = ERF_INFINIBAND,
		[9] = ERF_VARYING_LENGTH,
		[10] = (uint8_t)(record >> 8),
		[11] = (uint8_t)record,
		[14] = (uint8_t)(p->whole >> 8),
		[15] = (uint8_t)p->whole,
	};

	for (unsigned i = 0; i < 8; i++)
		head[i] = (uint8_t)(stamp >> 8 * i);
	packet_put(out, p, head, sizeof(head));
}

void pcapng_statistics(FILE *out, uint32_t interface, const struct pcapng_counts *c)
{
	const uint32_t begun[] = {(uint32_t)(c->begun_ns >> 32), (uint32_t)c->begun_ns};
	const uint32_t ended[] = {(uint32_t)(c->ended_ns >> 32), (uint32_t)c->ended_ns};
	uint32_t body = 12 + 5 * OPTION_HEAD + 4 * 8;

	block_begin(out, BLOCK_STATISTICS, body);
	out_word(out, interface);
	out_put(out, ended, sizeof(ended));
	option_put(out, ISB_STARTTIME, begun, sizeof(begun));
	option_put(out, ISB_ENDTIME, ended, sizeof(ended));
	option_put(out, ISB_IFRECV, &c->received, sizeof(c->received));
	option_put(out, ISB_IFDROP, &c->dropped, sizeof(c->dropped));
	option_put(out, OPTION_END, NULL, 0);
	block_end(out, body);
}
