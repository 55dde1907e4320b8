/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PCI function that the card emulates, in memory that the processes of its host share.  Two kinds
 * of processes use it.  Drivers of the function store to its doorbells and wait for its interrupts.
 * The function's device is a program that has contexts for these doorbells and sends the
 * interrupts.
 *
 * The first page is the function's BAR; drivers map nothing else.
 */
#pragma once

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "prm/cmd_emulation.h"

#define EMULATION_DRIVERS   16u /* processes */
#define EMULATION_BAR_BYTES 4096u
/* What a doorbell holds if nobody has rung it since the device looked. */
#define EMULATION_SILENT UINT32_MAX

struct emulation {
	_Atomic(uint32_t) doorbell[EMULATION_BAR_BYTES / sizeof(uint32_t)];
	/* A bit for each queue: somebody has rung it, and the process that has its context has not
	 * looked yet. */
	_Atomic(uint64_t) rung;
	/* The process that has the context of a queue, and the processes that drive the function,
	 * as words of their slots (slot_word), or 0. */
	_Atomic(uint64_t) context[EMULATION_QUEUES];
	_Atomic(uint64_t) driver[EMULATION_DRIVERS];
	_Atomic(uint32_t) interrupts;		  /* number of interrupts sent */
	_Atomic(uint32_t) last[EMULATION_QUEUES]; /* what was stored last to each doorbell */
};

_Static_assert(offsetof(struct emulation, rung) == EMULATION_BAR_BYTES,
	       "drivers map the BAR alone");
