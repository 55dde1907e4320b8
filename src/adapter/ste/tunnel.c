// SPDX-License-Identifier: BSD-2-Clause
/* See tunnel.h. */
#include "adapter/ste/tunnel.h"

enum { IP_PROTO_IPV4 = 4, IP_PROTO_IPV6 = 41 };
enum { PORT_VXLAN = 4789, PORT_VXLAN_GPE = 4790, PORT_GENEVE = 6081 };
enum { GRE_VERSION = 7, GRE_ACKNOWLEDGE = 0x80 }; /* of the second byte */
enum { GPE_IPV4 = 1, GPE_IPV6 = 2, GPE_ETHERNET = 3 };

#define TYPE_BRIDGED 0x6558u /* an Ethernet frame */
#define UDP_BYTES    8u
#define GRE_BYTES    4u /* plus 4 bytes for each flag */
#define VXLAN_BYTES  8u
#define IPV6_BYTES   40u

/* Sets the type by the protocol's number among Ethernet's types. */
static bool tunnel_type(struct ste_tunnel *t, uint32_t type)
{
	t->type = type == TYPE_BRIDGED ? 0 : type;
	return type == TYPE_BRIDGED || type == FRAME_TYPE_IPV4 || type == FRAME_TYPE_IPV6;
}

static bool tunnel_gpe(struct ste_tunnel *t, uint32_t protocol)
{
	switch (protocol) {
	case GPE_IPV4:
		return tunnel_type(t, FRAME_TYPE_IPV4);
	case GPE_IPV6:
		return tunnel_type(t, FRAME_TYPE_IPV6);
	default:
		return protocol == GPE_ETHERNET && tunnel_type(t, TYPE_BRIDGED);
	}
}

static bool tunnel_udp(const struct ste_frame *f, struct ste_tunnel *t)
{
	const uint8_t *h = f->bytes + t->header;

	if (!range_inside(t->header, VXLAN_BYTES, f->len))
		return false;
	t->vxlan = true;
	t->inner = t->header + VXLAN_BYTES;
	switch (frame_get16(f->key.dst_port)) {
	case PORT_VXLAN:
		return tunnel_type(t, TYPE_BRIDGED);
	case PORT_VXLAN_GPE:
		return tunnel_gpe(t, h[3]);
	case PORT_GENEVE:
		t->inner += (h[0] & 0x3fu) * 4;
		return tunnel_type(t, frame_get16(h + 2));
	default:
		return false;
	}
}

static bool tunnel_gre(const struct ste_frame *f, struct ste_tunnel *t)
{
	const uint8_t *h = f->bytes + t->header;

	if (!range_inside(t->header, GRE_BYTES, f->len) || (h[1] & GRE_VERSION) > 1)
		return false;
	t->inner = t->header + GRE_BYTES;
	for (unsigned flag = GRE_SEQUENCE; flag <= GRE_CHECKSUM; flag <<= 1)
		if (flag & (GRE_CHECKSUM | GRE_KEY | GRE_SEQUENCE) & h[0])
			t->inner += 4;
	if (h[1] & GRE_VERSION && h[1] & GRE_ACKNOWLEDGE)
		t->inner += 4;
	return tunnel_type(t, frame_get16(h + 2));
}

static uint32_t tunnel_ip_bytes(const struct ste_frame *f)
{
	return f->key.ip_version == 4 ? (f->bytes[f->at.l3] & 0xfu) * 4 : IPV6_BYTES;
}

/* True for a part of a datagram that is not its first one, which begins with no header. */
static bool tunnel_later_part(const struct ste_frame *f)
{
	const uint8_t *ip = f->bytes + f->at.l3;

	return f->key.ip_version == 4 && frame_get16(ip + 6) & 0x1fff;
}

bool ste_tunnel_find(const struct ste_frame *f, struct ste_tunnel *t)
{
	*t = (struct ste_tunnel){0};
	if (!f->at.l3 || tunnel_later_part(f))
		return false;
	t->header = t->inner = f->at.l3 + tunnel_ip_bytes(f);
	switch (f->key.ip_proto) {
	case IP_PROTO_UDP:
		t->header = f->at.l4 + UDP_BYTES;
		return f->at.l4 && tunnel_udp(f, t);
	case IP_PROTO_GRE:
		return tunnel_gre(f, t);
	case IP_PROTO_IPV4:
		return tunnel_type(t, FRAME_TYPE_IPV4);
	case IP_PROTO_IPV6:
		return tunnel_type(t, FRAME_TYPE_IPV6);
	default:
		return false;
	}
}

bool ste_tunnel_inside(const struct ste_frame *f, const struct ste_tunnel *t,
		       struct ste_frame *inside)
{
	uint32_t headed = min_u32(f->len, t->inner + FRAME_HEADERS_MAX);

	*inside = *f;
	return frame_parse_from(f->bytes, headed, f->len, t->inner, t->type, &inside->key,
				&inside->at);
}
