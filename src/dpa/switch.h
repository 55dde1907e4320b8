/* SPDX-License-Identifier: BSD-2-Clause */
/* Switches between the stack of the runtime and that of device code. */
#pragma once

#include <stdint.h>

/*
 * Calls function(a, b) on the stack that ends at top (aligned to 16), after it has stored the
 * position of the runtime's stack.  Returns the value given to dpa_switch_back.  If the function
 * returns, it calls dpa_returned on that stack with the result.
 */
uint64_t dpa_switch_to(uint64_t a, uint64_t b, uint64_t function, void *top, void **runtime_sp);
/* Continues behind the dpa_switch_to that stored runtime_sp; called on any stack of the thread. */
_Noreturn void dpa_switch_back(void *runtime_sp, uint64_t value);
/* Defined in dpa/thread.c. */
_Noreturn void dpa_returned(uint64_t value);
