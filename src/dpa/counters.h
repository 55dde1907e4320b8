/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the ports, as device code reads them. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

struct dpa_process;

/* The most counters that one choice has. */
#define DPA_COUNTERS 32u

/* The process's choice; a later choice replaces it. */
struct dpa_counters {
	pthread_mutex_t lock;
	uint64_t values; /* where the values go; 0: nobody has chosen yet */
	uint32_t count;
	uint32_t ids[DPA_COUNTERS];
};

/* What is wrong in device code: where it must not read or write, or where it has a number that
 * means nothing. */
struct dpa_wrong {
	uint64_t addr, bytes;
	bool write;
};

void dpa_counters_init(struct dpa_counters *c);
void dpa_counters_free(struct dpa_counters *c);
/* Chooses counters.  Both arrays belong to the program: they lie in its image or on its heap.
 * False: something is wrong, and nothing is chosen. */
bool dpa_counters_choose(struct dpa_process *p, uint64_t values, uint64_t ids, uint32_t count,
			 struct dpa_wrong *wrong) must_check;
/* Writes the present values. */
bool dpa_counters_sample(struct dpa_process *p, struct dpa_wrong *wrong) must_check;
