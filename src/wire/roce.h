/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets as frames of RoCE (IBTA annexes A16 and A17): Ethernet, then a GRH or IP and UDP, then what
 * InfiniBand has from the BTH to the invariant CRC.  Without the frame check sequence, which is the
 * business of whoever has the cable.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/pkt.h"

#define ROCE_V1_ETHERTYPE 0x8915u
#define ROCE_V2_UDP_PORT  4791u
/* The ports that it comes from are of this range (flow labels and numbers of queue pairs choose). */
#define ROCE_SPORT_MIN 0xc000u
/* All headers and the CRC; with the largest payload there is. */
#define ROCE_HEADERS_MAX 128u
#define ROCE_FRAME_MAX	 (ROCE_HEADERS_MAX + 4096u)

/* What becomes of bytes that came from a cable. */
enum roce_verdict {
	ROCE_TAKEN,
	ROCE_NONE,   /* it is no frame of RoCE */
	ROCE_FORM,   /* headers or lengths that do not fit each other */
	ROCE_OPCODE, /* no operation of a transport that there is here */
	ROCE_CRC,    /* some bytes are not those that were sent */
};

/* A frame that was taken apart; pkt points into the other members and into the frame. */
struct roce_packet {
	struct pkt pkt;
	struct path path; /* without rows of ports, which addresses are to say */
	struct run run;
	uint8_t smac[6];
	uint8_t dmac[6];
};

/*
 * Makes a frame of a packet of at most one path MTU, which goes from one station to another; returns its length.
 * 0: it is of a transport that has no frames, does not fit, or its payload has gone.
 */
uint32_t roce_encode(const struct pkt *p, const uint8_t smac[6], const uint8_t dmac[6],
		     uint8_t *frame, uint32_t room) must_check;
/* Looks at no byte behind the end of the frame.  Of one that has headers to the IP header or GRH, what these say is in
 * 'out' whatever the verdict: so it can be told whose spoiled frame it is. */
enum roce_verdict roce_decode(const uint8_t *frame, uint32_t bytes,
			      struct roce_packet *out) must_check;

/*
 * The invariant CRC as it stands in a frame, first byte lowest, of ip_bytes of a GRH or IP header and the bytes behind
 * them up to the CRC.  What changes on the way counts as ones.  v2: a header of UDP is between.
 */
uint32_t roce_icrc(const uint8_t *ip, uint32_t ip_bytes, bool v2, uint32_t bytes);
