/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event handlers: functions of a DPA program that an event starts, each on its own thread.
 *
 * An event that comes while the handler does not run yet, or is still at work, is kept.  Only one
 * is kept, because events are not counted.  A thread that has an event for the handler takes no
 * lock and waits for nothing.
 */
#pragma once

#include "dpa/dpa.h"

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
