/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of the DPA as objects of DEVX. */
#pragma once

#include "dpa/dpa.h"
#include "dpa/share.h"
#include "driver/devx/devx.h"

struct devx_dpa_process {
	struct devx_obj obj;
	struct dpa_process *process;
	uint32_t port_rows[SLOT_PORTS]; /* rows in the subnet */
	uint32_t ports;
	struct dpa_shared shared;
	struct dpa_pcc *pcc; /* NULL: the process controls no flows */
};

extern const struct devx_class devx_dpa_process_class;

/* Makes what is in a devx_dpa_process, for devx/general.c. */
int devx_create_dpa_process(struct devx_call *c, struct devx_obj *obj);
/* The process with that number; -ENOENT. */
int devx_dpa_process_find(struct devx_call *c, uint32_t number,
			  struct devx_dpa_process **out) must_check;
