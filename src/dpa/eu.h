/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Execution units that handlers share.  Of the handlers that name the same unit one runs at a time,
 * and they take turns.  There is one set, as there is one device, whatever its processes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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

/* Waits for the handler's turn.  False: the thread is to end, or is stopped. */
bool dpa_eu_take(struct dpa_eu_wait *w);
void dpa_eu_give(struct dpa_eu_wait *w);
