// SPDX-License-Identifier: BSD-2-Clause
/*
 * The loader of images: takes what a linker made, finds what is in it, and takes nothing that would lead it out
 * of the file or of the image, whatever was done to the file.  The argument is the image.
 */
#include "dpa/image.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "dpa/door.h"
#include "dpa_fixture.h"

#define MUTATIONS 20000u

/* Loads what was admitted and asks for symbols: none of it may leave the memory that is the image's. */
static void image_use(const struct dpa_image *im)
{
	/* Guards around it: what is written beside the image is a fault. */
	size_t page = 65536, bytes = im->span + 2 * page;
	uint8_t *room =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t addr, offset;

	CHECK(room != MAP_FAILED);
	CHECK(dpa_image_load(im, room + page) == 0);
	(void)!dpa_image_function(im, "no function has this name", &addr);
	if (dpa_image_variable(im, "__dpa_image_info", sizeof(struct dpa_image_info), &addr))
		*(volatile uint8_t *)(room + page + addr) = 1;
	(void)dpa_image_where(im, im->span / 2, &offset);
	munmap(room, bytes);
}

static void test_whole(const void *file, size_t bytes)
{
	uint64_t add, info, offset;
	struct dpa_image im;

	CHECK(!dpa_image_open(&im, file, bytes));
	CHECK(im.span && im.span % 4096 == 0 && im.rela_bytes);
	CHECK(dpa_image_function(&im, "add", &add) && dpa_image_has(&im, add, 1, PROT_EXEC));
	CHECK(!dpa_image_function(&im, "__dpa_image_info", &info));
	CHECK(!dpa_image_function(&im, "nothing", &info));
	CHECK(!dpa_image_variable(&im, "add", 8, &info));
	CHECK(dpa_image_variable(&im, "__dpa_image_info", sizeof(struct dpa_image_info), &info));
	CHECK(!dpa_image_variable(&im, "__dpa_image_info", sizeof(struct dpa_image_info) + 1,
				  &offset));
	CHECK(!strcmp(dpa_image_where(&im, add, &offset), "add") && offset == 0);
	CHECK(!dpa_image_where(&im, im.span, &offset));
	CHECK(!dpa_image_has(&im, add, im.span, PROT_EXEC) &&
	      !dpa_image_has(&im, add, 1, PROT_WRITE));
	image_use(&im);
}

/* At the end of a page, so that a look beyond the end is a fault. */
static uint8_t *at_end(const void *file, size_t bytes, void **map, size_t *map_bytes)
{
	uint8_t *room;

	*map_bytes = align_up(bytes, 65536) + 65536;
	room = mmap(NULL, *map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(room != MAP_FAILED);
	CHECK(mprotect(room + *map_bytes - 65536, 65536, PROT_NONE) == 0);
	*map = room;
	room += *map_bytes - 65536 - bytes;
	memcpy(room, file, bytes);
	return room;
}

static void test_truncated(const void *file, size_t bytes)
{
	size_t map_bytes, taken = 0;
	struct dpa_image im;
	void *map;
	uint8_t *end = at_end(file, bytes, &map, &map_bytes) + bytes;

	for (size_t n = 0; n < bytes; n++) {
		memmove(end - n, file, n);
		if (!dpa_image_open(&im, end - n, n)) {
			/* Nothing that matters was missing. */
			taken++;
			if (n % 64 == 0)
				image_use(&im);
		}
	}
	CHECK_SAY(taken < bytes / 2, "%zu of %zu", taken, bytes);
	munmap(map, map_bytes);
}

/* Where the headers of segments and sections, the dynamic section and the symbols are. */
static size_t mutation_place(struct rng *rng, const uint8_t *file, size_t bytes,
			     const struct dpa_image *whole)
{
	Elf64_Ehdr h;

	memcpy(&h, file, sizeof(h));
	switch (rng_below(rng, 6)) {
	case 0:
		return rng_below(rng, sizeof(h));
	case 1:
		return h.e_phoff + rng_below(rng, (uint64_t)h.e_phnum * h.e_phentsize);
	case 2:
		return h.e_shoff + rng_below(rng, (uint64_t)h.e_shnum * h.e_shentsize);
	case 3:
		return whole->dynamic.offset +
		       rng_below(rng, whole->dynamic.count * sizeof(Elf64_Sym));
	case 4:
		return whole->rela + rng_below(rng, whole->rela_bytes);
	default:
		return rng_below(rng, bytes);
	}
}

static void test_mutated(const uint8_t *file, size_t bytes)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff};
	struct dpa_image whole, im;
	struct rng rng = {77};
	size_t map_bytes, taken = 0;
	void *map;
	uint8_t *copy = at_end(file, bytes, &map, &map_bytes);

	CHECK(!dpa_image_open(&whole, file, bytes));
	for (uint32_t i = 0; i < MUTATIONS; i++) {
		uint64_t n = 1 + rng_below(&rng, 4);

		for (uint64_t k = 0; k < n; k++)
			copy[mutation_place(&rng, file, bytes, &whole)] =
				rng_below(&rng, 2) ? values[rng_below(&rng, sizeof(values))]
						   : (uint8_t)rng_next(&rng);
		if (!dpa_image_open(&im, copy, bytes)) {
			taken++;
			if (taken % 8 == 0)
				image_use(&im);
		}
		memcpy(copy, file, bytes);
	}
	CHECK_SAY(taken > MUTATIONS / 100 && taken < MUTATIONS, "%zu of %u", taken, MUTATIONS);
	munmap(map, map_bytes);
}

int main(int argc, char **argv)
{
	size_t bytes;
	void *file;

	CHECK(argc == 2);
	file = fixture_read(argv[1], &bytes);
	test_whole(file, bytes);
	test_truncated(file, bytes);
	test_mutated(file, bytes);
	free(file);
	return 0;
}
