/* SPDX-License-Identifier: BSD-2-Clause */
/* What device and host of tests/flexio/remote agree on.  All words, so that calls may read them. */
#pragma once

#include <stdint.h>
#include <string.h>

#define LOG_DEPTH 5u
#define DEPTH	  (1u << LOG_DEPTH)

enum post_kind {
	POST_NOP,
	POST_SEND,
	POST_SEND_UC,
	POST_SEND_IMM,
	POST_SEND_UD,
	POST_WRITE,
	POST_WRITE_IMM,
	POST_READ,
	POST_SWAP,
	POST_ADD,
	POST_COPY,
	POST_TRANSPOSE,
	POST_FRAME,
	POST_SEGMENTS, /* a frame that the adapter cuts */
	POST_FRAMES,   /* several, one behind the other in memory */
	POST_WAIT,     /* for completions: rows of queue columns */
	POST_WAIT_WORD,
	POST_ENABLE,
};

/* A work request that the device puts into the ring.  Lies on the heap. */
struct post {
	uint64_t qpn, ring, pi;
	uint64_t kind;	 /* enum post_kind */
	uint64_t opcode; /* instead of that kind's; 0: that */
	uint64_t ce;
	uint64_t data, bytes, key;
	uint64_t pieces;  /* data segments that share the bytes; 0: one */
	uint64_t inlined; /* the data stands in the request */
	uint64_t remote, rkey;
	uint64_t swap_add, compare;
	uint64_t imm;
	uint64_t address[6]; /* of a datagram, as it stands in the request */
	uint64_t compact;    /* of that, only the first segment */
	uint64_t variant;    /* of a wait; 0: for memory */
	uint64_t element, columns, rows;
	uint64_t header, header_bytes, mss, checksums,
		frames;	 /* of frames: what stands in the request */
	uint64_t silent; /* the bell is not rung */
};

/* A completion queue's side of its reader, and what the last completion says.  Lies on the heap. */
struct reader {
	uint64_t ring, record, depth, ci;
	uint64_t opcode, syndrome, bytes, imm, counter, qpn, user_index, time;
};

/* Completions that stand together in a ring: how many are to be read, and the length of each.  Lies on the heap. */
#define PACKED 5u
struct packed {
	uint64_t ring, enhanced, count;
	uint64_t bytes[PACKED], counter;
};

/* Receives to post: of a ring of single segments, or of a list with a segment for the next in front. */
struct posts {
	uint64_t ring, record, pi, list;
	uint64_t data, bytes, key, step; /* so far is the next one's data */
	uint64_t count;
};

/* What memory holds: the byte at i of a pattern. */
#define PATTERN(seed, i) ((uint8_t)((seed) + 7 * (i)))

/* How many of so many bytes each piece has, but for the last, which has the rest. */
static inline uint64_t piece_bytes(uint64_t bytes, uint64_t pieces, uint64_t i)
{
	uint64_t each = bytes / pieces;

	return i + 1 < pieces ? each : bytes - each * i;
}

#define FRAME_HEADERS 54u

/* A TCP segment over IPv4 without checksums, of so many bytes with its headers. */
static inline void frame_template(uint8_t *frame, uint32_t bytes, unsigned seed)
{
	static const uint8_t headers[FRAME_HEADERS] = {
		0x02, 0x42, 0x7e, 0x7f, 0xeb, 0x02, 0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x08, 0x00,
		0x45, 0,    0,	  0,	0,    1,    0,	  0,	64,   6,    0,	  0,	10,   0,
		0,    1,    10,	  0,	0,    2,    0x30, 0x39, 0,    80,   0,	  0,	0,    100,
		0,    0,    0,	  0,	0x50, 0x18, 0x10, 0,	0,    0,    0,	  0,
	};

	memcpy(frame, headers, FRAME_HEADERS);
	frame[16] = (uint8_t)((bytes - 14) >> 8);
	frame[17] = (uint8_t)(bytes - 14);
	for (uint32_t i = FRAME_HEADERS; i < bytes; i++)
		frame[i] = PATTERN(seed, i);
}

/* Forms of frames: datagrams of UDP instead of segments of TCP, IPv6 instead of IPv4. */
#define FRAME_UDP  1u
#define FRAME_IPV6 2u

static inline void frame_number(uint8_t *at, uint32_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* The header of IP; where the next one stands. */
static inline uint8_t *frame_internet(uint8_t *frame, uint32_t bytes, unsigned form)
{
	uint8_t *at = frame + 14, protocol = form & FRAME_UDP ? 17 : 6;

	if (!(form & FRAME_IPV6)) {
		at[9] = protocol;
		return at + 20;
	}
	frame_number(frame + 12, 0x86dd);
	memset(at, 0, 40);
	at[0] = 0x60;
	frame_number(at + 4, bytes - 14 - 40);
	at[6] = protocol;
	at[7] = 64;
	at[8] = at[24] = 0xfd;
	at[23] = 1;
	at[39] = 2;
	return at + 40;
}

/* A frame like frame_template's, of that form. */
static inline void frame_template_of(uint8_t *frame, uint32_t bytes, unsigned seed, unsigned form)
{
	uint8_t plain[FRAME_HEADERS], *at;

	frame_template(frame, bytes, seed);
	memcpy(plain, frame, FRAME_HEADERS);
	at = frame_internet(frame, bytes, form);
	memcpy(at, plain + 34, 20);
	at += 20;
	if (form & FRAME_UDP) {
		at -= 20 - 8;
		frame_number(at - 4, bytes - (uint32_t)(at - 8 - frame));
		frame_number(at - 2, 0);
	}
	for (; at < frame + bytes; at++)
		*at = PATTERN(seed, at - frame);
}
