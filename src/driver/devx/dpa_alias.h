/* SPDX-License-Identifier: BSD-2-Clause */
/* Aliases of DPA processes and threads that another file has made, so that queues, keys and windows
 * of this file may name them. */
#pragma once

#include "dpa/share.h"
#include "driver/devx/devx.h"

struct devx_dpa_alias {
	struct devx_obj obj;
	struct dpa_process *process; /* of an alias of a process */
};

/*
 * The process with that number, of this file or of another; *uobj becomes the object that stands
 * for it in this file.  NULL: there is none.
 */
struct dpa_process *devx_dpa_alias_find(struct devx_call *c, uint32_t number, struct uobj **uobj);
/* Makes what is in a devx_dpa_alias, for devx/general.c. */
int devx_create_dpa_alias(struct devx_call *c, struct devx_obj *obj);
