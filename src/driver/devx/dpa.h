/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of the DPA as objects of DEVX: processes and their aliases, streams, windows, threads,
 * command queues, outboxes.  For devx/general.c there is a function of each that makes what is in
 * its record.
 */
#pragma once

#include "dpa/cmdq.h"
#include "dpa/dpa.h"
#include "dpa/handler.h"
#include "dpa/outbox.h"
#include "dpa/window.h"
#include "driver/devx/devx.h"
#include "prm/cmd_dpa.h"

struct devx_dpa_process {
	struct devx_obj obj;
	struct dpa_process *process;
	uint32_t port_rows[SLOT_PORTS]; /* rows in the subnet */
	uint32_t ports;
	struct dpa_shared shared;
	struct dpa_pcc *pcc; /* NULL: the process controls no flows */
};

extern const struct devx_class devx_dpa_process_class;

int devx_create_dpa_process(struct devx_call *c, struct devx_obj *obj);

struct devx_dpa_alias {
	struct devx_obj obj;
	struct dpa_process *process; /* of an alias of a process */
};

int devx_create_dpa_alias(struct devx_call *c, struct devx_obj *obj);

struct dpa_stream;

struct devx_dpa_stream {
	struct devx_obj obj;
	struct dpa_process *process; /* held, because the stream lies in its memory */
	struct dpa_stream *stream;
};

int devx_create_dpa_stream(struct devx_call *c, struct devx_obj *obj);

struct devx_dpa_window {
	struct devx_obj obj;
	struct dpa_process *process;
};

int devx_create_dpa_window(struct devx_call *c, struct devx_obj *obj);

struct devx_dpa_thread {
	struct devx_obj obj;
	struct dpa_handler *handler;
	struct dpa_shared shared;
	struct dpa_pcc *pcc; /* the congestion control that this thread handles, or NULL */
};

int devx_create_dpa_thread(struct devx_call *c, struct devx_obj *obj);

struct devx_dpa_cmdq {
	struct devx_obj obj;
	struct dpa_cmdq *queue;
	struct dpa_process *process;
};

int devx_create_dpa_cmdq(struct devx_call *c, struct devx_obj *obj);
/* The operations of the private command on a queue. */
int devx_dpa_cmdq_op(struct devx_call *c, enum dpa_op op);

struct devx_dpa_outbox {
	struct devx_obj obj;
	struct dpa_process *process;
};

int devx_create_dpa_outbox(struct devx_call *c, struct devx_obj *obj);

/* ---- congestion control ---- */

/*
 * A DPA process that controls the congestion of flows: the device writes events into a table in the
 * process's memory, and they activate a handler.  wire/flow_control.h has the flows.
 */

struct dpa_pcc;
struct subnet_port;
struct wire_process;

/* Makes the table for the flows of that port.  -EOPNOTSUPP: the port is not Ethernet; -ENOMEM. */
int dpa_pcc_create(struct wire_process *wire, const struct subnet_port *port, struct dpa_process *p,
		   struct dpa_pcc **out) must_check;
/* The process has ended.  NULL: does nothing. */
void dpa_pcc_destroy(struct dpa_pcc *pcc);
/* From now on events activate the handler.  -EBUSY: the port or the process has one already. */
int dpa_pcc_begin(struct dpa_pcc *pcc, struct dpa_handler *handler) must_check;
/* Once this has returned, events no longer activate the handler. */
void dpa_pcc_end(struct dpa_pcc *pcc);

/* Device code rings for a flow.  Any thread. */
void dpa_pcc_ring(struct dpa_pcc *pcc, uint32_t flow, uint32_t rate, bool probe,
		  uint32_t next_action);
/* The address of the table. */
uint64_t dpa_pcc_table(const struct dpa_pcc *pcc);
