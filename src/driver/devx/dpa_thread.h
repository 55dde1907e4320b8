/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads of the DPA as objects of DEVX. */
#pragma once

#include "dpa/handler.h"
#include "dpa/share.h"
#include "driver/devx/devx.h"

struct devx_dpa_thread {
	struct devx_obj obj;
	struct dpa_handler *handler;
	struct dpa_shared shared;
	struct dpa_pcc *pcc; /* the congestion control that this thread handles, or NULL */
};

/* Makes what is in a devx_dpa_thread, for devx/general.c. */
int devx_create_dpa_thread(struct devx_call *c, struct devx_obj *obj);
