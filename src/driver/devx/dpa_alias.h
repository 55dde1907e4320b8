/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes and threads of the DPA that another file has made, so that queues of this one may name
 * them. */
#pragma once

#include "dpa/share.h"
#include "driver/devx/devx.h"

struct devx_dpa_alias {
	struct devx_obj obj;
	struct dpa_process *process; /* of an alias of a process */
};

/* Makes what is in a devx_dpa_alias, for devx/general.c. */
int devx_create_dpa_alias(struct devx_call *c, struct devx_obj *obj);
