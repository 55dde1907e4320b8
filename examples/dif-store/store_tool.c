/* SPDX-License-Identifier: BSD-2-Clause */
/* dif-store: makes a store, checks it in software, and damages it on purpose. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complain.h"
#include "store.h"

/* Units that a check reads at a time. */
#define CHUNK 64u

struct options {
	const char *file;
	struct dif_format format;
	uint64_t blocks, seed, block, bit;
	enum dif_part part; /* DIF_NO_ERROR: the data */
	bool block_given;
};

static const char usage[] =
	"usage: dif-store format FILE [--blocks N] [--block-size 512|4096] [--app-tag N] [--seed "
	"N]\n"
	"       dif-store corrupt FILE --block N [--field data|guard|app|ref] [--bit N]\n"
	"       dif-store check FILE\n"
	"\n"
	"A store is a file of blocks, each followed by T10 protection information.\n"
	"  format   makes one with content that depends on the seed alone\n"
	"  corrupt  flips one bit of a block or of its protection information\n"
	"  check    checks all blocks in software; status 1 if one is bad\n"
	"\n"
	"  --blocks N       blocks in the store (8192)\n"
	"  --block-size N   bytes of data in a block: 512 or 4096 (512)\n"
	"  --app-tag N      application tag of all blocks (0xd1f5)\n"
	"  --seed N         seed of the content (1)\n"
	"  --block N        number of the block to damage, from 0\n"
	"  --field NAME     what to damage: data, guard, app or ref (data)\n"
	"  --bit N          which bit of that, from 0 (0)\n";

static int do_format(const struct options *o)
{
	if (!store_format(o->file, &o->format, o->blocks, o->seed))
		return 1;
	printf("%s: %llu blocks of %u + %u bytes, application tag %04x\n", o->file,
	       (unsigned long long)o->blocks, o->format.block_size, DIF_BYTES, o->format.app_tag);
	return 0;
}

static int flip(struct store *s, const struct options *o)
{
	uint8_t unit[4096 + DIF_BYTES];
	int error;

	if (o->block >= s->blocks) {
		complain("the store has the blocks 0 to %llu only",
			 (unsigned long long)s->blocks - 1);
		return 2;
	}
	error = store_read(s, o->block, 1, unit);
	if (!error && !dif_flip(&s->format, unit, o->part, o->bit)) {
		complain("--bit: the field has no bit %llu", (unsigned long long)o->bit);
		return 2;
	}
	if (!error)
		error = store_write(s, o->block, 1, unit);
	if (error) {
		complain("%s: %s", o->file, strerror(-error));
		return 1;
	}
	printf("block %llu: flipped bit %llu of its %s\n", (unsigned long long)o->block,
	       (unsigned long long)o->bit,
	       o->part == DIF_NO_ERROR ? "data" : dif_part_name(o->part));
	return 0;
}

static int do_corrupt(const struct options *o)
{
	struct store s;

	if (!o->block_given) {
		complain("corrupt needs --block N");
		return 2;
	}
	if (!store_open(&s, o->file, true))
		return 1;
	int status = flip(&s, o);

	store_close(&s);
	return status;
}

static int do_check(const struct options *o)
{
	static uint8_t units[CHUNK * (4096 + DIF_BYTES)];
	uint64_t bad = 0, next = 0;
	struct store s;
	int error = 0;

	if (!store_open(&s, o->file, false))
		return 1;
	while (next < s.blocks && !error) {
		uint32_t count = (uint32_t)(s.blocks - next < CHUNK ? s.blocks - next : CHUNK);

		error = store_read(&s, next, count, units);
		for (uint32_t i = 0; i < count && !error; i++) {
			struct dif_error e =
				dif_check(&s.format, units + i * dif_unit(&s.format), next + i, 1);

			if (e.part == DIF_NO_ERROR)
				continue;
			bad++;
			printf("block %llu: bad %s, expected %04llx, actual %04llx\n",
			       (unsigned long long)e.block, dif_part_name(e.part),
			       (unsigned long long)e.expected, (unsigned long long)e.actual);
		}
		next += count;
	}
	if (error)
		complain("%s: %s", o->file, strerror(-error));
	else
		printf("%s: %llu blocks, %llu bad\n", o->file, (unsigned long long)s.blocks,
		       (unsigned long long)bad);
	store_close(&s);
	return error || bad > 0;
}

static bool take_option(struct options *o, int letter, const char *text)
{
	uint64_t n = 0;
	bool good;

	switch (letter) {
	case 'n':
		return parse_number("--blocks", text, 1, STORE_BLOCKS_MAX, &o->blocks);
	case 's':
		good = parse_number("--block-size", text, 512, 4096, &n);
		if (good && n != 512 && n != 4096) {
			complain("--block-size takes 512 or 4096");
			good = false;
		}
		o->format.block_size = (uint32_t)n;
		return good;
	case 'a':
		good = parse_number("--app-tag", text, 0, UINT16_MAX, &n);
		o->format.app_tag = (uint16_t)n;
		return good;
	case 'r':
		return parse_number("--seed", text, 0, UINT64_MAX, &o->seed);
	case 'b':
		o->block_given = true;
		return parse_number("--block", text, 0, STORE_BLOCKS_MAX, &o->block);
	case 'i':
		return parse_number("--bit", text, 0, 8 * 4096, &o->bit);
	case 'f':
		good = dif_part_parse(text, &o->part);
		if (!good)
			complain("--field takes data, guard, app or ref, not '%s'", text);
		return good;
	default:
		return false; /* getopt has complained */
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"blocks", required_argument, NULL, 'n'},
		{"block-size", required_argument, NULL, 's'},
		{"app-tag", required_argument, NULL, 'a'},
		{"seed", required_argument, NULL, 'r'},
		{"block", required_argument, NULL, 'b'},
		{"field", required_argument, NULL, 'f'},
		{"bit", required_argument, NULL, 'i'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	static const struct {
		const char *name;
		int (*run)(const struct options *o);
	} commands[] = {{"format", do_format}, {"corrupt", do_corrupt}, {"check", do_check}};
	struct options o = {
		.format = {.block_size = 512, .app_tag = 0xd1f5}, .blocks = 8192, .seed = 1};
	int letter;

	while ((letter = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		if (letter == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (!take_option(&o, letter, optarg))
			return 2;
	}
	if (argc - optind != 2) {
		complain("needs a command and a file; try dif-store --help");
		return 2;
	}
	o.file = argv[optind + 1];
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(argv[optind], commands[i].name) == 0)
			return commands[i].run(&o);
	complain("there is no command '%s'; try dif-store --help", argv[optind]);
	return 2;
}
