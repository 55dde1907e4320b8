/* SPDX-License-Identifier: BSD-2-Clause */
/* Between the stack of the runtime and that of device code. */
#pragma once

#include <stdint.h>

/*
 * Calls function(a, b) on the stack that ends at top (aligned to 16), after it has stored where the
 * runtime's own stack stands.  Returns what dpa_switch_back says.  If the function returns,
 * dpa_returned is called on its stack with its result.
 */
uint64_t dpa_switch_to(uint64_t a, uint64_t b, uint64_t function, void *top, void **runtime_sp);
/* Continues behind the dpa_switch_to that stored runtime_sp; from any stack of the thread. */
_Noreturn void dpa_switch_back(void *runtime_sp, uint64_t value);
/* Of dpa/thread.c. */
_Noreturn void dpa_returned(uint64_t value);
