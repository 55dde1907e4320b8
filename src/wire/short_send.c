// SPDX-License-Identifier: BSD-2-Clause
/* See short_send.h. */
#include "wire/short_send.h"

#include <string.h>

#include "base/hazard.h"
#include "wire/traffic.h"
#include "wire/process.h"
#include "wire/record.h"
#include "wire/route.h"
#include "wire/pkt.h"

uint32_t short_send_octets(uint8_t opcode, uint32_t payload_len)
{
	return LRH_OCTETS + BTH_OCTETS + bth_ext_octets(bth_props_of(opcode)) +
	       (uint32_t)align_up(payload_len, 4) + ICRC_OCTETS;
}

/* ---- sending ---- */

bool short_send_begin(struct wire *w, const struct path *path, uint32_t dqpn,
		      struct short_send_batch *batch)
{
	uint32_t to = route_owner_plus_1(w, path, dqpn);
	struct link *l = w->process->link_to[to];
	struct channel *ch;

	if (path->grh || w->ethernet || !l->ops->hold)
		return false;
	ch = l->ops->hold(l, to);
	if (!ch)
		return false;
	*batch = (struct short_send_batch){.wire = w, .path = path, .ch = ch, .owner = to};
	return true;
}

static uint32_t short_send_header(bool has_ack)
{
	return (uint32_t)(sizeof(struct record_base) + (has_ack ? sizeof(struct record_ack) : 0));
}

/* Bytes of a record with the payloads of n requests. */
static uint32_t short_send_bytes(uint32_t payload_len, uint32_t n, bool has_ack)
{
	uint32_t payloads = (n - 1) * record_part_bytes(payload_len) + payload_len;

	return (uint32_t)align_up(short_send_header(has_ack) + payloads, RING_ALIGN);
}

uint8_t *short_send_reserve(struct short_send_batch *batch, uint32_t payload_len, uint32_t n,
			    bool has_ack)
{
	if (ring_reserve(&batch->ch->tx, short_send_bytes(payload_len, n, has_ack), &batch->record))
		return NULL;
	return (uint8_t *)batch->record + short_send_header(has_ack);
}

void short_send_put(struct short_send_batch *batch, const struct short_send *b)
{
	const struct path *path = batch->path;
	struct record_base *base = batch->record;
	struct record_ack *ack = (struct record_ack *)(base + 1);

	/* all fields but the ring's word */
	base->opcode = b->opcode;
	base->flags = (uint8_t)((b->solicited ? RECORD_SOLICITED : 0) |
				(b->ack_req ? RECORD_ACK_REQ : 0) | (b->has_ack ? RECORD_ACK : 0));
	base->aeth = 0;
	base->sl = path->sl;
	base->pkey = b->pkey;
	base->slid = path->slid;
	base->dlid = path->dlid;
	base->path_bits = path->path_bits;
	base->parts = b->n > 1 ? (uint8_t)b->n : 0;
	base->dqpn = b->dqpn;
	base->sqpn = b->sqpn;
	base->psn = b->psn;
	base->npkts = 1;
	base->src_port = path->src_port;
	base->dst_port = path->dst_port;
	base->payload_len = b->payload_len;
	base->arg = b->imm;
	if (b->has_ack) {
		*ack = (struct record_ack){b->ack_psn, b->ack_msn};
		batch->packets++;
		batch->octets += short_send_octets(BTH_ACK, 0);
	}
	ring_commit(&batch->ch->tx, short_send_bytes(b->payload_len, b->n, b->has_ack));
	batch->packets += b->n;
	batch->octets += (uint64_t)b->n * short_send_octets(b->opcode, b->payload_len);
}

void short_send_end(struct short_send_batch *batch)
{
	struct wire_process *h = batch->wire->process;

	channel_release(batch->ch);
	if (unlikely(!batch->packets))
		return;
	inbox_raise(&h->attr.slots[batch->owner - 1], h->attr.slot);
	traffic_sent(batch->wire->traffic, batch->wire->counters, batch->path, batch->octets / 4,
		     batch->packets);
}

/* ---- receiving ---- */

static bool short_send_kind(const struct record_base *b)
{
	return record_may_share(b->opcode) && b->parts <= SHORT_SEND_MAX;
}

/* True if the payloads lie within the record, whose header has that length. */
static bool short_send_payloads_fit(const struct record_base *b, uint32_t header, uint32_t bytes)
{
	uint32_t room = bytes - header;

	if (likely(!b->parts))
		return b->payload_len <= room;
	return b->payload_len <= SHORT_SEND_SHARES &&
	       (b->parts - 1u) * record_part_bytes(b->payload_len) + b->payload_len <= room;
}

bool short_send_read(const void *record, uint32_t bytes, struct short_send *out, uint32_t *dst_port)
{
	const uint8_t *at = record;
	struct record_base base;
	struct record_ack ack;
	uint32_t header;

	memcpy(&base, at, sizeof(base));
	/* The peer may go on writing; from here on the compiler has to use the copy. */
	__asm__ volatile("" : : : "memory");
	header = short_send_header(base.flags & RECORD_ACK);
	if (!short_send_kind(&base) || base.npkts != 1 ||
	    base.flags & ~(RECORD_SOLICITED | RECORD_ACK_REQ | RECORD_ACK) ||
	    base.dqpn == IB_MULTICAST_QPN || !short_send_payloads_fit(&base, header, bytes))
		return false;
	*out = (struct short_send){
		.opcode = base.opcode,
		.solicited = base.flags & RECORD_SOLICITED,
		.ack_req = base.flags & RECORD_ACK_REQ,
		.pkey = base.pkey,
		.slid = base.slid,
		.sl = base.sl,
		.dqpn = base.dqpn,
		.sqpn = base.sqpn,
		.psn = base.psn,
		.imm = base.arg,
		.src_port = base.src_port,
		.payload_len = base.payload_len,
		.n = base.parts ? base.parts : 1,
		.payload = at + header,
	};
	*dst_port = base.dst_port;
	if (base.flags & RECORD_ACK) {
		if ((base.opcode & BTH_TRANSPORT_MASK) != BTH_RC)
			return false;
		memcpy(&ack, at + sizeof(base), sizeof(ack));
		__asm__ volatile("" : : : "memory");
		out->has_ack = true;
		out->ack_psn = ack.psn;
		out->ack_msn = ack.msn;
	}
	return true;
}

uint32_t short_send_deliver(struct wire_process *h, uint32_t dst_port, const struct short_send *b)
{
	const struct wire_client *client;
	uint32_t taken = 0;
	struct wire *w;

	hazard_enter();
	w = wire_process_wire(h, dst_port);
	client = w ? atomic_load_explicit(&w->client, memory_order_acquire) : NULL;
	if (likely(client && client->receive_short_sends && !w->ethernet &&
		   !slot_observed(h->slot) && subnet_port_active(h->attr.subnet, w->port_row)))
		taken = client->receive_short_sends(client->user, b);
	hazard_leave();
	return taken;
}
