// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/image.h. */
#include "dpa/image.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/elf.h"

/* ---- symbols: first those of the dynamic linker, then all ---- */

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

/* ---- the file's headers, and how it gets into memory ---- */

#define HEADERS_MAX 64u
#define DYNAMIC_MAX 256u

#if defined(__x86_64__)
#define MACHINE	 EM_X86_64
#define RELATIVE R_X86_64_RELATIVE
#elif defined(__aarch64__)
#define MACHINE	 EM_AARCH64
#define RELATIVE R_AARCH64_RELATIVE
#else
#define MACHINE	 EM_NONE
#define RELATIVE 0
#endif

static uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t page_floor(uint64_t addr)
{
	return addr & ~(page_bytes() - 1);
}

static uint64_t page_ceil(uint64_t addr)
{
	return align_up(addr, page_bytes());
}

/* ---- the file's headers ---- */

static const char *header_check(const Elf64_Ehdr *h)
{
	if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0)
		return "it is not an ELF file";
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    h->e_ident[EI_VERSION] != EV_CURRENT || h->e_version != EV_CURRENT)
		return "it is not a little-endian ELF file of 64 bits";
	if (h->e_machine != MACHINE)
		return "it is for another kind of processor";
	if (h->e_type != ET_DYN)
		return "it is not a position-independent executable";
	if (h->e_phentsize != sizeof(Elf64_Phdr) || !h->e_phnum || h->e_phnum > HEADERS_MAX)
		return "its program headers are of another form";
	return NULL;
}

static int segment_prot(uint32_t flags)
{
	return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) |
	       (flags & PF_X ? PROT_EXEC : 0);
}

static const char *segment_add(struct dpa_image *im, const Elf64_Phdr *ph)
{
	struct dpa_segment *s = &im->segment[im->nsegments];

	/* A program without constants has such a segment, for example. */
	if (!ph->p_memsz && !ph->p_filesz)
		return NULL;
	if (im->nsegments == DPA_IMAGE_SEGMENTS)
		return "it has too many segments";
	if (!range_inside(ph->p_offset, ph->p_filesz, im->file_bytes))
		return "a segment is not in the file";
	if (ph->p_filesz > ph->p_memsz)
		return "a segment is longer in the file than in memory";
	if (!range_inside(ph->p_vaddr, ph->p_memsz, DPA_IMAGE_SPAN_MAX))
		return "it is too large";
	if (page_floor(ph->p_vaddr) < im->span)
		return "its segments overlap";
	if ((ph->p_flags & (PF_W | PF_X)) == (PF_W | PF_X))
		return "a segment is both writable and executable";
	*s = (struct dpa_segment){
		.addr = ph->p_vaddr,
		.bytes = ph->p_memsz,
		.offset = ph->p_offset,
		.file_bytes = ph->p_filesz,
		.prot = segment_prot(ph->p_flags),
	};
	im->span = page_ceil(ph->p_vaddr + ph->p_memsz);
	im->nsegments++;
	return NULL;
}

/* Returns the segment that has that many bytes from addr on; with 'in_file', bytes of the file. */
static const struct dpa_segment *segment_of(const struct dpa_image *im, uint64_t addr,
					    uint64_t bytes, bool in_file)
{
	for (unsigned i = 0; i < im->nsegments; i++) {
		const struct dpa_segment *s = &im->segment[i];

		if (addr >= s->addr &&
		    range_inside(addr - s->addr, bytes, in_file ? s->file_bytes : s->bytes))
			return s;
	}
	return NULL;
}

bool dpa_image_has(const struct dpa_image *im, uint64_t addr, uint64_t bytes, int prot)
{
	const struct dpa_segment *s = segment_of(im, addr, bytes, false);

	return s && (s->prot & prot) == prot;
}

/* Finds where in the file the bytes at that address come from. */
static bool file_offset(const struct dpa_image *im, uint64_t addr, uint64_t bytes, uint64_t *offset)
{
	const struct dpa_segment *s = segment_of(im, addr, bytes, true);

	if (s)
		*offset = s->offset + (addr - s->addr);
	return s != NULL;
}

/* ---- the dynamic section ---- */

struct rela_table {
	uint64_t addr, bytes, entry;
};

static const char *dynamic_entry(const Elf64_Dyn *d, struct rela_table *rela)
{
	switch (d->d_tag) {
	case DT_NEEDED:
		return "it needs a shared library";
	case DT_REL:
	case DT_TEXTREL:
	case DT_RELR:
		return "it has relocations of an unknown form";
	case DT_PLTRELSZ:
		return d->d_un.d_val ? "it has symbols that are not defined" : NULL;
	case DT_RELA:
		rela->addr = d->d_un.d_ptr;
		return NULL;
	case DT_RELASZ:
		rela->bytes = d->d_un.d_val;
		return NULL;
	case DT_RELAENT:
		rela->entry = d->d_un.d_val;
		return NULL;
	default:
		return NULL;
	}
}

static const char *dynamic_read(struct dpa_image *im, uint64_t offset, uint64_t bytes)
{
	struct rela_table rela = {0, 0, sizeof(Elf64_Rela)};
	uint64_t n = min_u64(bytes / sizeof(Elf64_Dyn), DYNAMIC_MAX);

	for (uint64_t i = 0; i < n; i++) {
		const char *wrong;
		Elf64_Dyn d;

		memcpy(&d, im->file + offset + i * sizeof(d), sizeof(d));
		if (d.d_tag == DT_NULL)
			break;
		wrong = dynamic_entry(&d, &rela);
		if (wrong)
			return wrong;
	}
	if (!rela.bytes)
		return NULL;
	if (rela.entry != sizeof(Elf64_Rela) || rela.bytes % sizeof(Elf64_Rela) ||
	    !file_offset(im, rela.addr, rela.bytes, &im->rela))
		return "its relocations are not in the file";
	im->rela_bytes = rela.bytes;
	return NULL;
}

/* Checks that each lies in writable memory and names a place in the image. */
static const char *relocations_check(const struct dpa_image *im)
{
	for (uint64_t at = 0; at < im->rela_bytes; at += sizeof(Elf64_Rela)) {
		Elf64_Rela r;

		memcpy(&r, im->file + im->rela + at, sizeof(r));
		if (r.r_info != ELF64_R_INFO(0, RELATIVE))
			return "it has a relocation other than of its base";
		if (!dpa_image_has(im, r.r_offset, sizeof(uint64_t), PROT_WRITE))
			return "a relocation is not in writable memory";
		if ((uint64_t)r.r_addend > im->span)
			return "a relocation leads out of it";
	}
	return NULL;
}

/* ---- all program headers ---- */

static const char *program_header(struct dpa_image *im, const Elf64_Phdr *ph, Elf64_Phdr *dynamic)
{
	switch (ph->p_type) {
	case PT_LOAD:
		return segment_add(im, ph);
	case PT_INTERP:
		return "it asks for a dynamic linker";
	case PT_TLS:
		return "it has thread-local variables";
	case PT_GNU_STACK:
		return ph->p_flags & PF_X ? "it asks for an executable stack" : NULL;
	case PT_DYNAMIC:
		*dynamic = *ph;
		return NULL;
	case PT_GNU_RELRO:
		im->relro = ph->p_vaddr;
		im->relro_bytes = ph->p_memsz;
		return NULL;
	default:
		return NULL;
	}
}

static const char *program_headers(struct dpa_image *im, const Elf64_Ehdr *h)
{
	Elf64_Phdr ph, dynamic = {.p_type = PT_NULL};
	const char *wrong = NULL;
	uint64_t at;

	if (!range_inside(h->e_phoff, (uint64_t)h->e_phnum * sizeof(ph), im->file_bytes))
		return "its program headers are not in the file";
	for (uint32_t i = 0; !wrong && i < h->e_phnum; i++) {
		memcpy(&ph, im->file + h->e_phoff + i * sizeof(ph), sizeof(ph));
		wrong = program_header(im, &ph, &dynamic);
	}
	if (wrong)
		return wrong;
	if (!im->nsegments)
		return "it has nothing to load";
	/* The linker counts it up to the end of its last page. */
	if (im->relro_bytes && (!dpa_image_has(im, im->relro, 1, PROT_WRITE) ||
				!range_inside(im->relro, im->relro_bytes, im->span)))
		return "what it wants protected is not its own";
	if (dynamic.p_type == PT_NULL)
		return NULL;
	if (!file_offset(im, dynamic.p_vaddr, dynamic.p_filesz, &at))
		return "its dynamic section is not in the file";
	return dynamic_read(im, at, dynamic.p_filesz);
}

/* ---- sections: only those with symbols ---- */

static const char *symbols_read(const struct elf_sections *s, const Elf64_Shdr *sh,
				struct dpa_symbols *out)
{
	struct bytes content = elf_section_content(s, sh), names;
	Elf64_Shdr names_sh;

	if (sh->sh_entsize != sizeof(Elf64_Sym) || content.bad)
		return "its symbols are not in the file";
	if (sh->sh_link >= s->count)
		return "its symbols have no names";
	names_sh = elf_section(s, sh->sh_link);
	names = elf_section_content(s, &names_sh);
	if (names_sh.sh_type != SHT_STRTAB || names.bad || !names.left || names.at[names.left - 1])
		return "the names of its symbols are not in the file";
	*out = (struct dpa_symbols){
		.offset = sh->sh_offset,
		.count = content.left / sizeof(Elf64_Sym),
		.names = names_sh.sh_offset,
		.names_bytes = names.left,
	};
	return NULL;
}

static const char *section_headers(struct dpa_image *im)
{
	const char *wrong = NULL;
	struct elf_sections s;

	if (!elf_sections_open(&s, im->file, im->file_bytes))
		return "its section headers are not in the file";
	if (!s.count)
		return "it has no symbols";
	for (uint32_t i = 0; !wrong && i < s.count; i++) {
		Elf64_Shdr sh = elf_section(&s, i);

		if (sh.sh_type == SHT_DYNSYM)
			wrong = symbols_read(&s, &sh, &im->dynamic);
		else if (sh.sh_type == SHT_SYMTAB)
			wrong = symbols_read(&s, &sh, &im->all);
	}
	return wrong;
}

const char *dpa_image_open(struct dpa_image *im, const void *file, size_t bytes)
{
	const char *wrong;
	Elf64_Ehdr h;

	*im = (struct dpa_image){.file = file, .file_bytes = bytes};
	if (bytes < sizeof(h))
		return "it is too short for an ELF file";
	memcpy(&h, file, sizeof(h));
	wrong = header_check(&h);
	if (!wrong)
		wrong = program_headers(im, &h);
	if (!wrong)
		wrong = relocations_check(im);
	return wrong ? wrong : section_headers(im);
}

/* ---- into memory ---- */

static int segment_protect(const struct dpa_segment *s, uint8_t *base, int prot)
{
	uint64_t start = page_floor(s->addr);

	return mprotect(base + start, page_ceil(s->addr + s->bytes) - start, prot) ? -errno : 0;
}

static void relocations_apply(const struct dpa_image *im, uint8_t *base)
{
	for (uint64_t at = 0; at < im->rela_bytes; at += sizeof(Elf64_Rela)) {
		uint64_t value;
		Elf64_Rela r;

		memcpy(&r, im->file + im->rela + at, sizeof(r));
		value = (uintptr_t)base + (uint64_t)r.r_addend;
		memcpy(base + r.r_offset, &value, sizeof(value));
	}
}

/* Protects whole pages of it, because the last page may have variables behind it. */
static int relro_protect(const struct dpa_image *im, uint8_t *base)
{
	uint64_t start = page_floor(im->relro), end = page_floor(im->relro + im->relro_bytes);

	return end > start && mprotect(base + start, end - start, PROT_READ) ? -errno : 0;
}

int dpa_image_load(const struct dpa_image *im, void *at)
{
	uint8_t *base = at;
	int ret = 0;

	for (unsigned i = 0; !ret && i < im->nsegments; i++) {
		const struct dpa_segment *s = &im->segment[i];

		ret = segment_protect(s, base, PROT_READ | PROT_WRITE);
		if (!ret)
			memcpy(base + s->addr, im->file + s->offset, s->file_bytes);
	}
	if (ret)
		return ret;
	relocations_apply(im, base);
	for (unsigned i = 0; !ret && i < im->nsegments; i++)
		ret = segment_protect(&im->segment[i], base, im->segment[i].prot);
#if defined(__aarch64__)
	__builtin___clear_cache((char *)base, (char *)base + im->span);
#endif
	return ret ? ret : relro_protect(im, base);
}
