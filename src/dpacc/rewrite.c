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

#include "dpacc/ir.h"
#include "dpacc/words.h"

struct module {
	struct words lines;
	struct words functions; /* annotated ones, */
	struct words sections;	/* and the section of each */
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

		if (!rewrite_definition(&module, line) && !rewrite_division(&module, line) &&
		    !rewrite_unknown(&module, line))
			fprintf(file, "%s\n", line);
	}
	for (size_t i = 0; i < module.ir.declared.count; i++)
		if (!module_has(&module, module.ir.declared.words[i]))
			fprintf(file, "declare %s\n", module.ir.declared.words[i]);
	failed = ferror(file);
	if (fclose(file) || failed)
		give_up("%s: %s", path, strerror(errno));
}
