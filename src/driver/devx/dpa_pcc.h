/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A DPA process that controls the congestion of flows: the device writes events into a table in the
 * process's memory, and they activate a handler.  wire/flow_control.h has the flows.
 */
#pragma once

#include "dpa/handler.h"

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
