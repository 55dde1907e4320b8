// SPDX-License-Identifier: BSD-2-Clause
/* Names of the program's types mean nothing in the generated code, which includes nothing of the program's.
 * So a parameter gets a type that is passed in the same way: an integer or float of its size, or a structure
 * with the same members at the same places. */
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "dpacc/report.h"
#include "dpacc/types.h"
#include "dpacc/words.h"

static struct type type_of_die(struct types *types, Dwarf_Die *die);

/* Past typedefs and qualifiers; false: void. */
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

static Dwarf_Word type_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value = 0;

	if (dwarf_attr_integrate(die, name, &attribute))
		dwarf_formudata(&attribute, &value);
	return value;
}

static struct type type_scalar(enum type_kind kind, const char *text, const char *promoted,
			       size_t bytes)
{
	return (struct type){kind, text_of("%s", text), text_of("%s", promoted), bytes};
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

static struct type type_float(size_t bytes, bool is_complex)
{
	if (is_complex && bytes == 8)
		return type_scalar(TYPE_AGGREGATE, "float _Complex", "float _Complex", 8);
	if (is_complex && bytes == 16)
		return type_scalar(TYPE_AGGREGATE, "double _Complex", "double _Complex", 16);
	if (is_complex)
		return type_unknown();
	switch (bytes) {
	case 4:
		return type_scalar(TYPE_FLOAT, "float", "double", 4);
	case 8:
		return type_scalar(TYPE_FLOAT, "double", "double", 8);
	case 16:
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
		return type_float(bytes, false);
	case DW_ATE_complex_float:
		return type_float(bytes, true);
	default:
		return type_integer(false, bytes);
	}
}

/* Whether the values of an enumeration have a sign: as its underlying type says. */
static struct type type_enumeration(Dwarf_Die *die)
{
	Dwarf_Die under;

	if (type_peel(die, &under))
		return type_base(&under);
	return type_integer(false, type_number(die, DW_AT_byte_size));
}

/* "[3][4]" of an array, whose element's type goes to *element. */
static char *type_dimensions(struct types *types, Dwarf_Die *die, struct type *element)
{
	char *text = text_of("%s", "");
	Dwarf_Die under, range;

	*element = type_unknown();
	if (type_peel(die, &under))
		*element = type_of_die(types, &under);
	for (int more = dwarf_child(die, &range); !more; more = dwarf_siblingof(&range, &range)) {
		Dwarf_Word count = type_number(&range, DW_AT_count);

		if (!count && dwarf_hasattr(&range, DW_AT_upper_bound))
			count = type_number(&range, DW_AT_upper_bound) + 1;
		text = text_of("%s[%zu]", text, (size_t)count);
	}
	return text;
}

/* One member of a structure as a line of C, or NULL if it is of no type that can be passed. */
static char *type_member(struct types *types, Dwarf_Die *member, int number)
{
	Dwarf_Word bits = type_number(member, DW_AT_bit_size);
	char *dimensions = text_of("%s", "");
	struct type type = type_unknown();
	Dwarf_Die under;

	if (type_peel(member, &under)) {
		if (dwarf_tag(&under) == DW_TAG_array_type)
			dimensions = type_dimensions(types, &under, &type);
		else
			type = type_of_die(types, &under);
	}
	if (type.kind == TYPE_UNKNOWN)
		return NULL;
	if (bits)
		return text_of("\t%s m%d : %u;\n", type.text, number, (unsigned int)bits);
	return text_of("\t%s m%d%s;\n", type.text, number, dimensions);
}

/* The promise that the compiler keeps: members lie where the program's do. */
static char *type_proof(Dwarf_Die *member, const char *name, int number)
{
	Dwarf_Attribute attribute;

	if (type_number(member, DW_AT_bit_size) ||
	    !dwarf_attr_integrate(member, DW_AT_data_member_location, &attribute))
		return text_of("%s", "");
	return text_of("_Static_assert(__builtin_offsetof(%s, m%d) == %zu, \"place\");\n", name,
		       number, (size_t)type_number(member, DW_AT_data_member_location));
}

static struct type type_aggregate(struct types *types, Dwarf_Die *die)
{
	const char *keyword = dwarf_tag(die) == DW_TAG_union_type ? "union" : "struct";
	size_t bytes = type_number(die, DW_AT_byte_size);
	char *members = text_of("%s", ""), *proofs = text_of("%s", "");
	Dwarf_Off at = dwarf_dieoffset(die);
	Dwarf_Die member;
	int number = 0;
	char *name;

	/* Its place in the debug information is a name that no two have. */
	name = text_of("%s dpacc_type_%zx", keyword, (size_t)at);
	for (size_t i = 0; i < types->count; i++)
		if (types->known[i].at == at)
			return type_scalar(TYPE_AGGREGATE, name, name, bytes);
	for (int more = dwarf_child(die, &member); !more;
	     more = dwarf_siblingof(&member, &member)) {
		char *line;

		if (dwarf_tag(&member) != DW_TAG_member)
			continue;
		line = type_member(types, &member, number);
		if (!line)
			return type_unknown();
		members = text_of("%s%s", members, line);
		proofs = text_of("%s%s", proofs, type_proof(&member, name, number++));
	}
	if (!number)
		return type_unknown();
	types->known = realloc(types->known, (types->count + 1) * sizeof(*types->known));
	if (!types->known)
		give_up("out of memory");
	types->known[types->count++].at = at;
	types->definitions =
		text_of("%s%s {\n%s};\n_Static_assert(sizeof(%s) == %zu, \"size\");\n%s\n",
			types->definitions ? types->definitions : "", name, members, name, bytes,
			proofs);
	return type_scalar(TYPE_AGGREGATE, name, name, bytes);
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

struct type type_of(struct types *types, Dwarf_Die *entry)
{
	Dwarf_Die type;

	if (!type_peel(entry, &type))
		return type_scalar(TYPE_VOID, "void", "void", 0);
	return type_of_die(types, &type);
}
