// SPDX-License-Identifier: BSD-2-Clause
/* See symbol.h. */
#include "flexio/symbol.h"

#include <elf.h>
#include <string.h>

#include "base/elf.h"

static bool symbol_is(const Elf64_Sym *sym, struct bytes names, const char *name)
{
	const char *other;

	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || ELF64_ST_BIND(sym->st_info) == STB_LOCAL ||
	    sym->st_shndx == SHN_UNDEF || sym->st_shndx >= SHN_LORESERVE)
		return false;
	other = bytes_string_at(names, sym->st_name);
	return other && !strcmp(other, name);
}

static bool table_has(struct bytes symbols, struct bytes names, const char *name)
{
	const uint8_t *at;

	while ((at = bytes_take(&symbols, sizeof(Elf64_Sym)))) {
		Elf64_Sym sym;

		memcpy(&sym, at, sizeof(sym));
		if (symbol_is(&sym, names, name))
			return true;
	}
	return false;
}

bool flx_symbol_is_function(const void *file, size_t bytes, const char *name)
{
	struct elf_sections s;

	if (!elf_sections_open(&s, file, bytes))
		return false;
	for (uint32_t i = 0; i < s.count; i++) {
		Elf64_Shdr sh = elf_section(&s, i), names;

		if ((sh.sh_type != SHT_DYNSYM && sh.sh_type != SHT_SYMTAB) || sh.sh_link >= s.count)
			continue;
		names = elf_section(&s, sh.sh_link);
		if (table_has(elf_section_content(&s, &sh), elf_section_content(&s, &names), name))
			return true;
	}
	return false;
}
