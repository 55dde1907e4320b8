/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of share.c and of its two kinds, moved memory (moved.h) and files of the program
 * (file_share.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/runtime/share.h"

/* It costs something to find out that memory must not move, or that a file cannot be opened, so
 * after this many refusals nobody tries any more. */
#define SHARE_MAX_REFUSALS 256u

struct share {
	uint32_t users;
	bool is_file;
};
