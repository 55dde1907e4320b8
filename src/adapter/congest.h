/* SPDX-License-Identifier: BSD-2-Clause */
/* A port whose link is slow. */
#pragma once

#include <stdint.h>

struct adapter;

/* The last link to the port takes so many bytes a second, and marks packets while so much waits there;
 * 0: it is not slow.  Before packets arrive. */
void adapter_congest(struct adapter *a, uint64_t bytes_per_second, uint64_t mark_bytes);
