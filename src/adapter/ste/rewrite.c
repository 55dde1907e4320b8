// SPDX-License-Identifier: BSD-2-Clause
/* What steering entries do with a frame that they match; see rewrite.h. */
#include "adapter/ste/rewrite.h"

#include "adapter/ste/tunnel.h"

#include <string.h>

/* Each word is a list of places of bytes. */

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

/* True if the word is a part of the frame and not a register. */
static must_check bool ste_word_in_frame(uint32_t word)
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

/* Reads a word; one that the frame does not have reads zero.  False: there is no such word. */
static must_check bool ste_word_get(const struct ste_frame *f, uint32_t word, uint32_t *value)
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

/* Writes the bits of mask.  The frame's bytes must lie in its room. */
static void ste_word_put(struct ste_frame *f, uint32_t word, uint32_t value, uint32_t mask)
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

/* Makes the frame one that may be changed; false: there is no room for that. */
static must_check bool ste_edit_own(struct ste_frame *f)
{
	if (!f->room || f->len > f->room_bytes)
		return false;
	if (f->bytes != f->room) {
		memcpy(f->room, f->bytes, f->len);
		f->bytes = f->room;
	}
	return true;
}

/* False: the frame has no such place, or would be too long. */
static must_check bool ste_edit_insert(struct ste_frame *f, uint32_t at, const uint8_t *bytes,
				       uint32_t n)
{
	if (!ste_edit_own(f) || at > f->len || n > f->room_bytes - f->len || f->len + n > FRAME_MAX)
		return false;
	memmove(f->room + at + n, f->room + at, f->len - at);
	memcpy(f->room + at, bytes, n);
	f->len += n;
	return true;
}

static must_check bool ste_edit_remove(struct ste_frame *f, uint32_t at, uint32_t n)
{
	if (!ste_edit_own(f) || !range_inside(at, n, f->len))
		return false;
	memmove(f->room + at, f->room + at + n, f->len - at - n);
	f->len -= n;
	return true;
}

/*
 * The headers of a tunnel are the same for all frames, except for the lengths of
 * IP and UDP and for checksums, which the device fills in.
 */

enum { IPV4_BYTES = 20, IPV4_LENGTH = 2, IPV4_PROTO = 9 };
enum { IPV6_BYTES = 40, IPV6_LENGTH = 4, IPV6_PROTO = 6 };
enum { UDP_BYTES = 8, UDP_LENGTH = 4, UDP_SUM = 6 };

/* ---- out of a tunnel ---- */

/* STE_ACT_REMOVE_HEADERS: removes all bytes up to a header. */
static must_check enum ste_verdict ste_remove_headers(struct ste_walk *w, const uint8_t *a)
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

/* STE_ACT_INSERT_POINTER: inserts headers that a number names. */
static must_check enum ste_verdict ste_insert_headers(struct ste_walk *w, const uint8_t *a)
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

/* Bytes of both addresses, behind which tags are inserted. */
#define VLAN_AT 12u

/* ---- actions; each of one or two words ---- */

static enum ste_verdict act_nothing(struct ste_walk *w, const uint8_t *a)
{
	(void)w;
	(void)a;
	return STE_ARRIVED;
}

static enum ste_verdict act_flow_tag(struct ste_walk *w, const uint8_t *a)
{
	w->frame->flow_tag = prm_get32(a, STE_FLOW_TAG);
	return STE_ARRIVED;
}

static uint32_t modify_mask(uint32_t shift, uint32_t length)
{
	uint64_t bits = length ? (1ull << length) - 1 : UINT32_MAX;

	return (uint32_t)(bits << shift);
}

/* True for a UDP checksum of zero: the frame has none, and must not get one. */
static bool checksum_absent(const struct ste_frame *f)
{
	const uint8_t *udp = f->bytes + f->at.l4;

	return f->key.l4_proto == IP_PROTO_UDP && !udp[6] && !udp[7];
}

/* Which checksums were right; those have to stay right. */
struct checksums {
	bool l3, l4;
};

static struct checksums checksums_look(const struct ste_frame *f)
{
	return (struct checksums){
		frame_l3_checksum_ok(f->bytes, &f->at),
		!checksum_absent(f) && frame_l4_checksum_ok(f->bytes, f->len, &f->key, &f->at),
	};
}

static void checksums_mend(struct ste_frame *f, struct checksums were)
{
	if (were.l3)
		frame_fill_l3_checksum(f->room, &f->at);
	if (were.l4)
		frame_fill_l4_checksum(f->room, f->len, &f->key, &f->at);
}

static enum ste_verdict modify_put(struct ste_walk *w, uint32_t word, uint32_t value, uint32_t mask)
{
	struct ste_frame *f = w->frame;
	struct checksums were = {0};

	if (!ste_word_in_frame(word)) {
		ste_word_put(f, word, value, mask);
		return STE_ARRIVED;
	}
	if (!ste_edit_own(f))
		return STE_BAD_ACTION;
	were = checksums_look(f);
	ste_word_put(f, word, value, mask);
	ste_frame_parse(f);
	checksums_mend(f, were);
	return STE_ARRIVED;
}

/* Where in the word the change begins, and how wide it is; false: it does not lie in the word. */
static bool modify_place(const uint8_t *a, uint32_t *shift, uint32_t *mask)
{
	uint32_t length = prm_get32(a, STE_MODIFY_LENGTH);

	*shift = prm_get32(a, STE_MODIFY_SHIFT) - STE_SHIFT_BASE;
	if (*shift >= 32 || (length ? length : 32) > 32 - *shift)
		return false;
	*mask = modify_mask(*shift, length);
	return true;
}

static enum ste_verdict act_set(struct ste_walk *w, const uint8_t *a)
{
	uint32_t word = prm_get32(a, STE_MODIFY_FIELD), shift, mask, old;

	w->what = word;
	if (!ste_word_get(w->frame, word, &old) || !modify_place(a, &shift, &mask))
		return STE_UNKNOWN_ACTION;
	return modify_put(w, word, prm_get32(a, STE_MODIFY_DATA) << shift, mask);
}

static enum ste_verdict act_add(struct ste_walk *w, const uint8_t *a)
{
	uint32_t word = prm_get32(a, STE_MODIFY_FIELD), shift, mask, old;

	w->what = word;
	if (!ste_word_get(w->frame, word, &old) || !modify_place(a, &shift, &mask))
		return STE_UNKNOWN_ACTION;
	return modify_put(w, word, (old & mask) + (prm_get32(a, STE_MODIFY_DATA) << shift), mask);
}

static enum ste_verdict act_copy(struct ste_walk *w, const uint8_t *a)
{
	uint32_t word = prm_get32(a, STE_MODIFY_FIELD), from = prm_get32(a, STE_COPY_FIELD);
	uint32_t right = prm_get32(a, STE_COPY_SHIFT) - STE_SHIFT_BASE, shift, mask, old, source;

	w->what = word;
	if (!ste_word_get(w->frame, word, &old) || !ste_word_get(w->frame, from, &source) ||
	    right >= 32 || !modify_place(a, &shift, &mask))
		return STE_UNKNOWN_ACTION;
	return modify_put(w, word, source >> right << shift, mask);
}

static enum ste_verdict act_insert_inline(struct ste_walk *w, const uint8_t *a)
{
	if (prm_get32(a, STE_START_ANCHOR) != STE_ANCHOR_START)
		return STE_UNKNOWN_ACTION;
	return ste_edit_insert(w->frame, prm_get32(a, STE_INSERT_OFFSET) * 2, a + 4, 4)
		       ? STE_ARRIVED
		       : STE_BAD_ACTION;
}

static enum ste_verdict act_remove_by_size(struct ste_walk *w, const uint8_t *a)
{
	uint32_t at = prm_get32(a, STE_REMOVE_OFFSET) * 2, n = prm_get32(a, STE_REMOVE_SIZE) * 2;

	switch (prm_get32(a, STE_START_ANCHOR)) {
	case STE_ANCHOR_START:
		break;
	case STE_ANCHOR_VLAN:
		/* a frame without a tag has none to lose */
		if (!w->frame->key.vlan)
			return STE_ARRIVED;
		at += VLAN_AT;
		break;
	default:
		return STE_UNKNOWN_ACTION;
	}
	return ste_edit_remove(w->frame, at, n) ? STE_ARRIVED : STE_BAD_ACTION;
}

static enum ste_verdict act_modify_list(struct ste_walk *w, const uint8_t *a);

static const struct ste_act {
	uint8_t id; /* enum ste_action */
	uint8_t words;
	bool tags; /* the action may change what tags consist of */
	enum ste_verdict (*perform)(struct ste_walk *w, const uint8_t *a);
} acts[] = {
	{STE_ACT_NONE, 1, false, act_nothing},
	{STE_ACT_FLOW_TAG, 1, false, act_flow_tag},
	{STE_ACT_MODIFY_LIST, 1, true, act_modify_list},
	{STE_ACT_REMOVE_BY_SIZE, 1, true, act_remove_by_size},
	{STE_ACT_REMOVE_HEADERS, 1, true, ste_remove_headers},
	{STE_ACT_INSERT_INLINE, 2, true, act_insert_inline},
	{STE_ACT_INSERT_POINTER, 2, true, ste_insert_headers},
	{STE_ACT_SET, 2, true, act_set},
	{STE_ACT_ADD, 2, true, act_add},
	{STE_ACT_COPY, 2, true, act_copy},
};

/* Finds an action; NULL: it is unknown, or goes beyond the end. */
static const struct ste_act *act_find(struct ste_walk *w, const uint8_t *a, uint32_t bytes)
{
	w->what = a[0];
	for (size_t i = 0; i < array_size(acts); i++)
		if (acts[i].id == a[0])
			return acts[i].words * 4u <= bytes ? &acts[i] : NULL;
	return NULL;
}

/* Performs one action of a list.  Each takes 8 bytes, however many words it needs.  A list does not
 * lead to another list. */
static enum ste_verdict list_step(struct ste_walk *w, const uint8_t bytes[STE_LIST_BYTES])
{
	const struct ste_act *act = act_find(w, bytes, STE_LIST_BYTES);

	return act && act->id != STE_ACT_MODIFY_LIST ? act->perform(w, bytes) : STE_UNKNOWN_ACTION;
}

static enum ste_verdict act_modify_list(struct ste_walk *w, const uint8_t *a)
{
	uint32_t n = prm_get32(a, STE_LIST_LENGTH);
	uint64_t at =
		icm_base(ICM_MODIFY) + (uint64_t)prm_get32(a, STE_LIST_INDEX) * STE_LIST_ALIGN;
	enum ste_verdict v = STE_ARRIVED;

	for (uint32_t i = 0; i < n && v == STE_ARRIVED; i++) {
		_Alignas(8) uint8_t bytes[STE_LIST_BYTES];

		if (!icm_read(w->icm, ICM_MODIFY, at + (uint64_t)i * STE_LIST_BYTES, bytes,
			      sizeof(bytes)))
			return STE_NO_ENTRY;
		v = list_step(w, bytes);
	}
	return v;
}

/* Checks that what is left is a frame. */
static enum ste_verdict rewrite_end(struct ste_walk *w)
{
	if (w->frame->len < FRAME_MIN)
		return STE_BAD_ACTION;
	ste_frame_parse(w->frame);
	return STE_ARRIVED;
}

enum ste_verdict ste_perform_list(struct ste_walk *w, const uint8_t (*actions)[STE_LIST_BYTES],
				  uint32_t n)
{
	enum ste_verdict v = STE_ARRIVED;

	for (uint32_t i = 0; i < n && v == STE_ARRIVED; i++)
		v = list_step(w, actions[i]);
	return v == STE_ARRIVED ? rewrite_end(w) : v;
}

enum ste_verdict ste_perform(struct ste_walk *w, const uint8_t *entry, bool *tag_valid)
{
	uint32_t at = STE_ACTIONS_AT, end = STE_ACTIONS_AT + 8;
	bool changed = false;

	if (prm_get32(entry, STE_FORMAT) == STE_MATCH)
		at = STE_MATCH_ACTIONS_AT;
	while (at < end) {
		const struct ste_act *act = act_find(w, entry + at, end - at);
		enum ste_verdict v;

		if (!act)
			return STE_UNKNOWN_ACTION;
		v = act->perform(w, entry + at);
		if (v != STE_ARRIVED)
			return v;
		changed |= act->tags;
		at += act->words * 4u;
	}
	if (!changed)
		return STE_ARRIVED;
	*tag_valid = false;
	return rewrite_end(w);
}
