// SPDX-License-Identifier: BSD-2-Clause
/*
 * Begins a stream inside a unit.  The marks follow from the offset alone; the guards need the data
 * that lies before it in memory.
 */
#include "adapter/sig/unit.h"

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
