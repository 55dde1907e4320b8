/* SPDX-License-Identifier: BSD-2-Clause */
/* Decodes and skips store instructions of a program that a fault held up. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* The longest instruction (Intel SDM volume 2, 2.3.11). */
#define STORE_INSN_MAX 15u
/* Bytes of the blocks in which the library copies a work request to a register (BlueFlame). */
#define STORE_BLOCK 64u
/* Enough for the stores of such a block, by 16 bytes each. */
#define STORE_CODE_MAX 40u

#define STORE_NO_REGISTER 0xffu

/*
 * An address that an instruction names: base + (index << scale) + offset; registers by their numbers in instructions.
 */
struct store_target {
	bool known;
	uint8_t base, index, scale;
	int32_t offset;
};

/* Where the first 8 bytes that a store writes come from. */
enum store_source {
	STORE_OF_OTHER,	  /* it writes less, or we do not know */
	STORE_OF_GENERAL, /* a general register */
	STORE_OF_VECTOR,  /* the low half of a vector register */
	STORE_OF_CONSTANT,
	STORE_OF_MEMORY, /* MOVDIR64B, which UCX copies work requests with */
};

struct store {
	struct store_target to, from; /* from: of STORE_OF_MEMORY */
	enum store_source source;
	uint8_t reg;
	int32_t constant;
};

/*
 * The length of the instruction at code (of which len bytes can be read), if all that it does is to
 * store a register or a constant to memory; then *out says where and what.  0: it does more, or we do
 * not know it.
 */
size_t store_decode(const uint8_t *code, size_t len, struct store *out) must_check;
/*
 * The store at which ucontext (third argument of the handler of its fault) stands goes to addr.
 * True: the program goes on behind it, and behind the stores to the same block of STORE_BLOCK bytes
 * that follow without another instruction in between, as if it had executed them.  False: nothing
 * changed.  If value is not NULL, it gets the first 8 bytes that the store writes, and a store that
 * does not show them is not skipped.
 */
bool store_skip(void *ucontext, uintptr_t addr, uint64_t *value) must_check;
