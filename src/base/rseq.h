/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Restartable sequences (rseq(2)): a few instructions that the kernel lets a thread run through
 * without a break.  If a thread is preempted, stopped or interrupted by a signal in the middle of
 * one, it goes on at the sequence's abort label.  So when the last instruction runs, the checks at
 * the beginning are only some instructions old, however long the thread was stopped in between.
 *
 * The C library registers each thread.  If it has not, rseq_available returns false, and callers
 * may use nothing else of this file.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "base/compiler.h"

#if (defined(__x86_64__) || defined(__aarch64__)) && __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define RSEQ_SUPPORTED 1
#else
#define RSEQ_SUPPORTED 0
#endif

/* Two words, and the values that they must have. */
struct rseq_check {
	const _Atomic(uint64_t) *wide;
	uint64_t wide_value;
	const _Atomic(uint32_t) *word;
	uint64_t word_value;
};

/* Results of rseq_syscall that no system call returns. */
#define RSEQ_REFUSED (-5000L) /* a word has another value */
#define RSEQ_ABORTED (-5001L) /* something interrupted it before the system call began */

#if RSEQ_SUPPORTED

static inline bool rseq_available(void)
{
	return __rseq_size != 0;
}

/* The word in which the kernel finds the sequence that this thread is in. */
static inline uint64_t *rseq_current(void)
{
	struct rseq *area =
		(struct rseq *)(void *)((char *)__builtin_thread_pointer() + __rseq_offset);

	return (uint64_t *)(void *)&area->rseq_cs;
}

/*
 * The pieces of a sequence in inline assembly, whose operand [cs] is *rseq_current():
 *
 *     RSEQ_BEGIN(scratch register)  ...instructions...  RSEQ_END  RSEQ_ABORT(instructions)
 *
 * The macros use labels 1 to 4; an aborted sequence goes on at 4.  The store of the descriptor's
 * address is the last instruction before the sequence: once it is done, the thread is inside.
 */
/* clang-format off */
#define RSEQ_DESCRIPTOR						\
	".pushsection __rseq_cs, \"aw\"\n\t"			\
	".balign 32\n"						\
	"3:\n\t"						\
	".long 0, 0\n\t"					\
	".quad 1f, 2f - 1f, 4f\n\t"				\
	".popsection\n\t"
#define RSEQ_END "2:\n\t"
#if defined(__x86_64__)
#define RSEQ_BEGIN(scratch)					\
	RSEQ_DESCRIPTOR						\
	"leaq 3b(%%rip), " scratch "\n\t"			\
	"movq " scratch ", %[cs]\n"				\
	"1:\n\t"
#define RSEQ_ABORT(insns)					\
	".pushsection .text.unlikely, \"ax\"\n\t"		\
	".byte 0x0f, 0xb9, 0x3d\n\t"				\
	".long 0x53053053\n"					\
	"4:\n\t" insns "\n\t"					\
	".popsection\n\t"
#else
#define RSEQ_BEGIN(scratch)					\
	RSEQ_DESCRIPTOR						\
	"adrp " scratch ", 3b\n\t"				\
	"add " scratch ", " scratch ", :lo12:3b\n\t"		\
	"str " scratch ", %[cs]\n"				\
	"1:\n\t"
#define RSEQ_ABORT(insns)					\
	"b 6f\n\t"						\
	".inst 0xd428bc00\n"					\
	"4:\n\t" insns "\n"					\
	"6:\n\t"
#endif
/* clang-format on */

/*
 * A system call that begins only while both words have their values.  The call is the last
 * instruction of the sequence: a thread that is stopped before it does not make it.  Returns the
 * call's result, RSEQ_REFUSED or RSEQ_ABORTED.
 */
static inline long rseq_syscall(const struct rseq_check *c, long nr, long a, const void *b, long n,
				const void *d, long m)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = (long)(uintptr_t)d;
	register long r8 __asm__("r8") = m;
	register long r9 __asm__("r9") = 0;
	long ret = nr;

	__asm__ volatile(RSEQ_BEGIN("%%rcx") "movq (%[c]), %%rcx\n\t"
					     "movq 8(%[c]), %%r11\n\t"
					     "cmpq %%r11, (%%rcx)\n\t"
					     "jne 5f\n\t"
					     "movq 16(%[c]), %%rcx\n\t"
					     "movq 24(%[c]), %%r11\n\t"
					     "cmpl %%r11d, (%%rcx)\n\t"
					     "jne 5f\n\t"
					     "syscall\n" RSEQ_END RSEQ_ABORT(
						     "movq $-5001, %%rax\n\t"
						     "jmp 2b\n"
						     "5:\n\t"
						     "movq $-5000, %%rax\n\t"
						     "jmp 2b")
			 : "+a"(ret), [cs] "=m"(*rseq_current())
			 : "D"(a), "S"(b), "d"(n), "r"(r10), "r"(r8), "r"(r9), [c] "r"(c)
			 : "rcx", "r11", "memory", "cc");
	return ret;
#else
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register const void *x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = n;
	register const void *x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = m;
	register long x5 __asm__("x5") = 0;

	__asm__ volatile(RSEQ_BEGIN("x9") "ldp x9, x10, [%[c]]\n\t"
					  "ldr x11, [x9]\n\t"
					  "cmp x11, x10\n\t"
					  "b.ne 5f\n\t"
					  "ldp x9, x10, [%[c], #16]\n\t"
					  "ldr w11, [x9]\n\t"
					  "cmp w11, w10\n\t"
					  "b.ne 5f\n\t"
					  "svc #0\n" RSEQ_END RSEQ_ABORT("mov x0, #-5001\n\t"
									 "b 6f\n"
									 "5:\n\t"
									 "mov x0, #-5000")
			 : "+r"(x0), [cs] "=Q"(*rseq_current())
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), [c] "r"(c)
			 : "x9", "x10", "x11", "memory", "cc");
	return x0;
#endif
}

#else

static inline bool rseq_available(void)
{
	return false;
}

static inline long rseq_syscall(const struct rseq_check *c, long nr, long a, const void *b, long n,
				const void *d, long m)
{
	(void)c;
	(void)nr;
	(void)a;
	(void)b;
	(void)n;
	(void)d;
	(void)m;
	return RSEQ_REFUSED;
}
#endif
