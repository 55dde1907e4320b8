// SPDX-License-Identifier: BSD-2-Clause
/* See image.h. */
#include "flexio/image.h"

#include <elf.h>
#include <string.h>

#include "base/elf.h"

struct symbol {
	Elf64_Sym sym;
	const char *name;
};

/* arg: a name, or a pointer to an address. */
typedef bool symbol_wanted(const struct symbol *symbol, const void *arg);

static bool is_named(const struct symbol *symbol, const char *name)
{
	return symbol->sym.st_shndx < SHN_LORESERVE && !strcmp(symbol->name, name);
}

static bool is_function_named(const struct symbol *symbol, const void *name)
{
	return ELF64_ST_TYPE(symbol->sym.st_info) == STT_FUNC &&
	       ELF64_ST_BIND(symbol->sym.st_info) != STB_LOCAL && is_named(symbol, name);
}

static bool is_variable_named(const struct symbol *symbol, const void *name)
{
	return ELF64_ST_TYPE(symbol->sym.st_info) == STT_OBJECT && is_named(symbol, name);
}

static bool is_function_at(const struct symbol *symbol, const void *addr)
{
	return ELF64_ST_TYPE(symbol->sym.st_info) == STT_FUNC &&
	       *(const uint64_t *)addr - symbol->sym.st_value < symbol->sym.st_size;
}

/* Finds the first symbol with a definition and a name that is wanted. */
static bool table_search(struct bytes symbols, struct bytes names, symbol_wanted *wanted,
			 const void *arg, struct symbol *out)
{
	const uint8_t *at;

	while ((at = bytes_take(&symbols, sizeof(Elf64_Sym)))) {
		memcpy(&out->sym, at, sizeof(out->sym));
		out->name = bytes_string_at(names, out->sym.st_name);
		if (out->name && out->sym.st_shndx != SHN_UNDEF && wanted(out, arg))
			return true;
	}
	return false;
}

static bool symbol_find(const struct elf_sections *s, symbol_wanted *wanted, const void *arg,
			struct symbol *out)
{
	for (uint32_t i = 0; i < s->count; i++) {
		Elf64_Shdr sh = elf_section(s, i), names;

		if ((sh.sh_type != SHT_DYNSYM && sh.sh_type != SHT_SYMTAB) ||
		    sh.sh_link >= s->count)
			continue;
		names = elf_section(s, sh.sh_link);
		if (table_search(elf_section_content(s, &sh), elf_section_content(s, &names),
				 wanted, arg, out))
			return true;
	}
	return false;
}

bool flx_symbol_is_function(const void *file, size_t bytes, const char *name)
{
	struct elf_sections s;
	struct symbol found;

	return elf_sections_open(&s, file, bytes) &&
	       symbol_find(&s, is_function_named, name, &found);
}

bool flx_symbol_data(const void *file, size_t bytes, const char *name, const void **data, size_t *n)
{
	struct elf_sections s;
	struct symbol found;
	struct bytes content;
	Elf64_Shdr sh;

	if (!elf_sections_open(&s, file, bytes) ||
	    !symbol_find(&s, is_variable_named, name, &found) || found.sym.st_shndx >= s.count)
		return false;
	sh = elf_section(&s, found.sym.st_shndx);
	*n = found.sym.st_size;
	*data = NULL;
	if (sh.sh_type == SHT_NOBITS)
		return true;
	content = elf_section_content(&s, &sh);
	if (!bytes_take(&content, found.sym.st_value - sh.sh_addr))
		return false;
	*data = bytes_take(&content, found.sym.st_size);
	return !content.bad;
}

const char *flx_symbol_at(const void *file, size_t bytes, uint64_t addr)
{
	struct elf_sections s;
	struct symbol found;

	return elf_sections_open(&s, file, bytes) && symbol_find(&s, is_function_at, &addr, &found)
		       ? found.name
		       : NULL;
}
