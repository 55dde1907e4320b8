/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A packet as it lies in a channel: what every packet needs, the optional parts that its opcode
 * (wire/bth.h) and path call for, then the payload or the list of its runs.  One cache line for an
 * acknowledgement and for a SEND of a word, two for a small write.
 *
 * An acknowledgement may lie in the record of a request of its connection, in front of it
 * (wire/short_send.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "wire/pkt.h"

/* An unpacked packet; pkt points into the other members. */
struct record_pkt {
	struct pkt pkt;
	bool has_ack;
	struct pkt ack; /* its sender sent it before pkt */
	uint32_t parts; /* packets that the record holds, in their order */
	struct path path;
	struct pkt_dc dc;
	struct run runs[RUNS_MAX];
};

/* Selects the payloads by reference that their sender takes back. */
struct record_refs {
	uint32_t sqpn;	   /* of this queue pair; 0: of any */
	uint32_t src_port; /* if any: only of queue pairs that send from this port */
	uint32_t key;	   /* and that have some of the payload under this key */
	struct run memory; /* in this memory */
};

/* Values of pkt.withdrawn for a record. */
enum record_withdrawal {
	RECORD_GIVEN_UP = 1,
	RECORD_MEMORY_GONE, /* the request stands, but not its payload or places */
};

/* Bytes of the record, a multiple of RING_ALIGN; 0 if the packet cannot be sent in that form. */
uint32_t record_bytes(const struct pkt *p, bool by_reference);
/* Bytes of the record in front of a payload that goes along. */
uint32_t record_header_bytes(const struct pkt *p);
/* Fills everything except the payload and the ring's word, which is 0.  Returns where the payload
 * belongs if it goes along. */
void *record_pack(void *record, const struct pkt *p, bool by_reference);
/*
 * Takes the payload of a record back if it goes by reference and refs selects it.  A receiver that
 * has not read it by now takes the packet for lost; if only the places of a READ no longer exist,
 * it takes the READ for one that offers none.  Returns the sender's queue pair, or 0.
 */
uint32_t record_withdraw(void *record, uint32_t bytes, const struct record_refs *refs);
/*
 * Unpacks one packet of the record, by its place.  Checks every length against the record's own;
 * copies the header before it looks at it, and leaves the payload in place.  sender: the process
 * that payloads by reference belong to, NULL if both sides have not agreed on them.  -EPROTO if the
 * record is malformed, or if it has no packet at that place.
 */
int record_unpack_part(const void *record, uint32_t bytes, uint32_t part,
		       struct pkt_foreign *sender, struct record_pkt *out) must_check;

static inline must_check int record_unpack(const void *record, uint32_t bytes,
					   struct pkt_foreign *sender, struct record_pkt *out)
{
	return record_unpack_part(record, bytes, 0, sender, out);
}
