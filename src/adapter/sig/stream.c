// SPDX-License-Identifier: BSD-2-Clause
/*
 * Feeds a stream.  Each side is either in the data of a block or in a signature.  Data moves when
 * both sides are in data.  An input signature is collected and checked and an output signature
 * emitted independently of each other, with one exception: if the structures are equal, the
 * output's signature follows the input's byte by byte, because bytes of it may be copied.
 *
 * If both sides are at the beginning of a unit and both runs hold whole units, unit_run moves them.
 * Otherwise this file moves block by block or smaller pieces, and the stream carries the guards.
 */
#include "adapter/sig/sig.h"

#include "base/compiler.h"
#include "base/endian.h"

#include <string.h>

/* Inside the engine: signatures as words, and what it does with the word of one unit. */

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
static void unit_mismatch(struct sig_stream *s, uint64_t block, uint64_t found, uint64_t computed,
			  uint64_t diff);

static inline void unit_check(struct sig_stream *s, uint64_t block, uint64_t found, uint64_t guard)
{
	uint64_t computed = guard | frame_tags(&s->plan->in, block);
	uint64_t diff = (found ^ computed) & s->plan->check;

	if (unlikely(diff))
		unit_mismatch(s, block, found, computed, diff);
}

/*
 * Moves n whole units in single runs, and moves the marks.  Both sides are at the beginning of a
 * unit.  The frames coincide, and at least one side has a signature.
 */
void unit_run(struct sig_stream *s, uint8_t *to, const uint8_t *from, uint64_t n);

static enum sig_error_kind unit_kind_of(const struct sig_plan *p, uint64_t diff)
{
	if (diff & p->in.guard->bits)
		return SIG_BAD_GUARD;
	return diff >> 32 ? SIG_BAD_APP_TAG : SIG_BAD_REF_TAG;
}

static __attribute__((cold)) void unit_mismatch(struct sig_stream *s, uint64_t block,
						uint64_t found, uint64_t computed, uint64_t diff)
{
	const struct sig_plan *p = s->plan;

	if (p->escape && (found & p->escape) == p->escape)
		return;
	if (s->errors++)
		return;
	if (!plan_sums_in(p))
		computed = (computed & ~p->in.guard->bits) | (found & p->in.guard->bits);
	s->error = (struct sig_error){
		.kind = unit_kind_of(p, diff),
		.side = p->in.side,
		.type = p->in.type,
		.transaction = p->in.transaction,
		.block = block,
		.unit = p->in.unit,
		.found = found,
		.computed = computed,
	};
}

static inline __attribute__((always_inline)) void
block_data(const struct sig_plan *p, uint64_t reg[2], uint8_t *to, const uint8_t *from, uint64_t n)
{
	if (!p->first) {
		/* guard.c says what happens to sides that overlap */
		memmove(to, from, n);
		return;
	}
	if (!p->second) {
		reg[p->first_reg] = p->first->copy(reg[p->first_reg], to, from, n);
		return;
	}
	while (n) {
		uint64_t slice = min_u64(n, SIG_SLICE);

		reg[0] = p->first->copy(reg[0], to, from, slice);
		reg[1] = p->second->update(reg[1], to, slice);
		to += slice;
		from += slice;
		n -= slice;
	}
}

/* Moves data inside a block: copies it (or drops it, for RUN_DISCARD), and runs the guards of both
 * sides. */
static void unit_data(const struct sig_plan *p, uint64_t reg[2], uint8_t *to, const uint8_t *from,
		      uint64_t n)
{
	if (to != RUN_DISCARD) {
		block_data(p, reg, to, from, n);
		return;
	}
	if (p->first)
		reg[p->first_reg] = p->first->update(reg[p->first_reg], from, n);
	if (p->second)
		reg[1] = p->second->update(reg[1], from, n);
}

static void mark_units(struct sig_mark *m, const struct sig_frame *f, uint64_t block, uint64_t n)
{
	if (f->guard)
		m->block += n;
	else
		m->at += n * block;
}

void unit_run(struct sig_stream *s, uint8_t *to, const uint8_t *from, uint64_t n)
{
	const struct sig_plan *p = s->plan;
	const struct sig_frame *in = &p->in;
	const struct sig_frame *out = &p->out;
	uint64_t block = in->guard ? in->block : out->block;
	uint64_t found = 0;

	for (uint64_t i = 0; i < n; i++) {
		uint64_t reg[2] = {in->start, out->start};

		block_data(p, reg, to, from, block);
		from += block;
		to += block;
		if (in->guard) {
			found = word_load(from, in->bytes);
			from += in->bytes;
			if (p->check)
				unit_check(s, s->in.block + i, found, in->guard->seal(reg[0]));
		}
		if (out->guard) {
			uint64_t made = frame_word(out, s->out.block + i, reg[p->out_reg]);

			word_store(to, (made & ~p->copy) | (found & p->copy), out->bytes);
			to += out->bytes;
		}
	}
	mark_units(&s->in, in, block, n);
	mark_units(&s->out, out, block, n);
}

/*
 * Begins a stream inside a unit.  The marks follow from the offset alone; the guards need the data
 * that lies before it in memory.
 */

static uint64_t mark_data(const struct sig_mark *m, const struct sig_frame *f)
{
	return f->guard ? m->block * f->block + min_u64(m->at, f->block) : m->at;
}

static uint64_t mark_stream(const struct sig_mark *m, const struct sig_frame *f)
{
	return f->guard ? m->block * f->unit + m->at : m->at;
}

static bool in_signature(const struct sig_mark *m, const struct sig_frame *f)
{
	return f->guard && m->at >= f->block;
}

uint64_t sig_stream_at(const struct sig_stream *s, enum sig_side side)
{
	if (s->plan->in.side == side)
		return mark_stream(&s->in, &s->plan->in);
	return mark_stream(&s->out, &s->plan->out);
}

/* Where the data begins that the guards of the units at the marks cover; the place of the marks if
 * nobody needs data. */
static uint64_t lead_data(const struct sig_stream *s)
{
	const struct sig_plan *p = s->plan;
	uint64_t from = mark_data(&s->in, &p->in);

	if (p->in.guard && s->in.at && plan_sums_in(p))
		from = min_u64(from, s->in.block * p->in.block);
	if (!p->out.guard || !s->out.at)
		return from;
	/* When gathering, the signature from which bytes are copied lies before the start as
	 * well. */
	if (plan_sums_out(p) || (p->copy && p->direction == SIG_GATHER))
		from = min_u64(from, s->out.block * p->out.block);
	return from;
}

static const struct sig_frame *memory_frame(const struct sig_plan *p)
{
	return p->in.side == SIG_MEMORY ? &p->in : &p->out;
}

static uint64_t lead_bytes(const struct sig_stream *s)
{
	const struct sig_frame *m = memory_frame(s->plan);
	uint64_t data = lead_data(s);

	if (data == mark_data(&s->in, &s->plan->in))
		return 0;
	return sig_stream_at(s, SIG_MEMORY) - (data + data / m->block * m->bytes);
}

uint64_t sig_stream_lead(const struct sig_stream *s)
{
	return s->lead;
}

static struct sig_mark mark_of_wire(const struct sig_frame *f, uint64_t offset)
{
	if (!f->guard)
		return (struct sig_mark){0, offset};
	/* Behind the only unit is nothing. */
	if (f->transaction)
		return (struct sig_mark){0, min_u64(offset, f->unit)};
	return (struct sig_mark){offset / f->unit, offset % f->unit};
}

/* As sig_place: complete data counts with its signature. */
static struct sig_mark mark_of_memory(const struct sig_frame *f, uint64_t data)
{
	if (!f->guard)
		return (struct sig_mark){0, data};
	if (f->transaction)
		return (struct sig_mark){0, data < f->block ? data : f->unit};
	return (struct sig_mark){data / f->block, data % f->block};
}

void sig_stream_begin(struct sig_stream *s, const struct sig_plan *p, uint64_t wire_offset)
{
	bool gather = p->direction == SIG_GATHER;
	const struct sig_frame *w = gather ? &p->out : &p->in;
	const struct sig_frame *m = gather ? &p->in : &p->out;
	struct sig_mark wire = mark_of_wire(w, wire_offset);
	struct sig_mark memory = mark_of_memory(m, mark_data(&wire, w));

	if (p->lockstep && !gather)
		memory = wire;

	*s = (struct sig_stream){
		.plan = p,
		.in = gather ? memory : wire,
		.out = gather ? wire : memory,
		.guard = {p->in.start, p->out.start},
	};
	s->blind = s->in.at && p->in.guard && (plan_sums_in(p) || s->in.at > p->in.block);
	s->lead = lead_bytes(s);
	if (in_signature(&s->out, &p->out))
		s->out_word = frame_word(&p->out, s->out.block, s->guard[p->out_reg]);
}

/* Feeds the guards data at this place; n does not reach over the border of a block. */
static void lead_update(struct sig_stream *s, uint64_t data, const uint8_t *from, size_t n)
{
	const struct sig_plan *p = s->plan;

	if (data % p->in.block == 0)
		s->guard[0] = p->in.start;
	if (data % p->out.block == 0)
		s->guard[1] = p->out.start;
	if (p->first)
		s->guard[p->first_reg] = p->first->update(s->guard[p->first_reg], from, n);
	if (p->second)
		s->guard[1] = p->second->update(s->guard[1], from, n);
}

/* Called when the guards have seen the data before the marks. */
static void stream_primed(struct sig_stream *s)
{
	const struct sig_plan *p = s->plan;

	if (in_signature(&s->out, &p->out))
		s->out_word = frame_word(&p->out, s->out.block, s->guard[p->out_reg]);
	/* The guard contains nothing of a unit that has not begun. */
	if (!s->in.at && p->in.guard)
		s->guard[0] = p->in.start;
	if (!s->out.at && p->out.guard)
		s->guard[1] = p->out.start;
	/* If an earlier transfer brought bytes of the input's signature, they are not in memory. */
	s->blind = s->in.at > p->in.block;
}

bool sig_stream_prime(struct sig_stream *s, struct sig_cursor *memory)
{
	const struct sig_plan *p = s->plan;
	const struct sig_frame *m = memory_frame(p);
	uint64_t place = sig_stream_at(s, SIG_MEMORY) - s->lead;

	if (!s->lead)
		return true;
	while (s->lead) {
		uint64_t at = m->guard ? place % m->unit : place;
		const uint8_t *from;
		uint64_t n = min_u64(s->lead, sig_cursor_left(memory));

		if (!n)
			return false;
		from = sig_cursor_at(memory);
		if (at < m->block) {
			uint64_t data = place - (m->guard ? place / m->unit * m->bytes : 0);

			n = min_u64(n, m->block - at);
			n = min_u64(n, p->in.block - data % p->in.block);
			n = min_u64(n, p->out.block - data % p->out.block);
			/* dropped bytes do not exist, so nobody can sum them up */
			if (from != RUN_DISCARD)
				lead_update(s, data, from, n);
		} else {
			n = min_u64(n, m->unit - at);
			if (p->direction == SIG_GATHER && from != RUN_DISCARD)
				s->in_word = word_append(s->in_word, at - m->block, from, n);
		}
		place += n;
		s->lead -= n;
		sig_cursor_advance(memory, n);
	}
	stream_primed(s);
	return true;
}

/* How many bytes of the output's signature are known. */
static uint64_t stream_known(const struct sig_stream *s)
{
	const struct sig_frame *in = &s->plan->in;

	/* The input can be ahead by one unit at most, because more data waits for the output. */
	if (!s->plan->lockstep || s->in.block > s->out.block)
		return s->plan->out.unit;
	return s->in.at > in->block ? s->in.at : in->block;
}

static bool stream_emit(struct sig_stream *s, struct sig_cursor *to)
{
	const struct sig_plan *p = s->plan;
	uint64_t done;
	uint64_t word;
	uint64_t n;

	if (!p->out.guard || s->out.at < p->out.block)
		return false;
	n = min_u64(stream_known(s) - s->out.at, sig_cursor_left(to));
	if (!n)
		return false;
	done = s->out.at - p->out.block;
	word = (s->out_word & ~p->copy) | (s->in_word & p->copy);
	if (sig_cursor_at(to) != RUN_DISCARD)
		word_store(sig_cursor_at(to), word << 8 * done, n);
	sig_cursor_advance(to, n);
	s->out.at += n;
	if (s->out.at == p->out.unit && !p->out.transaction) {
		s->out = (struct sig_mark){s->out.block + 1, 0};
		s->guard[1] = p->out.start;
	}
	return true;
}

static bool stream_collect(struct sig_stream *s, struct sig_cursor *from)
{
	const struct sig_plan *p = s->plan;
	uint64_t n;

	if (!p->in.guard || s->in.at < p->in.block)
		return false;
	n = min_u64(p->in.unit - s->in.at, sig_cursor_left(from));
	if (!n)
		return false;
	s->in_word = word_append(s->in_word, s->in.at - p->in.block, sig_cursor_at(from), n);
	sig_cursor_advance(from, n);
	s->in.at += n;
	if (s->in.at < p->in.unit)
		return true;
	if (p->check && !s->blind)
		unit_check(s, s->in.block, s->in_word, p->in.guard->seal(s->guard[0]));
	s->blind = false;
	if (p->in.transaction)
		return true;
	s->in = (struct sig_mark){s->in.block + 1, 0};
	s->guard[0] = p->in.start;
	return true;
}

static bool stream_data(struct sig_stream *s, struct sig_cursor *from, struct sig_cursor *to)
{
	const struct sig_plan *p = s->plan;
	uint64_t n;

	if (s->in.at >= p->in.block || s->out.at >= p->out.block)
		return false;
	n = min_u64(sig_cursor_left(from), sig_cursor_left(to));
	n = min_u64(n, p->in.block - s->in.at);
	n = min_u64(n, p->out.block - s->out.at);
	if (!n)
		return false;
	unit_data(p, s->guard, sig_cursor_at(to), sig_cursor_at(from), n);
	sig_cursor_advance(from, n);
	sig_cursor_advance(to, n);
	s->in.at += n;
	s->out.at += n;
	if (p->out.guard && s->out.at == p->out.block)
		s->out_word = frame_word(&p->out, s->out.block, s->guard[p->out_reg]);
	return true;
}

static bool whole_units(struct sig_stream *s, struct sig_cursor *from, struct sig_cursor *to)
{
	const struct sig_plan *p = s->plan;
	const struct sig_frame *f = p->in.guard ? &p->in : &p->out;
	uint64_t in_unit = f->block + p->in.bytes;
	uint64_t out_unit = f->block + p->out.bytes;
	uint64_t in_left = sig_cursor_left(from);
	uint64_t out_left = sig_cursor_left(to);
	uint64_t n;

	if ((p->in.guard && s->in.at) || (p->out.guard && s->out.at))
		return false;
	if (!in_unit || !out_unit || in_left < in_unit || out_left < out_unit ||
	    sig_cursor_at(to) == RUN_DISCARD)
		return false;
	n = min_u64(in_left / in_unit, out_left / out_unit);
	unit_run(s, sig_cursor_at(to), sig_cursor_at(from), n);
	sig_cursor_advance(from, n * in_unit);
	sig_cursor_advance(to, n * out_unit);
	return true;
}

void sig_stream_feed(struct sig_stream *s, struct sig_cursor *from, struct sig_cursor *to)
{
	const struct sig_plan *p = s->plan;
	bool short_way = p->coincide && (p->in.guard || p->out.guard);

	while ((short_way && whole_units(s, from, to)) || stream_emit(s, to) ||
	       stream_collect(s, from) || stream_data(s, from, to))
		;
}

bool sig_stream_summed(const struct sig_stream *s, enum sig_side side, uint64_t *reg)
{
	const struct sig_plan *p = s->plan;
	bool in = p->in.side == side;
	const struct sig_frame *f = in ? &p->in : &p->out;

	if (!f->transaction || (in ? s->in.at : s->out.at) < f->block)
		return false;
	*reg = s->guard[in ? 0 : p->out_reg];
	return true;
}

const struct sig_error *sig_stream_finish(const struct sig_stream *s)
{
	return s->errors ? &s->error : NULL;
}
