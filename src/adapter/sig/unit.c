// SPDX-License-Identifier: BSD-2-Clause
/* See unit.h. */
#include "adapter/sig/unit.h"

static enum sig_error_kind unit_kind_of(const struct sig_plan *p, uint64_t diff)
{
	if (diff & p->in.guard->bits)
		return SIG_BAD_GUARD;
	return diff >> 32 ? SIG_BAD_APP_TAG : SIG_BAD_REF_TAG;
}

__attribute__((cold)) void unit_mismatch(struct sig_stream *s, uint64_t block, uint64_t found,
					 uint64_t computed, uint64_t diff)
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

void unit_data(const struct sig_plan *p, uint64_t reg[2], uint8_t *to, const uint8_t *from,
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
