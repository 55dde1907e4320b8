/* SPDX-License-Identifier: BSD-2-Clause */
/* Event queues that a program makes.  Queues of completion vectors are no objects. */
#pragma once

#include "driver/devx/devx.h"

struct devx_eq;

/* The queue of the file that has this number, or NULL. */
struct devx_eq *devx_eq_find(struct ufile *f, uint32_t eqn);
struct uobj *devx_eq_uobj(struct devx_eq *eq);
/* An upcall of the device: the entry is written, and the vector fires if the queue is armed. */
void devx_eq_push(struct devx_eq *eq, const uint8_t eqe[EQE_BYTES]);
