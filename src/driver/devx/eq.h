/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event queues that a program makes: rings of entries in its memory with an eventfd that stands for
 * the vector of an interrupt, and the objects.  Queues of completion vectors are no objects.
 *
 * The program gives the consumer index in a register of a page, which it stores to (doorbell.h); a
 * DPA gives it by value.  A register has one value, so one of several queues that share a page may
 * overwrite the index of another.  Such a queue fires for each entry, armed or not: a program that
 * wakes in vain looks and sleeps again, and one that nobody wakes sleeps for ever.
 */
#pragma once

#include <stdatomic.h>

#include "base/descriptor.h"
#include "base/spin.h"
#include "driver/devx/devx.h"
#include "prm/eqe.h"

struct ufile;

struct eq_ring {
	struct eq_ring *next; /* list of all rings */
	const struct ufile *file;
	uint32_t number;
	uint32_t region;      /* region that its bells come from */
	uint64_t events[4];   /* one bit for each type */
	_Atomic(bool) shares; /* whether another queue uses the region too */
	struct hidden vector;
	struct spin lock; /* guards the fields below */
	uint8_t *entry;
	uint32_t entries;
	uint32_t pi, ci; /* both have 24 bits */
	bool armed, overrun, overrun_ignore;
};

/*
 * After eq_link the functions below that search find the ring, which is filled in; after eq_unlink
 * they do not.
 */
void eq_link(struct eq_ring *eq);
void eq_unlink(struct eq_ring *eq);

/* The program has consumed all entries before ci. */
void eq_consumed(struct eq_ring *eq, uint32_t ci, bool arms);
/* An upcall of the device: the entry is written, and the vector fires if the queue is armed. */
void eq_push(struct eq_ring *eq, const uint8_t eqe[EQE_BYTES]);
/* The same for all queues of the file that were made for events of this type. */
void eq_push_all(const struct ufile *f, enum eqe_type type, const uint8_t eqe[EQE_BYTES]);
/* A DPA has consumed all entries before ci, and rings through this region for doorbells. */
void eq_bell(uint32_t region, uint32_t number, uint32_t ci);

/* ---- the objects ---- */

struct devx_eq;

/* The queue of the file that has this number, or NULL. */
struct devx_eq *devx_eq_find(struct ufile *f, uint32_t eqn);
struct uobj *devx_eq_uobj(struct devx_eq *eq);
/* An upcall of the device: the entry is written, and the vector fires if the queue is armed. */
void devx_eq_push(struct devx_eq *eq, const uint8_t eqe[EQE_BYTES]);
