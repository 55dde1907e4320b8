/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * printf's formatting for device code, which has no libc but this library.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/*
 * As vsnprintf: writes at most `room` bytes with the terminator (none at all if room is 0) and
 * returns the length that the whole text has, or -1 if that is more than an int holds.
 *
 * It knows the conversions d i u o x X c s p a e f g and %%, with all flags, width, precision and
 * the sizes hh h l ll j z t L.  It prints a long double as the double next to it.  n takes its
 * argument and stores nothing.  Text that is no conversion is printed as it is.
 */
int dpa_format(char *text, size_t room, const char *format, va_list ap);
