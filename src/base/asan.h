/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells AddressSanitizer what it cannot see by itself. */
#pragma once

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define ASAN_WATCHES 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN_WATCHES 1
#endif
#endif

#ifdef ASAN_WATCHES
void __asan_unpoison_memory_region(void const volatile *addr, size_t size);
#endif

/*
 * Nothing is on this stack.  Frames that were left without a return, when somebody switched to
 * another stack or unmapped this one, still count as there.
 */
static inline void asan_stack_is_empty(const void *stack, size_t bytes)
{
#ifdef ASAN_WATCHES
	__asan_unpoison_memory_region(stack, bytes);
#else
	(void)stack;
	(void)bytes;
#endif
}
