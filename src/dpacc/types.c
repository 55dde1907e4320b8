// SPDX-License-Identifier: BSD-2-Clause
/* Generated code includes nothing of the program's, so names of the program's types mean nothing
 * there.  A parameter gets a type that calls pass in the same way: an integer or float of its size,
 * or a structure with the same members at the same places. */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "dpacc/layout.h"
#include "dpacc/report.h"
#include "dpacc/types.h"
#include "dpacc/words.h"

static struct type type_of_die(struct types *types, Dwarf_Die *die);

static Dwarf_Word type_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (dwarf_attr_integrate(die, name, &attribute))
		dwarf_formudata(&attribute, &value);
	return value;
}

/* Goes past typedefs and qualifiers; false: the type is void. */
static bool type_peel(Dwarf_Die *entry, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	if (!dwarf_attr_integrate(entry, DW_AT_type, &attribute) ||
	    !dwarf_formref_die(&attribute, type))
		return false;
	for (;;) {
		Dwarf_Die next;

		switch (dwarf_tag(type)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			break;
		default:
			return true;
		}
		if (!dwarf_attr_integrate(type, DW_AT_type, &attribute) ||
		    !dwarf_formref_die(&attribute, &next))
			return false;
		*type = next;
	}
}

/* A scalar of 16 bytes or less is aligned to its size, in one piece or, if complex, in two. */
static struct type type_scalar(enum type_kind kind, const char *text, const char *promoted,
			       size_t bytes)
{
	size_t align = kind == TYPE_AGGREGATE ? bytes / 2 : bytes;

	return (struct type){kind, text_of("%s", text), text_of("%s", promoted), bytes, align};
}

static struct type type_unknown(void)
{
	return (struct type){.kind = TYPE_UNKNOWN};
}

static struct type type_integer(bool has_sign, size_t bytes)
{
	switch (bytes) {
	case 1:
		return type_scalar(TYPE_INTEGER, has_sign ? "signed char" : "unsigned char", "int",
				   1);
	case 2:
		return type_scalar(TYPE_INTEGER, has_sign ? "short" : "unsigned short", "int", 2);
	case 4:
		return has_sign ? type_scalar(TYPE_INTEGER, "int", "int", 4)
				: type_scalar(TYPE_INTEGER, "unsigned int", "unsigned int", 4);
	case 8:
		return has_sign ? type_scalar(TYPE_INTEGER, "long", "long", 8)
				: type_scalar(TYPE_INTEGER, "unsigned long", "unsigned long", 8);
	case 16:
		return has_sign ? type_scalar(TYPE_INTEGER, "__int128", "__int128", 16)
				: type_scalar(TYPE_INTEGER, "unsigned __int128",
					      "unsigned __int128", 16);
	default:
		return type_unknown();
	}
}

static struct type type_float(Dwarf_Die *die, size_t bytes, bool is_complex)
{
	const char *name = dwarf_diename(die);

	if (is_complex && bytes == 8)
		return type_scalar(TYPE_AGGREGATE, "float _Complex", "float _Complex", 8);
	if (is_complex && bytes == 16)
		return type_scalar(TYPE_AGGREGATE, "double _Complex", "double _Complex", 16);
	if (is_complex && bytes == 32)
		return type_scalar(TYPE_AGGREGATE, "long double _Complex", "long double _Complex",
				   32);
	if (is_complex)
		return type_unknown();
	switch (bytes) {
	case 4:
		return type_scalar(TYPE_FLOAT, "float", "double", 4);
	case 8:
		return type_scalar(TYPE_FLOAT, "double", "double", 8);
	case 16:
		if (!name || strcmp(name, "long double") != 0)
			return type_scalar(TYPE_FLOAT, "__float128", "__float128", 16);
		return type_scalar(TYPE_FLOAT, "long double", "long double", 16);
	default:
		return type_unknown();
	}
}

static struct type type_base(Dwarf_Die *die)
{
	size_t bytes = type_number(die, DW_AT_byte_size);

	switch (type_number(die, DW_AT_encoding)) {
	case DW_ATE_boolean:
		return type_scalar(TYPE_INTEGER, "_Bool", "int", bytes);
	case DW_ATE_signed:
	case DW_ATE_signed_char:
		return type_integer(true, bytes);
	case DW_ATE_float:
		return type_float(die, bytes, false);
	case DW_ATE_complex_float:
		return type_float(die, bytes, true);
	default:
		return type_integer(false, bytes);
	}
}

/* The underlying type of an enumeration says whether its values have a sign. */
static struct type type_enumeration(Dwarf_Die *die)
{
	Dwarf_Die under;

	if (type_peel(die, &under))
		return type_base(&under);
	return type_integer(false, type_number(die, DW_AT_byte_size));
}

/* Returns the dimensions of an array, "[3][4]", and how many elements they are; an array without a
 * size has no dimensions. */
static char *type_dimensions(Dwarf_Die *die, size_t *elements)
{
	char *text = text_of("%s", "");
	Dwarf_Die range;

	for (int more = dwarf_child(die, &range); !more; more = dwarf_siblingof(&range, &range)) {
		size_t count = type_number(&range, DW_AT_count);

		if (!count && dwarf_hasattr(&range, DW_AT_upper_bound))
			count = type_number(&range, DW_AT_upper_bound) + 1;
		text = text_of("%s[%zu]", text, count);
		*elements *= count;
	}
	return text;
}

/* Returns the bits between the structure's beginning and the member; two versions of DWARF say it
 * in three ways. */
static size_t member_at(Dwarf_Die *member, size_t bits)
{
	size_t at = type_number(member, DW_AT_data_member_location) * 8;

	if (dwarf_hasattr(member, DW_AT_data_bit_offset))
		return type_number(member, DW_AT_data_bit_offset);
	/* The offset counts from the other end of the word that holds the member. */
	if (dwarf_hasattr(member, DW_AT_bit_offset))
		return at + type_number(member, DW_AT_byte_size) * 8 -
		       type_number(member, DW_AT_bit_offset) - bits;
	return at;
}

/* Fills in a member; false if calls cannot pass its type. */
static bool type_member(struct types *types, Dwarf_Die *member, struct layout_member *m)
{
	size_t elements = 1;
	struct type type;
	Dwarf_Die die;

	*m = (struct layout_member){.dimensions = text_of("%s", ""),
				    .wanted = type_number(member, DW_AT_alignment),
				    .bits = type_number(member, DW_AT_bit_size)};
	if (!type_peel(member, &die))
		return false;
	while (dwarf_tag(&die) == DW_TAG_array_type && !dwarf_hasattr(&die, DW_AT_GNU_vector)) {
		Dwarf_Die array = die;

		m->dimensions = text_of("%s%s", m->dimensions, type_dimensions(&array, &elements));
		if (!type_peel(&array, &die))
			return false;
	}
	type = type_of_die(types, &die);
	m->text = type.text;
	m->bytes = type.bytes * elements;
	m->align = type.align;
	m->at = member_at(member, m->bits);
	return type.kind != TYPE_UNKNOWN && type.kind != TYPE_VOID;
}

/* Fills in the members of a structure or union; false if calls cannot pass one of them. */
static bool type_members(struct types *types, Dwarf_Die *die, struct layout *layout)
{
	Dwarf_Die member;

	for (int more = dwarf_child(die, &member); !more;
	     more = dwarf_siblingof(&member, &member)) {
		if (dwarf_tag(&member) != DW_TAG_member)
			continue;
		layout->members =
			realloc(layout->members, (layout->count + 1) * sizeof(*layout->members));
		if (!layout->members)
			give_up("out of memory");
		if (!type_member(types, &member, &layout->members[layout->count++]))
			return false;
	}
	return layout->count;
}

static struct type type_aggregate(struct types *types, Dwarf_Die *die)
{
	bool is_union = dwarf_tag(die) == DW_TAG_union_type;
	Dwarf_Off at = dwarf_dieoffset(die);
	/* The place in the debug information makes a name that no two types share. */
	char *name = text_of("%s dpacc_type_%zx", is_union ? "union" : "struct", (size_t)at), *text;
	struct layout layout = {.name = name,
				.is_union = is_union,
				.bytes = type_number(die, DW_AT_byte_size),
				.wanted = type_number(die, DW_AT_alignment)};
	struct type type = {TYPE_AGGREGATE, name, name, layout.bytes, 1};

	for (size_t i = 0; i < types->count; i++) {
		type.align = types->known[i].align;
		if (types->known[i].at == at)
			return type;
	}
	text = type_members(types, die, &layout) ? layout_text(&layout, &type.align) : NULL;
	free(layout.members);
	if (!text)
		return type_unknown();
	types->known = realloc(types->known, (types->count + 1) * sizeof(*types->known));
	if (!types->known)
		give_up("out of memory");
	types->known[types->count].at = at;
	types->known[types->count++].align = type.align;
	types->definitions = text_of("%s%s", types->definitions ? types->definitions : "", text);
	return type;
}

static struct type type_of_die(struct types *types, Dwarf_Die *die)
{
	switch (dwarf_tag(die)) {
	case DW_TAG_base_type:
		return type_base(die);
	case DW_TAG_pointer_type:
		return type_integer(false, 8);
	case DW_TAG_enumeration_type:
		return type_enumeration(die);
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
		return type_aggregate(types, die);
	default:
		return type_unknown();
	}
}

size_t type_slot(const struct type *type)
{
	return (type->bytes + 7) / 8 * 8;
}

struct type type_of(struct types *types, Dwarf_Die *entry)
{
	Dwarf_Die type;

	if (!type_peel(entry, &type))
		return type_scalar(TYPE_VOID, "void", "void", 0);
	return type_of_die(types, &type);
}
