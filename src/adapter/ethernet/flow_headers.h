/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of a tunnel, from the side of those who put frames into it.  They do not change. */
#pragma once

#include "adapter/adapter.h"

struct flow_headers {
	uint32_t n;
	uint8_t byte[FLOW_HEADERS_MAX];
};
