// SPDX-License-Identifier: BSD-2-Clause
/* Makes random cases; see random.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "random.h"
#include "check.h"

struct dice {
	struct rng rng;
};

static bool random_maybe(struct dice *d, unsigned percent)
{
	return rng_below(&d->rng, 100) < percent;
}

static uint32_t random_below(struct dice *d, uint32_t n)
{
	return (uint32_t)rng_below(&d->rng, n);
}

uint32_t sig_size(enum sig_type t)
{
	return t == SIG_NONE ? 0 : t == SIG_CRC32 || t == SIG_CRC32C ? 4 : 8;
}

/* Now and then the values at which something happens. */
static uint32_t random_tag(struct dice *d, uint32_t all)
{
	switch (random_below(d, 6)) {
	case 0:
		return 0;
	case 1:
		return all;
	case 2:
		return all - random_below(d, 3);
	default:
		return (uint32_t)rng_next(&d->rng) & all;
	}
}

static uint8_t random_mask(struct dice *d)
{
	static const uint8_t usual[] = {0xff, 0xff, 0xf0, 0xc0, 0x30, 0x0f, 0xcf, 0x3f, 0};

	return random_maybe(d, 60) ? usual[random_below(d, sizeof(usual))]
				   : (uint8_t)rng_next(&d->rng);
}

static void random_domain(struct dice *d, struct domain *out)
{
	memset(out, 0, sizeof(*out));
	out->type = random_below(d, SIGNATURES);
	if (out->type == NO_SIGNATURE)
		return;
	out->size = random_maybe(d, 50)
			    ? MLX5DV_BLOCK_SIZE_512
			    : (enum mlx5dv_block_size)random_below(d, MLX5DV_BLOCK_SIZE_4160 + 1);
	out->ones = random_maybe(d, 50);
	if (!reference_is_dif(out->type))
		return;
	out->app = (uint16_t)random_tag(d, 0xffff);
	out->ref = random_tag(d, UINT32_MAX);
	out->flags = (uint16_t)random_below(d, 8);
}

/* Domains that agree more or less. */
static void nearly_domain(struct dice *d, const struct domain *a, struct domain *b)
{
	*b = *a;
	if (random_maybe(d, 30))
		b->ones = !b->ones;
	if (random_maybe(d, 30))
		b->ref = random_tag(d, UINT32_MAX);
	if (random_maybe(d, 30))
		b->app = (uint16_t)random_tag(d, 0xffff);
	if (random_maybe(d, 30) && reference_is_dif(a->type))
		b->type = DIF_CRC + DIF_CSUM - a->type;
}

/* As libmlx5 decides it: type and block size agree, and of CRCs the kind of CRC. */
static bool same_structure(const struct domain *m, const struct domain *w)
{
	if (m->type == NO_SIGNATURE || w->type == NO_SIGNATURE || m->size != w->size)
		return false;
	return m->type == w->type || (reference_is_dif(m->type) && reference_is_dif(w->type));
}

static uint8_t usual_copy_mask(const struct domain *m, const struct domain *w)
{
	if (!reference_is_dif(m->type))
		return reference_mask(m->type);
	return (m->type == w->type && m->ones == w->ones ? MLX5DV_SIG_MASK_T10DIF_GUARD : 0) |
	       (m->app == w->app ? MLX5DV_SIG_MASK_T10DIF_APPTAG : 0) |
	       (m->ref == w->ref ? MLX5DV_SIG_MASK_T10DIF_REFTAG : 0);
}

static void for_model(const struct domain *d, struct sig_domain *out)
{
	static const enum sig_type types[SIGNATURES] = {
		[NO_SIGNATURE] = SIG_NONE, [DIF_CRC] = SIG_T10DIF_CRC, [DIF_CSUM] = SIG_T10DIF_CSUM,
		[CRC32] = SIG_CRC32,	   [CRC32C] = SIG_CRC32C,      [CRC64] = SIG_CRC64_XP10,
	};

	*out = (struct sig_domain){.type = types[d->type]};
	if (d->type == NO_SIGNATURE)
		return;
	out->block = reference_block(d->size);
	out->seed_ones = d->ones;
	out->ref_increment = d->flags & MLX5DV_SIG_T10DIF_FLAG_REF_REMAP;
	/* Of both flags the library hands on the second. */
	if (d->flags & MLX5DV_SIG_T10DIF_FLAG_APP_REF_ESCAPE)
		out->escape = SIG_ESCAPE_APP_REF;
	else if (d->flags & MLX5DV_SIG_T10DIF_FLAG_APP_ESCAPE)
		out->escape = SIG_ESCAPE_APP;
	out->app_tag = d->app;
	out->app_mask = 0xffff;
	out->ref_tag = d->ref;
}

static void random_signatures(struct dice *d, struct random_case *c)
{
	struct key_conf *k = &c->conf;

	do {
		random_domain(d, &k->mem);
		random_domain(d, &k->wire);
		if (random_maybe(d, 40))
			nearly_domain(d, &k->mem, &k->wire);
	} while (k->mem.type == NO_SIGNATURE && k->wire.type == NO_SIGNATURE);
	k->set_signature = true;
	k->check_mask = random_mask(d);
	k->copy_mask = random_mask(d);
	c->config = (struct sig_config){.check_mask = k->check_mask, .data_bytes = UINT32_MAX};
	for_model(&k->mem, &c->config.side[SIG_MEMORY]);
	for_model(&k->wire, &c->config.side[SIG_WIRE]);
	if (!same_structure(&k->mem, &k->wire))
		return;
	c->config.same_structure = true;
	c->config.copy_mask = usual_copy_mask(&k->mem, &k->wire);
	if (random_maybe(d, 40)) {
		k->sig_flags = MLX5DV_SIG_BLOCK_ATTR_FLAG_COPY_MASK;
		c->config.copy_mask = k->copy_mask;
	}
}

static bool random_lengths(struct dice *d, struct random_case *c, uint32_t largest)
{
	const struct sig_domain *w = &c->config.side[SIG_WIRE];
	uint32_t unit = w->block + sig_size(w->type);
	uint64_t memory;

	c->wire = random_below(d, largest);
	if (unit && random_maybe(d, 60))
		c->wire -= c->wire % unit;
	memory = model_memory_bytes(&c->config, c->dir, c->wire);
	if (memory > RANDOM_BYTES || c->wire > RANDOM_BYTES || !c->wire)
		return false;
	c->memory_bytes = (uint32_t)memory;
	c->in_bytes = c->dir == SIG_GATHER ? c->memory_bytes : c->wire;
	return true;
}

/* One access or two; the second knows nothing of the first but what is in memory. */
static void random_split(struct dice *d, struct random_case *c)
{
	const struct sig_domain *w = &c->config.side[SIG_WIRE];
	uint32_t unit = w->block + sig_size(w->type);

	c->split = c->wire;
	c->parted_block = UINT64_MAX;
	if (c->wire < 2 || !random_maybe(d, 25))
		return;
	c->split = 1 + random_below(d, c->wire - 1);
	if (unit && c->split > unit && random_maybe(d, 40))
		c->split -= c->split % unit;
	if (c->dir == SIG_SCATTER && unit && c->split % unit > w->block)
		c->parted_block = c->split / unit;
}

/* Data with good signatures, then some damage. */
static void random_input(struct dice *d, struct random_case *c)
{
	const struct sig_domain *s = &c->config.side[c->dir == SIG_GATHER ? SIG_MEMORY : SIG_WIRE];
	bool constant = random_maybe(d, 10);
	uint8_t byte = (uint8_t)rng_next(&d->rng);
	bool noise = random_maybe(d, 20);
	uint32_t unit = s->block + sig_size(s->type);

	for (uint32_t i = 0; i < c->in_bytes; i++)
		c->in[i] = constant ? byte : (uint8_t)rng_next(&d->rng);
	if (s->type == SIG_NONE)
		return;
	for (uint32_t k = 0; (k + 1) * unit <= c->in_bytes; k++) {
		uint8_t *field = c->in + k * unit + s->block;
		uint8_t made[8];

		if (noise && random_maybe(d, 10))
			continue;
		memcpy(field, made, model_signature(s, k, c->in + k * unit, s->block, made));
		if (s->type > SIG_T10DIF_CSUM || !random_maybe(d, 10))
			continue;
		memset(field + 2, 0xff, random_maybe(d, 50) ? 2 : 6);
		if (random_maybe(d, 50))
			field[0] ^= 0x40;
	}
	for (uint32_t n = random_maybe(d, 50) ? random_below(d, 4) : 0; n; n--)
		c->in[random_below(d, c->in_bytes)] ^= (uint8_t)(1 << random_below(d, 8));
}

/* Each piece lies in a part of its own: they do not overlap. */
static void random_list(struct dice *d, struct random_case *c)
{
	uint32_t most = 1 + random_below(d, ORDER_PIECES - 4);
	uint32_t left = c->memory_bytes;
	uint32_t at = random_below(d, 4096);

	c->conf.layout = LAYOUT_LIST;
	while (left) {
		struct piece *p = &c->conf.piece[c->conf.pieces++];
		uint32_t n =
			random_maybe(d, 30) ? 1 + random_below(d, 16) : 1 + random_below(d, left);

		if (n > left || c->conf.pieces == most)
			n = left;
		*p = (struct piece){.at = at, .bytes = n, .key = ORDER_WHOLE};
		at += n + random_below(d, 3000);
		left -= n;
	}
	/* Not in the order of their addresses. */
	for (uint32_t i = 1; i < c->conf.pieces; i++) {
		uint32_t k = random_below(d, i + 1);
		uint32_t a = c->conf.piece[i].at;
		bool fits = c->conf.piece[i].bytes == c->conf.piece[k].bytes;

		if (fits) {
			c->conf.piece[i].at = c->conf.piece[k].at;
			c->conf.piece[k].at = a;
		}
	}
}

static void random_interleaving(struct dice *d, struct random_case *c)
{
	uint32_t pieces = 1 + random_below(d, 4);
	uint32_t cycle = 0;
	uint32_t at = random_below(d, 100);

	c->conf.layout = LAYOUT_INTERLEAVED;
	for (uint32_t i = 0; i < pieces; i++) {
		uint32_t n =
			random_maybe(d, 30) ? 1 + random_below(d, 12) : 1 + random_below(d, 1200);

		c->conf.piece[c->conf.pieces++] =
			(struct piece){.bytes = n, .skip = random_below(d, 40), .key = ORDER_WHOLE};
		cycle += n;
	}
	/* More than is used, but not less. */
	c->conf.repeat = (c->memory_bytes + cycle - 1) / cycle;
	for (uint32_t i = 0; i < pieces; i++) {
		struct piece *p = &c->conf.piece[i];

		p->at = at;
		at += c->conf.repeat * (p->bytes + p->skip) + random_below(d, 50);
	}
	if (at <= ORDER_MEMORY - 64)
		return;
	c->conf.pieces = 0;
	random_list(d, c);
}

static uint32_t place_of_byte(const struct key_conf *k, uint32_t i)
{
	uint32_t cycle = k->piece[0].bytes;
	uint32_t round = 0;

	if (k->layout == LAYOUT_INTERLEAVED) {
		for (int p = 1; p < k->pieces; p++)
			cycle += k->piece[p].bytes;
		round = i / cycle;
		i %= cycle;
	}
	for (int p = 0;; p++) {
		if (i < k->piece[p].bytes)
			return k->piece[p].at + i + round * (k->piece[p].bytes + k->piece[p].skip);
		i -= k->piece[p].bytes;
	}
}

void random_place(const struct random_case *c, uint8_t *image, const uint8_t *bytes, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		image[place_of_byte(&c->conf, i)] = bytes[i];
}

void random_make(struct random_case *c, uint64_t seed)
{
	struct dice d = {{seed | 1ull << 63}};
	uint32_t largest;

	c->seed = seed;
	c->conf = (struct key_conf){.set_access = true, .access = ALL_ACCESS, .wr_id = 300};
	c->pair = random_below(&d, RANDOM_STAGES);
	c->route = (enum route)random_below(&d, ROUTES);
	c->dir = route_gathers(c->route) ? SIG_GATHER : SIG_SCATTER;
	random_signatures(&d, c);
	largest = random_maybe(&d, 85) ? 3000 : 24000;
	while (!random_lengths(&d, c, largest))
		;
	random_split(&d, c);
	random_input(&d, c);
	if (random_maybe(&d, 60))
		random_list(&d, c);
	else
		random_interleaving(&d, c);
	if (random_maybe(&d, 10))
		c->conf.conf_flags = MLX5DV_MKEY_CONF_FLAG_RESET_SIG_ATTR;
	model_transfer(&c->config, c->dir, c->wire, c->in, c->want, &c->model);
	memset(c->local_image, CANARY, ORDER_MEMORY);
	if (c->dir == SIG_GATHER)
		random_place(c, c->local_image, c->in, c->memory_bytes);
}

static int describe_domain(const struct domain *d, char *out, size_t room)
{
	return snprintf(out, room, "%s/%u seed %d app %#x ref %#x flags %#x",
			reference_name(d->type), d->type ? reference_block(d->size) : 0, d->ones,
			d->app, d->ref, d->flags);
}

void random_describe(const struct random_case *c, char *out, size_t room)
{
	char mem[128];
	char wire[128];

	describe_domain(&c->conf.mem, mem, sizeof(mem));
	describe_domain(&c->conf.wire, wire, sizeof(wire));
	snprintf(out, room,
		 "%s, MTU %u, memory %s, wire %s, check %#x, copy %#x, %u bytes on the wire in "
		 "parts "
		 "from %u, %s of %u pieces",
		 route_name(c->route), c->pair == 3 ? 4096 : 256u << c->pair, mem, wire,
		 c->config.check_mask, c->config.copy_mask, c->wire, c->split,
		 c->conf.layout == LAYOUT_LIST ? "list" : "interleaving", c->conf.pieces);
}
