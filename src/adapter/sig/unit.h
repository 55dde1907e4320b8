/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside the engine: signatures as words, and what it does with the word of one unit. */
#pragma once

#include <string.h>

#include "adapter/sig/stream.h"
#include "base/compiler.h"
#include "base/endian.h"

/* Loads n bytes of a signature into the top of a word; word_store stores them. */
static inline uint64_t word_load(const uint8_t *p, size_t n)
{
	uint64_t word = 0;

	if (n == 8) {
		be64 all;

		memcpy(&all, p, sizeof(all));
		return be64_get(all);
	}
	if (n == 4) {
		be32 half;

		memcpy(&half, p, sizeof(half));
		return (uint64_t)be32_get(half) << 32;
	}
	for (size_t i = 0; i < n; i++)
		word |= (uint64_t)p[i] << (56 - 8 * i);
	return word;
}

static inline void word_store(uint8_t *p, uint64_t word, size_t n)
{
	if (n == 8) {
		be64 all = be64_of(word);

		memcpy(p, &all, sizeof(all));
	} else if (n == 4) {
		be32 half = be32_of((uint32_t)(word >> 32));

		memcpy(p, &half, sizeof(half));
	} else {
		for (size_t i = 0; i < n; i++)
			p[i] = (uint8_t)(word >> (56 - 8 * i));
	}
}

/* Appends n bytes to a word that has its first 'have' bytes. */
static inline uint64_t word_append(uint64_t word, uint64_t have, const uint8_t *p, size_t n)
{
	return (have ? word : 0) | word_load(p, n) >> 8 * have;
}

/* The tags of a block: reference tags wrap at 32 bits. */
static inline uint64_t frame_tags(const struct sig_frame *f, uint64_t block)
{
	return f->app | (uint32_t)(f->ref + f->ref_step * (uint32_t)block);
}

static inline uint64_t frame_word(const struct sig_frame *f, uint64_t block, uint64_t reg)
{
	return f->guard->seal(reg) | frame_tags(f, block);
}

/* True if the plan needs the guard of the input, or that of the output. */
static inline bool plan_sums_in(const struct sig_plan *p)
{
	return p->first && p->first_reg == 0;
}

static inline bool plan_sums_out(const struct sig_plan *p)
{
	return p->second || (p->first && (p->first_reg == 1 || p->out_reg == 0));
}

/* Notes an error; diff: the compared bits that differ. */
void unit_mismatch(struct sig_stream *s, uint64_t block, uint64_t found, uint64_t computed,
		   uint64_t diff);

static inline void unit_check(struct sig_stream *s, uint64_t block, uint64_t found, uint64_t guard)
{
	uint64_t computed = guard | frame_tags(&s->plan->in, block);
	uint64_t diff = (found ^ computed) & s->plan->check;

	if (unlikely(diff))
		unit_mismatch(s, block, found, computed, diff);
}

/* Moves data inside a block: copies it (or drops it, for RUN_DISCARD), and runs the guards of both
 * sides. */
void unit_data(const struct sig_plan *p, uint64_t reg[2], uint8_t *to, const uint8_t *from,
	       uint64_t n);

/*
 * Moves n whole units in single runs, and moves the marks.  Both sides are at the beginning of a
 * unit.  The frames coincide, and at least one side has a signature.
 */
void unit_run(struct sig_stream *s, uint8_t *to, const uint8_t *from, uint64_t n);
