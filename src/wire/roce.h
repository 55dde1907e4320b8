/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets as frames of RoCE (IBTA annexes A16 and A17): Ethernet, then a GRH or IP and UDP, then
 * what InfiniBand has from the BTH to the invariant CRC.  The frames have no frame check sequence,
 * which whoever has the cable adds.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/pkt.h"

#define ROCE_V1_ETHERTYPE 0x8915u
#define ROCE_V2_UDP_PORT  4791u
/* The lowest UDP source port of a frame (flow labels and numbers of queue pairs choose the
 * port). */
#define ROCE_SPORT_MIN 0xc000u
/* The most octets of all headers and the CRC; ROCE_FRAME_MAX adds the largest payload. */
#define ROCE_HEADERS_MAX 128u
#define ROCE_FRAME_MAX	 (ROCE_HEADERS_MAX + 4096u)

/* The verdict on bytes that came from a cable. */
enum roce_verdict {
	ROCE_TAKEN,
	ROCE_NONE,   /* the bytes are no frame of RoCE */
	ROCE_FORM,   /* headers or lengths do not fit each other */
	ROCE_OPCODE, /* the operation belongs to no transport that we have */
	ROCE_CRC,    /* some bytes differ from those that were sent */
};

/* A frame that was taken apart; pkt points into the other members and into the frame. */
struct roce_packet {
	struct pkt pkt;
	struct path path; /* without rows of ports, which the caller finds by the addresses */
	struct run run;
	uint8_t smac[6];
	uint8_t dmac[6];
};

/*
 * Makes a frame of a packet of at most one path MTU, which goes from one station to another.
 * Returns the frame's length; 0 if the packet's transport has no frames, the packet does not fit,
 * or its payload's memory no longer exists.
 */
uint32_t roce_encode(const struct pkt *p, const uint8_t smac[6], const uint8_t dmac[6],
		     uint8_t *frame, uint32_t room) must_check;
/* The same for any packet: those whose form on a cable is not public (DC, masked atomics) have the
 * headers that counters count. */
uint32_t roce_encode_any(const struct pkt *p, const uint8_t smac[6], const uint8_t dmac[6],
			 uint8_t *frame, uint32_t room) must_check;
/* Makes the packet that InfiniBand has, from the LRH to the VCRC; as roce_encode_any. */
uint32_t infiniband_encode(const struct pkt *p, uint8_t *frame, uint32_t room) must_check;
/*
 * Writes what the receiver of a datagram finds in front of it: the GRH as it is on the wire or, for
 * RoCE v2 over IPv4, 20 zeros and the IP header.
 */
void roce_global_header(const struct pkt *p, uint8_t out[IB_GRH_BYTES]);
/* Takes a frame apart, and reads no byte behind its end.  If the frame has headers up to the IP
 * header or GRH, 'out' holds what these say, whatever the verdict is, so that the caller can tell
 * whose spoiled frame it is. */
enum roce_verdict roce_decode(const uint8_t *frame, uint32_t bytes,
			      struct roce_packet *out) must_check;

/*
 * The invariant CRC as it stands in a frame, lowest byte first.  It covers ip_bytes of a GRH or IP
 * header and the bytes behind them up to the CRC.  Fields that change on the way count as ones.
 * v2: a UDP header stands between.
 */
uint32_t roce_icrc(const uint8_t *ip, uint32_t ip_bytes, bool v2, uint32_t bytes);
