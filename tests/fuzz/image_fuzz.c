// SPDX-License-Identifier: BSD-2-Clause
/*
 * Images of device code: any file is refused or loaded, and what was loaded lies inside of its room.  Symbols and
 * lines are looked for in both.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/lines.h"
#include "dpa/door.h"
#include "dpa/image.h"
#include "fuzz.h"
#include "small_image.h"

#define GUARD 65536u

void target_init(void)
{
}

void target_seeds(struct seed *s)
{
	uint8_t file[SMALL_IMAGE_BYTES];
	struct dpa_image im;
	struct elf_line line;
	uint64_t addr;

	small_image_make(file);
	/* Else the seed leads nowhere. */
	MUST(!dpa_image_open(&im, file, sizeof(file)));
	MUST(dpa_image_function(&im, "say", &addr) && addr == SMALL_CODE + 0x40);
	MUST(dpa_image_variable(&im, "__dpa_image_info", sizeof(struct dpa_image_info), &addr));
	MUST(elf_line_find(file, sizeof(file), SMALL_CODE, &line));
	put_bytes(s, file, sizeof(file));
	put_end(s, "whole");
	put_bytes(s, file, SMALL_IMAGE_BYTES / 2);
	put_end(s, "half");
}

/* What device code and the host's side of a process ask of one. */
static void symbols_ask(const struct dpa_image *im)
{
	uint64_t addr, offset;

	for (unsigned i = 0; i < SMALL_FUNCTIONS; i++)
		if (dpa_image_function(im, small_names[i], &addr))
			MUST(dpa_image_has(im, addr, 1, PROT_EXEC));
	MUST(!dpa_image_function(im, "no function has this name", &addr));
	for (addr = 0; addr < im->span; addr += 0x200) {
		const char *name = dpa_image_where(im, addr, &offset);

		MUST(!name || (strlen(name) < im->file_bytes && offset <= addr));
	}
}

static void image_load(const struct dpa_image *im)
{
	size_t bytes = im->span + 2 * GUARD;
	uint8_t *room =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint64_t addr;

	MUST(room != MAP_FAILED);
	MUST(!dpa_image_load(im, room + GUARD));
	/* The runtime's half is written. */
	if (dpa_image_variable(im, "__dpa_image_info", sizeof(struct dpa_image_info), &addr))
		memset(room + GUARD + addr, 1, sizeof(struct dpa_image_info));
	munmap(room, bytes);
}

static void lines_ask(const uint8_t *file, size_t bytes)
{
	struct elf_line line;

	for (uint64_t addr = SMALL_CODE; addr < SMALL_CODE + 0x80; addr += 8)
		if (elf_line_find(file, bytes, addr, &line))
			MUST(strlen(line.file) < bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of exactly this length, so that a look beyond it is seen. */
	uint8_t *file = malloc(size ? size : 1);
	struct dpa_image im;

	MUST(file);
	if (size)
		memcpy(file, data, size);
	if (!dpa_image_open(&im, file, size)) {
		symbols_ask(&im);
		/* Large ones are as the others, and take long. */
		if (im.span <= 16u << 20)
			image_load(&im);
	}
	lines_ask(file, size);
	free(file);
	return 0;
}
