// SPDX-License-Identifier: BSD-2-Clause
/*
 * What code that is compiled with -fsanitize=thread calls, under the names that the compiler gives:
 * before each plain or volatile access, in the place of each atomic one, and at fences.  The runtime
 * looks at all of it, and finds out by these functions that an image has such code.
 */
#include "dpa/device/image.h"

#include <libflexio-libc/string.h>
#include <stdbool.h>

#define RELAXED __ATOMIC_RELAXED

/* The compiler does not know that these are used; the linker takes only what is called. */
#define CALLED __attribute__((used, noinline, visibility("default")))

static void dpa_watch_access(uintptr_t addr, uint64_t bytes, uint32_t what, int order)
{
	image_door()->watch(addr, bytes, what, (uint32_t)order);
}

CALLED void __tsan_init(void);
CALLED void __tsan_init(void)
{
}

/* ---- plain and volatile accesses ---- */

#define ACCESS(name, size)                                               \
	CALLED void __tsan_##name##read##size(uintptr_t addr);           \
	CALLED void __tsan_##name##read##size(uintptr_t addr)            \
	{                                                                \
		dpa_check_always(addr, size, 0);                         \
	}                                                                \
	CALLED void __tsan_##name##write##size(uintptr_t addr);          \
	CALLED void __tsan_##name##write##size(uintptr_t addr)           \
	{                                                                \
		dpa_check_always(addr, size, 1);                         \
	}                                                                \
	CALLED void __tsan_##name##volatile_read##size(uintptr_t addr);  \
	CALLED void __tsan_##name##volatile_read##size(uintptr_t addr)   \
	{                                                                \
		dpa_watch_access(addr, size, DPA_WATCH_LOAD, RELAXED);   \
		dpa_watch_access(addr, size, DPA_WATCH_TAKE, RELAXED);   \
	}                                                                \
	CALLED void __tsan_##name##volatile_write##size(uintptr_t addr); \
	CALLED void __tsan_##name##volatile_write##size(uintptr_t addr)  \
	{                                                                \
		dpa_watch_access(addr, size, DPA_WATCH_STORE, RELAXED);  \
	}

ACCESS(, 1)
ACCESS(, 2)
ACCESS(, 4)
ACCESS(, 8)
ACCESS(, 16)
ACCESS(unaligned_, 2)
ACCESS(unaligned_, 4)
ACCESS(unaligned_, 8)
ACCESS(unaligned_, 16)

/* Newer compilers have names of their own for these, which check their ranges themselves. */
CALLED void *__tsan_memcpy(void *dest, const void *src, size_t size);
CALLED void *__tsan_memcpy(void *dest, const void *src, size_t size)
{
	return memcpy(dest, src, size);
}

CALLED void *__tsan_memmove(void *dest, const void *src, size_t size);
CALLED void *__tsan_memmove(void *dest, const void *src, size_t size)
{
	return memmove(dest, src, size);
}

CALLED void *__tsan_memset(void *mem, int c, size_t size);
CALLED void *__tsan_memset(void *mem, int c, size_t size)
{
	return memset(mem, c, size);
}

/* ---- atomic accesses ---- */

#define UPDATE(name, bits, builtin)                                                          \
	CALLED uint##bits##_t __tsan_atomic##bits##_##name(uint##bits##_t *at,               \
							   uint##bits##_t value, int order); \
	CALLED uint##bits##_t __tsan_atomic##bits##_##name(uint##bits##_t *at,               \
							   uint##bits##_t value, int order)  \
	{                                                                                    \
		uint##bits##_t old;                                                          \
                                                                                             \
		dpa_watch_access((uintptr_t)at, sizeof(*at), DPA_WATCH_UPDATE, order);       \
		old = builtin(at, value, __ATOMIC_SEQ_CST);                                  \
		dpa_watch_access((uintptr_t)at, sizeof(*at), DPA_WATCH_TAKE, order);         \
		return old;                                                                  \
	}

#define ATOMIC(bits)                                                                              \
	CALLED uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *at, int order);    \
	CALLED uint##bits##_t __tsan_atomic##bits##_load(const uint##bits##_t *at, int order)     \
	{                                                                                         \
		uint##bits##_t value;                                                             \
                                                                                                  \
		dpa_watch_access((uintptr_t)at, sizeof(*at), DPA_WATCH_LOAD, order);              \
		value = __atomic_load_n(at, __ATOMIC_SEQ_CST);                                    \
		dpa_watch_access((uintptr_t)at, sizeof(*at), DPA_WATCH_TAKE, order);              \
		return value;                                                                     \
	}                                                                                         \
	CALLED void __tsan_atomic##bits##_store(uint##bits##_t *at, uint##bits##_t value,         \
						int order);                                       \
	CALLED void __tsan_atomic##bits##_store(uint##bits##_t *at, uint##bits##_t value,         \
						int order)                                        \
	{                                                                                         \
		dpa_watch_access((uintptr_t)at, sizeof(*at), DPA_WATCH_STORE, order);             \
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                    \
	}                                                                                         \
	UPDATE(exchange, bits, __atomic_exchange_n)                                               \
	UPDATE(fetch_add, bits, __atomic_fetch_add)                                               \
	UPDATE(fetch_sub, bits, __atomic_fetch_sub)                                               \
	UPDATE(fetch_and, bits, __atomic_fetch_and)                                               \
	UPDATE(fetch_or, bits, __atomic_fetch_or)                                                 \
	UPDATE(fetch_xor, bits, __atomic_fetch_xor)                                               \
	UPDATE(fetch_nand, bits, __atomic_fetch_nand)                                             \
	CALLED uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(uint##bits##_t *at,      \
									 uint##bits##_t expected, \
									 uint##bits##_t value,    \
									 int order, int failure); \
	CALLED uint##bits##_t __tsan_atomic##bits##_compare_exchange_val(uint##bits##_t *at,      \
									 uint##bits##_t expected, \
									 uint##bits##_t value,    \
									 int order, int failure)  \
	{                                                                                         \
		bool done;                                                                        \
                                                                                                  \
		dpa_watch_access((uintptr_t)at, sizeof(*at), DPA_WATCH_UPDATE, order);            \
		done = __atomic_compare_exchange_n(at, &expected, value, 0, __ATOMIC_SEQ_CST,     \
						   __ATOMIC_SEQ_CST);                             \
		dpa_watch_access((uintptr_t)at, sizeof(*at), DPA_WATCH_TAKE,                      \
				 done ? order : failure);                                         \
		return expected;                                                                  \
	}

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

/* ---- fences ---- */

CALLED void __tsan_atomic_thread_fence(int order);
CALLED void __tsan_atomic_thread_fence(int order)
{
	dpa_watch_access(0, 0, DPA_WATCH_FENCE, order);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

CALLED void __tsan_atomic_signal_fence(int order);
CALLED void __tsan_atomic_signal_fence(int order)
{
	(void)order;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}
