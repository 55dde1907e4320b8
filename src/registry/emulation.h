/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PCI function that the card emulates, in memory that the processes of its host share.  Two kinds of processes use
 * it: drivers of the function, which store to its doorbells and wait for its interrupts, and the function's device,
 * which is a program that has contexts for these doorbells and sends the interrupts.
 *
 * The first page is the function's BAR and all that drivers map.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "prm/cmd_emulation.h"

#define EMULATION_DRIVERS   16u /* processes */
#define EMULATION_BAR_BYTES 4096u
/* What stands in a doorbell that nobody has rung since it was looked at. */
#define EMULATION_SILENT UINT32_MAX

struct emulation {
	_Atomic(uint32_t) doorbell[EMULATION_BAR_BYTES / sizeof(uint32_t)];
	/* A bit for each queue: it was rung, and who has its context has not looked yet. */
	_Atomic(uint64_t) rung;
	/* Words of slots (slot_word), or 0: who has the context of a queue, and who drives the function. */
	_Atomic(uint64_t) context[EMULATION_QUEUES];
	_Atomic(uint64_t) driver[EMULATION_DRIVERS];
	_Atomic(uint32_t) interrupts; /* so many were sent */
};

_Static_assert(offsetof(struct emulation, rung) == EMULATION_BAR_BYTES,
	       "drivers map the BAR alone");
