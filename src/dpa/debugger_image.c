// SPDX-License-Identifier: BSD-2-Clause
/*
 * An image's file with the addresses of the process, for a debugger (dpa/debugger.h).  What is not
 * understood of the debug information is left out, so that a debugger shows less rather than
 * something wrong.
 */
#include "dpa/debugger.h"

#include <elf.h>
#include <string.h>

#include "base/compiler.h"

struct moving {
	uint8_t *elf;
	size_t bytes;
	uint64_t base;
	Elf64_Ehdr h;
	struct bytes names; /* of sections */
};

static struct bytes section_content(const struct moving *m, const Elf64_Shdr *sh)
{
	if (sh->sh_type == SHT_NOBITS || !range_inside(sh->sh_offset, sh->sh_size, m->bytes))
		return (struct bytes){NULL, 0, true};
	return (struct bytes){m->elf + sh->sh_offset, sh->sh_size, false};
}

static uint8_t *section_header(const struct moving *m, uint32_t i)
{
	return m->elf + m->h.e_shoff + i * sizeof(Elf64_Shdr);
}

static const char *section_name(const struct moving *m, const Elf64_Shdr *sh)
{
	const char *name = bytes_string_at(m->names, sh->sh_name);

	return name ? name : "";
}

/* ---- headers and symbols ---- */

static bool headers_read(struct moving *m)
{
	Elf64_Shdr names = {0};
	Elf64_Ehdr *h = &m->h;

	if (m->bytes < sizeof(*h))
		return false;
	memcpy(h, m->elf, sizeof(*h));
	if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_phentsize != sizeof(Elf64_Phdr) ||
	    !range_inside(h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr), m->bytes) ||
	    !range_inside(h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr), m->bytes))
		return false;
	if (h->e_shstrndx < h->e_shnum)
		memcpy(&names, section_header(m, h->e_shstrndx), sizeof(names));
	m->names = section_content(m, &names);
	return true;
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
	for (uint32_t i = 0; i < m->h.e_shnum; i++) {
		uint8_t *at = section_header(m, i);
		Elf64_Shdr sh;

		memcpy(&sh, at, sizeof(sh));
		if (sh.sh_flags & SHF_ALLOC) {
			sh.sh_addr += m->base;
			memcpy(at, &sh, sizeof(sh));
		}
		if (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM)
			symbols_move(m, section_content(m, &sh));
	}
}

/* ---- debug information ---- */

/* Those with tables of addresses that others need not have. */
static bool is_left_out(const char *name)
{
	return !strcmp(name, ".debug_aranges") || !strcmp(name, ".debug_names") ||
	       !strcmp(name, ".gdb_index");
}

static void debug_leave_out(const struct moving *m, bool all)
{
	for (uint32_t i = 0; i < m->h.e_shnum; i++) {
		uint8_t *at = section_header(m, i);
		const char *name;
		Elf64_Shdr sh;

		memcpy(&sh, at, sizeof(sh));
		name = section_name(m, &sh);
		if (is_left_out(name) || (all && !strncmp(name, ".debug", 6)))
			memset(at, 0, sizeof(sh));
	}
}

/* False: there is something in the way. */
static bool debug_collect(const struct moving *m, struct dpa_dwarf *d)
{
	const struct {
		const char *name;
		struct bytes *part;
	} parts[] = {{".debug_info", &d->info},	  {".debug_abbrev", &d->abbrev},
		     {".debug_line", &d->line},	  {".debug_addr", &d->addr},
		     {".debug_frame", &d->frame}, {".debug_ranges", &d->ranges},
		     {".debug_loc", &d->loc}};

	for (uint32_t i = 0; i < m->h.e_shnum; i++) {
		Elf64_Shdr sh;

		memcpy(&sh, section_header(m, i), sizeof(sh));
		for (size_t k = 0; k < array_size(parts); k++)
			if (!strcmp(section_name(m, &sh), parts[k].name)) {
				*parts[k].part = section_content(m, &sh);
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
