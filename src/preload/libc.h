/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first include of every file here.  These files define libc's functions under their own names,
 * so the switches of the headers that rename or inline some of them must be off.  The headers also
 * promise the compiler that some arguments are no null pointers.  Programs pass null pointers all the
 * same, and the kernel says what is wrong with them.
 */
#pragma once

#undef _FILE_OFFSET_BITS /* it would make stat another name of stat64 */
#undef _FORTIFY_SOURCE	 /* it would make open an inline function */

#include <sys/cdefs.h>

#undef __nonnull
#define __nonnull(arguments)

#include <assert.h>
#include <dlfcn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/compiler.h"

/* We treat open64 and open, stat64 and stat, ... as one function. */
static_assert(sizeof(off_t) == sizeof(__off64_t), "64-bit systems only");

/*
 * Returns the definition behind ours.  It looks that up at the first call, not in a constructor:
 * constructors of other libraries open files before ours has run, and most programs call few of
 * these functions.
 */
static inline void *real_function(_Atomic(void *) *slot, const char *name)
{
	void *address = atomic_load_explicit(slot, memory_order_relaxed);

	if (unlikely(!address)) {
		address = dlsym(RTLD_NEXT, name);
		atomic_store_explicit(slot, address, memory_order_relaxed);
	}
	return address;
}

/* A function that ends by calling the real one jumps to it: that one sees the program as its caller. */
#define JUMPS __attribute__((optimize("optimize-sibling-calls")))

#define real(name)                                                 \
	({                                                         \
		static _Atomic(void *) slot_;                      \
		(__typeof__(&(name)))real_function(&slot_, #name); \
	})

/* Gives the optional third argument, if the flags say that there is one. */
#define MODE_OF(flags)                                 \
	({                                             \
		mode_t mode_ = 0;                      \
		if (__OPEN_NEEDS_MODE(flags)) {        \
			va_list args_;                 \
			va_start(args_, flags);        \
			mode_ = va_arg(args_, mode_t); \
			va_end(args_);                 \
		}                                      \
		mode_;                                 \
	})

/* stdio.c: returns the flags of open that a mode of fopen means, or -1. */
int stdio_open_flags(const char *mode);
