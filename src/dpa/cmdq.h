/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Command queues: tasks, each a function and a number, which workers of the DPA run in the order in
 * which they were added.  Any thread may add.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* Workers are threads like others, and share the units: more of them than there are units is no
 * mistake. */
#define DPA_CMDQ_WORKERS DPA_THREADS

struct dpa_cmdq;
struct dpa_process;

struct dpa_cmdq_attr {
	uint32_t workers; /* 1 to DPA_CMDQ_WORKERS */
	uint32_t batch;	  /* so many tasks does a worker take at once; 1 or more */
	bool running;	  /* else dpa_cmdq_start says when */
};

/* 0 or negative errno: of the attributes, of memory, of threads. */
int dpa_cmdq_create(struct dpa_process *p, const struct dpa_cmdq_attr *attr,
		    struct dpa_cmdq **out) must_check;
/* Tasks that have not begun are dropped, others are stopped. */
void dpa_cmdq_destroy(struct dpa_cmdq *q);
/* -ENOMEM, or -ESHUTDOWN: the process has ended. */
int dpa_cmdq_add(struct dpa_cmdq *q, uint64_t function, uint64_t arg) must_check;
void dpa_cmdq_start(struct dpa_cmdq *q);
/* Are all tasks done that were added? */
bool dpa_cmdq_is_empty(struct dpa_cmdq *q);
