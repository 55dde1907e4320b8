// SPDX-License-Identifier: BSD-2-Clause
/*
 * Random signatures, layouts, lengths, offsets, packets and damage, through the device and through
 * a slow model: every byte of memory and every report must agree.
 *
 * A case depends on its seed alone, which a failure names: random -n 1 -s SEED does it again.
 */
#include "random.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options options = {.gid_index = -1, .seed = 1, .cases = 2000};

static const enum ibv_mtu mtus[RANDOM_STAGES] = {IBV_MTU_256, IBV_MTU_512, IBV_MTU_1024,
						 IBV_MTU_4096};

_Noreturn static void disagree(const struct random_case *c, const char *what)
{
	char story[512];

	random_describe(c, story, sizeof(story));
	fail("case -s %#" PRIx64 ": %s: %s", c->seed, what, story);
}

static void expect_image(const struct random_case *c, const struct endpoint_proxy *p,
			 const uint8_t *image)
{
	char what[128];
	size_t i = 0;

	if (!memcmp(p->memory, image, ORDER_MEMORY))
		return;
	while (p->memory[i] == image[i])
		i++;
	snprintf(what, sizeof(what), "%s memory differs from byte %zu on, %02x and not %02x",
		 p->name, i, p->memory[i], image[i]);
	disagree(c, what);
}

/* The first error, of a block whose signature came in two parts too or not: a device may know what
 * the first part was, or not. */
static const struct model_error *first_error(const struct random_case *c, bool with_parts)
{
	for (uint32_t i = 0; i < c->model.errors; i++)
		if (with_parts || c->model.error[i].block != c->parted_block)
			return &c->model.error[i];
	return NULL;
}

/* The part of a signature that the error is about, as a number. */
static uint64_t number_of(const struct random_case *c, const struct model_error *e,
			  const uint8_t *field)
{
	enum sig_type type = c->config.side[c->dir == SIG_GATHER ? SIG_MEMORY : SIG_WIRE].type;
	uint32_t from = 0;
	uint32_t bytes = sig_size(type);
	bool little = type == SIG_CRC32C || type == SIG_CRC64_XP10;
	uint64_t number = 0;

	if (e->kind == SIG_BAD_APP_TAG)
		from = 2;
	else if (e->kind == SIG_BAD_REF_TAG)
		from = 4;
	if (type == SIG_T10DIF_CRC || type == SIG_T10DIF_CSUM)
		bytes = e->kind == SIG_BAD_REF_TAG ? 4 : 2;
	for (uint32_t i = 0; i < bytes; i++)
		number = number << 8 | field[from + (little ? bytes - 1 - i : i)];
	return number;
}

static bool is_reported(const struct random_case *c, const struct model_error *e,
			const struct mlx5dv_mkey_err *got)
{
	static const enum mlx5dv_mkey_err_type kinds[] = {
		[SIG_BAD_GUARD] = MLX5DV_MKEY_SIG_BLOCK_BAD_GUARD,
		[SIG_BAD_APP_TAG] = MLX5DV_MKEY_SIG_BLOCK_BAD_APPTAG,
		[SIG_BAD_REF_TAG] = MLX5DV_MKEY_SIG_BLOCK_BAD_REFTAG,
	};
	const struct sig_domain *in = &c->config.side[c->dir == SIG_GATHER ? SIG_MEMORY : SIG_WIRE];
	bool manual = options.reports == REPORTS_MANUAL;
	uint64_t unit = in->block + sig_size(in->type);
	uint64_t found;
	uint64_t computed;

	if (!e)
		return got->err_type == MLX5DV_MKEY_NO_ERR;
	found = number_of(c, e, e->found);
	computed = number_of(c, e, e->computed);
	return got->err_type == kinds[e->kind] &&
	       got->err.sig.actual_value == (manual ? computed : found) &&
	       got->err.sig.expected_value == (manual ? found : computed) &&
	       got->err.sig.offset == (manual ? e->block * unit : (e->block + 1) * unit - 1);
}

static void compare_report(const struct random_case *c, struct connected_pair *s)
{
	const struct model_error *e = first_error(c, true);
	struct mlx5dv_mkey_err got;
	char what[256];

	if (try_check(&s->local, 0, &got))
		disagree(c, "mlx5dv_mkey_check fails");
	if (is_reported(c, e, &got) || is_reported(c, first_error(c, false), &got))
		return;
	snprintf(what, sizeof(what),
		 "error %d, actual %#" PRIx64 ", expected %#" PRIx64 ", offset %" PRIu64
		 "; the model has kind %d, found %#" PRIx64 ", computed %#" PRIx64
		 ", block %" PRIu64,
		 got.err_type, got.err.sig.actual_value, got.err.sig.expected_value,
		 got.err.sig.offset, e ? (int)e->kind : 0, e ? number_of(c, e, e->found) : 0,
		 e ? number_of(c, e, e->computed) : 0, e ? e->block : 0);
	disagree(c, what);
}

/* All of the wire's bytes in one access or in two. */
static void move_case(struct random_case *c, struct connected_pair *s)
{
	transfer_at(s, c->route, 0, 0, c->split);
	if (c->split == c->wire)
		return;
	/* The rest of the wire lies behind what has gone already. */
	if (c->dir == SIG_GATHER) {
		memcpy(c->remote_image + REMOTE_AT, c->want, c->split);
		if (memcmp(s->remote.memory + REMOTE_AT, c->want, c->split) != 0)
			disagree(c, "the first part differs");
		memset(s->remote.memory + REMOTE_AT, CANARY, c->split);
	} else {
		memcpy(s->remote.memory + REMOTE_AT, c->in + c->split, c->wire - c->split);
	}
	transfer_at(s, c->route, 0, c->split, c->wire - c->split);
}

static void run_case(struct random_case *c, struct connected_pair *stages)
{
	struct connected_pair *s = &stages[c->pair];
	uint32_t rest = c->wire - (c->split == c->wire ? 0 : c->split);

	memcpy(s->local.memory, c->local_image, ORDER_MEMORY);
	fill_canary(&s->remote);
	if (c->dir == SIG_SCATTER)
		memcpy(s->remote.memory + REMOTE_AT, c->in, c->wire);
	configure(&s->local, 0, &c->conf);
	move_case(c, s);
	memset(c->remote_image, CANARY, ORDER_MEMORY);
	if (c->dir == SIG_GATHER) {
		memcpy(c->remote_image + REMOTE_AT, c->want + (c->wire - rest), rest);
		expect_image(c, &s->remote, c->remote_image);
	} else {
		random_place(c, c->local_image, c->want, c->memory_bytes);
	}
	expect_image(c, &s->local, c->local_image);
	compare_report(c, s);
}

_Noreturn static void usage(int status)
{
	fprintf(status ? stderr : stdout,
		"Usage: random [OPTION...]\n"
		"Random transfers through keys with signatures, compared with a model.\n"
		"  -d DEVICE   of libibverbs; the first\n"
		"  -g INDEX    GID index; on InfiniBand none\n"
		"  -2          the two sides in two processes\n"
		"  -r STYLE    how errors are reported: manual or hardware; manual\n"
		"  -n CASES    how many; 2000\n"
		"  -s SEED     of the first; 1\n");
	exit(status);
}

static void read_options(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, OPTION_LETTERS "n:h")) != -1) {
		switch (o) {
		case 'n':
			options.cases = strtoull(optarg, NULL, 0);
			break;
		case 'h':
			usage(0);
		default:
			if (!option_take(o, optarg))
				usage(2);
		}
	}
}

int main(int argc, char **argv)
{
	static struct random_case c;
	static struct connected_pair stages[RANDOM_STAGES];
	uint64_t seed;
	uint64_t errors = 0;
	uint64_t made = 0;

	read_options(argc, argv);
	seed = options.seed;
	printf("seed %#" PRIx64 "\n", seed);
	fflush(stdout);
	/* Processes first, then devices: a child inherits none. */
	for (int i = 0; i < RANDOM_STAGES; i++)
		pair_begin(&stages[i]);
	for (int i = 0; i < RANDOM_STAGES; i++) {
		pair_connect(&stages[i], &(struct setup){.mtu = mtus[i]});
		signature_key(&stages[i], 0);
	}
	for (uint64_t i = 0; i < options.cases; i++) {
		random_make(&c, seed);
		if (proxy_supports(&stages[0].local, &c.conf.mem) &&
		    proxy_supports(&stages[0].local, &c.conf.wire))
			run_case(&c, stages);
		errors += !!first_error(&c, false);
		made += c.config.side[c.dir == SIG_GATHER ? SIG_WIRE : SIG_MEMORY].type != SIG_NONE;
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	}
	for (int i = 0; i < RANDOM_STAGES; i++)
		pair_close(&stages[i]);
	printf("%" PRIu64 " cases, %" PRIu64 " with errors, %" PRIu64 " with signatures made\n",
	       options.cases, errors, made);
	/* A test that never finds anything tests nothing. */
	if (options.cases >= 100 && (errors < options.cases / 20 || made < options.cases / 4))
		fail("too few of them have errors or signatures");
	return 0;
}
