/* SPDX-License-Identifier: BSD-2-Clause */
/* RISC-V instructions of inline assembly, as LLVM's instructions. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "dpacc/ir.h"

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
	char *registers[32]; /* values of registers that the statement names; NULL: unknown */
	char *refused;	     /* why the first instruction that is not understood is not */
};

/* Whether the text has anything but comments, space and directives. */
bool riscv_has_code(const char *text);
/* Writes LLVM's instructions for a text of assembly, in which $0 is the first operand.  Stops at an
 * instruction that it does not understand, and sets refused. */
void riscv_translate(struct riscv_block *block, const char *text);
