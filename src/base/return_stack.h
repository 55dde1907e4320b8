/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processor's return stack: where it expects returns to lead, 16 or 32 of them.
 *
 * A kernel that guards its returns (against Spectre and its kin) leaves addresses of its own there.
 * The first return to be predicted by one of them after a system call took 400 ns on a Zen 4, a
 * third of what the call had taken; a return that is predicted to an address of the program and is
 * wrong takes some nanoseconds.
 */
#pragma once

/*
 * Puts addresses of ours onto the return stack, for code that returns through several functions
 * after a system call.  Takes 10 to 20 ns.
 *
 * The calls are never returned from, which a shadow stack would take for an attack: programs that
 * have one go without.  The red zone is left alone.
 */
static inline void return_stack_refill(void)
{
#if defined(__x86_64__)
	unsigned long shadow = 0;

	/* Does nothing on processors that have no shadow stacks, and where there is none. */
	__asm__ volatile("rdsspq %0" : "+r"(shadow));
	if (__builtin_expect(shadow != 0, 0))
		return;
	__asm__ volatile("subq $128, %%rsp\n\t"
			 ".rept 32\n\t"
			 "call 1f\n\t"
			 "int3\n"
			 "1:\n\t"
			 ".endr\n\t"
			 "addq $128 + 32 * 8, %%rsp"
			 :
			 :
			 : "memory", "cc");
#endif
}
