// SPDX-License-Identifier: BSD-2-Clause
/* See word.h.  Each word is a list of places of bytes. */
#include "adapter/ste/word.h"

#include <string.h>

enum word_base {
	WORD_NONE,
	WORD_L2,
	WORD_TYPE,
	WORD_VLAN_TAG,
	WORD_IPV4,
	WORD_IPV6,
	WORD_L4,
	WORD_TCP
};

/* A byte of a word: the header from whose start it counts, and the offset in it. */
struct word_place {
	uint8_t base; /* enum word_base */
	uint8_t at;
};

#define FOUR(base, at)                                                  \
	{                                                               \
		{(base), (at)}, {(base), (at) + 1}, {(base), (at) + 2}, \
		{                                                       \
			(base), (at) + 3                                \
		}                                                       \
	}

struct word_row {
	uint8_t word;
	struct word_place place[4];
};

static const struct word_row rows[] = {
	{STE_WORD_DMAC_47_16, FOUR(WORD_L2, 0)},
	{STE_WORD_DMAC_TYPE, {{WORD_L2, 4}, {WORD_L2, 5}, {WORD_TYPE, 0}, {WORD_TYPE, 1}}},
	{STE_WORD_VLAN, {{0}, {0}, {WORD_VLAN_TAG, 0}, {WORD_VLAN_TAG, 1}}},
	{STE_WORD_SMAC_47_16, FOUR(WORD_L2, 6)},
	{STE_WORD_SMAC_15_0, {{WORD_L2, 10}, {WORD_L2, 11}}},
	{STE_WORD_PORTS, FOUR(WORD_L4, 0)},
	{STE_WORD_TCP_FLAGS, {{WORD_TCP, 12}, {WORD_TCP, 13}}},
	{STE_WORD_IPV4_SRC, FOUR(WORD_IPV4, 12)},
	{STE_WORD_IPV4_DST, FOUR(WORD_IPV4, 16)},
	{STE_WORD_IPV6_DST, FOUR(WORD_IPV6, 24)},
	{STE_WORD_IPV6_DST + 1, FOUR(WORD_IPV6, 28)},
	{STE_WORD_IPV6_DST + 2, FOUR(WORD_IPV6, 32)},
	{STE_WORD_IPV6_DST + 3, FOUR(WORD_IPV6, 36)},
	{STE_WORD_IPV6_SRC, FOUR(WORD_IPV6, 8)},
	{STE_WORD_IPV6_SRC + 1, FOUR(WORD_IPV6, 12)},
	{STE_WORD_IPV6_SRC + 2, FOUR(WORD_IPV6, 16)},
	{STE_WORD_IPV6_SRC + 3, FOUR(WORD_IPV6, 20)},
	{STE_WORD_TCP_SEQ, FOUR(WORD_TCP, 4)},
	{STE_WORD_TCP_ACK, FOUR(WORD_TCP, 8)},
};

/* Finds the offset in the frame; false: the frame has no such byte. */
static bool word_offset(const struct ste_frame *f, struct word_place p, uint32_t *at)
{
	uint32_t type = f->key.vlan ? FRAME_TYPE_AT + FRAME_VLAN_BYTES : FRAME_TYPE_AT;

	switch ((enum word_base)p.base) {
	case WORD_L2:
		*at = p.at;
		break;
	case WORD_TYPE:
		*at = type + p.at;
		break;
	case WORD_VLAN_TAG:
		*at = FRAME_TYPE_AT + 2 + p.at;
		return f->key.vlan;
	case WORD_IPV4:
		*at = f->at.l3 + p.at;
		return f->key.ip_version == 4;
	case WORD_IPV6:
		*at = f->at.l3 + p.at;
		return f->key.ip_version == 6;
	case WORD_L4:
		*at = f->at.l4 + p.at;
		return f->at.l4;
	case WORD_TCP:
		*at = f->at.l4 + p.at;
		return f->key.l4_proto == IP_PROTO_TCP;
	default:
		return false;
	}
	return *at < f->len;
}

static const struct word_row *word_row(uint32_t word)
{
	for (size_t i = 0; i < array_size(rows); i++)
		if (rows[i].word == word)
			return &rows[i];
	return NULL;
}

static uint32_t *word_register(struct ste_frame *f, uint32_t word)
{
	/* Pairs of registers, with the last pair first. */
	static const uint8_t numbers[] = {4, 5, 2, 3, 0, 1};
	uint32_t first = f->format == 1 ? STE_WORD_REGS_C_V1 : STE_WORD_REGS_C_V2;

	if (word == STE_WORD_REG_A)
		return &f->reg_a;
	if (word == STE_WORD_REG_B)
		return &f->reg_b;
	return word >= first && word - first < array_size(numbers)
		       ? &f->reg_c[numbers[word - first]]
		       : NULL;
}

bool ste_word_in_frame(uint32_t word)
{
	return word == STE_WORD_L3 || word_row(word);
}

/* In IPv6 the traffic class lies across two bytes, and the time to live stands elsewhere than in
 * IPv4. */
static uint32_t word_l3_get(const struct ste_frame *f)
{
	return (uint32_t)f->key.ip_tos << 16 | (uint32_t)f->key.ip_ttl << 8;
}

static void word_l3_put(struct ste_frame *f, uint32_t value)
{
	uint8_t *ip = f->room + f->at.l3, tos = (uint8_t)(value >> 16), ttl = (uint8_t)(value >> 8);

	if (f->key.ip_version == 4) {
		ip[1] = tos;
		ip[8] = ttl;
	} else if (f->key.ip_version == 6) {
		ip[0] = (uint8_t)((ip[0] & 0xf0) | tos >> 4);
		ip[1] = (uint8_t)((ip[1] & 0x0f) | tos << 4);
		ip[7] = ttl;
	}
}

bool ste_word_get(const struct ste_frame *f, uint32_t word, uint32_t *value)
{
	const struct word_row *row = word_row(word);
	const uint32_t *reg = word_register((struct ste_frame *)(uintptr_t)f, word);

	*value = 0;
	if (reg)
		*value = *reg;
	else if (word == STE_WORD_L3)
		*value = word_l3_get(f);
	else if (!row)
		return false;
	for (unsigned i = 0; row && i < 4; i++) {
		uint32_t at;

		*value <<= 8;
		if (word_offset(f, row->place[i], &at))
			*value |= f->bytes[at];
	}
	return true;
}

void ste_word_put(struct ste_frame *f, uint32_t word, uint32_t value, uint32_t mask)
{
	const struct word_row *row = word_row(word);
	uint32_t *reg = word_register(f, word);

	if (reg)
		*reg = (*reg & ~mask) | (value & mask);
	if (word == STE_WORD_L3)
		word_l3_put(f, (word_l3_get(f) & ~mask) | (value & mask));
	for (unsigned i = 0; row && i < 4; i++) {
		uint8_t m = (uint8_t)(mask >> (24 - 8 * i)), v = (uint8_t)(value >> (24 - 8 * i));
		uint32_t at;

		if (m && word_offset(f, row->place[i], &at))
			f->room[at] = (uint8_t)((f->room[at] & ~m) | (v & m));
	}
}
