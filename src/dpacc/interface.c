// SPDX-License-Identifier: BSD-2-Clause
/*
 * The interface of device code, read from its debug information: functions, the types of their
 * parameters, and the layouts of those.
 */
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dpacc/interface.h"
#include "dpacc/look.h"
#include "dpacc/words.h"
#include "prm/cmd_dpa.h"

struct layout_member {
	char *text;	  /* its type; of an array, the type of the elements */
	char *dimensions; /* "[3][4]", or "" */
	size_t bytes;	  /* bytes of all of it */
	size_t align;	  /* bytes that its type is aligned to by itself */
	size_t wanted;	  /* alignment that the program says; 0: none */
	size_t at;	  /* its place, in bits from the beginning */
	size_t bits;	  /* bits of a bit field; 0: it is not one */
};

struct layout {
	const char *name; /* with struct or union in front */
	bool is_union;
	struct layout_member *members;
	size_t count;
	size_t bytes;
	size_t wanted; /* alignment that the program says; 0: none */
};

/* ---- layouts ---- */

/*
 * The debug information says where members lie.  It does not say that a structure is packed, nor
 * where bit fields without a name are, nor whether an alignment belongs to the member or to its
 * type.  The last two differ: only a type's can be less than the type has, and a packed structure
 * ignores it.  All of this follows from the places of the members.  So this tries layouts, the
 * usual one first, and fills holes with bit fields without a name, which calls pass as they pass
 * holes.
 */

#define BYTE 8u

enum way {
	WAY_MEMBERS, /* alignments belong to members */
	WAY_TYPES,   /* alignments belong to types */
	WAY_PACKED_MEMBERS,
	WAY_PACKED_TYPES,
	WAYS,
};

struct attempt {
	const struct layout *layout;
	enum way way;
	bool packed;
	size_t at;    /* how many bits are taken */
	size_t align; /* bytes */
	char *before; /* definitions that the members need */
	char *members;
	char *proofs;
};

static size_t round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* Fills up with bit fields that cross no border of a byte, so they lie where they are written. */
static void attempt_fill(struct attempt *a, size_t until)
{
	while (a->at < until) {
		size_t bits = BYTE - a->at % BYTE;

		if (bits > until - a->at)
			bits = until - a->at;
		a->members = text_of("%s\tunsigned char : %zu;\n", a->members, bits);
		a->at += bits;
	}
}

/* Returns the alignment that a member has in this attempt; what its place tells comes first. */
static size_t attempt_align(const struct attempt *a, const struct layout_member *m)
{
	size_t usual = a->packed ? 1 : m->align;

	if (!m->wanted || (a->packed && m->bits))
		return usual;
	switch (a->way) {
	case WAY_MEMBERS:
		return m->wanted < usual && m->at % (usual * BYTE) == 0 ? usual : m->wanted;
	case WAY_PACKED_MEMBERS:
		return m->at % (m->wanted * BYTE) ? usual : m->wanted;
	case WAY_PACKED_TYPES:
		return a->layout->is_union || m->at == round_up(a->at, BYTE) ? usual : m->wanted;
	default:
		return m->wanted;
	}
}

/* Tells whether the compiler puts the member at its place, if what is taken ends there. */
static bool attempt_fits(const struct attempt *a, const struct layout_member *m, size_t align)
{
	size_t unit = m->bytes * BYTE;

	if (!m->bits)
		return m->at % (align * BYTE) == 0;
	return a->packed || m->at % unit + m->bits <= unit;
}

/* Returns where the compiler would put the member now. */
static size_t attempt_place(const struct attempt *a, const struct layout_member *m, size_t align)
{
	size_t unit = m->bytes * BYTE;

	if (!m->bits)
		return round_up(a->at, align * BYTE);
	return a->packed || a->at % unit + m->bits <= unit ? a->at : round_up(a->at, unit);
}

static void attempt_write(struct attempt *a, const struct layout_member *m, size_t number,
			  size_t align)
{
	const char *text = m->text;
	char *attribute = text_of("%s", "");

	if (m->bits) {
		a->members = text_of("%s\t%s m%zu : %zu;\n", a->members, text, number, m->bits);
		return;
	}
	if (!a->packed && align < m->align) {
		/* Only a type of its own can have less. */
		char *alias = text_of("%s_m%zu", strchr(a->layout->name, ' ') + 1, number);

		a->before = text_of("%stypedef %s %s __attribute__((aligned(%zu)));\n", a->before,
				    text, alias, align);
		text = alias;
	} else if (align != (a->packed ? 1 : m->align)) {
		attribute = text_of(" __attribute__((aligned(%zu)))", align);
	}
	a->members =
		text_of("%s\t%s m%zu%s%s;\n", a->members, text, number, m->dimensions, attribute);
	a->proofs = text_of("%s_Static_assert(__builtin_offsetof(%s, m%zu) == %zu, \"place\");\n",
			    a->proofs, a->layout->name, number, m->at / BYTE);
}

static bool attempt_member(struct attempt *a, size_t number)
{
	const struct layout_member *m = &a->layout->members[number];
	size_t align = attempt_align(a, m);
	size_t end = m->at + (m->bits ? m->bits : m->bytes * BYTE);

	if (!attempt_fits(a, m, align))
		return false;
	if (!a->layout->is_union) {
		if (attempt_place(a, m, align) < m->at)
			attempt_fill(a, m->at);
		if (attempt_place(a, m, align) != m->at)
			return false;
	}
	attempt_write(a, m, number, align);
	if (a->at < end)
		a->at = end;
	if (a->align < align)
		a->align = align;
	return true;
}

static char *attempt_text(struct attempt *a)
{
	const struct layout *l = a->layout;
	char *attribute = text_of("%s", "");

	for (size_t i = 0; i < l->count; i++)
		if (!attempt_member(a, i))
			return NULL;
	if (a->align < l->wanted)
		a->align = l->wanted;
	if (round_up(a->at, a->align * BYTE) < l->bytes * BYTE && !l->is_union)
		attempt_fill(a, l->bytes * BYTE);
	if (round_up(a->at, a->align * BYTE) != l->bytes * BYTE)
		return NULL;
	if (a->packed)
		attribute = text_of(" __attribute__((packed, aligned(%zu)))", a->align);
	else if (l->wanted)
		attribute = text_of(" __attribute__((aligned(%zu)))", l->wanted);
	return text_of("%s%s {\n%s}%s;\n_Static_assert(sizeof(%s) == %zu, \"size\");\n"
		       "_Static_assert(_Alignof(%s) == %zu, \"alignment\");\n%s\n",
		       a->before, l->name, a->members, attribute, l->name, l->bytes, l->name,
		       a->align, a->proofs);
}

/* Returns the definition, with assertions that it is right; *align is what the type then has.  NULL
 * if C has no such layout. */
static char *layout_text(const struct layout *layout, size_t *align)
{
	for (int way = 0; way < WAYS; way++) {
		struct attempt a = {.layout = layout,
				    .way = (enum way)way,
				    .packed = way >= WAY_PACKED_MEMBERS,
				    .align = 1,
				    .before = text_of("%s", ""),
				    .members = text_of("%s", ""),
				    .proofs = text_of("%s", "")};
		char *text = attempt_text(&a);

		*align = a.align;
		if (text)
			return text;
	}
	return NULL;
}

/* ---- types ---- */

/* Generated code includes nothing of the program's, so names of the program's types mean nothing
 * there.  A parameter gets a type that calls pass in the same way: an integer or float of its size,
 * or a structure with the same members at the same places. */

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

/* ---- the interface ---- */

/* Annotations are section attributes: an annotated function lies in one of two sections.  The debug
 * information, which device code always has, says what it takes. */

_Static_assert(DPA_CALL_BYTES == 2048, "the limit is in a message, and in dpacc(1)");

/* flexio.h's FLEXIO_MAX_NAME_LEN: bytes of a function's name. */
#define NAME_BYTES 256

/* Returns prefix and name, or prefix and a number made from the name if that would be too long to
 * register. */
static char *interface_derived(const char *prefix, const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;

	if (strlen(prefix) + strlen(name) <= NAME_BYTES)
		return text_of("%s%s", prefix, name);
	for (const char *at = name; *at; at++)
		hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
	return text_of("%s%016llx", prefix, (unsigned long long)hash);
}

char *interface_unpack(const char *name)
{
	return interface_derived("__dpa_unpack_", name);
}

char *interface_record(const char *name)
{
	return interface_derived("__dpa_function_", name);
}

static bool section_is_annotated(Elf *elf, size_t index)
{
	Elf_Scn *section = elf_getscn(elf, index);
	size_t strings;
	GElf_Shdr header;
	const char *name;

	if (!section || !gelf_getshdr(section, &header) || elf_getshdrstrndx(elf, &strings))
		return false;
	name = elf_strptr(elf, strings, header.sh_name);
	return name && (!strcmp(name, SECTION_RPC) || !strcmp(name, SECTION_GLOBAL));
}

/* A function of an ELF file. */
struct symbol {
	const char *name;
	bool is_local, is_annotated;
};

typedef void found_fn(void *arg, const struct symbol *symbol);

/* Calls found for each function that an ELF file defines. */
static void elf_functions(Elf *elf, found_fn *found, void *arg)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;

	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data;
		GElf_Sym symbol;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
			continue;
		data = elf_getdata(section, NULL);
		for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
			struct symbol function = {
				.name = elf_strptr(elf, header.sh_link, symbol.st_name),
				.is_local = GELF_ST_BIND(symbol.st_info) == STB_LOCAL,
				.is_annotated = section_is_annotated(elf, symbol.st_shndx),
			};

			if (function.name && GELF_ST_TYPE(symbol.st_info) == STT_FUNC &&
			    symbol.st_shndx != SHN_UNDEF)
				found(arg, &function);
		}
	}
}

/* Calls found for each function that a file, or each member of an archive, defines. */
static void file_functions(const char *file, found_fn *found, void *arg)
{
	Elf_Cmd command = ELF_C_READ_MMAP;
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	Elf *whole, *elf;

	elf_version(EV_CURRENT);
	whole = fd < 0 ? NULL : elf_begin(fd, command, NULL);
	if (!whole)
		give_up("%s: neither an object nor an archive", file);
	/* A file that is no archive is its own first and only member. */
	while ((elf = elf_begin(fd, command, whole))) {
		if (elf_kind(elf) == ELF_K_ELF)
			elf_functions(elf, found, arg);
		command = elf_next(elf);
		elf_end(elf);
	}
	elf_end(whole);
	close(fd);
}

static void name_found(void *arg, const struct symbol *symbol)
{
	if (!symbol->is_local && symbol->is_annotated)
		words_add(arg, symbol->name);
}

void interface_names(struct words *names, const char *file)
{
	file_functions(file, name_found, names);
}

struct search {
	const char *name;
	bool found;
};

static void search_found(void *arg, const struct symbol *symbol)
{
	struct search *search = arg;

	search->found = search->found || !strcmp(symbol->name, search->name);
}

static bool object_defines(const char *object, const char *name)
{
	struct search search = {.name = name};

	file_functions(object, search_found, &search);
	return search.found;
}

/* The object of one source, while its functions are collected. */
struct reading {
	struct interface *interface;
	const char *object;
	Dwfl_Module *module;
};

static bool die_is_named(Dwarf_Die *die, const char *name)
{
	Dwarf_Attribute attribute;
	const char *linked = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute))
		linked = dwarf_formstring(&attribute);
	if (!linked)
		linked = dwarf_diename(die);
	return linked && !strcmp(linked, name);
}

/* Finds the definition of a function in the debug information. */
static bool function_find(const struct reading *reading, const char *name, Dwarf_Die *die)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = NULL;

	while ((unit = dwfl_module_nextcu(reading->module, unit, &bias)))
		for (int more = dwarf_child(unit, die); !more; more = dwarf_siblingof(die, die))
			if (dwarf_tag(die) == DW_TAG_subprogram && die_is_named(die, name) &&
			    !dwarf_hasattr(die, DW_AT_declaration))
				return true;
	return false;
}

/*
 * A copy of a function that was inlined elsewhere leaves out what it does not use, so this takes
 * the origin.
 */
static void function_origin(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Die origin;

	if (dwarf_attr(die, DW_AT_abstract_origin, &attribute) &&
	    dwarf_formref_die(&attribute, &origin))
		*die = origin;
}

static void function_complain(Dwarf_Die *die, const char *name, const char *what)
{
	const char *file = dwarf_decl_file(die);
	Dwarf_Die unit;
	int line = 0;

	/* libdw takes the first file of a DWARF 5 table, the source itself, for no file. */
	if (!file && dwarf_diecu(die, &unit, NULL, NULL))
		file = dwarf_diename(&unit);
	dwarf_decl_line(die, &line);
	report_at(file ? file : "device code", line, "%.*s%s: %s", 64, name,
		  strlen(name) > 64 ? "..." : "", what);
}

static void function_parameters(struct interface *interface, struct function *function,
				Dwarf_Die *die)
{
	Dwarf_Die child;

	for (int more = dwarf_child(die, &child); !more; more = dwarf_siblingof(&child, &child)) {
		struct type type;

		if (dwarf_tag(&child) == DW_TAG_unspecified_parameters)
			function_complain(die, function->name,
					  "a function with variable arguments cannot be called "
					  "from the host");
		if (dwarf_tag(&child) != DW_TAG_formal_parameter)
			continue;
		type = type_of(&interface->types, &child);
		if (type.kind == TYPE_UNKNOWN)
			function_complain(
				&child, function->name,
				"a parameter has a type that cannot be passed from the host");
		function->parameters =
			realloc(function->parameters, (function->count + 1) * sizeof(type));
		if (!function->parameters)
			give_up("out of memory");
		function->parameters[function->count++] = type;
		function->bytes += type_slot(&type);
	}
	if (function->bytes > DPA_CALL_BYTES)
		function_complain(die, function->name,
				  "its arguments take more than the 2048 bytes of a call");
}

static void function_found(void *arg, const struct symbol *symbol)
{
	struct reading *reading = arg;
	struct interface *interface = reading->interface;
	const char *name = symbol->name;
	struct function function = {.name = text_of("%s", name)};
	Dwarf_Die die;

	if (!symbol->is_annotated)
		return;
	if (!function_find(reading, name, &die))
		give_up("%s: no debug information about the function %s", reading->object, name);
	function_origin(&die);
	if (symbol->is_local)
		function_complain(&die, name, "a static function cannot be called from the host");
	if (strlen(name) > NAME_BYTES)
		function_complain(&die, name, "the name is longer than FLEXIO_MAX_NAME_LEN (256)");
	function.unpack = interface_unpack(name);
	function.has_unpack = object_defines(reading->object, function.unpack);
	function.result = type_of(&interface->types, &die);
	if (function.result.kind > TYPE_FLOAT || function.result.bytes > 8)
		function_complain(&die, name, "what it returns does not fit into 64 bits");
	function_parameters(interface, &function, &die);
	interface->functions = realloc(interface->functions,
				       (interface->count + 1) * sizeof(*interface->functions));
	if (!interface->functions)
		give_up("out of memory");
	interface->functions[interface->count++] = function;
}

void interface_read(struct interface *interface, const char *object)
{
	static const Dwfl_Callbacks callbacks = {.section_address = dwfl_offline_section_address,
						 .find_debuginfo = dwfl_standard_find_debuginfo};
	struct reading reading = {interface, object, NULL};
	Dwfl *session = dwfl_begin(&callbacks);
	GElf_Addr bias;
	Elf *elf;

	*interface = (struct interface){0};
	dwfl_report_begin(session);
	reading.module = dwfl_report_offline(session, "", object, -1);
	dwfl_report_end(session, NULL, NULL);
	elf = reading.module ? dwfl_module_getelf(reading.module, &bias) : NULL;
	if (!elf)
		give_up("%s: %s", object, dwfl_errmsg(-1));
	elf_functions(elf, function_found, &reading);
	dwfl_end(session);
}
