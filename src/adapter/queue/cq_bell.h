/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bells that name a completion queue by its number.  A DPA rings them; the driver's, of pages of
 * registers, need no table, because there each queue is looked at.
 */
#pragma once

#include "adapter/core/device.h"

/* Part of a queue that hears them. */
struct cq_bell {
	_Atomic(struct cq_bell *) next; /* of the row */
	struct cq *cq;
	uint32_t cqn;
	uint32_t region;
};

void cq_bell_publish(struct adapter *a, struct cq_bell *bell);
/* Readers that found it may go on until the end of a grace period. */
void cq_bell_withdraw(struct adapter *a, struct cq_bell *bell);

/* The program has asked for an event by value. */
void cq_arm_by_value(struct cq *cq, uint32_t ci);
/* A completion that says nothing. */
void cq_push_empty(struct cq *cq);
