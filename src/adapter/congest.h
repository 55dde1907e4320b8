/* SPDX-License-Identifier: BSD-2-Clause */
/* A port whose link is slow. */
#pragma once

#include <stdint.h>

struct adapter;

/* Makes the last link to the port take only so many bytes a second, and mark packets while
 * mark_bytes wait in front of it; 0: the link is not slow.  Call it before packets arrive. */
void adapter_congest(struct adapter *a, uint64_t bytes_per_second, uint64_t mark_bytes);
