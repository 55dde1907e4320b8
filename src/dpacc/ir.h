/* SPDX-License-Identifier: BSD-2-Clause */
/* LLVM's intermediate representation as text: pieces of its lines, and new instructions. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "dpacc/words.h"

/* The module that is being rewritten, at one of its instructions. */
struct ir {
	FILE *out;
	bool typed_pointers;   /* LLVM before 15 writes i64*, later ones ptr */
	unsigned int values;   /* how many values of ours there are: names of the next ones */
	struct words declared; /* functions that the module calls because of us */
	const char *debug;     /* the instruction's place in the source: ", !dbg !5", or "" */
};

/* Writes an instruction, and returns the name of its value. */
char *ir_value(struct ir *ir, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes an instruction without a value, or one whose value has a name already. */
void ir_write(struct ir *ir, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Calls a function; prototype is what declares it: "i64 @llvm.bswap.i64(i64)".  NULL if
 * it returns nothing. */
char *ir_call(struct ir *ir, const char *prototype, const char *args);
/* Writes a division, where op is udiv, sdiv, urem or srem, as RISC-V has it: none traps.  By 0, the
 * quotient has all bits set and the remainder is the dividend; the least number divided by -1 is
 * itself, without a remainder.  result: the name of the value; NULL: a new one.  Returns it. */
char *ir_divide(struct ir *ir, const char *op, const char *type, const char *a, const char *b,
		const char *result);

/* Each of these goes past a piece of a line. */

/* A pair of brackets, or a string in quotes, with all that is inside. */
const char *ir_past_brackets(const char *at);
/* A type. */
const char *ir_past_type(const char *at);
/* All until a comma or bracket that is not within brackets. */
const char *ir_past_operand(const char *at);
/* A name behind @ or %. */
const char *ir_past_name(const char *at);
/* Returns what lies between. */
char *ir_piece(const char *from, const char *to);
