/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that a test cancels.  The address sanitizer marks the frames of functions in the stack and
 * takes the marks away when they return; one that is cancelled returns from none of them, and the
 * sanitizer then stumbles over its own marks while the thread ends.
 */
#pragma once

#include <pthread.h>

#include "base/compiler.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

/*
 * A clean-up for pthread_cleanup_push, which the thread's first function pushes before all others:
 * the stack below that function has no marks any more.
 */
static inline void cancelled_stack_clear(void *unused)
{
	(void)unused;
#ifdef __SANITIZE_ADDRESS__
	char here;
	void *low;
	size_t size;
	pthread_attr_t attr;

	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (!pthread_attr_getstack(&attr, &low, &size))
		__asan_unpoison_memory_region(low, (size_t)(&here - (char *)low));
	pthread_attr_destroy(&attr);
#endif
}
