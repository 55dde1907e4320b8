// SPDX-License-Identifier: BSD-2-Clause
/*
 * Copies that two words permit.  Each touch is in a restartable sequence (base/rseq.h) that looks
 * at the words first.  So a thread that was stopped in the middle does not touch memory that was
 * withdrawn since.
 *
 * A fault inside a sequence aborts the sequence before the signal's handler is called.  So on
 * x86-64 the handler finds the abort label, and the label stands in the table of faulting
 * instructions.
 */
#include "base/word.h"
#include "usermem/usermem.h"
#include "usermem/usermem_touch.h"

#if RSEQ_SUPPORTED

/* The most bytes that one sequence copies.  A longer sequence has to begin again more often. */
#define PIECE (16u << 10)
/* A try fails each time the thread is preempted, or a page is brought in. */
#define PIECE_TRIES 16

#if defined(__x86_64__) && !defined(USERMEM_PORTABLE)
#define checked_extable EXTABLE("4b")
#else
/* usermem_guarded catches faults; the label only lets the same code compile. */
#define checked_extable
#endif

/* clang-format off */
#if defined(__x86_64__)
#define checked_by(setup, touch, ...)						\
	__asm__ volatile goto(setup RSEQ_BEGIN("%%rax")				\
			      "cmpq %[wide_value], %[wide]\n\t"		\
			      "jne %l[refused]\n\t"				\
			      "cmpl %k[value], %[word]\n\t"			\
			      "jne %l[refused]\n\t"				\
			      touch RSEQ_END					\
			      RSEQ_ABORT("jmp %l[aborted]")			\
			      checked_extable					\
			      :							\
			      : [cs] "m"(*rseq_current()),			\
				[wide_value] "r"(check->wide_value),		\
				[wide] "m"(*check->wide),			\
				[value] "r"(check->word_value), [word] "m"(*check->word), \
				[dst] "r"(dst), [src] "r"(src), [n] "r"(n)	\
			      : "rax", "rcx", "rsi", "rdi", "cc", "memory"	\
			      : refused, aborted, fault)
#define checked_move(insn, scratch)						\
	checked_by("", insn " (%[src]), %%" scratch "\n\t"			\
		       insn " %%" scratch ", (%[dst])\n")
#define move_1() checked_move("movb", "cl")
#define move_2() checked_move("movw", "cx")
#define move_4() checked_move("movl", "ecx")
#define move_8() checked_move("movq", "rcx")
#define move_words() checked_by(						\
	"xorl %%ecx, %%ecx\n\t",						\
	"7:\n\t"								\
	"movq (%[src], %%rcx), %%rsi\n\t"					\
	"movq %%rsi, (%[dst], %%rcx)\n\t"					\
	"addq $8, %%rcx\n\t"							\
	"cmpq %[n], %%rcx\n\t"							\
	"jb 7b\n")
#define move_string() checked_by(						\
	"movq %[dst], %%rdi\n\t"						\
	"movq %[src], %%rsi\n\t"						\
	"movq %[n], %%rcx\n\t",							\
	"rep movsb\n")
/* From this size on the string instruction is faster (usermem_x86_64.c). */
#define STRING_MIN 576u
#else
#define STRING_MIN SIZE_MAX
#define checked_by(setup, touch)						\
	__asm__ volatile goto(setup RSEQ_BEGIN("x9")				\
			      "ldr x9, [%[wide]]\n\t"				\
			      "cmp x9, %[wide_value]\n\t"			\
			      "b.ne %l[refused]\n\t"				\
			      "ldr w9, [%[word]]\n\t"				\
			      "cmp w9, %w[value]\n\t"				\
			      "b.ne %l[refused]\n\t"				\
			      touch RSEQ_END					\
			      RSEQ_ABORT("b %l[aborted]")			\
			      :							\
			      : [cs] "Q"(*rseq_current()),			\
				[wide_value] "r"(check->wide_value),		\
				[wide] "r"(check->wide),			\
				[value] "r"(check->word_value), [word] "r"(check->word), \
				[dst] "r"(dst), [src] "r"(src), [n] "r"(n)	\
			      : "x9", "x10", "x11", "cc", "memory"			\
			      : refused, aborted, fault)
#define move_1() checked_by("", "ldrb w10, [%[src]]\n\tstrb w10, [%[dst]]\n")
#define move_2() checked_by("", "ldrh w10, [%[src]]\n\tstrh w10, [%[dst]]\n")
#define move_4() checked_by("", "ldr w10, [%[src]]\n\tstr w10, [%[dst]]\n")
#define move_8() checked_by("", "ldr x10, [%[src]]\n\tstr x10, [%[dst]]\n")
#define move_words() checked_by(						\
	"mov x11, #0\n\t",							\
	"7:\n\t"								\
	"ldr x10, [%[src], x11]\n\t"						\
	"str x10, [%[dst], x11]\n\t"						\
	"add x11, x11, #8\n\t"							\
	"cmp x11, %[n]\n\t"							\
	"b.lo 7b\n")
#define move_string() move_words()
#endif
/* clang-format on */

/*
 * Runs one sequence: n is 1, 2, 4, or a multiple of 8 up to PIECE.  The string instruction aligns
 * its stores, so it would read words in parts if the source has another alignment.
 */
static enum usermem_verdict checked_once(void *dst, const void *src, size_t n, bool read,
					 const struct rseq_check *check)
{
	switch (n) {
	case 1:
		move_1();
		break;
	case 2:
		move_2();
		break;
	case 4:
		move_4();
		break;
	case 8:
		move_8();
		break;
	default:
		if (n >= STRING_MIN && !words_alias(dst, src) &&
		    (!read || ((uintptr_t)dst - (uintptr_t)src) % 8 == 0)) {
			move_string();
			break;
		}
		move_words();
	}
	return USERMEM_DONE;
refused:
	return USERMEM_REFUSED;
aborted:
	return USERMEM_INTERRUPTED;
fault:
	__attribute__((unused));
	return USERMEM_FAULT;
}

static enum usermem_verdict checked_piece(void *dst, const void *src, size_t n, bool read,
					  const struct rseq_check *check)
{
	enum usermem_verdict v = USERMEM_INTERRUPTED;

	for (int i = 0; v == USERMEM_INTERRUPTED && i < PIECE_TRIES; i++)
		v = checked_once(dst, src, n, read, check);
	return v;
}

static enum usermem_verdict checked_copy(char *dst, const char *src, size_t n, bool read,
					 const struct rseq_check *check)
{
	while (n) {
		size_t part = min_u64(word_piece((uintptr_t)(read ? src : dst), n, true), PIECE);
		enum usermem_verdict v;

		if (part == n) /* x86 keeps stores in order; other machines need a fence */
			atomic_thread_fence(memory_order_release);
		v = checked_piece(dst, src, part, read, check);
		if (v != USERMEM_DONE)
			return v;
		dst += part;
		src += part;
		n -= part;
	}
	return USERMEM_DONE;
}

#if defined(__x86_64__) && !defined(USERMEM_PORTABLE)
enum usermem_verdict usermem_copy_checked(void *dst, const void *src, size_t n, bool read,
					  const struct rseq_check *check)
{
	if (unlikely(!rseq_available()))
		return USERMEM_INTERRUPTED;
	/* one aligned word does the same with fewer decisions */
	if (likely(n == sizeof(uint64_t)) && !((uintptr_t)(read ? src : dst) % n))
		return checked_piece(dst, src, sizeof(uint64_t), read, check);
	return checked_copy(dst, src, n, read, check);
}
#else
struct checked_work {
	void *dst;
	const void *src;
	size_t n;
	bool read;
	const struct rseq_check *check;
	enum usermem_verdict verdict;
};

static void checked_work_run(void *arg)
{
	struct checked_work *w = arg;

	w->verdict = checked_copy(w->dst, w->src, w->n, w->read, w->check);
}

enum usermem_verdict usermem_copy_checked(void *dst, const void *src, size_t n, bool read,
					  const struct rseq_check *check)
{
	struct checked_work w = {dst, src, n, read, check, USERMEM_FAULT};
	struct run to = {dst, n}, from = {(void *)(uintptr_t)src, n};

	if (unlikely(!rseq_available()))
		return USERMEM_INTERRUPTED;
	return usermem_guarded(checked_work_run, &w, (struct usermem_list){&to, 1},
			       (struct usermem_list){&from, 1})
		       ? w.verdict
		       : USERMEM_FAULT;
}
#endif

#else

enum usermem_verdict usermem_copy_checked(void *dst, const void *src, size_t n, bool read,
					  const struct rseq_check *check)
{
	(void)dst;
	(void)src;
	(void)n;
	(void)read;
	(void)check;
	return USERMEM_INTERRUPTED;
}
#endif

/*
 * Atomics that two words permit: restartable sequences as above, whose last
 * instruction is the atomic.  So either the atomic is executed once, or the sequence says that it
 * was not.
 */

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
