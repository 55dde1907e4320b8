// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tags: 16 bytes of fields, in an order that depends on the kind.  Fields that the frame does not
 * have are zero.
 */
#include "adapter/ste/tag.h"

#include "adapter/ste/tunnel.h"
#include "base/endian.h"

#include <string.h>

/* ---- the CRC-32 of IEEE 802.3 without its inversions, with the last byte first ---- */

/* The CRC of each nibble; the polynomial is 0xedb88320, bit-reflected. */
static const uint32_t crc_of_nibble[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
	0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
	0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

static uint32_t hash_byte(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	crc = crc >> 4 ^ crc_of_nibble[crc & 0xf];
	return crc >> 4 ^ crc_of_nibble[crc & 0xf];
}

uint32_t ste_match_hash(const uint8_t tag[STE_MATCH_TAG_BYTES])
{
	uint32_t crc = 0;

	for (unsigned i = 0; i < STE_MATCH_TAG_BYTES; i++)
		crc = hash_byte(crc, tag[i]);
	return __builtin_bswap32(crc);
}

uint32_t ste_table_hash(const uint8_t tag[STE_TAG_BYTES], uint16_t byte_mask)
{
	uint32_t crc = 0;

	for (unsigned i = 0; i < STE_TAG_BYTES; i++)
		crc = hash_byte(crc, byte_mask >> (STE_TAG_BYTES - 1 - i) & 1 ? tag[i] : 0);
	return __builtin_bswap32(crc);
}

static void definer_put32(uint8_t *at, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Puts the fields of the format: registers, Ethernet, TCP flags. */
static void definer_ethernet(const struct ste_frame *f, uint8_t *tag)
{
	uint8_t l2[STE_TAG_BYTES];

	definer_put32(tag, f->reg_c[0]);
	definer_put32(tag + 4, f->reg_c[1]);
	memcpy(tag + 8, f->key.dst_mac, 6);
	memcpy(tag + 14, f->key.ether_type, 2);
	/* The fragment bit, the types and the VLAN tag stand as in the tag of an address. */
	if (ste_tag(f, STE_L2_DST, l2))
		memcpy(tag + 16, l2, 4);
	memcpy(tag + 24, f->key.src_mac, 6);
	if (f->key.l4_proto == IP_PROTO_TCP)
		tag[31] = f->bytes[f->at.l4 + 13];
}

bool ste_definer_known(uint32_t format)
{
	return format == STE_DEFINER_ETHERNET;
}

void ste_definer_tag(const struct ste_frame *f, const struct ste_definer *d,
		     uint8_t tag[STE_MATCH_TAG_BYTES])
{
	memset(tag, 0, STE_MATCH_TAG_BYTES);
	if (d->format == STE_DEFINER_ETHERNET)
		definer_ethernet(f, tag);
	for (unsigned i = 0; i < STE_MATCH_TAG_BYTES; i++)
		tag[i] &= d->mask[i];
}

void ste_frame_parse(struct ste_frame *f)
{
	if (!frame_parse(f->bytes, min_u32(f->len, FRAME_HEADERS_MAX), f->len, &f->key, &f->at)) {
		f->key = (struct flow_key){0};
		f->at = (struct frame_layout){0};
	}
}

static uint8_t tag_l3_type(const struct ste_frame *f)
{
	return f->key.ip_version == 4 ? STE_L3_IPV4 : f->key.ip_version == 6 ? STE_L3_IPV6 : 0;
}

static uint8_t tag_l4_type(const struct ste_frame *f)
{
	return f->key.l4_proto == IP_PROTO_TCP	 ? STE_L4_TCP
	       : f->key.l4_proto == IP_PROTO_UDP ? STE_L4_UDP
						 : 0;
}

static const uint8_t *tag_ip(const struct ste_frame *f)
{
	return f->at.l3 ? f->bytes + f->at.l3 : NULL;
}

static const uint8_t *tag_l4(const struct ste_frame *f)
{
	return f->at.l4 ? f->bytes + f->at.l4 : NULL;
}

static const uint8_t *tag_tcp(const struct ste_frame *f)
{
	return f->key.l4_proto == IP_PROTO_TCP ? tag_l4(f) : NULL;
}

/* True for an IPv4 datagram that lies in several frames. */
static bool tag_fragmented(const struct ste_frame *f)
{
	const uint8_t *ip = tag_ip(f);

	return f->key.ip_version == 4 && ((ip[6] & 0x3f) || ip[7]);
}

static void tag_put32(uint8_t *at, uint32_t v)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(v >> (24 - 8 * i));
}

/* Makes the tags of both kinds of address: what is around the address, the address, the type. */
static void tag_l2(const struct ste_frame *f, const uint8_t mac[6], uint8_t *tag)
{
	const uint8_t *tcp = tag_tcp(f);

	tag[0] = (uint8_t)(tag_fragmented(f) << 4);
	tag[1] = (uint8_t)(tag_l3_type(f) << 4 | tag_l4_type(f) << 2 |
			   (f->key.vlan ? STE_VLAN_C : 0));
	memcpy(tag + 2, f->key.vlan_tag, 2);
	memcpy(tag + 4, mac, 6);
	memcpy(tag + 10, f->key.ether_type, 2);
	tag[12] = (uint8_t)((tcp && tcp[13] & 0x02) << 1);
}

static void tag_l2_dst(const struct ste_frame *f, uint8_t *tag)
{
	tag_l2(f, f->key.dst_mac, tag);
}

static void tag_l2_src(const struct ste_frame *f, uint8_t *tag)
{
	tag_l2(f, f->key.src_mac, tag);
}

static void tag_l2_src_dst(const struct ste_frame *f, uint8_t *tag)
{
	memcpy(tag, f->key.dst_mac, 4);
	memcpy(tag + 4, f->key.src_mac, 4);
	memcpy(tag + 8, f->key.dst_mac + 4, 2);
	tag[11] = (uint8_t)(tag_l3_type(f) << 4 | (f->key.vlan ? STE_VLAN_C : 0));
	memcpy(tag + 12, f->key.vlan_tag, 2);
	memcpy(tag + 14, f->key.src_mac + 4, 2);
}

/* Puts the fragment bit and the TCP flags, 9 bits from bit 1 on. */
static void tag_flags(const struct ste_frame *f, uint8_t *at)
{
	const uint8_t *tcp = tag_tcp(f);

	at[0] = (uint8_t)(tag_fragmented(f) << 1 | (tcp ? tcp[12] & 1 : 0));
	at[1] = tcp ? tcp[13] : 0;
}

static void tag_ipv4_5_tuple(const struct ste_frame *f, uint8_t *tag)
{
	if (f->key.ip_version == 4) {
		memcpy(tag, f->key.src_ip, 4);
		memcpy(tag + 4, f->key.dst_ip, 4);
	}
	memcpy(tag + 8, f->key.src_port, 2);
	memcpy(tag + 10, f->key.dst_port, 2);
	tag_flags(f, tag + 12);
	tag[14] = f->key.ip_tos;
	tag[15] = f->key.ip_proto;
}

static void tag_ipv6_dst(const struct ste_frame *f, uint8_t *tag)
{
	if (f->key.ip_version == 6)
		memcpy(tag, f->key.dst_ip, 16);
}

static void tag_ipv6_src(const struct ste_frame *f, uint8_t *tag)
{
	if (f->key.ip_version == 6)
		memcpy(tag, f->key.src_ip, 16);
}

static void tag_l4_fields(const struct ste_frame *f, uint8_t *tag)
{
	const uint8_t *tcp = tag_tcp(f), *ip = tag_ip(f);

	tag[0] = (uint8_t)(f->key.ip_version << 4);
	tag[1] = f->key.ip_tos;
	tag[2] = f->key.ip_ttl;
	tag[3] = f->key.ip_proto;
	memcpy(tag + 4, f->key.src_port, 2);
	memcpy(tag + 6, f->key.dst_port, 2);
	memcpy(tag + 8, f->key.flow_label, 4);
	tag_flags(f, tag + 12);
	if (tcp)
		tag[12] |= tcp[12] & 0xf0;
	if (f->key.ip_version == 6)
		memcpy(tag + 14, ip + 4, 2);
}

static void tag_ipv4_misc(const struct ste_frame *f, uint8_t *tag)
{
	const uint8_t *ip = tag_ip(f);

	/* IPv4 and IPv6 have the version and the time to live here. */
	tag[8] = (uint8_t)(f->key.ip_version << 4);
	tag[9] = f->key.ip_ttl;
	if (f->key.ip_version != 4)
		return;
	memcpy(tag, ip + 4, 2);
	memcpy(tag + 2, ip + 6, 2);
	memcpy(tag + 4, ip + 2, 2);
	memcpy(tag + 6, ip + 10, 2);
	tag[8] = ip[0];
}

static void tag_l4_misc(const struct ste_frame *f, uint8_t *tag)
{
	const uint8_t *tcp = tag_tcp(f), *l4 = tag_l4(f);

	if (tcp) {
		memcpy(tag, tcp + 14, 2);
		memcpy(tag + 2, tcp + 18, 2);
		memcpy(tag + 4, tcp + 8, 4);
		memcpy(tag + 8, tcp + 4, 4);
		memcpy(tag + 14, tcp + 16, 2);
	} else if (l4) {
		memcpy(tag + 12, l4 + 4, 4);
	}
}

static void tag_general_purpose(const struct ste_frame *f, uint8_t *tag)
{
	tag_put32(tag, f->reg_a);
}

static void tag_registers_0(const struct ste_frame *f, uint8_t *tag)
{
	for (unsigned i = 0; i < 4; i++)
		tag_put32(tag + 4 * i, f->reg_c[i]);
}

static void tag_registers_1(const struct ste_frame *f, uint8_t *tag)
{
	for (unsigned i = 0; i < 4; i++)
		tag_put32(tag + 4 * i, f->reg_c[4 + i]);
}

static void tag_source(const struct ste_frame *f, uint8_t *tag)
{
	tag[1] = f->local;
	tag[2] = (uint8_t)(f->gvmi >> 8);
	tag[3] = (uint8_t)f->gvmi;
	tag_put32(tag + 4, f->sqn & 0xffffff);
}

/* ---- tunnels ---- */

/* What is inside the tunnel, as a frame; without a tunnel all its fields are absent. */
static struct ste_frame tag_inside(const struct ste_frame *f)
{
	struct ste_tunnel t;
	struct ste_frame inside;

	if (!ste_tunnel_find(f, &t) || !ste_tunnel_inside(f, &t, &inside)) {
		inside = *f;
		inside.key = (struct flow_key){0};
		inside.at = (struct frame_layout){0};
	}
	return inside;
}

/* Puts the first n bytes of the tunnel's own header, as many as the frame has. */
static void tag_tunnel_bytes(const struct ste_frame *f, uint8_t *tag, uint32_t n)
{
	struct ste_tunnel t;

	if (ste_tunnel_find(f, &t) && t.header < t.inner)
		memcpy(tag, f->bytes + t.header, min_u32(n, f->len - t.header));
}

static void tag_tunnel_words(const struct ste_frame *f, uint8_t *tag)
{
	tag_tunnel_bytes(f, tag, 8);
}

static void tag_tunnel_header(const struct ste_frame *f, uint8_t *tag)
{
	tag_tunnel_bytes(f, tag, STE_TAG_BYTES);
}

/* The key stands in its place whether or not a checksum stands before it. */
static void tag_gre(const struct ste_frame *f, uint8_t *tag)
{
	struct ste_tunnel t;
	uint32_t key;

	if (!ste_tunnel_find(f, &t) || f->key.ip_proto != IP_PROTO_GRE)
		return;
	memcpy(tag, f->bytes + t.header, 4);
	key = t.header + (tag[0] & GRE_CHECKSUM ? 8 : 4);
	if (tag[0] & GRE_KEY && range_inside(key, 4, f->len))
		memcpy(tag + 8, f->bytes + key, 4);
}

static void tag_l2_tunnel(const struct ste_frame *f, uint8_t *tag)
{
	const struct ste_frame inside = tag_inside(f);
	struct ste_tunnel t;

	if (ste_tunnel_find(f, &t) && t.vxlan)
		memcpy(tag, f->bytes + t.header + 4, 3);
	memcpy(tag + 4, inside.key.dst_mac, 6);
	memcpy(tag + 10, inside.key.ether_type, 2);
	tag[12] = (uint8_t)(tag_fragmented(&inside) << 4);
	tag[13] = (uint8_t)(tag_l3_type(&inside) << 4 | tag_l4_type(&inside) << 2 |
			    (inside.key.vlan ? STE_VLAN_C : 0));
	memcpy(tag + 14, inside.key.vlan_tag, 2);
}

static const struct {
	uint16_t lookup; /* enum ste_lookup */
	uint16_t inside; /* the same for what is in a tunnel; 0: there is no such kind */
	void (*make)(const struct ste_frame *f, uint8_t *tag);
} kinds[] = {
	{STE_L2_SRC_DST, STE_L2_SRC_DST_I, tag_l2_src_dst},
	{STE_L2_DST, STE_L2_DST_I, tag_l2_dst},
	{STE_L2_SRC, STE_L2_SRC_I, tag_l2_src},
	{STE_IPV4_5_TUPLE, STE_IPV4_5_TUPLE_I, tag_ipv4_5_tuple},
	{STE_IPV6_DST, STE_IPV6_DST_I, tag_ipv6_dst},
	{STE_IPV6_SRC, STE_IPV6_SRC_I, tag_ipv6_src},
	{STE_L4, STE_L4_I, tag_l4_fields},
	{STE_IPV4_MISC, STE_IPV4_MISC_I, tag_ipv4_misc},
	{STE_L4_MISC, STE_L4_MISC_I, tag_l4_misc},
	{STE_REGISTERS_0, 0, tag_registers_0},
	{STE_REGISTERS_1, 0, tag_registers_1},
	{STE_GENERAL_PURPOSE, 0, tag_general_purpose},
	{STE_SRC_QP_GVMI, 0, tag_source},
	{STE_L2_TUNNEL, 0, tag_l2_tunnel},
	{STE_TUNNEL_WORDS, 0, tag_tunnel_words},
	{STE_TUNNEL_HEADER, 0, tag_tunnel_header},
	{STE_GRE, 0, tag_gre},
};

bool ste_tag(const struct ste_frame *f, uint32_t lookup, uint8_t tag[STE_TAG_BYTES])
{
	for (size_t i = 0; i < array_size(kinds); i++) {
		if (kinds[i].lookup == lookup) {
			memset(tag, 0, STE_TAG_BYTES);
			kinds[i].make(f, tag);
			return true;
		}
		if (lookup && kinds[i].inside == lookup) {
			const struct ste_frame inside = tag_inside(f);

			memset(tag, 0, STE_TAG_BYTES);
			kinds[i].make(&inside, tag);
			return true;
		}
	}
	return false;
}
