/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows of the DPA as objects of DEVX. */
#pragma once

#include "dpa/window.h"
#include "driver/devx/devx.h"

struct devx_dpa_window {
	struct devx_obj obj;
	struct dpa_process *process;
};

/* Makes what is in a devx_dpa_window, for devx/general.c. */
int devx_create_dpa_window(struct devx_call *c, struct devx_obj *obj);
