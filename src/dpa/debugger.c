// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/debugger.h. */
#include "dpa/debugger.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/elf.h"
#include "base/compiler.h"

/* ---- the addresses in debug information ---- */

/* Sections of a file, which are parts of it; a missing section is empty. */
struct dpa_dwarf {
	uint8_t *elf;
	uint64_t base;
	struct bytes info, abbrev, line, addr, frame, ranges, loc;
};

/*
 * Moves the addresses in debug information to where the image lies (dpa/debugger.h).  It knows
 * DWARF 2 to 5 as clang writes it: lists of ranges and places there count from the beginning of
 * their unit, or from an address that they give, in DWARF 5 by its index.
 *
 * An address of zero stands for a function that the linker has left out.  It stays zero, which
 * debuggers know; but if a unit begins with zero, its lists count from there, so that zero moves.
 */

#define LENGTH_64	0xffffffffu /* another format follows, which nobody needs */
#define CIE		0xffffffffu
#define ABBREVS		512u
#define OP_ADDR		0x03u
#define UNIT_TYPE	2u
#define UNIT_SKELETON	4u
#define UNIT_SPLIT_TYPE 6u

static void address_move(const struct dpa_dwarf *d, const uint8_t *at, bool also_zero)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	if (!value && !also_zero)
		return;
	value += d->base;
	memcpy(d->elf + (at - d->elf), &value, sizeof(value));
}

/* Takes the next unit of a section, which begins with its length; false: the end, or an unknown
 * format. */
static bool unit_next(struct bytes *section, struct bytes *unit)
{
	uint64_t length = bytes_number(section, 4);

	*unit = bytes_part(section, length);
	return length != LENGTH_64 && !unit->bad;
}

/* ---- entries: attributes as their abbreviation says ---- */

struct unit {
	const struct dpa_dwarf *dwarf;
	unsigned version;
	bool first; /* entry: the unit itself */
	struct bytes table;
	struct bytes abbrev[ABBREVS]; /* attributes of the codes from 0 on */
};

static void expression_move(const struct unit *u, struct bytes expression)
{
	if (expression.left > DWARF_ADDRESS_BYTES && expression.at[0] == OP_ADDR)
		address_move(u->dwarf, expression.at + 1, false);
}

static void block_move(const struct unit *u, struct bytes *b, uint64_t bytes, bool expression)
{
	struct bytes block = bytes_part(b, bytes);

	if (expression && !block.bad)
		expression_move(u, block);
}

static void form_move(const struct unit *u, struct bytes *b, uint64_t form)
{
	unsigned bytes = dwarf_form_bytes(form);
	const uint8_t *at;

	switch (form) {
	case FORM_ADDR:
		at = bytes_take(b, DWARF_ADDRESS_BYTES);
		if (at)
			address_move(u->dwarf, at, u->first);
		break;
	case FORM_BLOCK1:
		block_move(u, b, bytes_number(b, 1), u->version < 4);
		break;
	case FORM_BLOCK2:
		block_move(u, b, bytes_number(b, 2), false);
		break;
	case FORM_BLOCK4:
		block_move(u, b, bytes_number(b, 4), false);
		break;
	case FORM_BLOCK:
	case FORM_EXPRLOC:
		block_move(u, b, bytes_leb(b, false), form == FORM_EXPRLOC);
		break;
	case FORM_STRING:
		(void)bytes_string(b);
		break;
	case FORM_REF_ADDR:
		(void)bytes_take(b, u->version < 3 ? DWARF_ADDRESS_BYTES : 4);
		break;
	default:
		if (bytes == FORM_UNKNOWN)
			b->bad = true;
		else if (bytes == FORM_LEB)
			(void)bytes_leb(b, false);
		else
			(void)bytes_take(b, bytes);
	}
}

/* Takes the next attribute of an abbreviation; false: there is none. */
static bool attribute_next(struct bytes *abbrev, uint64_t *form)
{
	uint64_t name = bytes_leb(abbrev, false);

	*form = bytes_leb(abbrev, false);
	if (*form == FORM_IMPLICIT_CONST)
		(void)bytes_leb(abbrev, true);
	return !abbrev->bad && (name || *form);
}

/* Takes the abbreviation that begins there; false: the table ends. */
static bool abbrev_next(struct bytes *table, uint64_t *code, struct bytes *attributes)
{
	uint64_t form;

	*code = bytes_leb(table, false);
	if (!*code || table->bad)
		return false;
	(void)bytes_leb(table, false); /* tag */
	(void)bytes_number(table, 1);  /* has children */
	*attributes = *table;
	while (attribute_next(table, &form))
		;
	return !table->bad;
}

static void abbrevs_read(struct unit *u)
{
	struct bytes table = u->table, attributes;
	uint64_t code;

	memset(u->abbrev, 0, sizeof(u->abbrev));
	while (abbrev_next(&table, &code, &attributes))
		if (code < ABBREVS)
			u->abbrev[code] = attributes;
}

/* Finds the abbreviation with that code; false: there is none. */
static bool abbrev_find(const struct unit *u, uint64_t code, struct bytes *attributes)
{
	struct bytes table = u->table;
	uint64_t other;

	if (code < ABBREVS) {
		*attributes = u->abbrev[code];
		return attributes->at != NULL;
	}
	while (abbrev_next(&table, &other, attributes))
		if (other == code)
			return true;
	return false;
}

static void entries_move(struct unit *u, struct bytes b)
{
	u->first = true;
	while (b.left && !b.bad) {
		uint64_t code = bytes_leb(&b, false), form;
		struct bytes attributes;

		if (!code)
			continue;
		if (!abbrev_find(u, code, &attributes))
			return;
		while (!b.bad && attribute_next(&attributes, &form)) {
			if (form == FORM_INDIRECT)
				form = bytes_leb(&b, false);
			form_move(u, &b, form);
		}
		u->first = false;
	}
}

/* Reads what comes before the entries; false: the format is unknown. */
static bool unit_open(struct unit *u, struct bytes *b)
{
	uint64_t abbrev, address_bytes, type = 0;

	u->version = (unsigned)bytes_number(b, 2);
	if (u->version < 2 || u->version > 5)
		return false;
	if (u->version == 5) {
		type = bytes_number(b, 1);
		address_bytes = bytes_number(b, 1);
		abbrev = bytes_number(b, 4);
	} else {
		abbrev = bytes_number(b, 4);
		address_bytes = bytes_number(b, 1);
	}
	if (type == UNIT_TYPE || type == UNIT_SPLIT_TYPE)
		(void)bytes_take(b, 12); /* signature and place of the type */
	else if (type >= UNIT_SKELETON)
		(void)bytes_take(b, 8);
	u->table = u->dwarf->abbrev;
	return bytes_take(&u->table, abbrev) && address_bytes == DWARF_ADDRESS_BYTES && !b->bad;
}

static void info_move(const struct dpa_dwarf *d)
{
	struct bytes section = d->info, b;
	struct unit u = {.dwarf = d};

	while (section.left && unit_next(&section, &b))
		if (unit_open(&u, &b)) {
			abbrevs_read(&u);
			entries_move(&u, b);
		}
}

/* ---- programs of lines ---- */

static void extended_opcode(const struct dpa_dwarf *d, struct bytes *b)
{
	struct bytes op = bytes_part(b, bytes_leb(b, false));

	if (bytes_number(&op, 1) == LNE_SET_ADDRESS && op.left == DWARF_ADDRESS_BYTES)
		address_move(d, op.at, false);
}

static void line_program_move(const struct dpa_dwarf *d, struct bytes b)
{
	unsigned version = (unsigned)bytes_number(&b, 2);
	struct bytes header, operands;
	uint64_t opcode_base;

	if (version < 2 || version > 5)
		return;
	if (version == 5)
		(void)bytes_take(&b, 2); /* bytes of an address and of a segment */
	header = bytes_part(&b, bytes_number(&b, 4));
	/* bytes of an instruction, whether a row begins a statement, two of lines; operations */
	(void)bytes_take(&header, version < 4 ? 4 : 5);
	opcode_base = bytes_number(&header, 1);
	operands = bytes_part(&header, opcode_base ? opcode_base - 1 : 0);
	while (b.left && !b.bad && !operands.bad) {
		uint64_t op = bytes_number(&b, 1);

		if (!op)
			extended_opcode(d, &b);
		else if (op == LNS_FIXED_ADVANCE_PC && op < opcode_base)
			(void)bytes_take(&b, 2);
		else
			for (uint8_t i = 0; op < opcode_base && i < operands.at[op - 1]; i++)
				(void)bytes_leb(&b, false);
	}
}

static void lines_move(const struct dpa_dwarf *d)
{
	struct bytes section = d->line, b;

	while (section.left && unit_next(&section, &b))
		line_program_move(d, b);
}

/* ---- tables ---- */

static void addresses_move(const struct dpa_dwarf *d)
{
	struct bytes section = d->addr, b;

	while (section.left && unit_next(&section, &b)) {
		unsigned version = (unsigned)bytes_number(&b, 2);
		unsigned bytes = (unsigned)bytes_number(&b, 1);

		(void)bytes_take(&b, 1); /* bytes of a segment */
		while (version == 5 && bytes == DWARF_ADDRESS_BYTES &&
		       b.left >= DWARF_ADDRESS_BYTES && !b.bad)
			address_move(d, bytes_take(&b, DWARF_ADDRESS_BYTES), false);
	}
}

static void frames_move(const struct dpa_dwarf *d)
{
	struct bytes section = d->frame, b;

	while (section.left && unit_next(&section, &b))
		if (bytes_number(&b, 4) != CIE && b.left >= DWARF_ADDRESS_BYTES)
			address_move(d, b.at, false);
}

/* Moves lists of DWARF 2 to 4: pairs of numbers, each before the expression of a place. */
static void lists_move(const struct dpa_dwarf *d, struct bytes b, bool of_places)
{
	while (b.left && !b.bad) {
		uint64_t begin = bytes_number(&b, DWARF_ADDRESS_BYTES);
		const uint8_t *second = bytes_take(&b, DWARF_ADDRESS_BYTES);
		uint64_t end;

		if (!second)
			return;
		memcpy(&end, second, sizeof(end));
		if (begin == UINT64_MAX)
			address_move(d, second, false);
		else if (of_places && (begin || end))
			(void)bytes_take(&b, bytes_number(&b, 2));
	}
}

/* Adds base to each address in the sections. */
static void dpa_debugger_dwarf(const struct dpa_dwarf *d)
{
	info_move(d);
	lines_move(d);
	addresses_move(d);
	frames_move(d);
	lists_move(d, d->ranges, false);
	lists_move(d, d->loc, true);
}

/* ---- the file of an image ---- */

/*
 * The file of an image with the addresses of the process, for a debugger (dpa/debugger.h).  Debug
 * information that is not understood is left out, so that a debugger shows less rather than
 * something wrong.
 */

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

/* ---- what debuggers read ---- */

/* ---- names and layouts that debuggers define ---- */

enum { JIT_NOACTION, JIT_REGISTER, JIT_UNREGISTER };

struct jit_code_entry {
	struct jit_code_entry *next_entry, *prev_entry;
	const char *symfile_addr;
	uint64_t symfile_size;
};

struct jit_descriptor {
	uint32_t version;
	uint32_t action_flag;
	struct jit_code_entry *relevant_entry, *first_entry;
};

void __jit_debug_register_code(void);
extern struct jit_descriptor __jit_debug_descriptor;

/* A debugger stops here.  The empty statement keeps the compiler from dropping calls. */
__attribute__((noinline, used)) void __jit_debug_register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

__attribute__((used)) struct jit_descriptor __jit_debug_descriptor = {.version = 1};

/* ---- the list ---- */

struct dpa_shown {
	struct jit_code_entry entry;
	uint8_t elf[];
};

static pthread_mutex_t jit_lock = PTHREAD_MUTEX_INITIALIZER;

static void jit_tell(struct dpa_shown *shown, uint32_t action)
{
	__jit_debug_descriptor.action_flag = action;
	__jit_debug_descriptor.relevant_entry = &shown->entry;
	__jit_debug_register_code();
	__jit_debug_descriptor.action_flag = JIT_NOACTION;
	__jit_debug_descriptor.relevant_entry = NULL;
}

struct dpa_shown *dpa_debugger_show(const void *elf, size_t bytes, uint64_t base)
{
	struct dpa_shown *shown = malloc(sizeof(*shown) + bytes);

	if (!shown)
		return NULL;
	memcpy(shown->elf, elf, bytes);
	if (!dpa_debugger_move(shown->elf, bytes, base)) {
		free(shown);
		return NULL;
	}
	pthread_mutex_lock(&jit_lock);
	shown->entry = (struct jit_code_entry){
		.next_entry = __jit_debug_descriptor.first_entry,
		.symfile_addr = (const char *)shown->elf,
		.symfile_size = bytes,
	};
	if (shown->entry.next_entry)
		shown->entry.next_entry->prev_entry = &shown->entry;
	__jit_debug_descriptor.first_entry = &shown->entry;
	jit_tell(shown, JIT_REGISTER);
	pthread_mutex_unlock(&jit_lock);
	return shown;
}

void dpa_debugger_forget(struct dpa_shown *shown)
{
	struct jit_code_entry *next, *prev;

	if (!shown)
		return;
	pthread_mutex_lock(&jit_lock);
	next = shown->entry.next_entry;
	prev = shown->entry.prev_entry;
	if (next)
		next->prev_entry = prev;
	if (prev)
		prev->next_entry = next;
	else
		__jit_debug_descriptor.first_entry = next;
	jit_tell(shown, JIT_UNREGISTER);
	pthread_mutex_unlock(&jit_lock);
	free(shown);
}

void dpa_debugger_fork_lock(void)
{
	pthread_mutex_lock(&jit_lock);
}

void dpa_debugger_fork_unlock(void)
{
	pthread_mutex_unlock(&jit_lock);
}

__attribute__((noinline)) void dpa_debugger_stop(void)
{
	__asm__ volatile("" ::: "memory");
}
