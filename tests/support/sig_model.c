// SPDX-License-Identifier: BSD-2-Clause
/* See sig_model.h. */
#include "sig_model.h"

#include <string.h>

#include "check.h"

struct crc {
	unsigned width;
	uint64_t polynomial;
	bool reflected; /* and then stored little-endian */
	bool inverted;
};

static uint64_t crc_bits(const struct crc *c, bool ones, const uint8_t *data, uint64_t n)
{
	uint64_t top = 1ull << (c->width - 1);
	uint64_t all = top | (top - 1);
	uint64_t reg = ones ? all : 0;
	uint64_t reversed = 0;

	for (uint64_t i = 0; i < n * 8; i++) {
		unsigned place = c->reflected ? i % 8 : 7 - i % 8;
		bool bit = data[i / 8] >> place & 1;
		bool carry = !!(reg & top) != bit;

		reg = reg << 1 & all;
		if (carry)
			reg ^= c->polynomial;
	}
	if (c->inverted)
		reg ^= all;
	if (!c->reflected)
		return reg;
	for (unsigned i = 0; i < c->width; i++)
		if (reg >> i & 1)
			reversed |= top >> i;
	return reversed;
}

static uint16_t t10dif_checksum(bool ones, const uint8_t *data, uint64_t n)
{
	uint32_t sum = ones ? 0xffff : 0;

	for (uint64_t i = 0; i < n; i++) {
		sum += i % 2 ? data[i] : (uint32_t)data[i] << 8;
		if (sum > 0xffff)
			sum -= 0xffff;
	}
	return (uint16_t)~sum;
}

static void store_number(uint8_t *out, uint64_t value, unsigned bytes, bool little)
{
	for (unsigned i = 0; i < bytes; i++)
		out[i] = (uint8_t)(value >> 8 * (little ? i : bytes - 1 - i));
}

static bool is_t10dif(enum sig_type t)
{
	return t == SIG_T10DIF_CRC || t == SIG_T10DIF_CSUM;
}

uint32_t model_signature(const struct sig_domain *d, uint64_t block, const uint8_t *data,
			 uint64_t n, uint8_t out[8])
{
	static const struct crc t10dif = {16, 0x8bb7, false, false};
	static const struct crc crc32 = {32, 0x04c11db7, false, true};
	static const struct crc crc32c = {32, 0x1edc6f41, true, true};
	static const struct crc xp10 = {64, 0xad93d23594c93659, true, true};

	memset(out, 0, 8);
	switch (d->type) {
	case SIG_T10DIF_CRC:
		store_number(out, crc_bits(&t10dif, d->seed_ones, data, n), 2, false);
		break;
	case SIG_T10DIF_CSUM:
		store_number(out, t10dif_checksum(d->seed_ones, data, n), 2, false);
		break;
	case SIG_CRC32:
		store_number(out, crc_bits(&crc32, d->seed_ones, data, n), 4, false);
		return 4;
	case SIG_CRC32C:
		store_number(out, crc_bits(&crc32c, d->seed_ones, data, n), 4, true);
		return 4;
	case SIG_CRC64_XP10:
		store_number(out, crc_bits(&xp10, d->seed_ones, data, n), 8, true);
		return 8;
	default:
		return 0;
	}
	store_number(out + 2, d->app_tag, 2, false);
	store_number(out + 4, d->ref_tag + (d->ref_increment ? block : 0), 4, false);
	return 8;
}

static uint32_t bytes_of(const struct sig_domain *d)
{
	uint8_t scratch[8] = {0};

	return model_signature(d, 0, scratch, 0, scratch);
}

uint64_t model_data_bytes(const struct sig_config *c, uint64_t wire)
{
	const struct sig_domain *w = &c->side[SIG_WIRE];
	uint64_t unit = (uint64_t)w->block + bytes_of(w);

	if (w->type == SIG_NONE)
		return wire;
	return wire / unit * w->block + (wire % unit < w->block ? wire % unit : w->block);
}

uint64_t model_memory_bytes(const struct sig_config *c, enum sig_direction dir, uint64_t wire)
{
	const struct sig_domain *m = &c->side[SIG_MEMORY];
	uint64_t data = model_data_bytes(c, wire);

	/* Into memory a signature of which bytes may be copied comes as far as it has come. */
	if (dir == SIG_SCATTER && c->same_structure)
		return wire;
	return m->type == SIG_NONE ? data : data + data / m->block * bytes_of(m);
}

/* Bytes first to last of the signature, by the mask: 1 << 7 is the first. */
static bool bytes_differ(const uint8_t *a, const uint8_t *b, unsigned first, unsigned last,
			 uint8_t mask, const uint8_t *bits)
{
	for (unsigned i = first; i <= last; i++)
		if (mask & 0x80u >> i && (a[i] ^ b[i]) & bits[i])
			return true;
	return false;
}

static bool is_escaped(const struct sig_domain *d, const uint8_t *found)
{
	bool app = found[2] == 0xff && found[3] == 0xff;
	bool ref = found[4] == 0xff && found[5] == 0xff && found[6] == 0xff && found[7] == 0xff;

	if (!is_t10dif(d->type) || d->escape == SIG_ESCAPE_NONE)
		return false;
	return d->escape == SIG_ESCAPE_APP ? app : app && ref;
}

static void check_block(const struct sig_config *c, const struct sig_domain *d, uint64_t block,
			const uint8_t *data, const uint8_t *field, struct model_result *r)
{
	uint8_t bits[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	uint32_t guard_bytes = is_t10dif(d->type) ? 2 : bytes_of(d);
	enum sig_error_kind kind = SIG_NO_ERROR;
	struct model_error *e;
	uint8_t computed[8];
	uint32_t n = model_signature(d, block, data, d->block, computed);

	if (is_escaped(d, field))
		return;
	if (bytes_differ(field, computed, 0, guard_bytes - 1, c->check_mask, bits))
		kind = SIG_BAD_GUARD;
	if (is_t10dif(d->type) && kind == SIG_NO_ERROR) {
		bits[2] = (uint8_t)(d->app_mask >> 8);
		bits[3] = (uint8_t)d->app_mask;
		if (bytes_differ(field, computed, 2, 3, c->check_mask, bits))
			kind = SIG_BAD_APP_TAG;
		else if (bytes_differ(field, computed, 4, 7, c->check_mask, bits))
			kind = SIG_BAD_REF_TAG;
	}
	if (kind == SIG_NO_ERROR)
		return;
	CHECK(r->errors < MODEL_ERRORS);
	e = &r->error[r->errors++];
	e->kind = kind;
	e->block = block;
	memset(e->found, 0, 8);
	memcpy(e->found, field, n);
	memcpy(e->computed, computed, 8);
	/* A guard that is not checked is not computed. */
	for (unsigned i = 0; i < guard_bytes; i++)
		if (c->check_mask & 0x80u >> i)
			return;
	memcpy(e->computed, e->found, guard_bytes);
}

void model_transfer(const struct sig_config *c, enum sig_direction dir, uint64_t wire,
		    const uint8_t *in, uint8_t *out, struct model_result *r)
{
	const struct sig_domain *from = &c->side[dir == SIG_GATHER ? SIG_MEMORY : SIG_WIRE];
	const struct sig_domain *to = &c->side[dir == SIG_GATHER ? SIG_WIRE : SIG_MEMORY];
	uint64_t n = model_data_bytes(c, wire);
	uint64_t in_bytes;
	uint64_t out_bytes;
	uint8_t *data = malloc(n + 1);
	uint64_t at = 0;
	uint64_t put = 0;

	CHECK(data);
	memset(r, 0, sizeof(*r));
	r->memory_bytes = model_memory_bytes(c, dir, wire);
	in_bytes = dir == SIG_GATHER ? r->memory_bytes : wire;
	out_bytes = dir == SIG_GATHER ? wire : r->memory_bytes;

	/* The data alone, and the errors. */
	for (uint64_t i = 0; i < n; i++) {
		data[i] = in[at++];
		if (from->type == SIG_NONE || (i + 1) % from->block)
			continue;
		if (at + bytes_of(from) <= in_bytes)
			check_block(c, from, i / from->block, data + i + 1 - from->block, in + at,
				    r);
		at += bytes_of(from);
	}
	/* The other side's stream, which may end in a signature. */
	for (uint64_t i = 0; i < n; i++) {
		uint8_t made[8];
		uint64_t block = i / (to->type == SIG_NONE ? 1 : to->block);

		out[put++] = data[i];
		if (to->type == SIG_NONE || (i + 1) % to->block)
			continue;
		model_signature(to, block, data + i + 1 - to->block, to->block, made);
		for (unsigned k = 0; k < bytes_of(to) && put < out_bytes; k++) {
			bool copied = c->copy_mask & 0x80u >> k;

			out[put] = copied ? in[put] : made[k]; /* of the same structure */
			put++;
		}
	}
	CHECK(put == out_bytes);
	r->out_bytes = put;
	free(data);
}
