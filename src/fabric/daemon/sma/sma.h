/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management agents of all nodes: attributes (dispatch.c, and a file for each group of
 * them), M_Keys, and traps (notice.c), which they send because the SMA listens to the net.
 */
#pragma once

#include "fabric/daemon/mad/agent.h"
#include "prm/mad.h"

struct notices;
struct mkey_lease;
struct violations;

struct sma {
	struct port_agent agent; /* of both SMP classes */
	struct mad_fabric *fabric;
	struct net_listener listener;
	struct notices *notices;       /* traps that no SM has repressed */
	struct mkey_lease *leases;     /* leases that are running out */
	struct violations *violations; /* by row; NULL: nobody has reset any */
};

int sma_open(struct sma *s, struct mad_fabric *f) must_check;
/* Call this before the net and the loop end. */
void sma_close(struct sma *s);

/* An attribute.  'data' is the 64 bytes of the SMP, in and out.  Returns a mad_status. */
struct smp_request {
	struct net *net;
	struct sma *sma; /* NULL: a Get that is not an SMP */
	uint32_t row;	 /* where the SMP came in */
	uint32_t modifier;
	bool set;
	uint64_t key; /* M_Key */
	uint8_t *data;
};
typedef unsigned smp_handler(struct smp_request *r);

smp_handler sma_node_description, sma_node_info, sma_switch_info, sma_guid_info, sma_port_info,
	sma_pkey_table, sma_sl_to_vl, sma_vl_arbitration, sma_linear_table, sma_multicast_table,
	sma_mellanox_port_info;

/* violations.c: writes the counts of bad M_Keys, P_Keys and Q_Keys into a PortInfo. */
void sma_violations_get(const struct smp_request *r, uint32_t row, uint8_t *info);
/* Counts anew those for which 'info' has 0. */
void sma_violations_set(const struct smp_request *r, uint32_t row, const uint8_t *info);

/* A MAD had a P_Key that the port p->row does not have: counts it and tells the SM.  As
 * mad_fabric's pkey_violated. */
void sma_pkey_violated(void *sma, const struct mad_packet *p);
/* The same for a datagram of a queue pair to queue pair 1 with a bad Q_Key.  As qkey_violated. */
void sma_qkey_violated(void *sma, const struct mad_packet *p);

/*
 * The same for a switch's port that enforces partitions, and has dropped and counted the MAD.  As
 * pkey_enforced.
 */
void sma_pkey_enforced(void *sma, const struct mad_packet *p, uint32_t row);

/* A packet of data with a bad key has come to an end port, which has counted it: tells the SM. */
void sma_key_violated(struct sma *s, const struct key_violation *v);

/* ---- notice.c: traps, each repeated until it is repressed (IBTA 13.4.9) ---- */

#define NOTICE_DETAILS 54u

enum notice_number {
	NOTICE_LINK_STATE = 128,
	NOTICE_LOCAL_CHANGES = 144,
	NOTICE_BAD_MKEY = 256,
	NOTICE_BAD_PKEY = 257,
	NOTICE_BAD_QKEY = 258,
	NOTICE_BAD_PKEY_AT_SWITCH = 259,
};

#define NOTICE_SECURITY 2u /* the type of notices from 256 on */

/* What has changed, as a notice of local changes says. */
enum notice_change {
	NOTICE_CHANGED_DESCRIPTION = 1,
	NOTICE_CHANGED_WIDTH = 2,
	NOTICE_CHANGED_SPEED = 4,
	NOTICE_CHANGED_SM_PRIORITY = 8,
};

int notice_open(struct sma *s) must_check;
void notice_close(struct sma *s);
/* Sends a trap of the port's node.  'details': NOTICE_DETAILS bytes.  It sends nothing while the
 * port has no LID or knows no SM. */
void notice_send(struct sma *s, uint32_t row, unsigned type, unsigned number,
		 const uint8_t *details);
/* Sends trap 144 of the port; 'changes': enum notice_change, or 0 for the CapabilityMask. */
void notice_local_changes(struct sma *s, uint32_t row, unsigned changes);
/* A TrapRepress has come for the trap, which therefore ends. */
void notice_repress(struct sma *s, uint32_t row, const uint8_t *mad);
