// SPDX-License-Identifier: BSD-2-Clause
/*
 * The file of an image with the addresses of the process, for a debugger (dpa/debugger.h).  Debug
 * information that is not understood is left out, so that a debugger shows less rather than
 * something wrong.
 */
#include "dpa/debugger.h"

#include <string.h>

#include "base/elf.h"

struct moving {
	uint8_t *elf;
	size_t bytes;
	uint64_t base;
	Elf64_Ehdr h;
	struct elf_sections sections;
};

static void section_put(const struct moving *m, uint32_t i, const Elf64_Shdr *sh)
{
	memcpy(m->elf + m->sections.offset + i * sizeof(*sh), sh, sizeof(*sh));
}

/* ---- headers and symbols ---- */

static bool headers_read(struct moving *m)
{
	Elf64_Ehdr *h = &m->h;

	if (!elf_sections_open(&m->sections, m->elf, m->bytes))
		return false;
	memcpy(h, m->elf, sizeof(*h));
	return h->e_phentsize == sizeof(Elf64_Phdr) &&
	       range_inside(h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr), m->bytes);
}

static void segments_move(const struct moving *m)
{
	for (uint32_t i = 0; i < m->h.e_phnum; i++) {
		uint8_t *at = m->elf + m->h.e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr ph;

		memcpy(&ph, at, sizeof(ph));
		if (ph.p_type == PT_GNU_STACK)
			continue;
		ph.p_vaddr += m->base;
		ph.p_paddr += m->base;
		memcpy(at, &ph, sizeof(ph));
	}
}

static void symbols_move(const struct moving *m, struct bytes table)
{
	for (uint64_t i = 0; i < table.left / sizeof(Elf64_Sym); i++) {
		uint8_t *at = m->elf + (table.at - m->elf) + i * sizeof(Elf64_Sym);
		Elf64_Sym sym;

		memcpy(&sym, at, sizeof(sym));
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE)
			continue;
		sym.st_value += m->base;
		memcpy(at, &sym, sizeof(sym));
	}
}

static void sections_move(const struct moving *m)
{
	for (uint32_t i = 0; i < m->sections.count; i++) {
		Elf64_Shdr sh = elf_section(&m->sections, i);

		if (sh.sh_flags & SHF_ALLOC) {
			sh.sh_addr += m->base;
			section_put(m, i, &sh);
		}
		if (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM)
			symbols_move(m, elf_section_content(&m->sections, &sh));
	}
}

/* ---- debug information ---- */

/* Tells whether a section has only tables of addresses that others do not need. */
static bool is_left_out(const char *name)
{
	return !strcmp(name, ".debug_aranges") || !strcmp(name, ".debug_names") ||
	       !strcmp(name, ".gdb_index");
}

static void debug_leave_out(const struct moving *m, bool all)
{
	const Elf64_Shdr none = {0};

	for (uint32_t i = 0; i < m->sections.count; i++) {
		Elf64_Shdr sh = elf_section(&m->sections, i);
		const char *name = elf_section_name(&m->sections, &sh);

		if (is_left_out(name) || (all && !strncmp(name, ".debug", 6)))
			section_put(m, i, &none);
	}
}

/* Collects the debug sections; false: something is in the way. */
static bool debug_collect(const struct moving *m, struct dpa_dwarf *d)
{
	const struct {
		const char *name;
		struct bytes *part;
	} parts[] = {{".debug_info", &d->info},	  {".debug_abbrev", &d->abbrev},
		     {".debug_line", &d->line},	  {".debug_addr", &d->addr},
		     {".debug_frame", &d->frame}, {".debug_ranges", &d->ranges},
		     {".debug_loc", &d->loc}};

	for (uint32_t i = 0; i < m->sections.count; i++) {
		Elf64_Shdr sh = elf_section(&m->sections, i);
		const char *name = elf_section_name(&m->sections, &sh);

		for (size_t k = 0; k < array_size(parts); k++)
			if (!strcmp(name, parts[k].name)) {
				*parts[k].part = elf_section_content(&m->sections, &sh);
				if (parts[k].part->bad || sh.sh_flags & SHF_COMPRESSED)
					return false;
			}
	}
	return true;
}

bool dpa_debugger_move(uint8_t *elf, size_t bytes, uint64_t base)
{
	struct moving m = {.elf = elf, .bytes = bytes, .base = base};
	struct dpa_dwarf dwarf = {.elf = elf, .base = base};
	bool understood;

	if (!headers_read(&m))
		return false;
	understood = debug_collect(&m, &dwarf);
	debug_leave_out(&m, !understood);
	if (understood)
		dpa_debugger_dwarf(&dwarf);
	segments_move(&m);
	sections_move(&m);
	return true;
}
