// SPDX-License-Identifier: BSD-2-Clause
/*
 * Atomics that two words permit: restartable sequences as in usermem_checked.c, whose last
 * instruction is the atomic.  So either the atomic is executed once, or the sequence says that it
 * was not.
 */
#include "usermem/usermem.h"
#include "usermem/usermem_touch.h"

#if RSEQ_SUPPORTED && defined(__x86_64__) && !defined(USERMEM_PORTABLE)

/* A try fails each time the thread is preempted, or a page is brought in. */
#define TRIES 16

/* clang-format off */
#define atomic_by(insn, value_in_out, ...)					\
	__asm__ volatile goto(RSEQ_BEGIN("%%rcx")				\
			      "cmpq %[wide_value], %[wide]\n\t"		\
			      "jne %l[refused]\n\t"				\
			      "cmpl %k[value], %[word]\n\t"			\
			      "jne %l[refused]\n\t"				\
			      insn "\n" RSEQ_END				\
			      RSEQ_ABORT("jmp %l[aborted]")			\
			      EXTABLE("4b")					\
			      : value_in_out, [at] "+m"(*(uint64_t *)addr)	\
			      : [cs] "m"(*rseq_current()),			\
				[wide_value] "r"(check->wide_value),		\
				[wide] "m"(*check->wide),			\
				[value] "r"(check->word_value), [word] "m"(*check->word) \
				__VA_ARGS__					\
			      : "rcx", "cc", "memory"				\
			      : refused, aborted, fault)
/* clang-format on */

static enum usermem_verdict fetch_add_once(void *addr, uint64_t add, uint64_t *orig,
					   const struct rseq_check *check)
{
	atomic_by("lock xaddq %[add], %[at]", [add] "+r"(add));
	__asm__ volatile("");
	*orig = add;
	return USERMEM_DONE;
refused:
	return USERMEM_REFUSED;
aborted:
	return USERMEM_INTERRUPTED;
fault:
	return USERMEM_FAULT;
}

static enum usermem_verdict compare_swap_once(void *addr, uint64_t compare, uint64_t swap,
					      uint64_t *orig, const struct rseq_check *check)
{
	atomic_by("lock cmpxchgq %[swap], %[at]", [compare] "+a"(compare), , [swap] "r"(swap));
	__asm__ volatile("");
	*orig = compare;
	return USERMEM_DONE;
refused:
	return USERMEM_REFUSED;
aborted:
	return USERMEM_INTERRUPTED;
fault:
	return USERMEM_FAULT;
}

/* False across cache lines: a locked access there stops the machine's memory traffic. */
static bool is_possible(const void *addr)
{
	return rseq_available() && (uintptr_t)addr % sizeof(uint64_t) == 0;
}

enum usermem_verdict usermem_fetch_add_checked(void *addr, uint64_t add, uint64_t *orig,
					       const struct rseq_check *check)
{
	enum usermem_verdict v = USERMEM_INTERRUPTED;

	for (int i = 0; is_possible(addr) && v == USERMEM_INTERRUPTED && i < TRIES; i++)
		v = fetch_add_once(addr, add, orig, check);
	return v;
}

enum usermem_verdict usermem_compare_swap_checked(void *addr, uint64_t compare, uint64_t swap,
						  uint64_t *orig, const struct rseq_check *check)
{
	enum usermem_verdict v = USERMEM_INTERRUPTED;

	for (int i = 0; is_possible(addr) && v == USERMEM_INTERRUPTED && i < TRIES; i++)
		v = compare_swap_once(addr, compare, swap, orig, check);
	return v;
}

#else

enum usermem_verdict usermem_fetch_add_checked(void *addr, uint64_t add, uint64_t *orig,
					       const struct rseq_check *check)
{
	(void)addr;
	(void)add;
	(void)orig;
	(void)check;
	return USERMEM_INTERRUPTED;
}

enum usermem_verdict usermem_compare_swap_checked(void *addr, uint64_t compare, uint64_t swap,
						  uint64_t *orig, const struct rseq_check *check)
{
	(void)addr;
	(void)compare;
	(void)swap;
	(void)orig;
	(void)check;
	return USERMEM_INTERRUPTED;
}

#endif
