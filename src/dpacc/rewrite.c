// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes what the compiler takes for this machine's mean what it means on the DPA.  Lines of the
 * module that have nothing of this stay as they are.
 */
#include "dpacc/rewrite.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "dpacc/ir.h"
#include "dpacc/riscv.h"
#include "dpacc/words.h"

struct module {
	struct words lines;
	struct words functions; /* annotated ones, */
	struct words sections;	/* and the section of each */
	const char *next;	/* the line behind the one that is read */
	const char *attributes; /* of the function that is read: "#5", or NULL */
	struct words assembled; /* functions that were made of assembly */
	struct ir ir;
};

/* ---- the module ---- */

static void module_read(struct module *module, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t room = 0;
	ssize_t length;

	if (!file)
		give_up("%s: %s", path, strerror(errno));
	while ((length = getline(&line, &room, file)) > 0) {
		if (line[length - 1] == '\n')
			line[length - 1] = 0;
		words_add(&module->lines, line);
	}
	free(line);
	fclose(file);
}

/* Returns what follows "NAME = " of a line at the module's top, or NULL. */
static const char *module_find(const struct module *module, const char *name)
{
	size_t length = strlen(name);

	for (size_t i = 0; i < module->lines.count; i++) {
		const char *line = module->lines.words[i];

		if (!strncmp(line, name, length) && text_begins(line + length, " = "))
			return line + length + strlen(" = ");
	}
	return NULL;
}

/* Returns which version of LLVM wrote the module. */
static long module_version(const struct module *module)
{
	static const char known[] = "clang version ";

	for (size_t i = module->lines.count; i-- > 0;) {
		const char *at = strstr(module->lines.words[i], known);

		if (at && module->lines.words[i][0] == '!')
			return strtol(at + strlen(known), NULL, 10);
	}
	return 0;
}

/* ---- places in the source ---- */

/* Returns the node that a field of a node names ("scope: !5"), or NULL. */
static const char *node_field(const struct module *module, const char *node, const char *field)
{
	const char *at = node ? strstr(node, field) : NULL;

	if (!at)
		return NULL;
	at += strlen(field);
	return module_find(module, ir_piece(at, at + 1 + strspn(at + 1, "0123456789")));
}

/* Complains about the place of the instruction. */
static void module_complain(const struct module *module, const char *what)
{
	const char *place = node_field(module, module->ir.debug, "!dbg ");
	const char *line = place ? strstr(place, "line: ") : NULL;
	const char *file = node_field(module, node_field(module, place, "scope: "), "file: ");
	const char *name = file ? strstr(file, "filename: ") : NULL;

	if (name)
		name = ir_piece(name + strlen("filename: \""),
				strchr(name + strlen("filename: \""), '"'));
	report_at(name ? name : "device code",
		  line ? (int)strtol(line + strlen("line: "), NULL, 10) : 0, "assembly: %s", what);
}

/* ---- annotations ---- */

/* The compiler lists what is annotated and with what text, which is the name of a section:
 *   @llvm.global.annotations = appending global [1 x T] [T { @function, @text, ... }], ... */

static void annotation_read(struct module *module, const char *element)
{
	const char *function = strchr(element, '@'), *text, *value;

	if (!function)
		return;
	text = strchr(ir_past_name(function), '@');
	value = text ? module_find(module, ir_piece(text, ir_past_name(text))) : NULL;
	value = value ? strstr(value, " c\".dpa_") : NULL;
	if (!value)
		return;
	words_add(&module->functions, ir_piece(function, ir_past_name(function)));
	value += strlen(" c\"");
	words_add(&module->sections, ir_piece(value, value + strcspn(value, "\\\"")));
}

static void annotations_read(struct module *module)
{
	const char *at = module_find(module, "@llvm.global.annotations");

	at = at ? strstr(at, "] [") : NULL;
	for (at = at ? at + strlen("] [") : ""; *at == '{' || text_begins(at, "%");) {
		const char *end;

		at = ir_past_type(at);
		at += strspn(at, " ");
		end = ir_past_brackets(at);
		annotation_read(module, ir_piece(at, end));
		at = end + strspn(end, ", ");
	}
}

/* Gives an annotated function its section, and makes it visible: the loader finds it by name,
 * whatever -fvisibility says. */
static bool rewrite_definition(struct module *module, const char *line)
{
	const char *name = strchr(line, '@'), *at, *section;
	size_t number = 0;
	char *head;

	if (!text_begins(line, "define ") || !name)
		return false;
	at = ir_past_name(name);
	while (number < module->functions.count &&
	       strcmp(module->functions.words[number], ir_piece(name, at)) != 0)
		number++;
	if (number == module->functions.count)
		return false;
	head = ir_piece(line, name);
	for (size_t i = 0; i < 2; i++) {
		static const char *const hidden[] = {" hidden ", " protected "};
		char *found = strstr(head, hidden[i]);

		if (found)
			head = text_of("%.*s %s", (int)(found - head), head,
				       found + strlen(hidden[i]));
	}
	/* The section comes behind the attributes. */
	at = ir_past_brackets(at);
	for (const char *next = at; *next == ' ';) {
		next += 1 + strcspn(next + 1, " ");
		if (at[1] != '#' && !text_begins(at, " unnamed_addr ") &&
		    !text_begins(at, " local_unnamed_addr "))
			break;
		at = next;
	}
	section = text_begins(at, " section ") ? ir_past_brackets(at + strlen(" section ")) : at;
	fprintf(module->ir.out, "%s%s section \"%s\"%s\n", head, ir_piece(name, at),
		module->sections.words[number], section);
	return true;
}

/* ---- divisions ---- */

/* Returns what follows "  NAME = ", and the name; or what follows the indentation, and NULL. */
static const char *instruction_of(const char *line, char **name)
{
	const char *at = line + 2, *end;

	*name = NULL;
	if (!text_begins(line, "  "))
		return "";
	if (*at != '%')
		return at;
	end = ir_past_name(at);
	if (!text_begins(end, " = "))
		return "";
	*name = ir_piece(at, end);
	return end + strlen(" = ");
}

static const char *debug_of(const char *line)
{
	const char *at = strstr(line, ", !dbg !");
	size_t length = strlen(", !dbg !");

	return at ? ir_piece(at, at + length + strspn(at + length, "0123456789")) : "";
}

/* Whether no processor traps for this divisor. */
static bool divisor_is_safe(const char *text)
{
	char *end;
	long value = strtol(text, &end, 10);

	return end != text && !*end && value != 0 && value != -1;
}

static bool rewrite_division(struct module *module, const char *line)
{
	static const char *const ops[] = {"udiv", "sdiv", "urem", "srem"};
	const char *at, *end;
	char *name, *op, *type, *a, *b;

	at = instruction_of(line, &name);
	op = ir_piece(at, at + strcspn(at, " "));
	if (!name || (strcmp(op, ops[0]) != 0 && strcmp(op, ops[1]) != 0 &&
		      strcmp(op, ops[2]) != 0 && strcmp(op, ops[3]) != 0))
		return false;
	at += strlen(op) + 1;
	/* The distance of two pointers is a division by the size of what they point to. */
	if (text_begins(at, "exact "))
		return false;
	end = ir_past_type(at);
	type = ir_piece(at, end);
	at = end + 1;
	end = ir_past_operand(at);
	a = ir_piece(at, end);
	at = end + strlen(", ");
	b = ir_piece(at, ir_past_operand(at));
	if (divisor_is_safe(b))
		return false;
	module->ir.debug = debug_of(line);
	ir_divide(&module->ir, op, type, a, b, name);
	return true;
}

/* The compiler itself computes what is made of constants alone.  If one of them is a division by 0,
 * it says so to the user, and the value is unknown: here it has all bits set, as a quotient by 0.  */
static bool rewrite_unknown(struct module *module, const char *line)
{
	static const char unknown[] = "poison";
	const char *at, *type;
	char *name;

	type = instruction_of(line, &name);
	if (!*type || !strstr(type, unknown) || strpbrk(type, "<{"))
		return false;
	/* The first type says what operands without one are. */
	while (*type && !(type[0] == ' ' && type[1] == 'i' && isdigit((unsigned char)type[2])))
		type++;
	while ((at = strstr(line, unknown))) {
		const char *before = at - 1;

		while (before > line && before[-1] != ' ')
			before--;
		if ((before[0] == 'i' && isdigit((unsigned char)before[1])) ||
		    (*type && (before[-1] == ',' || at[-2] == ',' || at[-2] == '[')))
			fprintf(module->ir.out, "%.*s-1", (int)(at - line), line);
		else
			fprintf(module->ir.out, "%.*s", (int)(at + strlen(unknown) - line), line);
		line = at + strlen(unknown);
	}
	fprintf(module->ir.out, "%s\n", line);
	return true;
}

/* ---- assembly ---- */

/* An instruction: RESULT = call TYPE asm sideeffect "TEXT", "CONSTRAINTS"(ARGUMENTS) ... */
struct assembly {
	char *result; /* NULL: none */
	char *type;
	char *text;
	char *constraints;
	const char *arguments;
	bool jumps; /* asm goto */
};

/* Undoes escapes of a quoted string: \0A, and $$ and other marks of LLVM's. */
static char *assembly_text(const char *from, const char *to)
{
	char *text = ir_piece(from, to), *out = text;

	for (const char *at = text; *at;) {
		if (at[0] == '\\' && isxdigit((unsigned char)at[1]) &&
		    isxdigit((unsigned char)at[2])) {
			*out++ = (char)strtol((char[]){at[1], at[2], 0}, NULL, 16);
			at += 3;
		} else if (at[0] == '$' && at[1] == '$') {
			*out++ = '$';
			at += 2;
		} else {
			*out++ = *at++;
		}
	}
	*out = 0;
	return text;
}

static bool assembly_read(struct assembly *assembly, const char *line)
{
	const char *at = instruction_of(line, &assembly->result), *end;

	if (text_begins(at, "tail "))
		at += strlen("tail ");
	assembly->jumps = text_begins(at, "callbr ");
	if (!assembly->jumps && !text_begins(at, "call "))
		return false;
	at = strchr(at, ' ') + 1;
	end = ir_past_type(at);
	assembly->type = ir_piece(at, end);
	at = strchr(end, '"');
	if (!text_begins(end, " asm ") || !at)
		return false;
	end = ir_past_brackets(at);
	assembly->text = assembly_text(at + 1, end - 1);
	at = end + strlen(", ");
	end = ir_past_brackets(at);
	assembly->constraints = ir_piece(at + 1, end - 1);
	assembly->arguments = end;
	return true;
}

/* Splits a list that has types or values with commas of their own. */
static void pieces_split(struct words *list, const char *at)
{
	while (*at && !strchr(")}]", *at)) {
		const char *end = ir_past_operand(at);

		words_add(list, ir_piece(at, end));
		at = end + strspn(end, ", ");
	}
}

/* Returns the types of the results. */
static struct words assembly_types(const struct assembly *assembly)
{
	struct words types = {0};

	if (assembly->type[0] == '{')
		pieces_split(&types, assembly->type + strlen("{ "));
	else if (strcmp(assembly->type, "void") != 0)
		words_add(&types, assembly->type);
	for (size_t i = 0; i < types.count; i++)
		if (text_ends(types.words[i], " "))
			types.words[i][strlen(types.words[i]) - 1] = 0;
	return types;
}

static bool type_is_pointer(const char *type)
{
	return text_ends(type, "*") || !strcmp(type, "ptr");
}

/* Returns the bits of a type that a register holds, or 0. */
static int type_bits(const char *type)
{
	char *end;
	long bits;

	if (type_is_pointer(type))
		return 64;
	if (!strcmp(type, "double"))
		return 64;
	if (!strcmp(type, "float"))
		return 32;
	bits = type[0] == 'i' ? strtol(type + 1, &end, 10) : 0;
	return bits > 0 && bits <= 64 && !*end ? (int)bits : 0;
}

static bool type_is_float(const char *type)
{
	return !strcmp(type, "double") || !strcmp(type, "float");
}

/* Returns an argument as what a register holds: 32 bits are extended by their sign. */
static char *value_widened(struct ir *ir, const char *type, const char *value)
{
	int bits = type_bits(type);

	if (type_is_pointer(type))
		return ir_value(ir, "ptrtoint %s %s to i64", type, value);
	if (type_is_float(type))
		value = ir_value(ir, "bitcast %s %s to i%d", type, value, bits);
	else if (!value[strspn(value, "-0123456789")])
		return text_of("%s", value);
	if (bits == 64)
		return text_of("%s", value);
	return ir_value(ir, "%s i%d %s to i64", bits == 32 ? "sext" : "zext", bits, value);
}

/* Returns a register's value as what the program wants. */
static char *value_narrowed(struct ir *ir, const char *type, const char *value)
{
	int bits = type_bits(type);

	if (type_is_pointer(type))
		return ir_value(ir, "inttoptr i64 %s to %s", value, type);
	if (bits < 64)
		value = ir_value(ir, "trunc i64 %s to i%d", value, bits);
	if (type_is_float(type))
		value = ir_value(ir, "bitcast i%d %s to %s", bits, value, type);
	return text_of("%s", value);
}

/* Reads an argument, "TYPE VALUE", perhaps with an attribute between. */
static bool argument_read(struct ir *ir, struct riscv_operand *operand, const char *argument)
{
	const char *at = ir_past_type(argument);

	operand->type = ir_piece(argument, at);
	at += strspn(at, " ");
	if (text_begins(at, "elementtype("))
		at = ir_past_brackets(at + strlen("elementtype"));
	at += strspn(at, " ");
	if (!type_bits(operand->type))
		return false;
	operand->value = value_widened(ir, operand->type, at);
	return true;
}

/* Fills in the operands, one for each constraint; false: complain says why. */
static bool operands_read(const struct module *module, struct ir *ir, struct riscv_block *block,
			  const struct assembly *assembly)
{
	struct words constraints = {0}, types = assembly_types(assembly), arguments = {0};
	size_t result = 0, argument = 0;

	words_split(&constraints, assembly->constraints);
	pieces_split(&arguments, assembly->arguments + 1);
	block->operands = calloc(constraints.count + 1, sizeof(*block->operands));
	if (!block->operands)
		give_up("out of memory");
	for (size_t i = 0; i < constraints.count && constraints.words[i][0] != '~'; i++) {
		struct riscv_operand *operand = &block->operands[block->count++];
		const char *constraint = constraints.words[i];
		bool there = true;

		operand->is_output = *constraint == '=';
		constraint += operand->is_output;
		constraint += *constraint == '&';
		operand->is_memory = *constraint == '*';
		constraint += strspn(constraint, "*&");
		if (*constraint == 'A' || *constraint == 'f') {
			module_complain(module, "operands of the kinds A and f are not translated");
			return false;
		}
		if (operand->is_output && !operand->is_memory) {
			there = result < types.count && type_bits(types.words[result]);
			operand->type = there ? types.words[result++] : "";
		} else {
			there = argument < arguments.count &&
				argument_read(ir, operand, arguments.words[argument++]);
		}
		if (!there) {
			module_complain(module, "an operand does not fit into a register");
			return false;
		}
		/* The register of a result has this value before. */
		if (isdigit((unsigned char)*constraint))
			block->operands[strtoul(constraint, NULL, 10)].value = operand->value;
	}
	return true;
}

/* Gives the instruction's name to its results. */
static void results_write(struct ir *ir, const struct riscv_block *block,
			  const struct assembly *assembly)
{
	const char *whole = "undef";
	size_t count = assembly_types(assembly).count, number = 0;

	for (size_t i = 0; i < block->count; i++) {
		const struct riscv_operand *operand = &block->operands[i];
		const char *value;

		if (!operand->is_output || operand->is_memory)
			continue;
		value = value_narrowed(ir, operand->type, operand->value ? operand->value : "0");
		number++;
		if (count == 1)
			ir_write(ir, "%s = select i1 true, %s %s, %s %s", assembly->result,
				 operand->type, value, operand->type, value);
		else if (number == count)
			ir_write(ir, "%s = insertvalue %s %s, %s %s, %zu", assembly->result,
				 assembly->type, whole, operand->type, value, number - 1);
		else
			whole = ir_value(ir, "insertvalue %s %s, %s %s, %zu", assembly->type, whole,
					 operand->type, value, number - 1);
	}
}

/* ---- assembly with jumps ---- */

/* Such a statement becomes a function of its own, because the blocks that it consists of would be in
 * the way of those around it.  It is always inlined, and then in the place of the statement. */

/* Returns those attributes of the function around which say how code is generated: whether it is
 * checked, and what a frame looks like. */
static const char *function_attributes(const struct module *module)
{
	const char *at = module->attributes
				 ? module_find(module, text_of("attributes %s", module->attributes))
				 : NULL;
	const char *kept = "";

	for (at = at ? at + strspn(at, "{ ") : ""; *at && *at != '}'; at += strspn(at, " ")) {
		const char *end = at;

		while (*end && *end != ' ')
			end = *end == '"' ? ir_past_brackets(end) : end + 1;
		if (*at == '"' || text_begins(at, "sanitize_") || text_begins(at, "uwtable"))
			kept = text_of("%s %.*s", kept, (int)(end - at), at);
		at = end;
	}
	return kept;
}

/* The type of a function's result: a value for each operand that is one. */
static const char *function_type(const struct riscv_block *block, size_t *results)
{
	const char *type = NULL;

	*results = 0;
	for (size_t i = 0; i < block->count; i++) {
		if (!block->operands[i].is_output || block->operands[i].is_memory)
			continue;
		type = type ? text_of("%s, i64", type) : "i64";
		++*results;
	}
	return type ? text_of("{ %s }", type) : "void";
}

/* Writes what the function returns; the blocks of a statement end there. */
static void function_return(struct riscv_block *block, const char *type)
{
	const char *whole = "undef";
	size_t number = 0;

	riscv_function_end(block);
	for (size_t i = 0; i < block->count; i++)
		if (block->operands[i].is_output && !block->operands[i].is_memory)
			whole = ir_value(block->ir, "insertvalue %s %s, i64 %s, %zu", type, whole,
					 block->operands[i].value, number++);
	ir_write(block->ir, strcmp(type, "void") != 0 ? "ret %s %s" : "ret %s", type, whole);
}

/* Writes the function into a text of its own, for the end of the module. */
static void function_write(struct module *module, struct riscv_block *block, const char *name,
			   const char *text)
{
	struct ir *ir = block->ir;
	FILE *module_file = ir->out;
	const char *debug = ir->debug, *parameters = "", *type;
	size_t bytes, results;
	char *function;

	type = function_type(block, &results);
	for (size_t i = 0; i < block->count; i++)
		parameters = text_of("%s%si64 %%p%zu", parameters, i ? ", " : "", i);
	ir->out = open_memstream(&function, &bytes);
	if (!ir->out)
		give_up("out of memory");
	/* Without places: the inliner gives the code that of the call. */
	ir->debug = "";
	fprintf(ir->out, "define internal %s @%s(%s) alwaysinline nounwind%s {\n", type, name,
		parameters, function_attributes(module));
	riscv_function_begin(block);
	riscv_translate(block, text);
	function_return(block, type);
	fputs("}\n", ir->out);
	if (fclose(ir->out))
		give_up("out of memory");
	words_add(&module->assembled, function);
	free(function);
	ir->out = module_file;
	ir->debug = debug;
}

/* Calls a function that is made of the text, and takes the operands' values from its result. */
static void function_call(struct module *module, struct riscv_block *block, const char *text)
{
	struct ir *ir = block->ir;
	const char *arguments = "", *type, *result = NULL;
	char *name = text_of("dpa..assembly%zu", module->assembled.count);
	size_t results, number = 0;

	type = function_type(block, &results);
	for (size_t i = 0; i < block->count; i++) {
		const char *value = block->operands[i].value;

		arguments = text_of("%s%si64 %s", arguments, i ? ", " : "", value ? value : "0");
	}
	function_write(module, block, name, text);
	if (results)
		result = ir_value(ir, "call %s @%s(%s)", type, name, arguments);
	else
		ir_write(ir, "call %s @%s(%s)", type, name, arguments);
	for (size_t i = 0; i < block->count; i++)
		if (block->operands[i].is_output && !block->operands[i].is_memory)
			block->operands[i].value =
				ir_value(ir, "extractvalue %s %s, %zu", type, result, number++);
}

/* The attributes of a function stand behind its parameters: "#5". */
static void function_begins(struct module *module, const char *line)
{
	const char *name = strchr(line, '@'), *at;

	if (!text_begins(line, "define ") || !name)
		return;
	at = strstr(ir_past_brackets(ir_past_name(name)), " #");
	module->attributes = at ? ir_piece(at + 1, at + 2 + strspn(at + 2, "0123456789")) : NULL;
}

static bool rewrite_assembly(struct module *module, const char *line)
{
	struct assembly assembly;
	struct riscv_block block = {.ir = &module->ir};

	if (!assembly_read(&assembly, line) || !riscv_has_code(assembly.text))
		return false;
	module->ir.debug = debug_of(line);
	if (assembly.jumps) {
		/* The labels that it may go to are in a line of their own. */
		if (!*module->ir.debug)
			module->ir.debug = debug_of(module->next);
		module_complain(module, "asm goto is not translated");
		return true;
	}
	if (operands_read(module, &module->ir, &block, &assembly)) {
		if (riscv_needs_function(assembly.text))
			function_call(module, &block, assembly.text);
		else
			riscv_translate(&block, assembly.text);
		if (block.refused)
			module_complain(module, block.refused);
		else
			results_write(&module->ir, &block, &assembly);
	}
	free(block.operands);
	return true;
}

/* ---- assembly outside of functions ---- */

/* Those that mean the same to the assemblers of the DPA and of the host.  (.word has 4 bytes there and 2 here.) */
static const char *const directives[] = {
	".globl",      ".global",   ".local",  ".weak",	   ".hidden", ".type",	  ".size",
	".set",	       ".equ",	    ".text",   ".data",	   ".bss",    ".section", ".pushsection",
	".popsection", ".previous", ".balign", ".p2align", ".byte",   ".2byte",	  ".4byte",
	".8byte",      ".short",    ".long",   ".quad",	   ".ascii",  ".asciz",	  ".string",
	".zero",       ".skip",	    ".space",  ".comm",
};

static bool directive_is_known(const char *word, size_t n)
{
	for (size_t i = 0; i < array_size(directives); i++)
		if (strlen(directives[i]) == n && !strncmp(directives[i], word, n))
			return true;
	return false;
}

/* Past labels, which only give names. */
static const char *past_labels(const char *at)
{
	const char *end;

	for (;;) {
		at += strspn(at, " \t");
		end = at + strcspn(at, ": \t\"");
		if (*end != ':')
			return at;
		at = end + 1;
	}
}

/* The source that the module was made of; clang says no more of the place. */
static const char *module_source(const struct module *module)
{
	static const char key[] = "source_filename = \"";

	for (size_t i = 0; i < module->lines.count; i++)
		if (text_begins(module->lines.words[i], key))
			return ir_piece(module->lines.words[i] + strlen(key),
					strrchr(module->lines.words[i], '"'));
	return "device code";
}

/* module asm "TEXT": data and names stay as they are; anything else would be assembled as the host's. */
static void file_scope_look(const struct module *module, const char *line)
{
	static const char key[] = "module asm \"";
	char *text, *next, *statement;

	if (!text_begins(line, key))
		return;
	text = assembly_text(line + strlen(key), strrchr(line, '"'));
	for (statement = strtok_r(text, ";\n", &next); statement;
	     statement = strtok_r(NULL, ";\n", &next)) {
		const char *at = past_labels(statement);

		if (*at && *at != '#' && !text_begins(at, "//") &&
		    !directive_is_known(at, strcspn(at, " \t")))
			report_at(module_source(module), 0,
				  "assembly outside of functions: not translated: %s", at);
	}
	free(text);
}

/* ---- all of it ---- */

static bool module_has(const struct module *module, const char *prototype)
{
	const char *name = strchr(prototype, '@');
	char *call = ir_piece(name, strchr(name, '(') + 1);

	for (size_t i = 0; i < module->lines.count; i++) {
		const char *line = module->lines.words[i];

		if ((text_begins(line, "declare ") || text_begins(line, "define ")) &&
		    strstr(line, call))
			return true;
	}
	return false;
}

void rewrite_module(const char *path)
{
	struct module module = {0};
	FILE *file;
	bool failed;

	module_read(&module, path);
	annotations_read(&module);
	file = fopen(path, "we");
	if (!file)
		give_up("%s: %s", path, strerror(errno));
	module.ir.out = file;
	module.ir.typed_pointers = module_version(&module) < 15;
	for (size_t i = 0; i < module.lines.count; i++) {
		const char *line = module.lines.words[i];

		module.next = i + 1 < module.lines.count ? module.lines.words[i + 1] : "";
		file_scope_look(&module, line);
		function_begins(&module, line);
		if (!rewrite_definition(&module, line) && !rewrite_division(&module, line) &&
		    !rewrite_assembly(&module, line) && !rewrite_unknown(&module, line))
			fprintf(file, "%s\n", line);
	}
	for (size_t i = 0; i < module.assembled.count; i++)
		fputs(module.assembled.words[i], file);
	for (size_t i = 0; i < module.ir.declared.count; i++)
		if (!module_has(&module, module.ir.declared.words[i]))
			fprintf(file, "declare %s\n", module.ir.declared.words[i]);
	failed = ferror(file);
	if (fclose(file) || failed)
		give_up("%s: %s", path, strerror(errno));
}
