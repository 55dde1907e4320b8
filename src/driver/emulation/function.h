/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PCI functions that the card emulates (registry/emulation.h), as this process uses them: as a
 * driver, through a file (emulation/uio.c), or as the function's device, through objects of DEVX
 * (devx/emulation.c).  All of them share one mapping of a function.
 *
 * The doorbells of a function are a page of registers like those of queue pairs: the process that
 * stores there notices the store (doorbell/doorbell.h), takes the doorbell out and tells the
 * process that has the queue's context.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "base/compiler.h"
#include "registry/emulation.h"

struct function;
struct process;

/* The number by which other functions of the card name this one; 0 and 1 are the device's own. */
#define FUNCTION_VHCA_FIRST 0x100u

static inline uint32_t function_vhca(uint32_t device)
{
	return FUNCTION_VHCA_FIRST + device;
}

/* Gets the function of one of our devices and a reference, which the process holds until
 * function_put.  -ENODEV: the device emulates none; or another negative errno. */
int function_get(uint32_t device, struct function **out) must_check;
void function_put(struct function *f);

/* ---- drivers ---- */

struct function_driver {
	struct function_driver *next;
	void (*interrupt)(struct function_driver *d); /* any thread; calls nothing of this file */
};

/*
 * Begins to drive the function.  -EBUSY: too many processes drive it.  Once function_leave has
 * returned, nobody calls interrupt any more.
 */
int function_drive(struct function *f, struct function_driver *d) must_check;
void function_leave(struct function *f, struct function_driver *d);
/* Returns how many interrupts there were. */
uint32_t function_interrupts(const struct function *f);
/*
 * Returns the function's own descriptor of its memory, for a mapping of the BAR; -EBADF if the
 * program has closed it.
 */
int function_memory_fd(const struct function *f) must_check;
/*
 * The program has mapped the function's BAR at addr.  We notice what it stores there as long as the
 * mapping lives, even when nobody holds the function any more.  The caller calls function_unmapped
 * after doorbell_unmapping has found some registers.
 */
void function_mapped(struct function *f, uintptr_t addr);
void function_unmapped(void);

/* ---- its device ---- */

/* Hears of the doorbell of one queue. */
struct function_context {
	void (*rung)(struct function_context *c); /* any thread; calls nothing of this file */
};

/* Takes the queue for a context.  -EBUSY: another context has it, here or in a process that lives;
 * -EINVAL: there is no such queue.  A queue that was rung while nobody had it is told at once.
 * Once function_give has returned, nobody calls rung any more. */
int function_take(struct function *f, uint32_t queue, struct function_context *c) must_check;
void function_give(struct function *f, uint32_t queue);
/* Raises the interrupt, which all drivers hear. */
void function_interrupt(struct function *f);

/* The child of a fork calls this, because it has no functions. */
void function_fork_child(void);

/* ---- contexts of doorbells ---- */

/*
 * Contexts of doorbells of emulated functions.  Device code arms a context, which then fires once:
 * when a driver of the function rings, or at once if one has rung since it fired last.  To fire is
 * to write an empty completion, whose event starts the handler.
 */

struct db_bell {
	struct adapter *adapter; /* of the CQ, which lives as long as the context */
	uint32_t region, cqn;
	const struct function *function; /* of the doorbell, and its queue */
	uint32_t queue;
	/* for function.c alone */
	struct db_bell *next;
	uint32_t handle;
	bool armed;
	bool rung; /* a driver has rung since it fired last */
};

/* Returns its handle, above 0, or -ENOSPC.  From now on others can ring it. */
int db_bell_link(struct db_bell *b) must_check;
/* On return nobody rings it any more. */
void db_bell_unlink(struct db_bell *b);
/* A driver has rung. */
void db_bell_rung(struct db_bell *b);
/*
 * Device code arms the context whose CQ has this region and number, or forces it to fire.  Nothing
 * happens if no context has all of these.
 */
void db_bell_ring(uint32_t region, uint32_t cqn, uint32_t handle, bool force);

/* Returns what drivers have stored last to the doorbell of that context; 0: nothing, or there is no
 * context of that region. */
uint32_t db_bell_value(uint32_t region, uint32_t handle);

/* ---- the driver's file ---- */

/*
 * /dev/uio<N>: the file by which a driver uses a PCI function that the card emulates, in
 * the shape of the kernel's userspace I/O (Documentation/driver-api/uio-howto.rst): the BAR is
 * mapping 0, and a read of four bytes waits for an interrupt and says how many there were.
 */

/* As uverbs_file_open: a descriptor or negative errno. */
int uio_file_open(const char *name, int flags) must_check;
