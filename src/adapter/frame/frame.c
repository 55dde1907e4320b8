// SPDX-License-Identifier: BSD-2-Clause
/* See frame.h.  IEEE 802.3 and 802.1Q, RFC 791, 8200, 9293, 768, 1071. */
#include "adapter/frame/frame.h"

#include <string.h>

enum { IPV4_HEADER = 20, IPV6_HEADER = 40, TCP_HEADER = 20, UDP_HEADER = 8 };
enum { TCP_CHECKSUM = 16, UDP_CHECKSUM = 6, IPV4_CHECKSUM = 10 };
enum { TCP_FLAG_FIN = 0x01, TCP_FLAG_PSH = 0x08, TCP_FLAG_CWR = 0x80 };

static uint32_t frame_get32(const uint8_t *at)
{
	return frame_get16(at) << 16 | frame_get16(at + 2);
}

static void frame_put32(uint8_t *at, uint32_t v)
{
	frame_put16(at, v >> 16);
	frame_put16(at + 2, v);
}

/* ---- parsing ---- */

/* The bytes at hand, and the position among them. */
struct cursor {
	const uint8_t *head;
	uint32_t headed;
	uint32_t at;
};

static const uint8_t *frame_take(struct cursor *c, uint32_t n)
{
	if (!range_inside(c->at, n, c->headed))
		return NULL;
	c->at += n;
	return c->head + c->at - n;
}

static void parse_l4(struct cursor *c, uint8_t proto, struct flow_key *key, struct frame_layout *at)
{
	uint32_t start = c->at;
	const uint8_t *h;

	if (proto != IP_PROTO_TCP && proto != IP_PROTO_UDP)
		return;
	h = frame_take(c, proto == IP_PROTO_TCP ? TCP_HEADER : UDP_HEADER);
	if (!h)
		return;
	key->l4_proto = proto;
	memcpy(key->src_port, h, 2);
	memcpy(key->dst_port, h + 2, 2);
	at->l4 = start;
}

static void parse_ipv4(struct cursor *c, uint32_t bytes, struct flow_key *key,
		       struct frame_layout *at)
{
	uint32_t start = c->at, header, total;
	const uint8_t *h = frame_take(c, IPV4_HEADER);

	if (!h || h[0] >> 4 != 4)
		return;
	header = (h[0] & 0xfu) * 4;
	total = frame_get16(h + 2);
	if (header < IPV4_HEADER || total < header || !range_inside(start, total, bytes) ||
	    !frame_take(c, header - IPV4_HEADER))
		return;
	key->ip_version = 4;
	key->ip_tos = h[1];
	key->ip_ttl = h[8];
	key->ip_proto = h[9];
	key->ip_flags = (uint8_t)((h[6] >> 5 & 1) | (h[6] >> 6 & 1) << 1);
	memcpy(key->src_ip, h + 12, 4);
	memcpy(key->dst_ip, h + 16, 4);
	at->l3 = start;
	at->l3_end = start + total;
	/* Only the first fragment has the ports. */
	if (!(frame_get16(h + 6) & 0x1fff))
		parse_l4(c, h[9], key, at);
}

static void parse_ipv6(struct cursor *c, uint32_t bytes, struct flow_key *key,
		       struct frame_layout *at)
{
	uint32_t start = c->at, end;
	const uint8_t *h = frame_take(c, IPV6_HEADER);

	if (!h || h[0] >> 4 != 6)
		return;
	/* A payload length beyond the frame is the sender's mistake: use the bytes that there
	 * are. */
	end = (uint32_t)min_u64(bytes, (uint64_t)start + IPV6_HEADER + frame_get16(h + 4));
	key->ip_version = 6;
	key->ip_tos = (uint8_t)(h[0] << 4 | h[1] >> 4);
	key->flow_label[1] = h[1] & 0xf;
	memcpy(key->flow_label + 2, h + 2, 2);
	key->ip_proto = h[6];
	key->ip_ttl = h[7];
	memcpy(key->src_ip, h + 8, 16);
	memcpy(key->dst_ip, h + 24, 16);
	at->l3 = start;
	at->l3_end = end;
	parse_l4(c, h[6], key, at);
}

static void parse_l3(struct cursor *c, uint32_t bytes, uint32_t type, struct flow_key *key,
		     struct frame_layout *at)
{
	switch (type) {
	case FRAME_TYPE_IPV4:
		parse_ipv4(c, bytes, key, at);
		break;
	case FRAME_TYPE_IPV6:
		parse_ipv6(c, bytes, key, at);
		break;
	default:
		break;
	}
}

static bool parse_l2(struct cursor *c, uint32_t bytes, struct flow_key *key,
		     struct frame_layout *at)
{
	const uint8_t *h = frame_take(c, FRAME_MIN);

	if (!h)
		return false;
	memcpy(key->dst_mac, h, 6);
	memcpy(key->src_mac, h + 6, 6);
	memcpy(key->ether_type, h + 12, 2);
	if (frame_get16(key->ether_type) == FRAME_TYPE_VLAN) {
		h = frame_take(c, FRAME_VLAN_BYTES);
		if (!h)
			return true;
		key->vlan = 1;
		memcpy(key->vlan_tag, h, 2);
		memcpy(key->ether_type, h + 2, 2);
	}
	parse_l3(c, bytes, frame_get16(key->ether_type), key, at);
	return true;
}

bool frame_parse(const uint8_t *head, uint32_t headed, uint32_t bytes, struct flow_key *key,
		 struct frame_layout *at)
{
	return frame_parse_from(head, headed, bytes, 0, 0, key, at);
}

bool frame_parse_from(const uint8_t *head, uint32_t headed, uint32_t bytes, uint32_t start,
		      uint32_t type, struct flow_key *key, struct frame_layout *at)
{
	struct cursor c = {head, headed, start};

	*key = (struct flow_key){0};
	*at = (struct frame_layout){0};
	if (!type)
		return parse_l2(&c, bytes, key, at);
	frame_put16(key->ether_type, type);
	parse_l3(&c, bytes, type, key, at);
	return at->l3;
}

/* ---- checksums (RFC 1071) ---- */

static uint32_t sum_of(const uint8_t *at, uint32_t n, uint32_t sum)
{
	uint32_t i;

	for (i = 0; i + 1 < n; i += 2)
		sum += frame_get16(at + i);
	if (i < n)
		sum += (uint32_t)at[i] << 8;
	return sum;
}

static uint32_t frame_fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static uint32_t l3_sum(const uint8_t *frame, const struct frame_layout *at)
{
	const uint8_t *ip = frame + at->l3;

	return frame_fold(sum_of(ip, (ip[0] & 0xfu) * 4, 0));
}

static bool has_ipv4(const uint8_t *frame, const struct frame_layout *at)
{
	return at->l3 && frame[at->l3] >> 4 == 4;
}

void frame_fill_l3_checksum(uint8_t *frame, const struct frame_layout *at)
{
	if (!has_ipv4(frame, at))
		return;
	frame_put16(frame + at->l3 + IPV4_CHECKSUM, 0);
	frame_put16(frame + at->l3 + IPV4_CHECKSUM, ~l3_sum(frame, at));
}

bool frame_l3_checksum_ok(const uint8_t *frame, const struct frame_layout *at)
{
	return has_ipv4(frame, at) && l3_sum(frame, at) == 0xffff;
}

/* The length of the transport's part; 0 if nobody can sum it up. */
static uint32_t l4_bytes(uint32_t bytes, const struct flow_key *key, const struct frame_layout *at)
{
	/* No frame has all of a fragmented datagram. */
	if (!at->l4 || at->l3_end > bytes || at->l3_end <= at->l4 ||
	    (key->ip_version == 4 && key->ip_flags & 1))
		return 0;
	return at->l3_end - at->l4;
}

static uint32_t l4_sum(const uint8_t *frame, uint32_t n, const struct flow_key *key,
		       const struct frame_layout *at)
{
	uint32_t sum = key->l4_proto + n;

	/* The pseudo header; unused bytes of IPv4 addresses are zero. */
	sum = sum_of(key->src_ip, sizeof(key->src_ip), sum);
	sum = sum_of(key->dst_ip, sizeof(key->dst_ip), sum);
	return frame_fold(sum_of(frame + at->l4, n, sum));
}

void frame_fill_l4_checksum(uint8_t *frame, uint32_t bytes, const struct flow_key *key,
			    const struct frame_layout *at)
{
	uint32_t n = l4_bytes(bytes, key, at);
	uint32_t where = at->l4 + (key->l4_proto == IP_PROTO_TCP ? TCP_CHECKSUM : UDP_CHECKSUM);
	uint32_t sum;

	if (!n)
		return;
	frame_put16(frame + where, 0);
	sum = ~l4_sum(frame, n, key, at) & 0xffff;
	/* A UDP checksum of zero says that there is none (RFC 768). */
	frame_put16(frame + where, !sum && key->l4_proto == IP_PROTO_UDP ? 0xffff : sum);
}

bool frame_l4_checksum_ok(const uint8_t *frame, uint32_t bytes, const struct flow_key *key,
			  const struct frame_layout *at)
{
	uint32_t n = l4_bytes(bytes, key, at);

	if (!n)
		return false;
	if (key->l4_proto == IP_PROTO_UDP && key->ip_version == 4 &&
	    !frame_get16(frame + at->l4 + UDP_CHECKSUM))
		return true;
	return l4_sum(frame, n, key, at) == 0xffff;
}

/* ---- segmentation ---- */

/* Finds the headers, and ignores the lengths in them, which are those of the whole. */
static bool tcp_headers(const uint8_t *frame, uint32_t header, uint32_t *l3, uint32_t *l4)
{
	uint32_t type;

	*l3 = FRAME_MIN;
	if (header < FRAME_MIN)
		return false;
	type = frame_get16(frame + 12);
	if (type == FRAME_TYPE_VLAN) {
		*l3 += FRAME_VLAN_BYTES;
		if (header < *l3)
			return false;
		type = frame_get16(frame + 16);
	}
	if (type == FRAME_TYPE_IPV4) {
		if (!range_inside(*l3, IPV4_HEADER, header) || frame[*l3 + 9] != IP_PROTO_TCP)
			return false;
		*l4 = *l3 + (frame[*l3] & 0xfu) * 4;
	} else if (type == FRAME_TYPE_IPV6) {
		if (!range_inside(*l3, IPV6_HEADER, header) || frame[*l3 + 6] != IP_PROTO_TCP)
			return false;
		*l4 = *l3 + IPV6_HEADER;
	} else {
		return false;
	}
	return range_inside(*l4, TCP_HEADER, header);
}

bool frame_segment(uint8_t *frame, uint32_t bytes, uint32_t header, uint32_t index, uint32_t offset,
		   bool last)
{
	uint32_t l3, l4;
	uint8_t *ip, *tcp;

	if (!tcp_headers(frame, header, &l3, &l4))
		return false;
	ip = frame + l3;
	tcp = frame + l4;
	if (ip[0] >> 4 == 4) {
		frame_put16(ip + 2, bytes - l3);
		frame_put16(ip + 4, frame_get16(ip + 4) + index);
	} else {
		frame_put16(ip + 4, bytes - l4);
	}
	frame_put32(tcp + 4, frame_get32(tcp + 4) + offset);
	/* Only the first segment says that the window was reduced, and only the last one that this
	 * is the end. */
	if (index)
		tcp[13] &= (uint8_t)~TCP_FLAG_CWR;
	if (!last)
		tcp[13] &= (uint8_t) ~(TCP_FLAG_FIN | TCP_FLAG_PSH);
	return true;
}
