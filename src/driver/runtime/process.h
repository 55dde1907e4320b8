/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver keeps once per process: the connection to the fabric, one adapter per HCA of our
 * host, and the engine thread.  Comes up when the first device file is opened, goes down with the
 * last close or in a forked child.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "fabric/client/client.h"
#include "fabric/memory_way.h"
#include "wire/wire.h"

struct hca {
	char name[16];	/* "mlx5_0" */
	unsigned index; /* uverbs<index> */
	const struct subnet_node *node;
	uint32_t port_row;		/* of port 1; the others follow */
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
	struct hca hcas[SLOT_PORTS];
	uint32_t nhcas;
	struct engine *engine;
	enum memory_way memory;
	bool engine_leaves;	 /* the processors that the program is allowed (beside.h) */
	struct slot *slot;	 /* our own */
	_Atomic(uint32_t) *wake; /* of it: whoever has work for the engine looks at it */
	_Atomic(bool)
		lost; /* the daemon has gone: every port is down, whatever the registry says */
};

/* Takes a reference, bringing everything up first; 0 or negative errno. */
int process_get(struct process **out) must_check;
/* The last one takes everything down and waits for the control thread: call it without locks that
 * the listener for port events takes. */
void process_put(struct process *p);
/* The running process state without a reference, or NULL. */
struct process *process_current(void);

/* Makes the device work in the calling thread: receives, timers, queues that waited. True if
 * anything was done. */
bool process_progress(struct process *p);
/* The same; *deadline_ns is lowered to the time of the next timer. */
bool process_progress_until(struct process *p, uint64_t *deadline_ns);

/* Is there work that nobody has been told of? */
bool process_owes(const struct process *p);
/* Is there, and only such as the program's next request takes along (acknowledgements)? */
bool process_owes_patiently(const struct process *p);

/* Receives alone. */
bool process_deliver(struct process *p);

/* In between no thread of ours touches memory of the program, or stores to the heap.  For short, without
 * waiting for anything, and never twice at once. */
void process_pause(struct process *p);
void process_resume(struct process *p);

/*
 * Port events of the fabric go to whoever listens (the uverbs files). Called on the control thread.
 */
void process_on_port_event(void (*fn)(uint32_t port_row, enum ib_event event));

/* Starts the fabric's daemon unless it runs, so that the device tree exists.  0 or negative
 * errno. */
int process_ensure_fabric(void);

/*
 * Around fork(2): a child begins without a device and may bring up its own.  driver/fork.c has the
 * order among the parts.
 */
void process_fork_prepare(void);
void process_fork_parent(void);
void process_fork_child(void);
