// SPDX-License-Identifier: BSD-2-Clause
/* See walk.h. */
#include "adapter/ste/walk.h"

#include <string.h>

#include "adapter/ste/rewrite.h"
#include "adapter/ste/tag.h"

const char *ste_verdict_words(enum ste_verdict v)
{
	static const char *const words[STE_VERDICTS] = {
		[STE_ARRIVED] = "arrived",
		[STE_ENDLESS] = "entries lead in circles",
		[STE_NO_ENTRY] = "an address is neither that of an entry nor of an object",
		[STE_UNKNOWN_FORMAT] = "a format of entries is not known",
		[STE_UNKNOWN_LOOKUP] = "entries look at fields that are not known",
		[STE_UNKNOWN_ACTION] = "an action is not known",
		[STE_BAD_ACTION] = "an action fits not to the frame",
	};

	return words[v];
}

/* The table that an entry leads to. */
struct next_table {
	uint64_t base;
	uint32_t log_entries;
	uint32_t lookup;
	uint16_t byte_mask;
};

/* The tag of the kind that was asked for last: the walk finds an entry by it, and then compares the
 * entry with it. */
struct tag_memory {
	uint8_t tag[STE_MATCH_TAG_BYTES]; /* without a definer only the first STE_TAG_BYTES bytes */
	uint32_t lookup;
	bool valid;
};

/* True for kinds of tags with a definer, whose number is the lowest byte. */
static bool lookup_has_definer(uint32_t lookup)
{
	return lookup >> 8 == STE_MATCH && (lookup & 0xff) != STE_NO_MATTER;
}

static bool definer_tag_get(struct ste_walk *w, uint32_t lookup, uint8_t *tag)
{
	const struct ste_definer *d = w->definer ? w->definer(w->user, lookup & 0xff) : NULL;

	if (d)
		ste_definer_tag(w->frame, d, tag);
	return d;
}

static bool tag_get(struct ste_walk *w, struct tag_memory *m, uint32_t lookup)
{
	if (m->valid && m->lookup == lookup)
		return true;
	m->valid = lookup_has_definer(lookup) ? definer_tag_get(w, lookup, m->tag)
					      : ste_tag(w->frame, lookup, m->tag);
	m->lookup = w->what = lookup;
	return m->valid;
}

static bool tag_matches(const uint8_t *tag, const uint8_t *entry)
{
	uint64_t have[2], mask[2], want[2];

	memcpy(have, tag, sizeof(have));
	memcpy(mask, entry + STE_MASK_AT, sizeof(mask));
	memcpy(want, entry + STE_TAG_AT, sizeof(want));
	return !(((have[0] & mask[0]) ^ want[0]) | ((have[1] & mask[1]) ^ want[1]));
}

/* Sets *hit if the entry matches.  STE_ARRIVED: it could compare. */
static enum ste_verdict entry_compare(struct ste_walk *w, const uint8_t *entry,
				      struct tag_memory *m, bool *hit)
{
	uint32_t format = prm_get32(entry, STE_FORMAT);
	uint32_t lookup = format << 8 | prm_get32(entry, STE_DEFINER);

	w->what = format;
	if (prm_get32(entry, STE_POLARITY))
		return STE_UNKNOWN_FORMAT;
	switch (format) {
	case STE_BWC_BYTE:
	case STE_BWC_DW:
		if (!tag_get(w, m, lookup))
			return STE_UNKNOWN_LOOKUP;
		*hit = tag_matches(m->tag, entry);
		return STE_ARRIVED;
	case STE_MATCH:
		/* an entry of this format without a definer has only actions */
		*hit = true;
		if (!lookup_has_definer(lookup))
			return STE_ARRIVED;
		if (!tag_get(w, m, lookup))
			return STE_UNKNOWN_LOOKUP;
		*hit = !memcmp(m->tag, entry + STE_MATCH_TAG_AT, STE_MATCH_TAG_BYTES);
		return STE_ARRIVED;
	default:
		return STE_UNKNOWN_FORMAT;
	}
}

static uint64_t entry_miss(const uint8_t *entry)
{
	return prm_get(entry, STE_MISS_39_32) << 32 | prm_get(entry, STE_MISS_31_6) << 6;
}

/* The lowest bit that is set says how many entries the table has; the bits above it say where it
 * is. */
static bool entry_next(const uint8_t *entry, struct next_table *next)
{
	uint64_t word = prm_get(entry, STE_NEXT_39_32) << 27 | prm_get(entry, STE_NEXT_31_5);
	uint64_t entries = word & (~word + 1);
	bool plain = prm_get32(entry, STE_FORMAT) == STE_MATCH;

	if (!word)
		return false;
	next->base = (word & ~entries) << 5;
	next->log_entries = (uint32_t)__builtin_ctzll(word);
	next->byte_mask = plain ? 0 : (uint16_t)prm_get(entry, STE_BYTE_MASK);
	next->lookup = prm_get32(entry, STE_NEXT_LOOKUP) |
		       (plain ? (uint32_t)STE_MATCH : prm_get32(entry, STE_NEXT_FORMAT)) << 8;
	return true;
}

static enum ste_verdict table_entry(struct ste_walk *w, const struct next_table *next,
				    struct tag_memory *m, uint64_t *address)
{
	bool definer = lookup_has_definer(next->lookup);
	uint32_t index = 0;

	if (next->log_entries && (definer || next->byte_mask)) {
		if (!tag_get(w, m, next->lookup))
			return STE_UNKNOWN_LOOKUP;
		index = definer ? ste_match_hash(m->tag) : ste_table_hash(m->tag, next->byte_mask);
		index &= (1u << next->log_entries) - 1;
	}
	*address = next->base + (uint64_t)index * STE_BYTES;
	return STE_ARRIVED;
}

static enum ste_verdict entry_hit(struct ste_walk *w, const uint8_t *entry, struct tag_memory *m,
				  uint64_t *address)
{
	uint32_t counter = prm_get32(entry, STE_COUNTER);
	struct next_table next;
	enum ste_verdict v;

	if (counter && w->count)
		w->count(w->user, counter, w->frame->len);
	v = ste_perform(w, entry, &m->valid);
	if (v != STE_ARRIVED)
		return v;
	if (!entry_next(entry, &next) || next.log_entries >= 32)
		return STE_NO_ENTRY;
	return table_entry(w, &next, m, address);
}

enum ste_verdict ste_walk(struct ste_walk *w, uint64_t address, struct steer_target *end)
{
	struct tag_memory m = {.valid = false};
	_Alignas(8) uint8_t entry[STE_BYTES];
	enum ste_verdict v;
	bool hit = false;

	for (unsigned hops = 0; hops < STE_HOPS; hops++) {
		*end = steer_target_of(address);
		if (end->kind == STEER_NOWHERE)
			return STE_NO_ENTRY;
		if (end->kind != STEER_ENTRY)
			return STE_ARRIVED;
		if (address % STE_BYTES ||
		    !icm_read(w->icm, ICM_STEERING, address, entry, sizeof(entry)))
			return STE_NO_ENTRY;
		v = entry_compare(w, entry, &m, &hit);
		if (v == STE_ARRIVED) {
			if (hit)
				v = entry_hit(w, entry, &m, &address);
			else
				address = entry_miss(entry);
		}
		if (v != STE_ARRIVED)
			return v;
	}
	return STE_ENDLESS;
}
