// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the sanitizers of a program are told.
 *
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

/*
 * The thread sanitizer sees the calls of the C library that we make, and not the order between them,
 * which is one of atomics.  So it ignores what we call.  In a program that has the run-time library inside,
 * as clang links it, nobody asks this function, and the user names the file beside our library.
 */
exported const char *__tsan_default_suppressions(void);

exported const char *__tsan_default_suppressions(void)
{
	return "called_from_lib:libsofthca-preload.so\n";
}
