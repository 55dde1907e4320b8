/* SPDX-License-Identifier: BSD-2-Clause */
/* What others need to know of completion queues made by DEVX. */
#pragma once

#include "driver/devx/devx.h"

/* The region from which bells of such a queue come, if device code may ring them; false: it may not. */
bool devx_cq_region(struct uobj *cq, uint32_t *region) must_check;
