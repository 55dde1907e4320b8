/* SPDX-License-Identifier: BSD-2-Clause */
/* ELF files and their debug information (DWARF), which may be spoiled. */
#pragma once

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/compiler.h"

/*
 * Reads bytes that may be spoiled.  A read beyond the end returns zero or NULL, and so do all reads
 * after it, until somebody looks at `bad`.  Numbers are little-endian.
 */

struct bytes {
	const uint8_t *at;
	size_t left;
	bool bad; /* a read went beyond the end */
};

static inline const uint8_t *bytes_take(struct bytes *b, uint64_t n)
{
	const uint8_t *at = b->at;

	/* A read beyond the end takes nothing.  A part of no bytes would have no place. */
	if (b->bad || !b->at || n > b->left) {
		b->bad = true;
		return NULL;
	}
	b->at += n;
	b->left -= n;
	return at;
}

/* The next n bytes as a reader of their own; empty and bad if there are not that many. */
static inline struct bytes bytes_part(struct bytes *b, uint64_t n)
{
	const uint8_t *at = bytes_take(b, n);

	return at ? (struct bytes){at, n, false} : (struct bytes){NULL, 0, true};
}

static inline uint64_t bytes_number(struct bytes *b, unsigned width)
{
	const uint8_t *at = bytes_take(b, width);
	uint64_t value = 0;

	for (unsigned i = width; at && i; i--)
		value = value << 8 | at[i - 1];
	return value;
}

/* Reads a LEB128 number, which has seven bits in each byte. */
static inline uint64_t bytes_leb(struct bytes *b, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)bytes_number(b, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80 && !b->bad);
	if (is_signed && byte & 0x40 && shift < 64)
		value |= UINT64_MAX << shift;
	return value;
}

static inline const char *bytes_string(struct bytes *b)
{
	const uint8_t *end = b->bad || !b->left ? NULL : memchr(b->at, 0, b->left);

	if (!end) {
		b->bad = true;
		return NULL;
	}
	return (const char *)bytes_take(b, (uint64_t)(end - b->at) + 1);
}

static inline const char *bytes_string_at(struct bytes table, uint64_t offset)
{
	return bytes_take(&table, offset) ? bytes_string(&table) : NULL;
}

/*
 * The sections of a 64-bit ELF file that may be spoiled: a section that is not in the file is bad
 * or has no name, and nobody touches it.
 */

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

/* Numbers of DWARF 2 to 5 (dwarfstd.org), in 32-bit format with addresses of 8 bytes. */

#define DWARF_ADDRESS_BYTES 8u

/* The forms of attributes that code here asks for by name. */
enum {
	FORM_ADDR = 0x01,
	FORM_BLOCK2 = 0x03,
	FORM_BLOCK4,
	FORM_DATA2,
	FORM_DATA4,
	FORM_DATA8,
	FORM_STRING,
	FORM_BLOCK,
	FORM_BLOCK1,
	FORM_DATA1,
	FORM_STRP = 0x0e,
	FORM_UDATA,
	FORM_REF_ADDR,
	FORM_INDIRECT = 0x16,
	FORM_EXPRLOC = 0x18,
	FORM_DATA16 = 0x1e,
	FORM_LINE_STRP,
	FORM_IMPLICIT_CONST = 0x21,
	FORMS = 0x2d,
};

/* Sizes of forms that no number of bytes says: the value itself says where it ends, or we do not
 * know the form. */
#define FORM_LEB     0xfeu
#define FORM_UNKNOWN 0xffu

/* How many bytes a form has, or FORM_LEB or FORM_UNKNOWN. */
static inline unsigned dwarf_form_bytes(uint64_t form)
{
	static const uint8_t bytes[FORMS] = {
		[0x00] = FORM_UNKNOWN,
		[0x01] = 8,
		[0x02] = FORM_UNKNOWN,
		[0x03] = FORM_UNKNOWN,
		[0x04] = FORM_UNKNOWN,
		[0x05] = 2,
		[0x06] = 4,
		[0x07] = 8,
		[0x08] = FORM_UNKNOWN,
		[0x09] = FORM_UNKNOWN,
		[0x0a] = FORM_UNKNOWN,
		[0x0b] = 1,
		[0x0c] = 1,
		[0x0d] = FORM_LEB,
		[0x0e] = 4,
		[0x0f] = FORM_LEB,
		[0x10] = FORM_UNKNOWN,
		[0x11] = 1,
		[0x12] = 2,
		[0x13] = 4,
		[0x14] = 8,
		[0x15] = FORM_LEB,
		[0x16] = FORM_UNKNOWN,
		[0x17] = 4,
		[0x18] = FORM_UNKNOWN,
		[0x19] = 0,
		[0x1a] = FORM_LEB,
		[0x1b] = FORM_LEB,
		[0x1c] = 4,
		[0x1d] = 4,
		[0x1e] = 16,
		[0x1f] = 4,
		[0x20] = 8,
		[0x21] = 0,
		[0x22] = FORM_LEB,
		[0x23] = FORM_LEB,
		[0x24] = 8,
		[0x25] = 1,
		[0x26] = 2,
		[0x27] = 3,
		[0x28] = 4,
		[0x29] = 1,
		[0x2a] = 2,
		[0x2b] = 3,
		[0x2c] = 4,
	};

	return form < FORMS ? bytes[form] : FORM_UNKNOWN;
}

/* Opcodes of line number programs, standard and extended. */
enum {
	LNS_COPY = 1,
	LNS_ADVANCE_PC,
	LNS_ADVANCE_LINE,
	LNS_SET_FILE,
	LNS_CONST_ADD_PC = 8,
	LNS_FIXED_ADVANCE_PC
};
enum { LNE_END_SEQUENCE = 1, LNE_SET_ADDRESS };
