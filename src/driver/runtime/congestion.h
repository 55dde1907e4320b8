/* SPDX-License-Identifier: BSD-2-Clause */
/* SOFTHCA_CONGESTION: the links to the program's ports are slow, and mark packets that wait there. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* False: they are not, and both are 0. */
bool congestion_wanted(uint64_t *bytes_per_second, uint64_t *mark_bytes);
