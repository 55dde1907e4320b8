/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Execution units that handlers share: of those that name the same one, one runs at a time, and
 * they take turns. There is one set, as there is one device, whatever its processes.
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

/*
 * Units may be put into groups: SOFTHCA_DPA_GROUPS, as "1=0-15;2=16-31,40".  The one of the group
 * that the fewest handlers have asked for; DPA_EUS: there is no such group.
 */
uint32_t dpa_eu_of_group(uint32_t group);
/* A handler asks for this unit, or goes. */
void dpa_eu_join(uint32_t eu);
void dpa_eu_leave(uint32_t eu);

/* Waits for its turn.  False: the thread is to end, or is stopped. */
bool dpa_eu_take(struct dpa_eu_wait *w);
void dpa_eu_give(struct dpa_eu_wait *w);
