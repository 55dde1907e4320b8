/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event handlers: threads of the DPA that something activates, and the execution units on which
 * they run.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dpa/dpa.h"

/* ---- execution units ---- */

/*
 * Execution units that handlers share.  Of the handlers that name the same unit one runs at a time,
 * and they take turns.  There is one set, as there is one device, whatever its processes.
 */

struct dpa_thread;

/* The part of a handler that waits for a unit. */
struct dpa_eu_wait {
	struct dpa_thread *thread;
	uint32_t eu; /* DPA_EUS: the handler shares none */
	struct dpa_eu_wait *next;
	_Atomic(uint32_t) has;
};

/*
 * Returns the unit of a group that the fewest handlers have asked for; DPA_EUS: there is no such
 * group.  SOFTHCA_DPA_GROUPS puts units into groups, as "1=0-15;2=16-31,40".
 */
uint32_t dpa_eu_of_group(uint32_t group);
/* A handler asks for this unit, or gives it up. */
void dpa_eu_join(uint32_t eu);
void dpa_eu_leave(uint32_t eu);

/* ---- handlers ---- */

/*
 * Event handlers: functions of a DPA program that an event starts, each on its own thread.
 *
 * An event that comes while the handler does not run yet, or is still at work, is kept.  Only one
 * is kept, because events are not counted.  A thread that has an event for the handler takes no
 * lock and waits for nothing.
 */

struct dpa_handler;

/* The handler does not ask for an execution unit. */
#define DPA_EU_ANY DPA_EUS

struct dpa_handler_attr {
	uint64_t function;	/* address of the function, in the image */
	uint64_t local_storage; /* what flexio_dev_get_thread_local_storage answers */
	uint32_t id;		/* what flexio_dev_get_thread_id answers */
	uint32_t eu;		/* shares this unit with others that name it; or DPA_EU_ANY */
	bool continuable;	/* it may yield */
};

/* 0; -EINVAL: an attribute is impossible; -ENOMEM; -ENOSPC: the process has all threads that it can
 * have; -ESHUTDOWN: it has ended. */
int dpa_handler_create(struct dpa_process *p, const struct dpa_handler_attr *attr,
		       struct dpa_handler **out) must_check;
/* On return its function does not run, wherever it was, and nobody can activate it any more. */
void dpa_handler_destroy(struct dpa_handler *h);
/* From now on events start the function with that argument.  -EALREADY: they did before;
 * -ESHUTDOWN: the process has ended. */
int dpa_handler_run(struct dpa_handler *h, uint64_t arg) must_check;
/* Brings an event; any thread may call this. */
void dpa_handler_activate(struct dpa_handler *h);

/* ---- numbers for other contexts ---- */

/*
 * Objects that other files of the program may name by number: queues of a second device may lie in
 * the memory of a process, and activate its handlers.  The driver gives the numbers, which hold for
 * the whole program.
 */

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
