/* SPDX-License-Identifier: BSD-2-Clause */
/* Command queues of the DPA as objects of DEVX. */
#pragma once

#include "dpa/cmdq.h"
#include "driver/devx/devx.h"
#include "prm/cmd_dpa.h"

struct devx_dpa_cmdq {
	struct devx_obj obj;
	struct dpa_cmdq *queue;
	struct dpa_process *process;
};

/* Makes what is in a devx_dpa_cmdq, for devx/general.c. */
int devx_create_dpa_cmdq(struct devx_call *c, struct devx_obj *obj);
/* The operations of the private command on a queue. */
int devx_dpa_cmdq_op(struct devx_call *c, enum dpa_op op);
