/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of a tunnel, as code that puts frames into it sees them.  They do not change. */
#pragma once

#include "adapter/adapter.h"

struct flow_headers {
	uint32_t n;
	uint8_t byte[FLOW_HEADERS_MAX];
};
