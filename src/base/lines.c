// SPDX-License-Identifier: BSD-2-Clause
/* See lines.h. */
#include "base/lines.h"

#include <elf.h>
#include <string.h>

#include "base/elf.h"

enum { LNCT_PATH = 1 };
#define FORMATS_MAX 8u

struct tables {
	struct bytes line, line_str, str;
};

/* ---- the table of files of a unit ---- */

struct unit {
	unsigned version;
	uint8_t min_bytes, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *operands; /* operand counts of the standard opcodes */
	struct bytes files;	 /* from the beginning of the table of directories */
};

static const char *form_take(const struct tables *t, struct bytes *b, uint64_t form)
{
	switch (form) {
	case FORM_STRING:
		return bytes_string(b);
	case FORM_LINE_STRP:
		return bytes_string_at(t->line_str, bytes_number(b, 4));
	case FORM_STRP:
		return bytes_string_at(t->str, bytes_number(b, 4));
	case FORM_UDATA:
		(void)bytes_leb(b, false);
		return NULL;
	case FORM_BLOCK:
		(void)bytes_take(b, bytes_leb(b, false));
		return NULL;
	case FORM_DATA1:
	case FORM_DATA2:
	case FORM_DATA4:
	case FORM_DATA8:
	case FORM_DATA16:
		(void)bytes_take(b, dwarf_form_bytes(form));
		return NULL;
	default:
		b->bad = true;
		return NULL;
	}
}

/* Reads a table of version 5, and returns the path of the entry with that index. */
static const char *entries_take(const struct tables *t, struct bytes *b, uint64_t index)
{
	uint64_t type[FORMATS_MAX], form[FORMATS_MAX], n;
	unsigned formats = (unsigned)bytes_number(b, 1);
	const char *found = NULL;

	if (formats > FORMATS_MAX) {
		b->bad = true;
		return NULL;
	}
	for (unsigned i = 0; i < formats; i++) {
		type[i] = bytes_leb(b, false);
		form[i] = bytes_leb(b, false);
	}
	n = bytes_leb(b, false);
	for (uint64_t entry = 0; entry < n && formats && !b->bad; entry++)
		for (unsigned i = 0; i < formats; i++) {
			const char *text = form_take(t, b, form[i]);

			if (entry == index && type[i] == LNCT_PATH)
				found = text;
		}
	return b->bad ? NULL : found;
}

static const char *file_name(const struct tables *t, const struct unit *u, uint64_t index)
{
	struct bytes b = u->files;
	const char *name;

	if (u->version >= 5) {
		(void)entries_take(t, &b, UINT64_MAX); /* the directories */
		return entries_take(t, &b, index);
	}
	while ((name = bytes_string(&b)) && *name)
		;
	for (uint64_t i = 1; (name = bytes_string(&b)) && *name; i++) {
		for (unsigned k = 0; k < 3; k++)
			(void)bytes_leb(&b, false);
		if (i == index)
			return name;
	}
	return NULL;
}

/* ---- the program of a unit ---- */

struct row {
	uint64_t addr, file, line;
	bool valid;
};

struct machine {
	uint64_t wanted;
	struct row row, before; /* before: the row that ends where the next one begins */
	struct row found;
};

static void row_emit(struct machine *m, bool last)
{
	if (m->before.valid && m->wanted >= m->before.addr && m->wanted < m->row.addr)
		m->found = m->before;
	m->before = m->row;
	m->before.valid = !last;
	if (last)
		m->row = (struct row){.file = 1, .line = 1};
}

static void extended_opcode(struct machine *m, struct bytes *b)
{
	uint64_t n = bytes_leb(b, false);
	struct bytes op = {bytes_take(b, n), n, false};

	if (!op.at || !n)
		return;
	switch (bytes_number(&op, 1)) {
	case LNE_END_SEQUENCE:
		row_emit(m, true);
		break;
	case LNE_SET_ADDRESS:
		m->row.addr = bytes_number(&op, op.left == 8 ? 8 : 4);
		break;
	default:
		break;
	}
}

static void standard_opcode(struct machine *m, const struct unit *u, struct bytes *b, uint8_t op)
{
	switch (op) {
	case LNS_COPY:
		row_emit(m, false);
		break;
	case LNS_ADVANCE_PC:
		m->row.addr += bytes_leb(b, false) * u->min_bytes;
		break;
	case LNS_ADVANCE_LINE:
		m->row.line += bytes_leb(b, true);
		break;
	case LNS_SET_FILE:
		m->row.file = bytes_leb(b, false);
		break;
	case LNS_CONST_ADD_PC:
		m->row.addr += (uint64_t)((255 - u->opcode_base) / u->line_range) * u->min_bytes;
		break;
	case LNS_FIXED_ADVANCE_PC:
		m->row.addr += bytes_number(b, 2);
		break;
	default:
		for (uint8_t i = 0; i < u->operands[op - 1]; i++)
			(void)bytes_leb(b, false);
	}
}

static void unit_run(struct machine *m, const struct unit *u, struct bytes b)
{
	m->row = (struct row){.file = 1, .line = 1};
	m->before.valid = false;
	while (b.left && !b.bad && !m->found.valid) {
		uint8_t op = (uint8_t)bytes_number(&b, 1);

		if (op >= u->opcode_base) {
			op = (uint8_t)(op - u->opcode_base);
			m->row.addr += (uint64_t)(op / u->line_range) * u->min_bytes;
			m->row.line += (uint64_t)(int64_t)(u->line_base + op % u->line_range);
			row_emit(m, false);
		} else if (op) {
			standard_opcode(m, u, &b, op);
		} else {
			extended_opcode(m, &b);
		}
	}
}

/* Reads the header of a unit, and leaves the program in *b. */
static bool unit_open(struct unit *u, struct bytes *b)
{
	uint64_t header;
	struct bytes h;

	u->version = (unsigned)bytes_number(b, 2);
	if (u->version < 2 || u->version > 5)
		return false;
	if (u->version >= 5)
		(void)bytes_take(b, 2); /* bytes of an address and of a segment */
	header = bytes_number(b, 4);
	h = (struct bytes){b->at, header, false};
	if (!bytes_take(b, header))
		return false;
	u->min_bytes = (uint8_t)bytes_number(&h, 1);
	if (u->version >= 4)
		(void)bytes_number(&h, 1); /* operations in one instruction */
	(void)bytes_number(&h, 1);	   /* whether a row begins a statement */
	u->line_base = (int8_t)bytes_number(&h, 1);
	u->line_range = (uint8_t)bytes_number(&h, 1);
	u->opcode_base = (uint8_t)bytes_number(&h, 1);
	if (!u->line_range || !u->opcode_base)
		return false;
	u->operands = bytes_take(&h, u->opcode_base - 1u);
	u->files = h;
	return !h.bad;
}

static bool tables_search(struct tables t, uint64_t addr, struct elf_line *out)
{
	while (t.line.left && !t.line.bad) {
		uint64_t length = bytes_number(&t.line, 4);
		struct bytes b = {t.line.at, length, false};
		struct machine m = {.wanted = addr};
		struct unit u;

		if (!bytes_take(&t.line, length))
			return false;
		if (!unit_open(&u, &b))
			continue;
		unit_run(&m, &u, b);
		if (m.found.valid) {
			out->file = file_name(&t, &u, m.found.file);
			out->line = m.found.line;
			return out->file != NULL;
		}
	}
	return false;
}

/* ---- sections ---- */

static void table_note(struct tables *t, const char *name, struct bytes content)
{
	if (!strcmp(name, ".debug_line"))
		t->line = content;
	else if (!strcmp(name, ".debug_line_str"))
		t->line_str = content;
	else if (!strcmp(name, ".debug_str"))
		t->str = content;
}

bool elf_line_find(const void *file, size_t bytes, uint64_t addr, struct elf_line *out)
{
	struct elf_sections sections;
	struct tables t = {0};

	if (!elf_sections_open(&sections, file, bytes))
		return false;
	for (uint32_t i = 0; i < sections.count; i++) {
		Elf64_Shdr sh = elf_section(&sections, i);
		struct bytes content = elf_section_content(&sections, &sh);

		if (!content.bad && !(sh.sh_flags & SHF_COMPRESSED))
			table_note(&t, elf_section_name(&sections, &sh), content);
	}
	return t.line.at && tables_search(t, addr, out);
}
