/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command queues: tasks, each a function and a number, which workers of the DPA run in the order in
 * which they were added.  Any thread may add.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* Workers are threads like others and share the units, so more workers than units are no
 * mistake. */
#define DPA_CMDQ_WORKERS DPA_THREADS

struct dpa_cmdq;
struct dpa_process;

struct dpa_cmdq_attr {
	uint32_t workers; /* 1 to DPA_CMDQ_WORKERS */
	uint32_t batch;	  /* how many tasks a worker takes at once; 1 or more */
	bool running;	  /* whether it runs at once; else dpa_cmdq_start says when */
};

/* 0, or a negative errno for a wrong attribute, for a lack of memory or threads, or for a process
 * that has ended. */
int dpa_cmdq_create(struct dpa_process *p, const struct dpa_cmdq_attr *attr,
		    struct dpa_cmdq **out) must_check;
/* Drops tasks that have not begun, and stops others. */
void dpa_cmdq_destroy(struct dpa_cmdq *q);
/* -ENOMEM, or -ESHUTDOWN: the process has ended. */
int dpa_cmdq_add(struct dpa_cmdq *q, uint64_t function, uint64_t arg) must_check;
/* -ESHUTDOWN: the process has ended. */
int dpa_cmdq_start(struct dpa_cmdq *q) must_check;
/* Tells whether all tasks that were added are done. */
bool dpa_cmdq_is_empty(struct dpa_cmdq *q);
