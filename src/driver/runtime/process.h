/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver keeps once per process: the connection to the fabric, one adapter per HCA of our
 * host, and the engine thread.  All of it comes up when the program opens the first device file.
 * It goes down with the last close; a forked child starts without it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "fabric/client/client.h"
#include "fabric/options.h"
#include "wire/wire.h"

struct hca {
	char name[SUBNET_NAME_BYTES]; /* "mlx5_0" */
	unsigned index;		      /* uverbs<index> */
	const struct subnet_node *node;
	uint32_t port_row;		/* of port 1; the rows of the other ports follow */
	const struct subnet_port *port; /* port 1 */
	struct wire *wire;
	struct adapter *adapter;
	/* see uverbs/objects/xrc.h */
	pthread_mutex_t xrc_lock;
	struct xrc_domain *xrc_domains;
};

struct engine;

struct process {
	struct fabric_client *fabric;
	const struct registry *registry;
	const struct subnet *subnet;
	struct wire_process *wire_process;
	struct domains *domains; /* of all devices */
	struct hca hcas[SLOT_PORTS];
	uint32_t nhcas;
	struct engine *engine;
	enum memory_way memory;
	struct slot *slot; /* our own */
	/* The daemon has gone: every port is down, whatever the registry says. */
	_Atomic(bool) lost;
};

/* Takes a reference; the first one brings everything up.  Returns 0 or a negative errno. */
int process_get(struct process **out) must_check;
/* Explains the error in the log, because the program gets only a number, from a call that it does
 * not know of.  what: the part of the device that cannot be had. */
void process_warn(const char *what, int error);
/* Says why there are no devices.  Once in a process, because programs that look for devices look many
 * times. */
void process_warn_missing(int error);
/* Drops a reference.  The last one takes everything down and waits for the control thread, so the
 * caller must hold no lock that the listener for port events takes. */
void process_put(struct process *p);
/* Returns the running process state without a reference, or NULL. */
struct process *process_current(void);

/* The calling thread does the device's work: it receives, runs timers, and serves queues that
 * waited.  True: there was some. */
bool process_progress(struct process *p);
/* Does the same, and lowers *deadline_ns to the time of the next timer. */
bool process_progress_until(struct process *p, uint64_t *deadline_ns);

/* Was a receive of the program completed since the last call? */
bool process_has_received(struct process *p);
/* Has a batch of frames since the last call left a queue with too few receives for another one? */
bool process_few_receives(struct process *p);
/* Is there work of which nobody has been told? */
bool process_owes(const struct process *p);
/* From now on fn gets the port events of the fabric (the uverbs files listen); the control thread
 * calls it. */
void process_on_port_event(void (*fn)(uint32_t port_row, enum ib_event event));

/* From now on fn hears of new rules for faults of objects, by their row (registry/fault.h); the control
 * thread calls it, as a reader (base/hazard.h) who keeps the process up. */
void process_on_fault(void (*fn)(struct process *p, uint32_t row));

/* From now on fn hears that a process with the memory of one of our host's emulated functions is gone;
 * the control thread calls it. */
void process_on_function_left(void (*fn)(void));

/* Starts the fabric's daemon unless it runs, so that the device tree exists.  Returns 0 or a
 * negative errno. */
int process_ensure_fabric(void);

/* Called around fork(2): a child begins without a device and may bring up its own.  driver/cdev.c
 * has the order among the parts. */
void process_fork_prepare(void);
void process_fork_parent(void);
void process_fork_child(void);
