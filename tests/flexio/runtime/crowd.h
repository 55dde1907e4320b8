/* SPDX-License-Identifier: BSD-2-Clause */
/* What host and device code of the crowd program share. */
#pragma once

#include <stdint.h>

#define CROWD	 256u
#define SPINNERS 190u /* the first of them */

/* On the heap, cleared. */
struct crowd {
	uint64_t cqn[CROWD];
	uint64_t activations[CROWD];
};
