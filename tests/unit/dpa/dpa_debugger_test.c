// SPDX-License-Identifier: BSD-2-Clause
/*
 * The file that a debugger gets: symbols and lines are where the image lies; a file that was spoiled leads nowhere
 * out of itself; the list has what is shown.  The argument is an image.
 */
#include "dpa/debugger.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/compiler.h"
#include "base/lines.h"
#include "check.h"
#include "dpa/image.h"
#include "dpa_fixture.h"

#define BASE	  0x7f1234560000ull
#define MUTATIONS 3000u

/* As debuggers declare them. */
struct entry {
	struct entry *next, *prev;
	const char *file;
	uint64_t bytes;
};

extern struct {
	uint32_t version, action;
	struct entry *relevant, *first;
} __jit_debug_descriptor;

static uint64_t function_at(const void *file, size_t bytes, const char *name)
{
	struct dpa_image im;
	uint64_t addr;

	CHECK(!dpa_image_open(&im, file, bytes) && dpa_image_function(&im, name, &addr));
	return addr;
}

/* The address of the symbol, as the table of all has it; 0: there is none. */
static uint64_t symbol_value(const uint8_t *file, const char *wanted)
{
	Elf64_Ehdr h;
	Elf64_Shdr sh, names;
	Elf64_Sym sym;

	memcpy(&h, file, sizeof(h));
	for (uint32_t i = 0; i < h.e_shnum; i++) {
		memcpy(&sh, file + h.e_shoff + i * sizeof(sh), sizeof(sh));
		if (sh.sh_type != SHT_SYMTAB)
			continue;
		memcpy(&names, file + h.e_shoff + sh.sh_link * sizeof(names), sizeof(names));
		for (uint64_t k = 0; k < sh.sh_size / sizeof(sym); k++) {
			memcpy(&sym, file + sh.sh_offset + k * sizeof(sym), sizeof(sym));
			if (!strcmp((const char *)file + names.sh_offset + sym.st_name, wanted))
				return sym.st_value;
		}
	}
	return 0;
}

static void test_lines(const uint8_t *file, const uint8_t *moved, size_t bytes)
{
	static const char *const names[] = {"add", "count"};
	struct elf_line before, after;

	for (size_t i = 0; i < array_size(names); i++) {
		uint64_t addr = function_at(file, bytes, names[i]);

		CHECK(symbol_value(file, names[i]) == addr);
		CHECK(symbol_value(moved, names[i]) == BASE + addr);
		CHECK(elf_line_find(file, bytes, addr, &before));
		CHECK(elf_line_find(moved, bytes, BASE + addr, &after));
		CHECK(before.line == after.line && !strcmp(before.file, after.file));
		CHECK(!elf_line_find(moved, bytes, addr, &after));
	}
}

static void test_sections(const uint8_t *file, const uint8_t *moved)
{
	Elf64_Shdr before, after;
	unsigned in_memory = 0;
	Elf64_Ehdr h;

	memcpy(&h, file, sizeof(h));
	for (uint32_t i = 0; i < h.e_shnum; i++) {
		memcpy(&before, file + h.e_shoff + i * sizeof(before), sizeof(before));
		memcpy(&after, moved + h.e_shoff + i * sizeof(after), sizeof(after));
		if (before.sh_flags & SHF_ALLOC) {
			CHECK(after.sh_addr == before.sh_addr + BASE);
			in_memory++;
		}
	}
	CHECK(in_memory > 3);
}

static void test_list(const uint8_t *file, size_t bytes)
{
	struct dpa_shown *first = dpa_debugger_show(file, bytes, BASE);
	struct dpa_shown *second = dpa_debugger_show(file, bytes, 2 * BASE);
	const struct entry *e = __jit_debug_descriptor.first;

	CHECK(first && second && e && e->next && !e->next->next && e->next->prev == e);
	CHECK(e->bytes == bytes && e->next->bytes == bytes);
	CHECK(symbol_value((const uint8_t *)e->file, "add") ==
	      2 * BASE + function_at(file, bytes, "add"));
	dpa_debugger_forget(second);
	CHECK(__jit_debug_descriptor.first && !__jit_debug_descriptor.first->next &&
	      !__jit_debug_descriptor.first->prev);
	dpa_debugger_forget(first);
	dpa_debugger_forget(NULL);
	CHECK(!__jit_debug_descriptor.first && __jit_debug_descriptor.version == 1);
	CHECK(!dpa_debugger_show(file, 40, BASE));
}

/* At the end of a page: what is touched behind the file is a fault. */
static void test_mutated(const uint8_t *file, size_t bytes)
{
	size_t room = align_up(bytes, 65536);
	uint8_t *map = mmap(NULL, room + 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
	uint8_t *copy = map + room - bytes;
	struct rng rng = {9};
	unsigned moved = 0;

	CHECK(map != MAP_FAILED && !mprotect(map + room, 65536, PROT_NONE));
	for (unsigned i = 0; i < MUTATIONS; i++) {
		uint64_t n = 1 + rng_below(&rng, 6);
		size_t front = rng_below(&rng, 2) ? bytes : 4096;

		memcpy(copy, file, bytes);
		for (uint64_t k = 0; k < n; k++)
			copy[bytes - 1 - rng_below(&rng, front)] = (uint8_t)rng_next(&rng);
		moved += dpa_debugger_move(copy, bytes, BASE);
	}
	CHECK_SAY(moved > MUTATIONS / 2, "%u", moved);
	for (size_t n = 0; n < bytes; n += 97) {
		memcpy(map + room - n, file, n);
		(void)!dpa_debugger_move(map + room - n, n, BASE);
	}
	munmap(map, room + 65536);
}

int main(int argc, char **argv)
{
	uint8_t *file, *moved;
	size_t bytes;

	CHECK(argc == 2);
	file = fixture_read(argv[1], &bytes);
	moved = fixture_read(argv[1], &bytes);
	CHECK(dpa_debugger_move(moved, bytes, BASE));
	test_lines(file, moved, bytes);
	test_sections(file, moved);
	test_list(file, bytes);
	test_mutated(file, bytes);
	free(file);
	free(moved);
	return 0;
}
