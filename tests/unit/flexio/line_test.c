// SPDX-License-Identifier: BSD-2-Clause
/* Lines from the debug information of an image, also of one that was spoiled.  The argument is the image. */
#include "base/lines.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "check.h"
#include "dpa/image.h"
#include "dpa_fixture.h"

#define MUTATIONS 3000u

struct part {
	size_t offset, bytes;
};

static struct part section_find(const uint8_t *file, const char *wanted)
{
	Elf64_Shdr names, sh;
	Elf64_Ehdr h;

	memcpy(&h, file, sizeof(h));
	memcpy(&names, file + h.e_shoff + h.e_shstrndx * sizeof(names), sizeof(names));
	for (uint32_t i = 0; i < h.e_shnum; i++) {
		memcpy(&sh, file + h.e_shoff + i * sizeof(sh), sizeof(sh));
		if (!strcmp((const char *)file + names.sh_offset + sh.sh_name, wanted))
			return (struct part){sh.sh_offset, sh.sh_size};
	}
	CHECK_SAY(false, "no section %s", wanted);
	return (struct part){0, 0};
}

/* The first line of a function is that of its opening. */
static uint64_t test_whole(const uint8_t *file, size_t bytes)
{
	struct elf_line at, other;
	struct dpa_image im;
	uint64_t add, count;

	CHECK(!dpa_image_open(&im, file, bytes));
	CHECK(dpa_image_function(&im, "add", &add) && dpa_image_function(&im, "count", &count));
	CHECK(elf_line_find(file, bytes, add, &at) && elf_line_find(file, bytes, count, &other));
	CHECK(strstr(at.file, "device_code.c") && strstr(other.file, "device_code.c"));
	CHECK_SAY(at.line > 10 && other.line > at.line && other.line < at.line + 20, "%d and %d",
		  (int)at.line, (int)other.line);
	CHECK(!elf_line_find(file, bytes, im.span, &at));
	CHECK(!elf_line_find(file, 10, add, &at));
	return add;
}

/* A look beyond the file is a fault; the address of another is none of our business. */
static void test_mutated(const uint8_t *file, size_t bytes, uint64_t addr)
{
	const struct part lines = section_find(file, ".debug_line");
	size_t room = align_up(bytes, 65536);
	uint8_t *map = mmap(NULL, room + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	uint8_t *copy = map + room - bytes;
	struct rng rng = {5};
	unsigned found = 0;

	CHECK(map != MAP_FAILED && !mprotect(map + room, 65536, PROT_NONE));
	memcpy(copy, file, bytes);
	for (unsigned i = 0; i < MUTATIONS; i++) {
		size_t at = lines.offset + rng_below(&rng, lines.bytes);
		uint8_t old = copy[at];
		struct elf_line line;

		copy[at] = (uint8_t)rng_next(&rng);
		if (elf_line_find(copy, bytes, addr, &line)) {
			found++;
			CHECK((const uint8_t *)line.file >= copy &&
			      strlen(line.file) <
				      (size_t)(copy + bytes - (const uint8_t *)line.file));
		}
		copy[at] = old;
	}
	CHECK_SAY(found && found < MUTATIONS, "%u", found);
	for (size_t n = 0; n < bytes; n += 13) {
		struct elf_line line;

		memmove(map + room - n, file, n);
		(void)elf_line_find(map + room - n, n, addr, &line);
	}
	munmap(map, room + 65536);
}

int main(int argc, char **argv)
{
	size_t bytes;
	void *file;

	CHECK(argc == 2);
	file = fixture_read(argv[1], &bytes);
	test_mutated(file, bytes, test_whole(file, bytes));
	free(file);
	return 0;
}
