/* SPDX-License-Identifier: BSD-2-Clause */
/* RISC-V instructions of inline assembly, as LLVM's instructions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "dpacc/ir.h"

#define RISCV_REGISTERS 32

/* An operand of an assembly statement. */
struct riscv_operand {
	const char *type; /* of what the program has there; of a pointer if is_memory */
	char *value;	  /* 64 bits: its value or its address; NULL: none has been written */
	bool is_output;
	bool is_memory; /* m: the statement names the place in memory */
};

struct riscv_block {
	struct ir *ir;
	struct riscv_operand *operands;
	size_t count;
	/* The values of registers that the statement names; NULL: the statement has not set it. */
	char *registers[RISCV_REGISTERS];
	/* Whether the block is the body of a function, because the statement has jumps.  Then
	 * operands and registers are variables of it, which riscv_function_begin() names. */
	bool is_function;
	struct words labels; /* all of the statement's, in order, */
	size_t passed;	     /* and how many of them lie behind */
	unsigned int jumps;  /* so far */
	char *refused;	     /* why the first instruction that is not understood is not */
};

bool riscv_is_register(const char *name);
/* Whether the text has anything but comments, space and directives. */
bool riscv_has_code(const char *text);
/* Whether the text needs a function of its own: it has labels or reservations. */
bool riscv_needs_function(const char *text);
/* Writes LLVM's instructions for a text of assembly, in which $0 is the first operand.  Stops at an
 * instruction that it does not understand, and sets refused. */
void riscv_translate(struct riscv_block *block, const char *text);
/* Makes a block the body of a function, whose operands are the parameters %p0, %p1 and so on. */
void riscv_function_begin(struct riscv_block *block);
/* Sets the operands' values to what they are at the end of the function. */
void riscv_function_end(struct riscv_block *block);
