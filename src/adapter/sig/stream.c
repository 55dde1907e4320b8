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
#include "adapter/sig/unit.h"

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
