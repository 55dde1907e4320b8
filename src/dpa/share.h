/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What other files of the program may name by number: queues of a second device may lie in the
 * memory of a process, and activate its handlers.  Numbers are those of the driver, and of the
 * whole program.
 */
#pragma once

#include "dpa/dpa.h"

struct dpa_handler;

/* Part of what is shared; all zero before it is. */
struct dpa_shared {
	struct dpa_shared *next;
	uint32_t number;
	struct dpa_process *process; /* or */
	struct dpa_handler *handler;
};

/* One of the two, under that number; until it is unshared, before it goes. */
void dpa_share(struct dpa_shared *shared);
void dpa_unshare(struct dpa_shared *shared);
/* With a reference, or NULL. */
struct dpa_process *dpa_shared_process(uint32_t number) must_check;
bool dpa_shared_handler_exists(uint32_t number) must_check;
/* An event for it, if it is still there; from any thread. */
void dpa_shared_handler_activate(uint32_t number);
