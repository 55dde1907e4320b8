/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside share.c and its kinds, moved memory (moved.h) and files of the program (file_share.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "driver/runtime/share.h"

/* Finding out that memory must not be moved, or that a file cannot be opened, is not for nothing. */
#define SHARE_MAX_REFUSALS 256u

struct share {
	uint32_t users;
	bool is_file;
};
