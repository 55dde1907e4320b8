/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PCI functions that the card emulates (registry/emulation.h), as this process uses them: as a driver, by a file
 * (emulation/uio.h), or as the function's device, by objects of DEVX (devx/emulation.c).  A function is mapped once for
 * all of them.
 *
 * Doorbells of a function are a page of registers as those of queue pairs are: the process that stores there notices
 * it (doorbell/doorbell.h), takes the doorbell out and tells the one that has the queue's context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "registry/emulation.h"

struct function;
struct process;

/* What other functions of the card call this one; 0 and 1 are the device's own. */
#define FUNCTION_VHCA_FIRST 0x100u

static inline uint32_t function_vhca(uint32_t device)
{
	return FUNCTION_VHCA_FIRST + device;
}

/* That of a device of ours, with a reference of the process for as long.  -ENODEV: it emulates none; or another
 * negative errno. */
int function_get(uint32_t device, struct function **out) must_check;
void function_put(struct function *f);

/* ---- drivers ---- */

struct function_driver {
	struct function_driver *next;
	void (*interrupt)(struct function_driver *d); /* any thread; calls nothing of this file */
};

/* -EBUSY: too many processes drive it.  When function_leave has returned, interrupt is not called any more. */
int function_drive(struct function *f, struct function_driver *d) must_check;
void function_leave(struct function *f, struct function_driver *d);
/* How many interrupts there were. */
uint32_t function_interrupts(const struct function *f);
/* A descriptor of its memory for a mapping of the BAR, the function's own; -EBADF if the program has closed it. */
int function_memory_fd(const struct function *f) must_check;
/*
 * The program has mapped its BAR there: what it stores is noticed as long as the mapping is there, also when nobody has the function
 * any more.  Afterwards, when doorbell_unmapping has found some registers.
 */
void function_mapped(struct function *f, uintptr_t addr);
void function_unmapped(void);

/* ---- its device ---- */

/* Hears of the doorbell of one queue. */
struct function_context {
	void (*rung)(struct function_context *c); /* any thread; calls nothing of this file */
};

/* -EBUSY: another context has the queue, here or in a process that lives; -EINVAL: there is no such queue.  A queue that
 * was rung while nobody had it is told at once.  When function_give has returned, rung is not called any more. */
int function_take(struct function *f, uint32_t queue, struct function_context *c) must_check;
void function_give(struct function *f, uint32_t queue);
/* All drivers hear it. */
void function_interrupt(struct function *f);

/* In a child of fork, which has none. */
void function_fork_child(void);
