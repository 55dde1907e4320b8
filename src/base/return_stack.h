/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processor's return stack, which says where it expects the next 16 or 32 returns to lead.
 *
 * A kernel that guards its returns (against Spectre and its kin) leaves addresses of its own there.
 * After a system call, the first return that the processor predicted by one of them took 400 ns on
 * a Zen 4, a third of the call's own time; a wrong prediction that is an address of the program
 * costs some nanoseconds.
 */
#pragma once

/*
 * Puts addresses of ours onto the return stack, for code that returns through several functions
 * after a system call.  Takes 10 to 20 ns.
 *
 * Its calls never return, which a shadow stack would take for an attack, so it does nothing in
 * programs that have one.  It leaves the red zone alone.
 */
static inline void return_stack_refill(void)
{
#if defined(__x86_64__)
	unsigned long shadow = 0;

	/* rdsspq does nothing on processors without shadow stacks, and in programs without one. */
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
