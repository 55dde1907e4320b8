/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings of event queues that a program makes: entries in its memory, and an eventfd that stands for
 * the vector of an interrupt.
 *
 * The consumer index comes by a register: of a page, which the program stores to (doorbell.h), or by
 * value from a DPA.  A register has one value, so where queues share a page one may overwrite what
 * another was told.  Such a queue fires for each entry, armed or not: a program that wakes in vain
 * looks and sleeps again, and one that is not woken sleeps for ever.
 */
#pragma once

#include <stdatomic.h>

#include "base/hidden.h"
#include "base/spin.h"
#include "prm/eqe.h"

struct ufile;

struct eq_ring {
	struct eq_ring *next; /* of all */
	const struct ufile *file;
	uint32_t number;
	uint32_t region;      /* where its bells come from */
	uint64_t events[4];   /* a bit for each type */
	_Atomic(bool) shares; /* the region, with another queue */
	struct hidden vector;
	struct spin lock; /* of what follows */
	uint8_t *entry;
	uint32_t entries;
	uint32_t pi, ci; /* of 24 bits */
	bool armed, overrun, overrun_ignore;
};

/* Filled in, it is found by the three below; and no more. */
void eq_link(struct eq_ring *eq);
void eq_unlink(struct eq_ring *eq);

/* The program has consumed all before ci. */
void eq_consumed(struct eq_ring *eq, uint32_t ci, bool arms);
/* An upcall of the device: the entry is written, and the vector fires if the queue is armed. */
void eq_push(struct eq_ring *eq, const uint8_t eqe[EQE_BYTES]);
/* The same to all queues of the file that were made for events of this type. */
void eq_push_all(const struct ufile *f, enum eqe_type type, const uint8_t eqe[EQE_BYTES]);
/* A DPA has consumed all before ci, and rings through a region for doorbells. */
void eq_bell(uint32_t region, uint32_t number, uint32_t ci);
