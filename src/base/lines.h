/* SPDX-License-Identifier: BSD-2-Clause */
/* From a place in an ELF file to the line of the source, by the line tables of DWARF 2 to 5. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_line {
	const char *file; /* lies in the ELF file */
	uint64_t line;
};

/* The file may be anything: all is checked before use.  False: it does not say. */
bool elf_line_find(const void *elf, size_t bytes, uint64_t addr, struct elf_line *out);
