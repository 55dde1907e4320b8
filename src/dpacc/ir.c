// SPDX-License-Identifier: BSD-2-Clause
/* LLVM's intermediate representation as text: pieces of its lines, and new instructions. */
#include "dpacc/ir.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- pieces of lines ---- */

static const char *past_quotes(const char *at)
{
	const char *end = strchr(at + 1, '"');

	/* A quote inside is written as \22. */
	return end ? end + 1 : at + strlen(at);
}

const char *ir_past_brackets(const char *at)
{
	int depth = 0;

	if (*at == '"')
		return past_quotes(at);
	while (*at) {
		if (*at == '"') {
			at = past_quotes(at);
			continue;
		}
		if (strchr("([{<", *at))
			depth++;
		else if (strchr(")]}>", *at))
			depth--;
		at++;
		if (!depth)
			break;
	}
	return at;
}

const char *ir_past_name(const char *at)
{
	if (*at == '@' || *at == '%')
		at++;
	if (*at == '"')
		return past_quotes(at);
	while (isalnum((unsigned char)*at) || (*at && strchr("._$-", *at)))
		at++;
	return at;
}

const char *ir_past_type(const char *at)
{
	at = *at && strchr("[{<", *at) ? ir_past_brackets(at) : ir_past_name(at);
	for (;;) {
		if (*at == '*')
			at++;
		else if (at[0] == ' ' && at[1] == '(') /* of a function */
			at = ir_past_brackets(at + 1);
		else
			return at;
	}
}

const char *ir_past_operand(const char *at)
{
	while (*at && !strchr(",)]}>", *at))
		at = strchr("([{<\"", *at) ? ir_past_brackets(at) : at + 1;
	return at;
}

char *ir_piece(const char *from, const char *to)
{
	return text_of("%.*s", (int)(to - from), from);
}

/* ---- new instructions ---- */

static void ir_print(const struct ir *ir, const char *name, const char *format, va_list args)
{
	fprintf(ir->out, name ? "  %s = " : "  ", name);
	vfprintf(ir->out, format, args);
	fprintf(ir->out, "%s\n", ir->debug);
}

/* No name of a C program has two points in it. */
char *ir_value(struct ir *ir, const char *format, ...)
{
	char *name = text_of("%%dpa..%u", ir->values++);
	va_list args;

	va_start(args, format);
	ir_print(ir, name, format, args);
	va_end(args);
	return name;
}

void ir_write(struct ir *ir, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	ir_print(ir, NULL, format, args);
	va_end(args);
}

char *ir_call(struct ir *ir, const char *prototype, const char *args)
{
	if (!words_have(&ir->declared, prototype))
		words_add(&ir->declared, prototype);
	if (text_begins(prototype, "void ")) {
		ir_write(ir, "call %.*s(%s)", (int)strcspn(prototype, "("), prototype, args);
		return NULL;
	}
	return ir_value(ir, "call %.*s(%s)", (int)strcspn(prototype, "("), prototype, args);
}

/* ---- division ---- */

/* Returns the type of a comparison: as many bits as the type has elements. */
static char *type_of_flags(const char *type)
{
	if (*type != '<')
		return text_of("i1");
	return text_of("%.*s x i1>", (int)strcspn(type + 1, " ") + 1, type);
}

/* Returns a constant, for a vector in each element. */
static char *type_constant(const char *type, int number)
{
	const char *element = strstr(type, " x ");
	char *text;

	if (*type != '<' || !element)
		return text_of("%d", number);
	element += strlen(" x ");
	text = text_of("<%.*s %d", (int)strcspn(element, ">"), element, number);
	for (long i = strtol(type + 1, NULL, 10); i > 1; i--)
		text = text_of("%s, %.*s %d", text, (int)strcspn(element, ">"), element, number);
	return text_of("%s>", text);
}

/* The divisors for which a processor may trap are replaced by 1 before it divides. */
char *ir_divide(struct ir *ir, const char *op, const char *type, const char *a, const char *b,
		const char *result)
{
	const char *flags = type_of_flags(type), *one = type_constant(type, 1);
	const char *ones = type_constant(type, -1);
	bool is_signed = op[0] == 's', is_quotient = text_ends(op, "div");
	char *zero = ir_value(ir, "icmp eq %s %s, zeroinitializer", type, b);
	char *minus = is_signed ? ir_value(ir, "icmp eq %s %s, %s", type, b, ones) : zero;
	char *unsafe = is_signed ? ir_value(ir, "or %s %s, %s", flags, zero, minus) : zero;
	char *safe = ir_value(ir, "select %s %s, %s %s, %s %s", flags, unsafe, type, one, type, b);
	char *value = ir_value(ir, "%s %s %s, %s", op, type, a, safe);

	if (is_quotient && is_signed) {
		char *negative = ir_value(ir, "sub %s zeroinitializer, %s", type, a);

		value = ir_value(ir, "select %s %s, %s %s, %s %s", flags, minus, type, negative,
				 type, value);
	}
	if (!result)
		result = text_of("%%dpa..%u", ir->values++);
	ir_write(ir, "%s = select %s %s, %s %s, %s %s", result, flags, zero, type,
		 is_quotient ? ones : a, type, value);
	return text_of("%s", result);
}
