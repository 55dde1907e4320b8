/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A DPA process that controls the congestion of flows: a table in its memory, into which events come,
 * and a handler that they activate.  wire/flow_control.h has the flows.
 */
#pragma once

#include "dpa/handler.h"

struct dpa_pcc;
struct subnet_port;
struct wire_process;

/* For the flows of that port.  -EOPNOTSUPP: it is none of Ethernet; -ENOMEM. */
int dpa_pcc_create(struct wire_process *wire, const struct subnet_port *port, struct dpa_process *p,
		   struct dpa_pcc **out) must_check;
/* Of an ended process; NULL is nothing. */
void dpa_pcc_destroy(struct dpa_pcc *pcc);
/* From now on events activate the handler.  -EBUSY: somebody controls the port, or it has one. */
int dpa_pcc_begin(struct dpa_pcc *pcc, struct dpa_handler *handler) must_check;
/* When it has returned they do not any more. */
void dpa_pcc_end(struct dpa_pcc *pcc);

/* Device code rings for a flow.  Any thread. */
void dpa_pcc_ring(struct dpa_pcc *pcc, uint32_t flow, uint32_t rate, bool probe,
		  uint32_t next_action);
/* The address of the table. */
uint64_t dpa_pcc_table(const struct dpa_pcc *pcc);
