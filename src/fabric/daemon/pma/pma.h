/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance management agents of all ports, with those of the vendor's class and of
 * congestion control, which share their counters. */
#pragma once

#include "fabric/daemon/mad/agent.h"

#define PMA_BUCKETS 256u

struct sampler;
struct cc_node;

struct pma {
	struct port_agent agent;      /* class 0x04 */
	struct port_agent vendor;     /* 0x0a */
	struct port_agent congestion; /* 0x21 */
	struct mad_fabric *fabric;
	uint64_t opened_ns;
	struct sampler *samplers; /* samplers of ports that somebody has asked for samples */
	/* Nodes at which somebody has set up congestion control, by row. */
	struct cc_node *cc_nodes[PMA_BUCKETS];
};

int pma_open(struct pma *p, struct mad_fabric *f) must_check;
/* Call this before the net and the loop end. */
void pma_close(struct pma *p);

/* What PMA reports: 64-bit running counts less what was cleared.  Files in sysfs show it too. */
uint64_t pma_count(const struct net *n, uint32_t row, enum net_counter c);
void pma_clear(struct net *n, uint32_t row, enum net_counter c);

/* ---- among the files of this folder ---- */

/* Where a count comes from: from NET, or computed from NET's. */
enum pma_source {
	PMA_UNICAST_XMIT = NET_COUNTERS,
	PMA_UNICAST_RCV,
	PMA_SOURCES,
	/* Counts by service level, one for each level; only the groups of these names have them. */
	PMA_XMIT_SL = PMA_SOURCES,
	PMA_RCV_SL = PMA_XMIT_SL + NET_SLS,
};

/* Attributes that can be cleared, each without the others. */
enum pma_group {
	PMA_GROUP_BASIC,
	PMA_GROUP_EXTENDED,
	PMA_GROUP_RCV_DETAILS,
	PMA_GROUP_XMIT_DETAILS,
	PMA_GROUP_XMIT_SL,
	PMA_GROUP_RCV_SL,
	PMA_GROUPS,
	PMA_GROUP_NONE = PMA_GROUPS, /* an attribute whose counters cannot rise here */
};

/* counters.c */
uint64_t pma_total(const struct net *n, uint32_t row, unsigned source);

/* A request about ports of a node. */
struct pma_request {
	struct pma *pma;
	struct net *net;
	uint32_t node_row; /* node that the MAD came in at */
	uint32_t row;	   /* the port, or SUBNET_NONE: all external ones */
	bool set;
	uint8_t *data; /* MAD_GMP_BYTES, both in and out */
};

/* counters.c: attributes that are counters.  Returns a mad_status. */
unsigned pma_attribute(struct pma_request *r, unsigned attribute);

/* samples.c */
unsigned pma_samples_control(struct pma_request *r);
unsigned pma_samples_result(struct pma_request *r);
void pma_samples_close(struct pma *p);

/* congestion.c */
enum mad_verdict pma_congestion(struct port_agent *a, uint32_t row, struct mad_packet *p);
void pma_congestion_close(struct pma *p);
