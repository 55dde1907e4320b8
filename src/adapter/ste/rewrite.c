// SPDX-License-Identifier: BSD-2-Clause
/* See rewrite.h. */
#include "adapter/ste/rewrite.h"

#include "adapter/ste/edit.h"
#include "adapter/ste/reformat.h"
#include "adapter/ste/word.h"

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
