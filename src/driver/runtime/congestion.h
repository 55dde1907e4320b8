/* SPDX-License-Identifier: BSD-2-Clause */
/* SOFTHCA_CONGESTION makes the links to the program's ports slow; they mark packets that wait
 * there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* False: the links are not slow, and both numbers are 0. */
bool congestion_wanted(uint64_t *bytes_per_second, uint64_t *mark_bytes);
