/* SPDX-License-Identifier: BSD-2-Clause */
/* What other files need to know of completion queues that DEVX makes. */
#pragma once

#include "driver/devx/devx.h"

/* Gives the region from which bells of such a queue come; false: device code may not ring them. */
bool devx_cq_region(struct uobj *cq, uint32_t *region) must_check;
