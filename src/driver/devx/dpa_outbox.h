/* SPDX-License-Identifier: BSD-2-Clause */
/* Outboxes of the DPA as objects of DEVX. */
#pragma once

#include "dpa/outbox.h"
#include "driver/devx/devx.h"

struct devx_dpa_outbox {
	struct devx_obj obj;
	struct dpa_process *process;
};

/* Makes what is in a devx_dpa_outbox, for devx/general.c. */
int devx_create_dpa_outbox(struct devx_call *c, struct devx_obj *obj);
