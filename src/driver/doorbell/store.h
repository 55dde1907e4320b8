/* SPDX-License-Identifier: BSD-2-Clause */
/* Store instructions of a program that were held up by a fault. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* No instruction is longer (Intel SDM volume 2, 2.3.11). */
#define STORE_INSN_MAX 15u
/* A work request is copied to a register in blocks of so many bytes (BlueFlame). */
#define STORE_BLOCK 64u
/* Enough for the stores of such a block, by 16 bytes each. */
#define STORE_CODE_MAX 40u

#define STORE_NO_REGISTER 0xffu

/* Where a store goes: base + (index << scale) + offset, registers by their numbers in instructions. */
struct store_target {
	bool known;
	uint8_t base, index, scale;
	int32_t offset;
};

/*
 * The length of the instruction at code (of which len bytes can be read), if all that it does is to
 * store a register or a constant to memory; then to says where.  Otherwise, or if it is not known, 0.
 */
size_t store_decode(const uint8_t *code, size_t len, struct store_target *to) must_check;
/*
 * The store that ucontext (third argument of the handler of its fault) stands at goes to addr.  True: the
 * program goes on behind it, and behind those stores to the same block of STORE_BLOCK bytes that follow
 * with no other instruction in between, as if they had been executed.  False: nothing was changed.
 */
bool store_skip(void *ucontext, uintptr_t addr) must_check;
