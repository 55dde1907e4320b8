// SPDX-License-Identifier: BSD-2-Clause
/* Functions found by name in an image, also in one that was spoiled.  The argument is the image. */
#include "flexio/image.h"

#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "check.h"
#include "dpa_fixture.h"

#define MUTATIONS 3000u
#define SPOILED	  40u

static void test_whole(const void *file, size_t bytes)
{
	CHECK(flx_symbol_is_function(file, bytes, "add"));
	CHECK(flx_symbol_is_function(file, bytes, "count"));
	CHECK(!flx_symbol_is_function(file, bytes, "ad"));
	CHECK(!flx_symbol_is_function(file, bytes, "add_"));
	CHECK(!flx_symbol_is_function(file, bytes, ""));
	/* a variable */
	CHECK(!flx_symbol_is_function(file, bytes, "__dpa_image_info"));
}

/* The file ends where memory ends, so a look beyond it is a fault. */
static void test_spoiled(const void *file, size_t bytes)
{
	size_t room = align_up(bytes, 65536);
	uint8_t *map = mmap(NULL, room + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	uint8_t *copy = map + room - bytes;
	struct rng rng = {7};
	unsigned lost = 0;

	CHECK(map != MAP_FAILED && !mprotect(map + room, 65536, PROT_NONE));
	for (unsigned i = 0; i < MUTATIONS; i++) {
		memcpy(copy, file, bytes);
		/* The section headers are at the end of the file. */
		for (unsigned k = 0; k < SPOILED; k++)
			copy[bytes - 1 - rng_below(&rng, min_u64(bytes, 4096))] =
				(uint8_t)rng_next(&rng);
		lost += !flx_symbol_is_function(copy, bytes, "add");
	}
	CHECK_SAY(lost && lost < MUTATIONS, "%u", lost);
	for (size_t n = 0; n < bytes; n += 13) {
		memmove(map + room - n, file, n);
		CHECK(!flx_symbol_is_function(map + room - n, n, "add"));
	}
	munmap(map, room + 65536);
}

int main(int argc, char **argv)
{
	size_t bytes;
	void *file;

	CHECK(argc == 2);
	file = fixture_read(argv[1], &bytes);
	test_whole(file, bytes);
	test_spoiled(file, bytes);
	free(file);
	return 0;
}
