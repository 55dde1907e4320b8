// SPDX-License-Identifier: BSD-2-Clause
/* Configurations: each is made of a BSF or refused, and planned for either direction. */
#include "adapter/sig/sig.h"
#include "prm/bsf.h"

#include <string.h>

static const char *const refusal_names[SIG_REFUSALS] = {
	[SIG_ACCEPTED] = "accepted",
	[SIG_REFUSED_TRUNCATED] = "the BSF is shorter than it says",
	[SIG_REFUSED_CRYPTO] = "encryption",
	[SIG_REFUSED_TRANSACTION] = "an unknown or missing format of a transaction signature",
	[SIG_REFUSED_PROLOGUE] =
		"a prologue, an epilogue or unknown flags of a transaction signature",
	[SIG_REFUSED_NO_DATA] = "a transaction signature over no bytes",
	[SIG_REFUSED_MIXED] = "block signatures together with a transaction signature",
	[SIG_REFUSED_FORMAT] = "an unknown block format",
	[SIG_REFUSED_GUARD] = "an unknown kind of guard",
	[SIG_REFUSED_AMBIGUOUS] = "two signatures in one domain",
	[SIG_REFUSED_ONCE] = "a block format that is not repeated",
	[SIG_REFUSED_INVERTED] = "an inverted signature",
	[SIG_REFUSED_BLOCK_SIZE] = "the block size",
	[SIG_REFUSED_BLOCK_ALIGN] = "T10-DIF blocks that are not multiples of 8 bytes",
	[SIG_REFUSED_STRUCTURE] = "domains that differ in structure although said to be equal",
};

const char *sig_refusal_name(enum sig_refusal r)
{
	return (unsigned)r < SIG_REFUSALS ? refusal_names[r] : "?";
}

static const uint32_t block_bytes[] = {
	[BSF_BLOCK_512] = 512,	 [BSF_BLOCK_520] = 520,	   [BSF_BLOCK_4096] = 4096,
	[BSF_BLOCK_4160] = 4160, [BSF_BLOCK_1M] = 1 << 20, [BSF_BLOCK_4048] = 4048,
};

static const size_t size_bytes[] = {
	[BSF_SIZE_BASIC] = 16,
	[BSF_SIZE_EXTENDED] = 32,
	[BSF_SIZE_INLINE] = 64,
	[BSF_SIZE_WITH_CRYPTO] = 128,
};

static const struct {
	uint32_t format;
	enum sig_type type;
} crc_formats[] = {
	{BSF_FORMAT_CRC32, SIG_CRC32},
	{BSF_FORMAT_CRC32C, SIG_CRC32C},
	{BSF_FORMAT_CRC64_XP10, SIG_CRC64_XP10},
};

static enum sig_refusal decode_crc(uint32_t format, struct sig_domain *d)
{
	uint32_t which = format & ~(BSF_FORMAT_REPEAT | BSF_FORMAT_SEED_ZERO);

	for (size_t i = 0; i < array_size(crc_formats); i++)
		if (crc_formats[i].format == which)
			d->type = crc_formats[i].type;
	if (d->type == SIG_NONE)
		return SIG_REFUSED_FORMAT;
	d->seed_ones = !(format & BSF_FORMAT_SEED_ZERO);
	return format & BSF_FORMAT_REPEAT ? SIG_ACCEPTED : SIG_REFUSED_ONCE;
}

static enum sig_refusal decode_t10dif(const uint8_t *bsf, enum bsf_domain from,
				      struct sig_domain *d)
{
	switch (bsf_domain_get(bsf, from, BSF_INL_GUARD)) {
	case BSF_GUARD_CRC:
		d->type = SIG_T10DIF_CRC;
		break;
	case BSF_GUARD_CSUM:
		d->type = SIG_T10DIF_CSUM;
		break;
	default:
		return SIG_REFUSED_GUARD;
	}
	if (!bsf_domain_get(bsf, from, BSF_INL_REPEAT))
		return SIG_REFUSED_ONCE;
	if (bsf_domain_get(bsf, from, BSF_INL_INVERT))
		return SIG_REFUSED_INVERTED;
	d->seed_ones = bsf_domain_get(bsf, from, BSF_INL_SEED_ONES);
	d->app_tag = (uint16_t)bsf_domain_get(bsf, from, BSF_INL_APP_TAG);
	d->app_mask = (uint16_t)bsf_domain_get(bsf, from, BSF_INL_APP_MASK);
	d->ref_tag = bsf_domain_get(bsf, from, BSF_INL_REF_TAG);
	d->ref_increment = bsf_domain_get(bsf, from, BSF_INL_REF_INCREMENT);
	/* With both flags the narrower escape counts, as in libmlx5. */
	if (bsf_domain_get(bsf, from, BSF_INL_APP_REF_ESCAPE))
		d->escape = SIG_ESCAPE_APP_REF;
	else if (bsf_domain_get(bsf, from, BSF_INL_APP_ESCAPE))
		d->escape = SIG_ESCAPE_APP;
	return SIG_ACCEPTED;
}

static enum sig_refusal decode_domain(const uint8_t *bsf, enum bsf_domain from, uint32_t selector,
				      struct sig_domain *d)
{
	uint32_t format = bsf_domain_get(bsf, from, BSF_FORMAT);
	bool valid = bsf_domain_get(bsf, from, BSF_INL_VALID);
	enum sig_refusal r = SIG_ACCEPTED;

	if (format && valid)
		return SIG_REFUSED_AMBIGUOUS;
	if (format)
		r = decode_crc(format, d);
	else if (valid)
		r = decode_t10dif(bsf, from, d);
	if (r)
		return r;
	if (selector >= array_size(block_bytes) || !selector != (d->type == SIG_NONE))
		return SIG_REFUSED_BLOCK_SIZE;
	d->block = block_bytes[selector];
	d->psv = bsf_domain_get(bsf, from, BSF_PSV);
	return SIG_ACCEPTED;
}

static enum sig_refusal decode_transaction(const uint8_t *bsf, enum bsf_domain from,
					   struct sig_domain *d)
{
	uint32_t format = bsf_domain_get(bsf, from, BSF_TRANSACTION_FORMAT);
	uint32_t psv = bsf_domain_get(bsf, from, BSF_TRANSACTION_PSV);
	bool first = bsf_domain_get(bsf, from, BSF_TRANSACTION_INIT);
	bool last = bsf_domain_get(bsf, from, BSF_TRANSACTION_CHECK_GEN);

	if (!format && !psv && !first && !last)
		return SIG_ACCEPTED;
	if ((format & ~BSF_FORMAT_SEED_ZERO) != BSF_FORMAT_CRC32C)
		return SIG_REFUSED_TRANSACTION;
	if (d->type != SIG_NONE)
		return SIG_REFUSED_MIXED;
	*d = (struct sig_domain){
		.type = SIG_CRC32C,
		.block = bsf_get(bsf, BSF_RAW_DATA_BYTES),
		.seed_ones = !(format & BSF_FORMAT_SEED_ZERO),
		.transaction = true,
		.first = first,
		.last = last,
		.psv = psv,
	};
	return SIG_ACCEPTED;
}

/* Decodes the extension of a BSF whose domains are decoded so far. */
static enum sig_refusal decode_extension(const uint8_t *bsf, struct sig_config *out)
{
	enum sig_refusal r;

	if (bsf_get(bsf, BSF_EXT_FLAGS) & ~BSF_EXT_INIT_CHECK_GEN || bsf_get(bsf, BSF_EXT_EPILOGUE))
		return SIG_REFUSED_PROLOGUE;
	r = decode_transaction(bsf, BSF_MEMORY, &out->side[SIG_MEMORY]);
	return r ? r : decode_transaction(bsf, BSF_WIRE, &out->side[SIG_WIRE]);
}

enum sig_refusal sig_config_decode(const uint8_t *given, size_t bytes, struct sig_config *out)
{
	uint8_t bsf[BSF_BYTES] = {0}; /* absent parts are zero */
	enum sig_refusal r;
	uint32_t selector;
	size_t size;

	memset(out, 0, sizeof(*out));
	if (!bytes)
		return SIG_REFUSED_TRUNCATED;
	bsf[0] = given[0];
	if (bsf_get(bsf, BSF_TYPE) != BSF_TYPE_SIGNATURE ||
	    bsf_get(bsf, BSF_SIZE) == BSF_SIZE_WITH_CRYPTO)
		return SIG_REFUSED_CRYPTO;
	size = size_bytes[bsf_get(bsf, BSF_SIZE)];
	if (bytes < size)
		return SIG_REFUSED_TRUNCATED;
	memcpy(bsf, given, size);

	out->check_mask = (uint8_t)bsf_get(bsf, BSF_CHECK_MASK);
	out->data_bytes = bsf_get(bsf, BSF_RAW_DATA_BYTES);
	out->same_structure = bsf_get(bsf, BSF_SAME_STRUCTURE);
	selector = bsf_get(bsf, BSF_MEMORY_BLOCK);
	r = decode_domain(bsf, BSF_MEMORY, selector, &out->side[SIG_MEMORY]);
	if (r)
		return r;
	if (out->same_structure)
		out->copy_mask = (uint8_t)bsf_get(bsf, BSF_COPY_MASK);
	else
		selector = bsf_get(bsf, BSF_WIRE_BLOCK);
	r = decode_domain(bsf, BSF_WIRE, selector, &out->side[SIG_WIRE]);
	/* If both sides have the same structure, the error is the missing signature and not its
	 * size. */
	if (r == SIG_REFUSED_BLOCK_SIZE && out->same_structure)
		r = SIG_REFUSED_STRUCTURE;
	if (!r)
		r = decode_extension(bsf, out);
	return r ? r : sig_config_check(out);
}

static bool is_t10dif(enum sig_type t)
{
	return t == SIG_T10DIF_CRC || t == SIG_T10DIF_CSUM;
}

/* What holds for a domain with a transaction signature and its neighbour. */
static enum sig_refusal check_transaction(const struct sig_config *c, const struct sig_domain *d,
					  const struct sig_domain *other)
{
	if (d->type != SIG_CRC32C)
		return SIG_REFUSED_TRANSACTION;
	if (!d->block)
		return SIG_REFUSED_NO_DATA;
	if (other->type != SIG_NONE && !other->transaction)
		return SIG_REFUSED_MIXED;
	/* bytes can be copied only between block signatures */
	return c->same_structure ? SIG_REFUSED_STRUCTURE : SIG_ACCEPTED;
}

enum sig_refusal sig_config_check(const struct sig_config *c)
{
	const struct sig_domain *w = &c->side[SIG_WIRE];
	const struct sig_domain *m = &c->side[SIG_MEMORY];

	for (int i = 0; i < SIG_SIDES; i++) {
		const struct sig_domain *d = &c->side[i];

		if ((unsigned)d->type >= SIG_TYPES)
			return SIG_REFUSED_FORMAT;
		if (d->transaction) {
			enum sig_refusal r = check_transaction(c, d, &c->side[!i]);

			if (r)
				return r;
			continue;
		}
		if (!d->block != (d->type == SIG_NONE) || d->block > SIG_BLOCK_MAX)
			return SIG_REFUSED_BLOCK_SIZE;
		if (is_t10dif(d->type) && d->block % 8)
			return SIG_REFUSED_BLOCK_ALIGN;
	}
	if (!c->same_structure)
		return c->copy_mask ? SIG_REFUSED_STRUCTURE : SIG_ACCEPTED;
	/* The guards of T10-DIF may differ, because its parts are copied one by one. */
	if (m->block != w->block || m->type == SIG_NONE ||
	    (m->type != w->type && !(is_t10dif(m->type) && is_t10dif(w->type))))
		return SIG_REFUSED_STRUCTURE;
	return SIG_ACCEPTED;
}

uint64_t sig_transient(const struct sig_domain *d)
{
	switch (d->type) {
	case SIG_T10DIF_CRC:
	case SIG_T10DIF_CSUM:
		return (d->seed_ones ? 0xffffull << 48 : 0) | (uint64_t)d->app_tag << 32 |
		       d->ref_tag;
	case SIG_CRC32:
	case SIG_CRC32C:
		return d->seed_ones ? 0xffffffffull << 32 : 0;
	case SIG_CRC64_XP10:
		return d->seed_ones ? UINT64_MAX : 0;
	default:
		return 0;
	}
}

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
