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
