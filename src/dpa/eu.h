/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Execution units that handlers share: of those that name the same one, one runs at a time, and they take turns.
 * There is one set, as there is one device, whatever its processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct dpa_thread;

/* Part of a handler. */
struct dpa_eu_wait {
	struct dpa_thread *thread;
	uint32_t eu; /* DPA_EUS: it shares none */
	struct dpa_eu_wait *next;
	_Atomic(uint32_t) has;
};

/* Waits for its turn.  False: the thread is to end, or is stopped. */
bool dpa_eu_take(struct dpa_eu_wait *w);
void dpa_eu_give(struct dpa_eu_wait *w);
