/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the driver keeps once per process: the connection to the fabric, one adapter per HCA of our
 * host, and the engine thread.  Comes up when the first device file is opened, goes down with the
 * last close or in a forked child.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "fabric/client.h"
#include "wire/wire.h"

struct hca {
	char name[16];	/* "mlx5_0" */
	unsigned index; /* uverbs<index> */
	uint32_t port_row;
	const struct registry_port *port;
	struct wire *wire;
	struct adapter *adapter;
};

struct process {
	struct fabric_client *fabric;
	const struct registry *registry;
	struct wire_host *wire_host;
	struct hca hcas[SLOT_HCAS];
	uint32_t nhcas;
};

/* Takes a reference, bringing everything up first; 0 or negative errno. */
int process_get(struct process **out) must_check;
void process_put(struct process *p);
/* The running process state without a reference, or NULL. */
struct process *process_current(void);

/* Makes the device work in the calling thread: receives, timers, queues that waited. True if
 * anything was done. */
bool process_progress(struct process *p);

/*
 * Port events of the fabric go to whoever listens (the uverbs files). Called on the control thread.
 */
void process_on_port_event(void (*fn)(uint32_t port_row, enum ib_event event));
