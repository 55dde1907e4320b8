// SPDX-License-Identifier: BSD-2-Clause
/* See plan.h. */
#include "adapter/sig/plan.h"

#include <string.h>

#define APP_BITS 0x0000ffff00000000u
#define REF_BITS 0x00000000ffffffffu

static void frame_make(struct sig_frame *f, const struct sig_domain *d, enum sig_side side)
{
	memset(f, 0, sizeof(*f));
	f->side = side;
	f->type = d->type;
	f->guard = sig_guard(d->type);
	if (!f->guard) {
		f->block = f->unit = UINT64_MAX;
		return;
	}
	f->transaction = d->transaction;
	f->first = d->first;
	f->bytes = f->transaction && !d->last ? 0 : f->guard->bytes;
	f->block = d->block;
	f->unit = f->block + f->bytes;
	f->start = f->guard->start[d->seed_ones];
	if (d->type != SIG_T10DIF_CRC && d->type != SIG_T10DIF_CSUM)
		return;
	f->app = (uint64_t)d->app_tag << 32;
	f->ref = d->ref_tag;
	f->ref_step = d->ref_increment;
}

/* Expands a mask with one bit for each byte of the stream, first byte on top, to the bits of a
 * word. */
static uint64_t plan_spread(uint8_t mask)
{
	uint64_t word = 0;

	for (unsigned i = 0; i < 8; i++)
		if (mask & 1u << i)
			word |= 0xffull << 8 * i;
	return word;
}

static uint64_t word_bits(const struct sig_frame *f)
{
	return f->bytes ? UINT64_MAX << 8 * (8 - f->bytes) : 0;
}

static uint64_t escape_bits(const struct sig_domain *d)
{
	static const uint64_t bits[] = {
		[SIG_ESCAPE_NONE] = 0,
		[SIG_ESCAPE_APP] = APP_BITS,
		[SIG_ESCAPE_APP_REF] = APP_BITS | REF_BITS,
	};

	return d->type == SIG_T10DIF_CRC || d->type == SIG_T10DIF_CSUM ? bits[d->escape] : 0;
}

static bool same_guard(const struct sig_frame *a, const struct sig_frame *b)
{
	/* transaction signatures may begin with different registers of their PSVs */
	return !a->transaction && a->guard == b->guard && a->start == b->start &&
	       a->block == b->block;
}

void sig_plan_make(struct sig_plan *p, const struct sig_config *c, enum sig_direction d)
{
	enum sig_side from = d == SIG_GATHER ? SIG_MEMORY : SIG_WIRE;
	enum sig_side to = d == SIG_GATHER ? SIG_WIRE : SIG_MEMORY;
	const struct sig_domain *in = &c->side[from];
	bool sum_in;
	bool sum_out;

	memset(p, 0, sizeof(*p));
	p->direction = d;
	frame_make(&p->in, in, from);
	frame_make(&p->out, &c->side[to], to);
	p->check = plan_spread(c->check_mask) & word_bits(&p->in);
	if (in->type == SIG_T10DIF_CRC || in->type == SIG_T10DIF_CSUM)
		p->check &= ~APP_BITS | (uint64_t)in->app_mask << 32;
	p->copy = plan_spread(c->copy_mask) & word_bits(&p->out);
	p->escape = escape_bits(in);
	p->lockstep = c->same_structure;
	p->transaction = p->in.transaction || p->out.transaction;
	p->coincide =
		!p->transaction && (p->in.block == p->out.block || !p->in.guard || !p->out.guard);

	/* The PSV carries the sum of a transaction even if nothing is compared here. */
	sum_in = p->in.guard && (p->in.transaction || p->check & p->in.guard->bits);
	sum_out = p->out.guard && ~p->copy & p->out.guard->bits;
	p->out_reg = !(sum_in && sum_out && same_guard(&p->in, &p->out));
	p->first = sum_in ? p->in.guard : sum_out ? p->out.guard : NULL;
	p->first_reg = !sum_in;
	if (sum_in && sum_out && p->out_reg)
		p->second = p->out.guard;
}

uint64_t sig_place(const struct sig_plan *p, uint64_t wire_offset)
{
	const struct sig_frame *w = p->in.side == SIG_WIRE ? &p->in : &p->out;
	const struct sig_frame *m = p->in.side == SIG_WIRE ? &p->out : &p->in;
	uint64_t units = wire_offset / w->unit;
	uint64_t rest = wire_offset % w->unit;
	uint64_t data;
	uint64_t signatures;
	uint64_t place;

	if (p->lockstep && p->direction == SIG_SCATTER)
		return wire_offset;
	data = w->guard ? units * w->block + min_u64(rest, w->block) : wire_offset;
	if ((w->transaction && wire_offset > w->unit) || (m->transaction && data > m->block))
		return UINT64_MAX;
	/* A wire offset may be anything up to 2^64, so the place may overflow. */
	if (__builtin_mul_overflow(data / m->block, m->bytes, &signatures) ||
	    __builtin_add_overflow(data, signatures, &place))
		return UINT64_MAX;
	return place;
}
