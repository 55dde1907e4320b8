/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Touches application memory on any architecture.  Each touch runs under a guard of its thread,
 * which says which addresses may fault and where to go then.  This costs a few more instructions
 * than a table of faulting instructions (usermem_x86_64.c), and needs the faulting address.
 *
 * The guard is reached from a signal handler: its storage is allocated with the thread, never on
 * first use.
 */
#if !defined(__x86_64__) || defined(USERMEM_PORTABLE)

#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include "base/endian.h"
#include "base/word.h"
#include "usermem/usermem.h"
#include "usermem/usermem_touch.h"

struct guard {
	const char *start[2];
	size_t len[2];
	volatile sig_atomic_t active;
	sigjmp_buf out;
};

static _Thread_local struct guard guard __attribute__((tls_model("initial-exec")));

/* Runs the statements; a fault inside one of the two ranges becomes "return false".  It saves no
 * signal mask, because the handler is installed with SA_NODEFER. */
#define guarded(a, alen, b, blen, ...)                     \
	do {                                               \
		guard.start[0] = (const char *)(a);        \
		guard.len[0] = (alen);                     \
		guard.start[1] = (const char *)(b);        \
		guard.len[1] = (blen);                     \
		if (sigsetjmp(guard.out, 0)) {             \
			guard.active = 0;                  \
			return false;                      \
		}                                          \
		atomic_signal_fence(memory_order_seq_cst); \
		guard.active = 1;                          \
		atomic_signal_fence(memory_order_seq_cst); \
		__VA_ARGS__;                               \
		atomic_signal_fence(memory_order_seq_cst); \
		guard.active = 0;                          \
	} while (0)

/* Copies 1, 2 or 4 bytes, or whole words. */
static void copy_piece(char *dst, const char *src, size_t n)
{
	switch (n) {
	case 1:
		*(volatile char *)dst = *(const volatile char *)src;
		break;
	case 2:
		*(volatile una16 *)(void *)dst = *(const volatile una16 *)(const void *)src;
		break;
	case 4:
		*(volatile una32 *)(void *)dst = *(const volatile una32 *)(const void *)src;
		break;
	default:
		for (size_t off = 0; off < n; off += WORD_BYTES)
			*(volatile una64 *)(void *)(dst + off) =
				*(const volatile una64 *)(const void *)(src + off);
	}
}

static void copy_pieces(char *dst, const char *src, size_t n, bool read)
{
	while (n) {
		size_t part = word_piece((uintptr_t)(read ? src : dst), n, true);

		if (part == n)
			atomic_thread_fence(memory_order_release);
		copy_piece(dst, src, part);
		dst += part;
		src += part;
		n -= part;
	}
}

bool usermem_copy(void *dst, const void *src, size_t n)
{
	guarded(dst, n, src, n, copy_pieces(dst, src, n, false));
	return true;
}

bool usermem_read(void *dst, const void *src, size_t n)
{
	guarded(dst, n, src, n, copy_pieces(dst, src, n, true));
	return true;
}

bool usermem_touch(void *at, bool write)
{
	_Atomic(char) *byte = at;

	if (write)
		guarded(at, 1, NULL, 0, atomic_fetch_or(byte, 0));
	else
		guarded(at, 1, NULL, 0, (void)atomic_load(byte));
	return true;
}

bool usermem_publish(void *dst, const void *src, size_t n)
{
	/* usermem_copy stores the last 8 bytes last and, if they are aligned, at once. */
	return usermem_copy(dst, src, n);
}

bool usermem_load_be32(const void *addr, uint32_t *out)
{
	const _Atomic(uint32_t) *word = addr;
	uint32_t v;

	if ((uintptr_t)addr % sizeof(v))
		return false;
	guarded(addr, sizeof(v), NULL, 0, v = atomic_load_explicit(word, memory_order_acquire));
	*out = be32toh(v);
	return true;
}

bool usermem_store_be32(void *addr, uint32_t v)
{
	_Atomic(uint32_t) *word = addr;

	if ((uintptr_t)addr % sizeof(v))
		return false;
	guarded(addr, sizeof(v), NULL, 0,
		atomic_store_explicit(word, htobe32(v), memory_order_release));
	return true;
}

bool usermem_fetch_add(void *addr, uint64_t add, uint64_t *orig)
{
	_Atomic(uint64_t) *word = addr;

	if ((uintptr_t)addr % sizeof(add))
		return false;
	guarded(addr, sizeof(add), NULL, 0, add = atomic_fetch_add(word, add));
	*orig = add;
	return true;
}

bool usermem_compare_swap(void *addr, uint64_t compare, uint64_t swap, uint64_t *orig)
{
	_Atomic(uint64_t) *word = addr;

	if ((uintptr_t)addr % sizeof(swap))
		return false;
	guarded(addr, sizeof(swap), NULL, 0, atomic_compare_exchange_strong(word, &compare, swap));
	*orig = compare;
	return true;
}

bool usermem_fault(void *ucontext, const void *addr)
{
	(void)ucontext;
	for (int i = 0; guard.active && i < 2; i++)
		if ((uintptr_t)addr - (uintptr_t)guard.start[i] < guard.len[i])
			siglongjmp(guard.out, 1);
	usermem_guarded_fault(addr);
	return false;
}
#else
/* Without it the translation unit could be empty; see usermem_x86_64.c. */
typedef int usermem_portable_unused;
#endif
