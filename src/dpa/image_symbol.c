// SPDX-License-Identifier: BSD-2-Clause
/* Finds the symbols of an image: first those of the dynamic linker, then all. */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "dpa/image.h"

static bool symbol_at(const struct dpa_image *im, const struct dpa_symbols *t, uint64_t i,
		      Elf64_Sym *sym, const char **name)
{
	memcpy(sym, im->file + t->offset + i * sizeof(*sym), sizeof(*sym));
	if (sym->st_name >= t->names_bytes || sym->st_shndx == SHN_UNDEF ||
	    sym->st_shndx >= SHN_LORESERVE)
		return false;
	/* The last byte of the names is a zero. */
	*name = (const char *)im->file + t->names + sym->st_name;
	return true;
}

static bool symbol_find_in(const struct dpa_image *im, const struct dpa_symbols *t,
			   const char *name, unsigned type, Elf64_Sym *out)
{
	for (uint64_t i = 0; i < t->count; i++) {
		const char *other;
		Elf64_Sym sym;

		if (symbol_at(im, t, i, &sym, &other) && ELF64_ST_TYPE(sym.st_info) == type &&
		    ELF64_ST_BIND(sym.st_info) != STB_LOCAL && !strcmp(other, name)) {
			*out = sym;
			return true;
		}
	}
	return false;
}

static bool symbol_find(const struct dpa_image *im, const char *name, unsigned type, Elf64_Sym *out)
{
	return symbol_find_in(im, &im->dynamic, name, type, out) ||
	       symbol_find_in(im, &im->all, name, type, out);
}

bool dpa_image_function(const struct dpa_image *im, const char *name, uint64_t *addr)
{
	Elf64_Sym sym;

	if (!symbol_find(im, name, STT_FUNC, &sym) ||
	    !dpa_image_has(im, sym.st_value, 1, PROT_EXEC))
		return false;
	*addr = sym.st_value;
	return true;
}

/* Tells whether some of it becomes read-only.  That part begins with a page, so the rest of a page
 * in front may become read-only, too. */
static bool in_relro(const struct dpa_image *im, uint64_t addr, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return im->relro_bytes && addr < im->relro + im->relro_bytes &&
	       addr + bytes > (im->relro & ~(page - 1));
}

bool dpa_image_variable(const struct dpa_image *im, const char *name, uint64_t bytes,
			uint64_t *addr)
{
	Elf64_Sym sym;

	if (!symbol_find(im, name, STT_OBJECT, &sym) || sym.st_size < bytes || sym.st_value % 8 ||
	    !dpa_image_has(im, sym.st_value, bytes, PROT_READ | PROT_WRITE) ||
	    in_relro(im, sym.st_value, bytes))
		return false;
	*addr = sym.st_value;
	return true;
}

const char *dpa_image_where(const struct dpa_image *im, uint64_t addr, uint64_t *offset)
{
	const struct dpa_symbols *t = im->all.count ? &im->all : &im->dynamic;

	for (uint64_t i = 0; i < t->count; i++) {
		const char *name;
		Elf64_Sym sym;

		if (symbol_at(im, t, i, &sym, &name) && ELF64_ST_TYPE(sym.st_info) == STT_FUNC &&
		    addr >= sym.st_value && addr - sym.st_value < sym.st_size) {
			*offset = addr - sym.st_value;
			return name;
		}
	}
	return NULL;
}
