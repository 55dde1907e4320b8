/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes and small arithmetic that all folders use.  Nothing here knows about RDMA. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* The caller must look at the verdict, because a check that nobody looks at is only a comment. */
#define must_check	  __attribute__((warn_unused_result))
#define printf_like(f, a) __attribute__((format(printf, f, a)))
#define CACHELINE_BYTES	  64u
#define cacheline_aligned __attribute__((aligned(CACHELINE_BYTES)))

/* Symbols that the dynamic linker must see; all others are built hidden. */
#define exported __attribute__((visibility("default")))

#define array_size(a)			(sizeof(a) / sizeof((a)[0]))
#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Asks for the cache line, to write to it.  The compiler's own prefetch only asks to read, unless it may
 * use this instruction; a processor that lacks it does nothing. */
static inline void prefetch_to_write(const void *at)
{
#ifdef __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)at));
#else
	__builtin_prefetch(at, 1);
#endif
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static inline uint64_t align_up(uint64_t v, uint64_t to_pow2)
{
	return (v + to_pow2 - 1) & ~(to_pow2 - 1);
}

static inline must_check int is_power_of_two(uint64_t v)
{
	return v && !(v & (v - 1));
}

/* Rounded down; log2_of(0) is 0. */
static inline uint32_t log2_of(uint32_t v)
{
	return 31u - (uint32_t)__builtin_clz(v | 1);
}

static inline uint32_t div_round_up(uint64_t n, uint32_t d)
{
	return (uint32_t)((n + d - 1) / d);
}

/* The end of a range; a range that would wrap ends at the last address. */
static inline uint64_t range_end(uint64_t addr, uint64_t bytes)
{
	return bytes > UINT64_MAX - addr ? UINT64_MAX : addr + bytes;
}

/*
 * True if [off, off + len) lies inside [0, size).  It subtracts and never adds, because a caller
 * from outside may choose values whose sum wraps.
 */
static inline must_check int range_inside(uint64_t off, uint64_t len, uint64_t size)
{
	return off <= size && len <= size - off;
}
