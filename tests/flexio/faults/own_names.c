// SPDX-License-Identifier: BSD-2-Clause
/* A library with the names of the debuggers' interface for code that is made at run time, as libLLVM is one. */
#include <stdint.h>
#include <stdio.h>

struct descriptor {
	uint32_t version, action;
	void *relevant, *first;
};

void __jit_debug_register_code(void);
extern struct descriptor __jit_debug_descriptor;

static unsigned calls;
struct descriptor __jit_debug_descriptor = {.version = 1};

__attribute__((noinline)) void __jit_debug_register_code(void)
{
	calls++;
}

/* Through the dynamic linker, to whoever has the name first. */
static __attribute__((destructor)) void own_end(void)
{
	__jit_debug_register_code();
	printf("own names: %u call, %d files\n", calls, __jit_debug_descriptor.first != NULL);
	fflush(stdout);
}
