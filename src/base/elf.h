/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sections of a 64-bit ELF file that may be spoiled: a section that is not in the file is bad
 * or has no name, and nobody touches it.
 */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/compiler.h"

struct elf_sections {
	const uint8_t *file;
	size_t bytes;
	uint64_t offset; /* where the table begins */
	uint32_t count;
	struct bytes names;
};

/* The header of one section. */
static inline Elf64_Shdr elf_section(const struct elf_sections *s, uint32_t index)
{
	Elf64_Shdr sh;

	memcpy(&sh, s->file + s->offset + index * sizeof(sh), sizeof(sh));
	return sh;
}

static inline struct bytes elf_section_content(const struct elf_sections *s, const Elf64_Shdr *sh)
{
	if (sh->sh_type == SHT_NOBITS || !range_inside(sh->sh_offset, sh->sh_size, s->bytes))
		return (struct bytes){NULL, 0, true};
	return (struct bytes){s->file + sh->sh_offset, sh->sh_size, false};
}

static inline const char *elf_section_name(const struct elf_sections *s, const Elf64_Shdr *sh)
{
	const char *name = bytes_string_at(s->names, sh->sh_name);

	return name ? name : "";
}

/* False: it is no such file, or the file does not hold the table.  A file may have no sections. */
static inline bool elf_sections_open(struct elf_sections *s, const void *file, size_t bytes)
{
	Elf64_Shdr names;
	Elf64_Ehdr h;

	*s = (struct elf_sections){.file = file, .bytes = bytes, .names = {NULL, 0, true}};
	if (bytes < sizeof(h))
		return false;
	memcpy(&h, file, sizeof(h));
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return false;
	if (!h.e_shnum)
		return true;
	if (h.e_shentsize != sizeof(names) ||
	    !range_inside(h.e_shoff, (uint64_t)h.e_shnum * sizeof(names), bytes))
		return false;
	s->offset = h.e_shoff;
	s->count = h.e_shnum;
	if (h.e_shstrndx < s->count) {
		names = elf_section(s, h.e_shstrndx);
		s->names = elf_section_content(s, &names);
	}
	return true;
}
