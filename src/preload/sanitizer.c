// SPDX-License-Identifier: BSD-2-Clause
/*
 * The address sanitizer of GCC ends a program if its run-time library is not the first of all,
 * because a library before it might have memory from another allocator.  Ours does not: it takes
 * all of its memory by the names that the run-time library defines.  A program that says otherwise
 * by a function of its own, or by ASAN_OPTIONS, gets its way.
 */
#include "preload/libc.h"

exported const char *__asan_default_options(void);

exported const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
