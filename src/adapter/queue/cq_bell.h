/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bells that name a completion queue by its number.  A DPA rings them.  The driver's bells, by
 * pages of registers, need no table, because the driver looks at each queue there.
 */
#pragma once

#include "adapter/core/device.h"

/* The part of a queue that hears bells. */
struct cq_bell {
	_Atomic(struct cq_bell *) next; /* the next in the row */
	struct cq *cq;
	uint32_t cqn;
	uint32_t region;
};

void cq_bell_publish(struct adapter *a, struct cq_bell *bell);
/* Takes the queue out of the table, and waits until no reader is in it any more. */
void cq_bell_withdraw(struct adapter *a, struct cq_bell *bell);

/* Called when the program asks for an event by value. */
void cq_arm_by_value(struct cq *cq, uint32_t ci);
/* Pushes a completion that says nothing. */
void cq_push_empty(struct cq *cq);
