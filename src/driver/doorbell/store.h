/* SPDX-License-Identifier: BSD-2-Clause */
/* Store instructions of a program that were held up by a fault. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* No instruction is longer (Intel SDM volume 2, 2.3.11). */
#define STORE_INSN_MAX 15u

/*
 * The length of the instruction at code (of which len bytes can be read), if all that it does is to
 * store a register or a constant to memory; otherwise, or if it is not known, 0.
 */
size_t store_length(const uint8_t *code, size_t len) must_check;
/*
 * ucontext: third argument of the handler of the fault.  True: it goes on behind the store, as if
 * that had been executed.  False: nothing was changed.
 */
bool store_skip(void *ucontext) must_check;
