// SPDX-License-Identifier: BSD-2-Clause
/* See flow_deep.h. */
#include "adapter/ethernet/flow_deep.h"

#include <string.h>

#include "adapter/ste/tunnel.h"

enum { IP_PROTO_ESP = 50 };
enum { FRAME_TYPE_MPLS = 0x8847, FRAME_TYPE_MPLS_GROUP = 0x8848 };
enum { PORT_VXLAN = 4789, PORT_MPLS = 6635 };

#define UDP_BYTES 8u

/* Copies 'n' bytes of the frame if it has them. */
static void deep_copy(const struct ste_frame *f, uint32_t at, uint8_t *to, uint32_t n)
{
	if (range_inside(at, n, f->len))
		memcpy(to, f->bytes + at, n);
}

static bool is_mpls(const uint8_t type[2])
{
	return frame_get16(type) == FRAME_TYPE_MPLS || frame_get16(type) == FRAME_TYPE_MPLS_GROUP;
}

/* The label that follows the Ethernet header at byte 'start'. */
static void deep_mpls(const struct ste_frame *f, uint32_t start, uint8_t label[4])
{
	if (is_mpls(f->key.ether_type))
		deep_copy(f, start + FRAME_MIN + (f->key.vlan ? FRAME_VLAN_BYTES : 0), label, 4);
}

/* t->header is 0 if the frame is no IP datagram, or a later part of one. */
static void deep_gre(const struct ste_frame *f, const struct ste_tunnel *t, struct flow_deep *out)
{
	const uint8_t *h = f->bytes + t->header;

	if (f->key.ip_proto != IP_PROTO_GRE || t->inner <= t->header)
		return;
	memcpy(out->gre_protocol, h + 2, 2);
	if (h[0] & GRE_KEY)
		deep_copy(f, t->header + (h[0] & GRE_CHECKSUM ? 8 : 4), out->gre_key, 4);
	if (is_mpls(out->gre_protocol))
		deep_copy(f, t->inner, out->mpls_over_gre, 4);
}

static void deep_udp(const struct ste_frame *f, struct flow_deep *out)
{
	uint32_t at = f->at.l4 + UDP_BYTES;

	if (!f->at.l4 || f->key.l4_proto != IP_PROTO_UDP)
		return;
	if (frame_get16(f->key.dst_port) == PORT_VXLAN)
		deep_copy(f, at + 4, out->vni + 1, 3);
	if (frame_get16(f->key.dst_port) == PORT_MPLS)
		deep_copy(f, at, out->mpls_over_udp, 4);
}

void flow_deep_read(const uint8_t *frame, uint32_t bytes, const struct flow_key *key,
		    struct flow_deep *out)
{
	struct ste_frame f = {.bytes = frame, .len = bytes}, inside;
	struct ste_tunnel t;

	*out = (struct flow_deep){0};
	ste_frame_parse(&f);
	f.key = *key;
	deep_mpls(&f, 0, out->mpls);
	if (ste_tunnel_find(&f, &t) && ste_tunnel_inside(&f, &t, &inside)) {
		out->inner = inside.key;
		if (!t.type)
			deep_mpls(&inside, t.inner, out->mpls_inner);
	}
	if (!t.header)
		return;
	deep_gre(&f, &t, out);
	deep_udp(&f, out);
	if (f.key.ip_proto == IP_PROTO_ESP)
		deep_copy(&f, t.header, out->esp_spi, 4);
}
