/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single touches of application memory, for the few parts of the data path where a call would cost
 * more than the access.  On x86-64, usermem_x86_64.c consists of them too.
 *
 * On x86-64, a table (section softhca_extable) lists every instruction that may fault, and where
 * execution goes on if it does.  So a touch that succeeds costs nothing but the access.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/endian.h"
#include "usermem/usermem.h"

/* Values in memory of any alignment and type. */
typedef uint16_t una16 __attribute__((may_alias, aligned(1)));
typedef uint32_t una32 __attribute__((may_alias, aligned(1)));
typedef uint64_t una64 __attribute__((may_alias, aligned(1)));

#if defined(__x86_64__) && !defined(USERMEM_PORTABLE)

/* clang-format off */
#define EXTABLE(insn)						\
	".pushsection softhca_extable, \"a\"\n\t"		\
	".balign 4\n\t"						\
	".long " insn " - .\n\t"				\
	".long %l[fault] - .\n\t"				\
	".popsection\n\t"
/* clang-format on */

/*
 * The function needs a label "fault".  GCC 12 mishandles an asm goto with outputs in two ways.  It
 * drops one whose outputs nobody uses, so we say "volatile" although "goto" implies it; and it
 * moves the output away, which the empty statement prevents.
 */
#define touch_load_by(insn, place, out, addr)                        \
	__asm__ volatile goto("1: " insn " %1, %0\n\t" EXTABLE("1b") \
			      : place(out)                           \
			      : "m"(*(addr))                         \
			      : "memory"                             \
			      : fault);                              \
	__asm__ volatile("")
#define touch_store_by(insn, place, addr, v)                         \
	__asm__ volatile goto("1: " insn " %1, %0\n\t" EXTABLE("1b") \
			      :                                      \
			      : "m"(*(addr)), place(v)               \
			      : "memory"                             \
			      : fault)
#define touch_load(out, addr)	touch_load_by("mov", "=r", out, addr)
#define touch_store(addr, v)	touch_store_by("mov", "r", addr, v)
#define touch_load16(out, addr) touch_load_by("movups", "=x", out, addr)
#define touch_store16(addr, v)	touch_store_by("movups", "x", addr, v)

/* An asm operand: memory of that type's size, of any alignment and type. */
#define touch_at(type, p, off) ((type *)((uintptr_t)(p) + (off)))

typedef float vec16 __attribute__((vector_size(16), may_alias, aligned(1)));

/* Reads n bytes, a constant and a multiple of 16, into memory of our own. */
static inline __attribute__((always_inline)) bool usermem_fetch(void *dst, const void *src,
								size_t n)
{
	vec16 v;

#pragma GCC unroll 4
	for (size_t off = 0; off < n; off += sizeof(v)) {
		touch_load16(v, touch_at(const vec16, src, off));
		*touch_at(vec16, dst, off) = v;
	}
	return true;
fault:
	return false;
}

/* usermem_load_be32, inline.  A plain load acquires on x86. */
static inline bool usermem_fetch_be32(const void *addr, uint32_t *out)
{
	uint32_t v;

	touch_load(v, touch_at(const una32, addr, 0));
	*out = be32toh(v);
	return true;
fault:
	return false;
}

/* usermem_copy of 8 bytes, inline. */
static inline bool usermem_copy_8(void *dst, const void *src)
{
	uint64_t v;

	touch_load(v, touch_at(const una64, src, 0));
	touch_store(touch_at(una64, dst, 0), v);
	return true;
fault:
	return false;
}

/* usermem_publish of 64 bytes, inline. */
static inline bool usermem_publish_64(void *dst, const uint64_t from[8])
{
#pragma GCC unroll 8
	for (size_t i = 0; i < 8; i++)
		touch_store(touch_at(una64, dst, i * sizeof(*from)), from[i]);
	return true;
fault:
	return false;
}

/* usermem_touch for a load, inline. */
static inline bool usermem_look(const void *at)
{
	uint8_t v;

	touch_load(v, touch_at(const uint8_t, at, 0));
	return true;
fault:
	return false;
}

#else

static inline bool usermem_fetch(void *dst, const void *src, size_t n)
{
	return usermem_copy(dst, src, n);
}

static inline bool usermem_fetch_be32(const void *addr, uint32_t *out)
{
	return usermem_load_be32(addr, out);
}

static inline bool usermem_copy_8(void *dst, const void *src)
{
	return usermem_copy(dst, src, 8);
}

static inline bool usermem_publish_64(void *dst, const uint64_t from[8])
{
	return usermem_publish(dst, from, 64);
}

static inline bool usermem_look(const void *at)
{
	return usermem_touch((void *)(uintptr_t)at, false);
}
#endif
