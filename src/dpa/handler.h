/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event handlers: functions of a DPA program that an event starts, each on a thread of its own.
 *
 * An event that comes while the handler is not running yet, or still at work, is kept: one, as
 * events are not counted.  Whoever has an event for it takes no lock and waits for nothing.
 */
#pragma once

#include "dpa/dpa.h"

struct dpa_handler;

/* No execution unit of its own choice. */
#define DPA_EU_ANY DPA_EUS

struct dpa_handler_attr {
	uint64_t function;	/* its address, in the image */
	uint64_t local_storage; /* what flexio_dev_get_thread_local_storage answers */
	uint32_t id;		/* what flexio_dev_get_thread_id answers */
	uint32_t eu;		/* it shares this one with others that name it; or DPA_EU_ANY */
	bool continuable;	/* it may yield */
};

/* 0, -EINVAL if an attribute is impossible, -ENOMEM, -EAGAIN if the process has threads enough,
 * -ESHUTDOWN if it has ended. */
int dpa_handler_create(struct dpa_process *p, const struct dpa_handler_attr *attr,
		       struct dpa_handler **out) must_check;
/* On return its function runs no more, wherever it was; nobody activates it any more. */
void dpa_handler_destroy(struct dpa_handler *h);
/* From now on events start it, with that argument.  -EALREADY if they have before. */
int dpa_handler_run(struct dpa_handler *h, uint64_t arg) must_check;
/* An event for it; from any thread. */
void dpa_handler_activate(struct dpa_handler *h);
