// SPDX-License-Identifier: BSD-2-Clause
/*
 * The main of a target that is built without libFuzzer: fuzz_TARGET --replay CURRENT SEED SECONDS DIRECTORY...
 *
 * Runs each file of the directories once, then for so many seconds variations of them that it draws from the seed.  It
 * does not see what an input reaches, as libFuzzer does.  The file CURRENT always has the input under way, which is the
 * one to blame if the program dies or hangs.
 *
 * fuzz_TARGET FILE...: these inputs alone.
 */
#include "fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../support/check.h"

#define INPUT_SECONDS 120 /* of one input, on a machine that may be busy */
#define BYTES_MAX     4096
#define CHANGES_MAX   6

struct bytes {
	uint8_t *at;
	size_t n;
};

static struct {
	struct bytes *all;
	size_t n;
} kept;

static int current = -1;
static struct rng draw;

static size_t below(size_t n)
{
	return (size_t)(rng_below(&draw, n));
}

/* In memory of exactly its size, so that the sanitizer sees what lies beside it. */
static void run_input(const uint8_t *bytes, size_t n)
{
	uint8_t *copy = malloc(n);

	MUST(copy || !n);
	if (n)
		memcpy(copy, bytes, n);
	if (current >= 0)
		MUST(pwrite(current, bytes, n, 0) == (ssize_t)n && !ftruncate(current, (off_t)n));
	alarm(INPUT_SECONDS);
	LLVMFuzzerTestOneInput(copy, n);
	alarm(0);
	free(copy);
}

static void take_file(const char *path)
{
	struct bytes b = {0};
	struct stat st;
	FILE *f = fopen(path, "rb");

	MUST(f && !fstat(fileno(f), &st));
	b.n = (size_t)st.st_size;
	b.at = malloc(b.n + 1);
	kept.all = realloc(kept.all, (kept.n + 1) * sizeof(*kept.all));
	MUST(b.at && kept.all && fread(b.at, 1, b.n, f) == b.n);
	MUST(!fclose(f));
	kept.all[kept.n++] = b;
}

static void take_directory(const char *path)
{
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort);
	char file[4096];

	MUST(n >= 0);
	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(file, sizeof(file), "%s/%s", path, names[i]->d_name);
			take_file(file);
		}
		free(names[i]);
	}
	free(names);
}

/* Some bytes of another input, or of this one, in place of some, or between two. */
static size_t mix_in(uint8_t *bytes, size_t n, bool insert)
{
	const struct bytes *other = &kept.all[below(kept.n)];
	size_t from, count, at = below(n + 1), room = BYTES_MAX - (insert ? n : at);

	if (!other->n)
		return n;
	from = below(other->n);
	count = 1 + below(other->n - from);
	if (count > room)
		count = room;
	if (insert)
		memmove(bytes + at + count, bytes + at, n - at);
	memcpy(bytes + at, other->at + from, count);
	if (insert)
		return n + count;
	return at + count > n ? at + count : n;
}

static size_t change_once(uint8_t *bytes, size_t n)
{
	size_t at, count;

	switch (n ? below(6) : 5) {
	case 0:
		bytes[below(n)] = (uint8_t)below(256);
		return n;
	case 1:
		bytes[below(n)] ^= (uint8_t)(1u << below(8));
		return n;
	case 2:
		bytes[below(n)] = below(2) ? 0xff : 0;
		return n;
	case 3:
		at = below(n);
		count = 1 + below(n - at);
		memmove(bytes + at, bytes + at + count, n - at - count);
		return n - count;
	case 4:
		return mix_in(bytes, n, false);
	default:
		return mix_in(bytes, n, true);
	}
}

static void run_changed(void)
{
	const struct bytes *from = &kept.all[below(kept.n)];
	uint8_t bytes[BYTES_MAX];
	size_t n = from->n < BYTES_MAX ? from->n : BYTES_MAX;

	memcpy(bytes, from->at, n);
	for (size_t left = 1 + below(CHANGES_MAX); left; left--)
		n = change_once(bytes, n);
	run_input(bytes, n);
}

static time_t seconds_now(void)
{
	struct timespec now;

	MUST(!clock_gettime(CLOCK_MONOTONIC, &now));
	return now.tv_sec;
}

int main(int argc, char **argv)
{
	bool replays = argc > 5 && !strcmp(argv[1], "--replay");
	unsigned long changed = 0;

	LLVMFuzzerInitialize(&argc, &argv);
	if (replays) {
		current = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		MUST(current >= 0);
		draw.state = strtoull(argv[3], NULL, 0) | 1;
	}
	for (int i = replays ? 5 : 1; i < argc; i++)
		(replays ? take_directory : take_file)(argv[i]);
	for (size_t i = 0; i < kept.n; i++)
		run_input(kept.all[i].at, kept.all[i].n);
	if (replays && kept.n)
		for (time_t end = seconds_now() + atol(argv[4]); seconds_now() < end; changed++)
			run_changed();
	printf("%zu kept, %lu changed\n", kept.n, changed);
	for (size_t i = 0; i < kept.n; i++)
		free(kept.all[i].at);
	free(kept.all);
	return 0;
}
