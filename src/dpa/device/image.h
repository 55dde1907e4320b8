/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the device library share: the image's record, the door behind it, and the check
 * of addresses.
 *
 * The library is compiled twice.  The checked variant (DPA_CHECKED) goes into images whose code is
 * checked: it checks whole ranges of addresses that the program hands over, while the compiler's
 * callbacks check the program's own code.  Neither checks the library's own variables.
 */
#pragma once

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "dpa/door.h"

extern struct dpa_image_info __dpa_image_info;

static inline const struct dpa_door *image_door(void)
{
	/* the address is in an integer, so that the record has the same size for every kind of
	 * processor */
	return (const struct dpa_door *)(uintptr_t)__dpa_image_info.door;
}

/* The rare half of the check, out of line: memory outside of the region may be a window. */
void dpa_check_outside(uint64_t addr, uint64_t bytes, uint32_t write);

/* Checks memory that the caller is about to touch.  Does not return if it must not. */
static inline void dpa_check_always(uint64_t addr, uint64_t bytes, uint32_t write)
{
	const struct dpa_image_info *info = &__dpa_image_info;

	if (__builtin_expect(bytes > info->region_bytes ||
				     addr - info->region_begin > info->region_bytes - bytes,
			     0))
		dpa_check_outside(addr, bytes, write);
}

static inline void dpa_check_read(const void *addr, uint64_t bytes)
{
#ifdef DPA_CHECKED
	dpa_check_always((uintptr_t)addr, bytes, 0);
#else
	(void)addr;
	(void)bytes;
#endif
}

static inline void dpa_check_write(void *addr, uint64_t bytes)
{
#ifdef DPA_CHECKED
	dpa_check_always((uintptr_t)addr, bytes, 1);
#else
	(void)addr;
	(void)bytes;
#endif
}

/* ---- the thread context that a program hands to a function of the library ---- */

/*
 * Reads the context, as the real library does, so that a pointer to something else faults here, in
 * both variants of the library.  The library needs nothing else of it.  NULL means the calling
 * thread, because later generations of the interface hand over no context.
 */
static inline void thread_ctx_touch(struct flexio_dev_thread_ctx *ctx)
{
	if (!ctx)
		return;
	dpa_check_write(ctx, sizeof(*ctx));
	(void)*(const volatile uint32_t *)&ctx->version;
}

/* ---- printf's formatting for device code, which has no libc but this library ---- */

/*
 * As vsnprintf: writes at most `room` bytes with the terminator (none at all if room is 0) and
 * returns the length that the whole text has, or -1 if that is more than an int holds.
 *
 * It knows the conversions d i u o x X c s p a e f g and %%, with all flags, width, precision and
 * the sizes hh h l ll j z t L.  It prints a long double as the double next to it.  n takes its
 * argument and stores nothing.  Text that is no conversion is printed as it is.
 */
int dpa_format(char *text, size_t room, const char *format, va_list ap);

/* ---- messages ---- */

/* Formats a message and gives it to a stream.  Returns the length as printf does, even if nobody
 * reads the message. */
int message_format(uint32_t stream, uint32_t level, const char *format, va_list ap);
