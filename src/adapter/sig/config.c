// SPDX-License-Identifier: BSD-2-Clause
/* Makes a configuration of a BSF, or refuses it. */
#include <string.h>

#include "adapter/sig/domain.h"
#include "prm/bsf.h"

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
