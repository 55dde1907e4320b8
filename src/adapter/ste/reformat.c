// SPDX-License-Identifier: BSD-2-Clause
/*
 * See reformat.h.  The headers of a tunnel are the same for all frames, except for the lengths of
 * IP and UDP and for checksums, which the device fills in.
 */
#include "adapter/ste/reformat.h"

#include "adapter/ste/edit.h"
#include "adapter/ste/tunnel.h"

enum { IPV4_BYTES = 20, IPV4_LENGTH = 2, IPV4_PROTO = 9 };
enum { IPV6_BYTES = 40, IPV6_LENGTH = 4, IPV6_PROTO = 6 };
enum { UDP_BYTES = 8, UDP_LENGTH = 4, UDP_SUM = 6 };

/* ---- out of a tunnel ---- */

enum ste_verdict ste_remove_headers(struct ste_walk *w, const uint8_t *a)
{
	uint32_t anchor = prm_get32(a, STE_END_ANCHOR), end = w->frame->at.l3;
	struct ste_frame inside;
	struct ste_tunnel t;

	if (prm_get32(a, STE_START_ANCHOR) != STE_ANCHOR_START)
		return STE_UNKNOWN_ACTION;
	switch (anchor) {
	case STE_ANCHOR_IP:
		break;
	case STE_ANCHOR_INNER_MAC:
		end = ste_tunnel_find(w->frame, &t) && !t.type ? t.inner : 0;
		break;
	case STE_ANCHOR_INNER_IP:
		end = ste_tunnel_find(w->frame, &t) && ste_tunnel_inside(w->frame, &t, &inside)
			      ? inside.at.l3
			      : 0;
		break;
	default:
		return STE_UNKNOWN_ACTION;
	}
	/* A frame that has no such header cannot begin with it. */
	return end && ste_edit_remove(w->frame, 0, end) ? STE_ARRIVED : STE_BAD_ACTION;
}

/* ---- into a tunnel ---- */

/* Where the datagram begins; 0: there is no IP header among the first n bytes. */
static uint32_t reformat_ip(const struct ste_frame *f, uint32_t n, uint32_t *type)
{
	uint32_t at = FRAME_TYPE_AT;

	if (n < FRAME_MIN)
		return 0;
	*type = frame_get16(f->bytes + at);
	if (*type == FRAME_TYPE_VLAN && n >= FRAME_MIN + FRAME_VLAN_BYTES) {
		at += FRAME_VLAN_BYTES;
		*type = frame_get16(f->bytes + at);
	}
	at += 2;
	return *type == FRAME_TYPE_IPV4 && range_inside(at, IPV4_BYTES, n)   ? at
	       : *type == FRAME_TYPE_IPV6 && range_inside(at, IPV6_BYTES, n) ? at
									     : 0;
}

/* Sets the lengths in the first n bytes, which are new, for what is behind them. */
static void reformat_lengths(struct ste_frame *f, uint32_t n)
{
	uint32_t type = 0, ip = reformat_ip(f, n, &type), header = IPV6_BYTES, proto = 0;
	uint8_t *h = f->room + ip;
	bool udp_sum = false;

	if (!ip)
		return;
	if (type == FRAME_TYPE_IPV4) {
		header = (h[0] & 0xfu) * 4;
		proto = h[IPV4_PROTO];
		frame_put16(h + IPV4_LENGTH, f->len - ip);
	} else {
		proto = h[IPV6_PROTO];
		frame_put16(h + IPV6_LENGTH, f->len - ip - IPV6_BYTES);
	}
	if (proto == IP_PROTO_UDP && range_inside(ip + header, UDP_BYTES, n)) {
		frame_put16(h + header + UDP_LENGTH, f->len - ip - header);
		/* a frame without a checksum stays without one */
		udp_sum = frame_get16(h + header + UDP_SUM);
	}
	ste_frame_parse(f);
	frame_fill_l3_checksum(f->room, &f->at);
	if (udp_sum)
		frame_fill_l4_checksum(f->room, f->len, &f->key, &f->at);
}

enum ste_verdict ste_insert_headers(struct ste_walk *w, const uint8_t *a)
{
	uint32_t number = prm_get32(a, STE_INSERT_DATA), how = prm_get32(a, STE_INSERT_HOW);
	uint32_t at = prm_get32(a, STE_INSERT_OFFSET) * 2, bytes = 0;
	const uint8_t *headers = w->headers ? w->headers(w->user, number, &bytes) : NULL;

	if (prm_get32(a, STE_START_ANCHOR) != STE_ANCHOR_START ||
	    (how != STE_INSERT_PLAIN && how != STE_INSERT_ENCAP))
		return STE_UNKNOWN_ACTION;
	if (!headers || prm_get32(a, STE_INSERT_SIZE) * 2 != bytes ||
	    !ste_edit_insert(w->frame, at, headers, bytes))
		return STE_BAD_ACTION;
	if (how == STE_INSERT_ENCAP)
		reformat_lengths(w->frame, at + bytes);
	return STE_ARRIVED;
}
