// SPDX-License-Identifier: BSD-2-Clause
/* Annotations are section attributes: an annotated function lies in one of two sections.  The debug
 * information, which device code always has, says what it takes. */
#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <elfutils/libdwfl.h>

#include "dpacc/interface.h"
#include "dpacc/look.h"
#include "dpacc/report.h"
#include "prm/cmd_dpa.h"

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
