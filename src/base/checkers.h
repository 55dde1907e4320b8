/* SPDX-License-Identifier: BSD-2-Clause */
/* Tells AddressSanitizer and ThreadSanitizer what they cannot see by themselves, and says whether
 * valgrind runs the program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

#if defined(__SANITIZE_THREAD__)
#define TSAN_WATCHES 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TSAN_WATCHES 1
#endif
#endif

#ifdef TSAN_WATCHES

#define TSAN_TRY_LOCK 0x10u

void __tsan_mutex_pre_lock(void *mutex, unsigned flags);
void __tsan_mutex_post_lock(void *mutex, unsigned flags, int recursion);
int __tsan_mutex_pre_unlock(void *mutex, unsigned flags);
void __tsan_mutex_post_unlock(void *mutex, unsigned flags);

#endif

/*
 * Stands at the end of a function that others than we call, behind a call that locks or unlocks.  The
 * sanitizer of a program ignores what our library calls (preload/sanitizer.c), and a last call that
 * the compiler makes a jump would be one of our caller's.
 */
static inline void tsan_no_jump(void)
{
	__asm__ volatile("");
}

/* The calling thread has locked a mutex by a function that the sanitizer does not know. */
static inline void tsan_locked(void *mutex)
{
	(void)mutex;
#ifdef TSAN_WATCHES
	__tsan_mutex_pre_lock(mutex, TSAN_TRY_LOCK);
	__tsan_mutex_post_lock(mutex, TSAN_TRY_LOCK, 0);
#endif
}

/* The calling thread has unlocked it by other means than pthread_mutex_unlock. */
static inline void tsan_unlocked(void *mutex)
{
	(void)mutex;
#ifdef TSAN_WATCHES
	(void)__tsan_mutex_pre_unlock(mutex, 0);
	__tsan_mutex_post_unlock(mutex, 0);
#endif
}

/* Valgrind puts a library of its own in front of a program's others. */
static inline bool runs_in_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "/vgpreload_");
}
