// SPDX-License-Identifier: BSD-2-Clause
/*
 * Moves the addresses in debug information to where the image lies (dpa/debugger.h).  It knows
 * DWARF 2 to 5 as clang writes it: lists of ranges and places there count from the beginning of
 * their unit, or from an address that they give, in DWARF 5 by its index.
 *
 * An address of zero stands for a function that the linker has left out.  It stays zero, which
 * debuggers know; but if a unit begins with zero, its lists count from there, so that zero moves.
 */
#include <stddef.h>

#include "base/compiler.h"
#include "base/elf.h"
#include "dpa/debugger.h"

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

void dpa_debugger_dwarf(const struct dpa_dwarf *d)
{
	info_move(d);
	lines_move(d);
	addresses_move(d);
	frames_move(d);
	lists_move(d, d->ranges, false);
	lists_move(d, d->loc, true);
}
