// SPDX-License-Identifier: BSD-2-Clause
#include "sig_case.h"

#include <string.h>

bool maybe(struct sig_case *s, unsigned percent)
{
	return rng_below(&s->rng, 100) < percent;
}

/* Now and then the values at which something happens. */
static uint32_t draw_tag(struct sig_case *s, uint32_t all)
{
	switch (rng_below(&s->rng, 6)) {
	case 0:
		return 0;
	case 1:
		return all;
	case 2:
		return all - (uint32_t)rng_below(&s->rng, 3);
	default:
		return (uint32_t)rng_next(&s->rng) & all;
	}
}

static uint8_t draw_mask(struct sig_case *s)
{
	static const uint8_t usual[] = {0xff, 0xf0, 0xc0, 0x30, 0x0f, 0xcf, 0x3f, 0};

	if (maybe(s, 50))
		return usual[rng_below(&s->rng, array_size(usual))];
	return (uint8_t)rng_next(&s->rng);
}

static bool is_t10dif(enum sig_type t)
{
	return t == SIG_T10DIF_CRC || t == SIG_T10DIF_CSUM;
}

static void random_domain(struct sig_case *s, struct sig_domain *d)
{
	static const uint32_t small[] = {8, 16, 24, 64, 72, 104, 128, 264};
	static const uint32_t real[] = {512, 520, 4048, 4096, 4160};

	d->type = (enum sig_type)rng_below(&s->rng, SIG_TYPES);
	if (d->type == SIG_NONE)
		return;
	if (maybe(s, 85))
		d->block = small[rng_below(&s->rng, array_size(small))];
	else
		d->block = real[rng_below(&s->rng, array_size(real))];
	if (!is_t10dif(d->type) && maybe(s, 10))
		d->block = 1 + (uint32_t)rng_below(&s->rng, 40);
	d->seed_ones = maybe(s, 50);
	if (!is_t10dif(d->type))
		return;
	d->ref_increment = maybe(s, 50);
	d->escape = (enum sig_escape)rng_below(&s->rng, 3);
	d->app_tag = (uint16_t)draw_tag(s, 0xffff);
	d->app_mask = maybe(s, 70) ? 0xffff : (uint16_t)rng_next(&s->rng);
	d->ref_tag = draw_tag(s, UINT32_MAX);
}

static void random_config(struct sig_case *s)
{
	struct sig_config *c = &s->config;
	struct sig_domain *w = &c->side[SIG_WIRE];
	struct sig_domain *m = &c->side[SIG_MEMORY];

	memset(c, 0, sizeof(*c));
	random_domain(s, m);
	random_domain(s, w);
	if (maybe(s, 40)) {
		/* Domains that agree more or less. */
		*w = *m;
		if (maybe(s, 30))
			w->seed_ones = !w->seed_ones;
		if (maybe(s, 30))
			w->ref_tag = draw_tag(s, UINT32_MAX);
		if (maybe(s, 30) && is_t10dif(m->type))
			w->type = SIG_T10DIF_CRC + SIG_T10DIF_CSUM - m->type;
	} else if (maybe(s, 30) && w->type != SIG_NONE && m->type != SIG_NONE &&
		   m->block % 8 == 0) {
		w->block = m->block;
	}
	c->check_mask = draw_mask(s);
	c->same_structure = true;
	if (sig_config_check(c) || maybe(s, 15))
		c->same_structure = false;
	else
		c->copy_mask = draw_mask(s);
	CHECK(sig_config_check(c) == SIG_ACCEPTED);
}

/* Data with good signatures, then some damage. */
static void random_input(struct sig_case *s)
{
	const struct sig_domain *d = &s->config.side[s->dir == SIG_GATHER ? SIG_MEMORY : SIG_WIRE];
	bool constant = maybe(s, 10);
	uint8_t byte = (uint8_t)rng_next(&s->rng);
	uint64_t unit;

	for (uint64_t i = 0; i < s->in_bytes; i++)
		s->in[i] = constant ? byte : (uint8_t)rng_next(&s->rng);
	if (d->type == SIG_NONE)
		return;
	unit = (uint64_t)d->block + sig_bytes(d->type);
	for (uint64_t k = 0; (k + 1) * unit <= s->in_bytes; k++) {
		uint8_t *field = s->in + k * unit + d->block;
		uint8_t made[8];

		if (maybe(s, 5))
			continue; /* noise */
		memcpy(field, made, model_signature(d, k, s->in + k * unit, d->block, made));
		if (!is_t10dif(d->type) || !maybe(s, 10))
			continue;
		memset(field + 2, 0xff, maybe(s, 50) ? 2 : 6);
		if (maybe(s, 50))
			field[0] ^= 0x40;
	}
	for (uint64_t n = maybe(s, 50) ? rng_below(&s->rng, 4) : 0; n && s->in_bytes; n--)
		s->in[rng_below(&s->rng, s->in_bytes)] ^= (uint8_t)(1 << rng_below(&s->rng, 8));
}

void random_scene(struct sig_case *s)
{
	uint64_t largest = maybe(s, 90) ? 1500 : 20000;

	random_config(s);
	s->dir = maybe(s, 50) ? SIG_GATHER : SIG_SCATTER;
	do {
		const struct sig_domain *w = &s->config.side[SIG_WIRE];
		uint64_t unit = (uint64_t)w->block + sig_bytes(w->type);

		s->wire = rng_below(&s->rng, largest);
		if (unit && maybe(s, 60))
			s->wire -= s->wire % unit;
		s->in_bytes = s->out_bytes = s->wire;
		if (s->dir == SIG_GATHER)
			s->in_bytes = model_memory_bytes(&s->config, s->dir, s->wire);
		else
			s->out_bytes = model_memory_bytes(&s->config, s->dir, s->wire);
		/* One-byte blocks grow by their signatures, and may all be wrong. */
		largest /= 2;
	} while (s->in_bytes > SIG_CASE_BYTES || s->out_bytes > SIG_CASE_BYTES ||
		 model_data_bytes(&s->config, s->wire) >
			 MODEL_ERRORS *
				 (uint64_t)(s->config.side[!(s->dir == SIG_SCATTER)].type
						    ? s->config.side[!(s->dir == SIG_SCATTER)].block
						    : SIG_CASE_BYTES));
	random_input(s);
	model_transfer(&s->config, s->dir, s->wire, s->in, s->want, &s->model);
	sig_plan_make(&s->plan, &s->config, s->dir);
}

uint64_t signature_word(const uint8_t bytes[8])
{
	uint64_t word = 0;

	for (int i = 0; i < 8; i++)
		word = word << 8 | bytes[i];
	return word;
}
