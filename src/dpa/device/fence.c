// SPDX-License-Identifier: BSD-2-Clause
/*
 * Fences of windows.  The machine's own fence is in the program; the runtime hears of it if it keeps
 * copies of window memory.
 */
#include "dpa/device/image.h"

#include <dpaintrin.h>

void __dpa_window_fence(uint32_t space, uint32_t pred, uint32_t succ)
{
	if (__builtin_expect(__dpa_image_info.flags & DPA_IMAGE_WATCHED, 0))
		image_door()->fence(space, pred, succ);
}
