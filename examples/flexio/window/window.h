/* SPDX-License-Identifier: BSD-2-Clause */
/* What the host tells the DPA: where its memory is, and which keys give it. */
#pragma once

#include <stdint.h>

struct work {
	uint64_t text; /* address of the host: is read and written */
	uint64_t copy; /* likewise: is written */
	uint64_t bytes;
	uint32_t text_key, copy_key;
	uint32_t window;
	uint32_t unused;
};

#define WORK_FAILED UINT64_MAX
