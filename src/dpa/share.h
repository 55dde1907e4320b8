/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects that other files of the program may name by number: queues of a second device may lie in
 * the memory of a process, and activate its handlers.  The driver gives the numbers, which hold for
 * the whole program.
 */
#pragma once

#include "dpa/dpa.h"

struct dpa_handler;

/* Part of what is shared; all zero before it is shared. */
struct dpa_shared {
	struct dpa_shared *next;
	uint32_t number;
	struct dpa_process *process; /* one of these two */
	struct dpa_handler *handler;
};

/* Shares a process or a handler under that number, until the owner unshares it, before it goes. */
void dpa_share(struct dpa_shared *shared);
void dpa_unshare(struct dpa_shared *shared);
/* Returns the process with a reference, or NULL. */
struct dpa_process *dpa_shared_process(uint32_t number) must_check;
bool dpa_shared_handler_exists(uint32_t number) must_check;
/* Brings the handler an event, if it is still there; any thread may call this. */
void dpa_shared_handler_activate(uint32_t number);
