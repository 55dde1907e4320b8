/* SPDX-License-Identifier: BSD-2-Clause */
/* What host and device agree on. */
#pragma once

#include <stdint.h>

struct node {
	uint64_t next; /* an address of the DPA; 0 at the end */
	uint64_t number;
};
