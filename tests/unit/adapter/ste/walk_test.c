// SPDX-License-Identifier: BSD-2-Clause
/*
 * The way of a frame through steering entries: by mask and tag, by hash, along misses; actions; and
 * what ends it.  Entries are built here field by field, as libmlx5 fills them in.
 */
#include <string.h>

#include "adapter/ste/tag.h"
#include "adapter/ste/walk.h"
#include "check.h"

static struct icm icm;
static struct icm_part *entries, *lists;
static uint64_t base;

static const uint8_t udp_frame[] = {
	0x02, 0,    0,	  0,	0, 1,  0x02, 0, 0,   0,	  0,   2,   0x08, 0x00, /* Ethernet */
	0x45, 0,    0,	  32,	0, 0,  0,    0, 64,  17,  0,   0,   10,	  0,
	0,    1,    10,	  0,	0, 2,				    /* IPv4 */
	0x03, 0xe8, 0x07, 0xd0, 0, 12, 0,    0, 'f', 'o', 'u', 'r', /* UDP */
};

static uint8_t room[256];
static struct ste_frame frame;
static uint32_t counted, counted_bytes;

static void frame_begin(void)
{
	frame = (struct ste_frame){.bytes = udp_frame,
				   .len = sizeof(udp_frame),
				   .room = room,
				   .room_bytes = sizeof(room),
				   .format = 2};
	ste_frame_parse(&frame);
	counted = counted_bytes = 0;
}

static void note_count(void *user, uint32_t counter, uint32_t bytes)
{
	(void)user;
	counted = counter;
	counted_bytes = bytes;
}

/* Ethernet, IPv4, UDP and VXLAN of network 0x123456, without lengths and checksums; number 5. */
static const uint8_t
	vxlan_headers
		[50] =
			{
				0x02, 0,    0,	  0,	0,    9,    0x02, 0, 0,	   0,
				0,    8,    0x08, 0x00, /* Ethernet */
				0x45, 0,    0,	  0,	0,    0,    0,	  0, 64,   17,
				0,    0,    192,  0,	2,    1,    192,  0, 2,	   2, /* IPv4 */
				0x30, 0x39, 0x12, 0xb5, 0,    0,    0,	  0, 0x08, 0,
				0,    0,    0x12, 0x34, 0x56, 0x00, /* UDP, VXLAN */
};

static const uint8_t *tunnel_headers(void *user, uint32_t number, uint32_t *bytes)
{
	(void)user;
	*bytes = sizeof(vxlan_headers);
	return number == 5 ? vxlan_headers : NULL;
}

/* Number 32: the source address. */
static const struct ste_definer *definer(void *user, uint32_t number)
{
	static const struct ste_definer by_source = {
		.mask = {[24] = 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

	(void)user;
	return number == 32 ? &by_source : NULL;
}

static enum ste_verdict walk(struct steer_target *end)
{
	struct ste_walk w = {.icm = &icm,
			     .frame = &frame,
			     .count = note_count,
			     .headers = tunnel_headers,
			     .definer = definer};

	return ste_walk(&w, base, end);
}

/* ---- entries ---- */

static uint8_t *entry_at(uint32_t index)
{
	return icm_part_memory(&icm, entries) + (size_t)index * STE_BYTES;
}

static uint64_t address_of(uint32_t index)
{
	return base + (uint64_t)index * STE_BYTES;
}

static void set_miss(uint8_t *e, uint64_t address)
{
	prm_set(e, STE_MISS_39_32, address >> 32);
	prm_set(e, STE_MISS_31_6, address >> 6);
}

static void set_next(uint8_t *e, uint64_t address, uint32_t n)
{
	uint64_t word = address >> 5 | n;

	prm_set(e, STE_NEXT_39_32, word >> 27);
	prm_set(e, STE_NEXT_31_5, word);
}

static uint8_t *entry_make(uint32_t index, uint32_t lookup, uint64_t hit, uint64_t miss)
{
	uint8_t *e = entry_at(index);

	memset(e, 0, STE_BYTES);
	prm_set(e, STE_FORMAT, lookup >> 8);
	prm_set(e, STE_DEFINER, lookup);
	set_next(e, hit, 1);
	set_miss(e, miss);
	return e;
}

/* Matches the source address of udp_frame. */
static uint8_t *entry_smac(uint32_t index, uint64_t hit, uint64_t miss)
{
	uint8_t *e = entry_make(index, STE_L2_SRC, hit, miss);

	memset(e + STE_MASK_AT + 4, 0xff, 6);
	memcpy(e + STE_TAG_AT + 4, udp_frame + 6, 6);
	return e;
}

static void test_match_and_miss(void)
{
	uint64_t tir = steer_address(STEER_TIR, 0x1234), drop = steer_address(STEER_DROP, 0);
	struct steer_target end;
	uint8_t *e = entry_smac(0, tir, drop);

	frame_begin();
	prm_set(e, STE_COUNTER, 7);
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_TIR && end.number == 0x1234);
	CHECK(counted == 7 && counted_bytes == sizeof(udp_frame));
	e[STE_TAG_AT + 9] ^= 1;
	frame_begin();
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_DROP && !counted);
	/* A tag outside of the mask never matches. */
	e[STE_TAG_AT + 9] ^= 1;
	e[STE_TAG_AT] = 0xdc;
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_DROP);
}

/* A table of 16, and in it the only entry where the hash says, then one behind it by its miss. */
static void test_table(void)
{
	const uint16_t mask = 0x0fc0;
	uint64_t tir = steer_address(STEER_TIR, 5), drop = steer_address(STEER_DROP, 0);
	uint8_t tag[STE_TAG_BYTES], *e = entry_make(0, STE_NO_MATTER, 0, drop);
	struct steer_target end;
	uint32_t index;

	frame_begin();
	CHECK(ste_tag(&frame, STE_L2_SRC, tag));
	index = ste_table_hash(tag, mask) % 16;
	set_next(e, address_of(16), 16);
	prm_set(e, STE_NEXT_LOOKUP, STE_L2_SRC & 0xff);
	prm_set(e, STE_NEXT_FORMAT, STE_L2_SRC >> 8);
	prm_set(e, STE_BYTE_MASK, mask);
	for (uint32_t i = 16; i < 32; i++)
		entry_make(i, STE_L2_SRC, tir, drop)[STE_TAG_AT] = 0xdc;
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_DROP);
	entry_smac(16 + index, tir, drop);
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_TIR);
	e = entry_smac(16 + index, drop, address_of(40));
	e[STE_TAG_AT + 9] ^= 1;
	entry_smac(40, tir, drop);
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_TIR);
}

/* The check value of the CRC, over 9 bytes, has its inversions; over zeros it is 0. */
static void test_hash(void)
{
	uint8_t tag[STE_TAG_BYTES] = {0};

	CHECK(ste_table_hash(tag, 0xffff) == 0);
	tag[15] = 1;
	CHECK(ste_table_hash(tag, 0xffff) == 0x96300777);
	CHECK(ste_table_hash(tag, 0xfffe) == 0);
}

static void test_tags(void)
{
	uint8_t tag[STE_TAG_BYTES];

	frame_begin();
	CHECK(ste_tag(&frame, STE_IPV4_5_TUPLE, tag));
	CHECK(!memcmp(tag, (uint8_t[]){10, 0, 0, 1, 10, 0, 0, 2, 3, 0xe8, 7, 0xd0, 0, 0, 0, 17},
		      16));
	CHECK(ste_tag(&frame, STE_L2_DST, tag));
	CHECK(!memcmp(tag, (uint8_t[]){0, 0x18, 0, 0, 2, 0, 0, 0, 0, 1, 8, 0, 0, 0, 0, 0}, 16));
	CHECK(!ste_tag(&frame, 0x0111, tag));
}

/* ---- actions ---- */

static void put_action(uint8_t *a, enum ste_action id)
{
	prm_set(a, STE_ACTION_ID, id);
}

static void put_set(uint8_t *a, uint32_t word, uint32_t shift, uint32_t length, uint32_t data)
{
	put_action(a, STE_ACT_SET);
	prm_set(a, STE_MODIFY_FIELD, word);
	prm_set(a, STE_MODIFY_SHIFT, STE_SHIFT_BASE + shift);
	prm_set(a, STE_MODIFY_LENGTH, length);
	prm_set(a, STE_MODIFY_DATA, data);
}

static void test_vlan(void)
{
	uint64_t tir = steer_address(STEER_TIR, 1);
	uint8_t *a = entry_make(0, STE_NO_MATTER, address_of(1), 0) + STE_ACTIONS_AT;
	struct steer_target end;

	put_action(a, STE_ACT_INSERT_INLINE);
	prm_set(a, STE_INSERT_OFFSET, 6);
	prm_set(a, STE_INSERT_DATA, 0x81000007);
	/* An entry that only has actions, of which a single one goes in front. */
	a = entry_make(1, (uint32_t)STE_MATCH << 8 | STE_NO_MATTER, address_of(2), 0) +
	    STE_MATCH_ACTIONS_AT;
	put_action(a, STE_ACT_FLOW_TAG);
	prm_set(a, STE_FLOW_TAG, 0x123456);
	put_set(a + 4, STE_WORD_VLAN, 0, 16, 9);
	entry_make(2, STE_NO_MATTER, tir, 0);
	frame_begin();
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_TIR);
	CHECK(frame.len == sizeof(udp_frame) + 4 && frame.key.vlan && frame.flow_tag == 0x123456);
	CHECK(!memcmp(frame.bytes + 12, (uint8_t[]){0x81, 0, 0, 9, 8, 0}, 6));

	a = entry_make(2, STE_NO_MATTER, tir, 0) + STE_ACTIONS_AT;
	put_action(a, STE_ACT_REMOVE_BY_SIZE);
	prm_set(a, STE_START_ANCHOR, STE_ANCHOR_VLAN);
	prm_set(a, STE_REMOVE_SIZE, 2);
	frame_begin();
	CHECK(walk(&end) == STE_ARRIVED && frame.len == sizeof(udp_frame) && !frame.key.vlan);
	CHECK(!memcmp(frame.bytes, udp_frame, sizeof(udp_frame)));
}

/* A list of changes, and a checksum that stays right. */
static void test_list(void)
{
	uint8_t good[sizeof(udp_frame)], *list = icm_part_memory(&icm, lists);
	uint8_t *a = entry_make(0, STE_NO_MATTER, steer_address(STEER_TIR, 1), 0) + STE_ACTIONS_AT;
	struct steer_target end;

	put_action(a, STE_ACT_MODIFY_LIST);
	prm_set(a, STE_LIST_LENGTH, 3);
	memset(list, 0, 24);
	put_set(list, STE_WORD_IPV4_DST, 0, 0, 0x0a000009);
	put_set(list + 8, STE_WORD_SMAC_47_16, 0, 0, 0x88888888);
	put_action(list + 16, STE_ACT_ADD);
	prm_set(list + 16, STE_MODIFY_FIELD, STE_WORD_L3);
	prm_set(list + 16, STE_MODIFY_SHIFT, STE_SHIFT_BASE + 8);
	prm_set(list + 16, STE_MODIFY_LENGTH, 8);
	prm_set(list + 16, STE_MODIFY_DATA, 0xff); /* one less */
	memcpy(good, udp_frame, sizeof(good));
	frame_begin();
	frame_fill_l3_checksum(good, &frame.at);
	frame_fill_l4_checksum(good, sizeof(good), &frame.key, &frame.at);
	frame.bytes = good;
	CHECK(walk(&end) == STE_ARRIVED);
	CHECK(frame.bytes[33] == 9 && frame.bytes[22] == 63 && frame.bytes[6] == 0x88);
	CHECK(frame_l3_checksum_ok(frame.bytes, &frame.at));
	CHECK(frame_l4_checksum_ok(frame.bytes, frame.len, &frame.key, &frame.at));
	CHECK(good[33] == 2); /* not where it lay */
	prm_set(a, STE_LIST_INDEX, 0xffff);
	prm_set(a, STE_LIST_LENGTH, 9);
	CHECK(walk(&end) == STE_NO_ENTRY);
}

/* Registers lie elsewhere in the older format. */
static void test_registers(void)
{
	uint8_t *e = entry_make(0, STE_NO_MATTER, address_of(1), 0);
	struct steer_target end;

	put_set(e + STE_ACTIONS_AT, 0x90, 0, 0, 77);
	e = entry_make(1, STE_REGISTERS_1, steer_address(STEER_TIR, 1),
		       steer_address(STEER_DROP, 0));
	prm_set(e + STE_MASK_AT, PRM_FIELD(0, 32), UINT32_MAX);
	prm_set(e + STE_TAG_AT, PRM_FIELD(0, 32), 77);
	frame_begin();
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_TIR);
	frame_begin();
	frame.format = 1; /* there it is register 0 */
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_DROP && frame.reg_c[0] == 77);
}

/* ---- definers ---- */

static void test_definer(void)
{
	uint64_t tir = steer_address(STEER_TIR, 1), drop = steer_address(STEER_DROP, 0);
	uint32_t by_source = (uint32_t)STE_MATCH << 8 | 32;
	uint8_t tag[STE_MATCH_TAG_BYTES] = {0}, *e = entry_make(0, by_source, tir, drop);
	struct steer_target end;

	memcpy(tag + 24, udp_frame + 6, 6);
	memcpy(e + STE_MATCH_TAG_AT, tag, sizeof(tag));
	frame_begin();
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_TIR);
	e[STE_MATCH_TAG_AT + 29] ^= 1;
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_DROP);
	e[STE_MATCH_TAG_AT + 29] ^= 1;
	/* what the mask leaves out is no part of the tag */
	e[STE_MATCH_TAG_AT + 8] = udp_frame[0];
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_DROP);
	entry_make(0, by_source + 1, tir, drop);
	CHECK(walk(&end) == STE_UNKNOWN_LOOKUP);

	/* A table of four, by its hash. */
	e = entry_make(0, (uint32_t)STE_MATCH << 8 | STE_NO_MATTER, drop, drop);
	set_next(e, address_of(4), 4);
	prm_set(e, STE_NEXT_LOOKUP, 32);
	for (uint32_t i = 0; i < 4; i++) {
		bool here = i == (ste_match_hash(tag) & 3);

		e = entry_make(4 + i, by_source, here ? tir : drop, drop);
		memcpy(e + STE_MATCH_TAG_AT, tag, sizeof(tag));
	}
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_TIR);
}

/* ---- tunnels ---- */

static void put_encap(uint8_t *a, uint32_t number)
{
	put_action(a, STE_ACT_INSERT_POINTER);
	prm_set(a, STE_INSERT_SIZE, sizeof(vxlan_headers) / 2);
	prm_set(a, STE_INSERT_HOW, STE_INSERT_ENCAP);
	prm_set(a, STE_INSERT_DATA, number);
}

static void put_decap(uint8_t *a, enum ste_anchor end)
{
	put_action(a, STE_ACT_REMOVE_HEADERS);
	prm_set(a, STE_END_ANCHOR, end);
	prm_set(a, STE_REMOVE_DECAP, 1);
}

/* Into a tunnel, past an entry that looks inside, and out again. */
static void test_tunnel(void)
{
	uint64_t tir = steer_address(STEER_TIR, 1), drop = steer_address(STEER_DROP, 0);
	uint8_t *e = entry_make(0, STE_NO_MATTER, tir, 0);
	struct steer_target end;

	put_encap(e + STE_ACTIONS_AT, 5);
	frame_begin();
	CHECK(walk(&end) == STE_ARRIVED && frame.len == sizeof(udp_frame) + sizeof(vxlan_headers));
	CHECK(!memcmp(frame.bytes, vxlan_headers, 16));
	CHECK(!memcmp(frame.bytes + 16, (uint8_t[]){0, 50 - 14 + 46}, 2)); /* IPv4: all behind 14 */
	CHECK(!memcmp(frame.bytes + 38, (uint8_t[]){0, 50 - 34 + 46, 0, 0}, 4)); /* UDP, no sum */
	CHECK(!memcmp(frame.bytes + 50, udp_frame, sizeof(udp_frame)));
	CHECK(frame_l3_checksum_ok(frame.bytes, &frame.at));

	e = entry_make(0, STE_NO_MATTER, address_of(1), 0);
	put_encap(e + STE_ACTIONS_AT, 5);
	e = entry_make(1, STE_IPV4_5_TUPLE_I, address_of(2), drop);
	prm_set(e + STE_MASK_AT, PRM_FIELD(0x40, 32), UINT32_MAX); /* ports */
	prm_set(e + STE_TAG_AT, PRM_FIELD(0x40, 32), 0x03e807d0);
	e = entry_make(2, STE_L2_TUNNEL, address_of(3), drop);
	prm_set(e + STE_MASK_AT, PRM_FIELD(0, 32), UINT32_MAX);
	prm_set(e + STE_TAG_AT, PRM_FIELD(0, 32), 0x12345600);
	e = entry_make(3, STE_NO_MATTER, tir, 0);
	put_decap(e + STE_ACTIONS_AT, STE_ANCHOR_INNER_MAC);
	frame_begin();
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_TIR);
	CHECK(frame.len == sizeof(udp_frame) && !memcmp(frame.bytes, udp_frame, frame.len));

	/* A frame without a tunnel has no such fields, and nothing to be taken out of. */
	e = entry_make(0, STE_IPV4_5_TUPLE_I, address_of(3), drop);
	prm_set(e + STE_MASK_AT, PRM_FIELD(0x40, 32), UINT32_MAX);
	frame_begin();
	CHECK(walk(&end) == STE_BAD_ACTION);
	prm_set(e + STE_TAG_AT, PRM_FIELD(0x40, 32), 0x03e807d0);
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_DROP);
	e = entry_make(0, STE_NO_MATTER, tir, 0);
	put_encap(e + STE_ACTIONS_AT, 6);
	CHECK(walk(&end) == STE_BAD_ACTION);
}

/* A datagram in GRE with a key, 77: the UDP frame without its Ethernet header.  In version 1 an
 * acknowledgment follows the key (RFC 2637). */
static void frame_begin_gre(uint8_t version)
{
	static uint8_t gre[46 + sizeof(udp_frame) - 14];
	uint32_t headers = version == 1 ? 46 : 42;

	memset(gre, 0, sizeof(gre));
	memcpy(gre, vxlan_headers, 34);
	gre[17] = (uint8_t)(headers - 14 + sizeof(udp_frame) - 14);
	gre[23] = 47;
	memcpy(gre + 34, (uint8_t[]){0x20, version, 8, 0, 0, 0, 0, 77}, 8);
	gre[35] |= version == 1 ? 0x80 : 0;
	memcpy(gre + headers, udp_frame + 14, sizeof(udp_frame) - 14);
	frame_begin();
	frame.bytes = gre;
	frame.len = headers + (uint32_t)sizeof(udp_frame) - 14;
	ste_frame_parse(&frame);
}

/* It comes out, and gets an Ethernet header as libraries put it in front: four bytes at a time from its
 * end, of which two are too many. */
static void test_tunnel_of_ip(void)
{
	uint64_t tir = steer_address(STEER_TIR, 1);
	uint8_t *list = icm_part_memory(&icm, lists), padded[16] = {0};
	uint8_t *a = entry_make(0, STE_NO_MATTER, tir, 0) + STE_ACTIONS_AT;
	struct steer_target end;

	memcpy(padded + 2, udp_frame, 14);
	put_action(a, STE_ACT_MODIFY_LIST);
	prm_set(a, STE_LIST_LENGTH, 6);
	memset(list, 0, 48);
	put_decap(list, STE_ANCHOR_INNER_IP);
	for (uint32_t i = 0; i < 4; i++) {
		put_action(list + 8 + 8 * i, STE_ACT_INSERT_INLINE);
		memcpy(list + 12 + 8 * i, padded + 12 - 4 * i, 4);
	}
	put_action(list + 40, STE_ACT_REMOVE_BY_SIZE);
	prm_set(list + 40, STE_REMOVE_SIZE, 1);
	for (uint8_t version = 0; version < 2; version++) {
		frame_begin_gre(version);
		CHECK(walk(&end) == STE_ARRIVED && frame.len == sizeof(udp_frame));
		CHECK(!memcmp(frame.bytes, udp_frame, sizeof(udp_frame)));
	}
	frame_begin_gre(2);
	CHECK(walk(&end) == STE_BAD_ACTION);

	a = entry_make(0, STE_GRE, tir, steer_address(STEER_DROP, 0));
	prm_set(a + STE_MASK_AT, PRM_FIELD(0x40, 32), UINT32_MAX);
	prm_set(a + STE_TAG_AT, PRM_FIELD(0x40, 32), 77);
	frame_begin();
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_DROP);
	frame_begin_gre(0);
	CHECK(walk(&end) == STE_ARRIVED && end.kind == STEER_TIR);
}

/* ---- what ends a walk ---- */

static void test_refused(void)
{
	uint64_t drop = steer_address(STEER_DROP, 0);
	struct steer_target end;
	uint8_t *e;

	frame_begin();
	entry_make(0, STE_NO_MATTER, address_of(0), drop);
	CHECK(walk(&end) == STE_ENDLESS);
	entry_make(0, STE_NO_MATTER, (1ull << 40) - 64, drop);
	CHECK(walk(&end) == STE_NO_ENTRY);
	entry_make(0, STE_NO_MATTER, icm_base(ICM_MODIFY), drop);
	CHECK(walk(&end) == STE_NO_ENTRY);
	entry_make(0, 0x0111, drop, drop);
	CHECK(walk(&end) == STE_UNKNOWN_LOOKUP);
	entry_make(0, 0x0700, drop, drop);
	CHECK(walk(&end) == STE_UNKNOWN_FORMAT);
	e = entry_make(0, STE_NO_MATTER, drop, drop);
	put_action(e + STE_ACTIONS_AT, STE_ACT_ASO);
	CHECK(walk(&end) == STE_UNKNOWN_ACTION);
	e = entry_make(0, STE_NO_MATTER, drop, drop);
	put_action(e + STE_ACTIONS_AT + 4, STE_ACT_SET); /* does not end inside */
	CHECK(walk(&end) == STE_UNKNOWN_ACTION);
	e = entry_make(0, STE_NO_MATTER, drop, drop);
	put_action(e + STE_ACTIONS_AT, STE_ACT_REMOVE_BY_SIZE);
	prm_set(e + STE_ACTIONS_AT, STE_REMOVE_SIZE, 17);
	CHECK(walk(&end) == STE_BAD_ACTION);
	e = entry_make(0, STE_NO_MATTER, 0, drop);
	memset(e + 15, 0, 5); /* no table at all */
	CHECK(walk(&end) == STE_NO_ENTRY);
}

static void test_memory(void)
{
	struct icm_part *big, *small;
	uint8_t byte[8];

	CHECK(icm_alloc(&icm, ICM_STEERING, 0, &big) < 0);
	CHECK(icm_alloc(&icm, ICM_STEERING, icm_bytes(ICM_STEERING), &big) < 0);
	CHECK(!icm_alloc(&icm, ICM_STEERING, 1 << 20, &big));
	CHECK(!icm_alloc(&icm, ICM_STEERING, 64, &small));
	CHECK(icm_part_address(big) % (1 << 20) == 0);
	CHECK(icm_part_address(small) < icm_part_address(big)); /* in the gap */
	memset(icm_part_memory(&icm, small), 0xff, 64);
	CHECK(icm_read(&icm, ICM_STEERING, icm_part_address(small), byte, 8) && byte[0] == 0xff);
	icm_free(&icm, small);
	CHECK(icm_read(&icm, ICM_STEERING, icm_part_address(entries) + (1 << 20) - 4096, byte, 8));
	icm_free(&icm, big);
	CHECK(!icm_read(&icm, ICM_STEERING, icm_base(ICM_STEERING) + icm_bytes(ICM_STEERING), byte,
			8));
	CHECK(!icm_read(&icm, ICM_PATTERN, icm_base(ICM_PATTERN), byte, 8));
}

int main(void)
{
	icm_init(&icm);
	CHECK(!icm_alloc(&icm, ICM_STEERING, 64 * STE_BYTES, &entries));
	CHECK(!icm_alloc(&icm, ICM_MODIFY, 4096, &lists));
	base = icm_part_address(entries);
	test_match_and_miss();
	test_table();
	test_hash();
	test_tags();
	test_vlan();
	test_list();
	test_registers();
	test_definer();
	test_tunnel();
	test_tunnel_of_ip();
	test_refused();
	test_memory();
	icm_free(&icm, lists);
	icm_free(&icm, entries);
	icm_release(&icm);
	return 0;
}
