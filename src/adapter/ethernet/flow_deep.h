/* SPDX-License-Identifier: BSD-2-Clause */
/* What a frame says behind its outer headers, for rules that look there. */
#pragma once

#include <stdint.h>

#include "adapter/steering.h"

/* The key is that of the outer headers.  What the frame does not have is zero. */
void flow_deep_read(const uint8_t *frame, uint32_t bytes, const struct flow_key *key,
		    struct flow_deep *out);
