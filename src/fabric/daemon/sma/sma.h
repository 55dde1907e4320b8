/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management agents of all nodes: attributes (dispatch.c, and a file for each group of
 * them), M_Keys, and traps (notice.c), which it sends because it listens to the net.
 */
#pragma once

#include "fabric/daemon/mad/agent.h"

struct notices;

struct sma {
	struct port_agent agent; /* of both SMP classes */
	struct mad_fabric *fabric;
	struct net_listener listener;
	struct notices *notices; /* traps that have not been repressed */
};

int sma_open(struct sma *s, struct mad_fabric *f) must_check;
void sma_close(struct sma *s);

/* An attribute.  'data' is the 64 bytes of the SMP, in and out.  Returns a mad_status. */
struct smp_request {
	struct net *net;
	uint32_t row; /* where the SMP came in */
	uint32_t modifier;
	bool set;
	uint8_t *data;
};
typedef unsigned smp_handler(struct smp_request *r);

smp_handler sma_node_description, sma_node_info, sma_switch_info, sma_guid_info, sma_port_info,
	sma_pkey_table, sma_sl_to_vl, sma_vl_arbitration, sma_linear_table, sma_multicast_table,
	sma_port_info_extended, sma_mellanox_port_info;

/* notice.c: a trap of the port, repeated until it is repressed (IBTA 14.3.3). 'details': 54 bytes. */
void notice_send(struct sma *s, uint32_t row, unsigned type, unsigned number,
		 const uint8_t *details);
/* TrapRepress has come for it. */
void notice_repress(struct sma *s, uint32_t row, const uint8_t *mad);
