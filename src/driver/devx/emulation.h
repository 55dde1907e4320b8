/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device behind a PCI function that the card emulates: the function, the contexts that lead its
 * doorbells to CQs, and its interrupts as event queues of CQs.
 */
#pragma once

#include "driver/devx/devx.h"
#include "driver/emulation/function.h"

struct devx_emulation {
	struct devx_obj obj;
	struct function *function;
};

struct devx_db_context {
	struct devx_obj obj;
	struct function *function;
	uint32_t queue;
	struct function_context heard;
	struct db_bell bell;
};

struct devx_emulated_eq {
	struct devx_obj obj;
	struct function *function;
};

/* Numbers of such event queues begin here; all other event queues have lower numbers. */
#define EMULATED_EQN_FIRST 0x80u

/* Make what is in these records, for devx/general.c. */
int devx_create_emulation(struct devx_call *c, struct devx_obj *obj);
int devx_create_db_context(struct devx_call *c, struct devx_obj *obj);
int devx_create_emulated_eq(struct devx_call *c, struct devx_obj *obj);
extern const struct devx_class devx_emulation_class, devx_db_context_class;
int devx_query_emulation(struct devx_call *c);
int devx_query_db_context(struct devx_call *c);

/* The event queue of the file that has this number, or NULL. */
struct devx_emulated_eq *devx_emulated_eq_find(struct ufile *f, uint32_t eqn);
