/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Doorbells that device code rings.  A UAR is the place that bells come from, and the place that a
 * queue was made to listen to: its number, and the device that has the queues.  An outbox is a UAR
 * under a number of the process; each thread rings through one.
 */
#pragma once

#include "base/spin.h"
#include "dpa/dpa.h"

#define DPA_OUTBOXES 256u

/* What a device does when a bell rings; a queue that was made with another UAR does not hear the
 * bell. */
struct dpa_bells {
	void (*arm)(void *device, uint32_t uar, uint32_t cqn, uint32_t ci);
	void (*empty)(void *device, uint32_t uar, uint32_t cqn);
	void (*send)(void *device, uint32_t uar, uint32_t qpn, uint16_t pi);
	void (*event)(void *device, uint32_t uar, uint32_t eqn, uint32_t ci);
	/* Rings the doorbell of an emulated function that leads to that CQ: arms it, or forces it
	 * to fire. */
	void (*emulated)(void *device, uint32_t uar, uint32_t cqn, uint32_t context, bool force);
	/* Returns what was stored last to the doorbell of that context; 0: nothing. */
	uint32_t (*emulated_value)(uint32_t uar, uint32_t context);
};

struct dpa_uar {
	const struct dpa_bells *bells; /* NULL: nobody hears them */
	void *device;
	uint32_t number;
	bool congestion; /* whether bells of congestion control go through */
};

/* Part of a process. */
struct dpa_outboxes {
	struct spin lock;
	struct dpa_uar initial; /* the UAR with which each activation begins */
	struct dpa_uar uar[DPA_OUTBOXES];
};

/* ---- what the driver has made ---- */

/* Adds a UAR, numbered across all devices.  -ENOMEM. */
int dpa_uar_add(const struct dpa_uar *uar) must_check;
void dpa_uar_remove(uint32_t number);

/* Returns the number of a new outbox, above 0, or -EINVAL if there is no such UAR, -ENOSPC.
 * initial: each activation begins with it. */
int dpa_outbox_add(struct dpa_process *p, uint32_t uar, bool initial) must_check;
/*
 * Lets bells of congestion control go through the outbox; if it is the initial one, from the next
 * activation on.
 */
void dpa_outbox_allow_congestion(struct dpa_process *p, uint32_t id, bool initial);
void dpa_outbox_remove(struct dpa_process *p, uint32_t id);

/*
 * ---- what threads ring through: a copy, which may be of an outbox that has gone ----
 *
 * The device outlives all processes; a queue hears a UAR's number only, and no number is used
 * twice.
 */

struct dpa_uar dpa_outbox_initial(struct dpa_process *p);
bool dpa_outbox_find(struct dpa_process *p, uint32_t id, struct dpa_uar *out) must_check;
bool dpa_uar_find(uint32_t number, struct dpa_uar *out) must_check;
