/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of share.c and file_share.c. */
#pragma once

#include <stdint.h>

#include "driver/runtime/share.h"

/* It costs something to find out that a file cannot be opened, so after this many refusals nobody
 * tries any more. */
#define SHARE_MAX_REFUSALS 256u

struct share {
	uint32_t users;
};
