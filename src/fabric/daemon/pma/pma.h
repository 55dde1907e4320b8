/* SPDX-License-Identifier: BSD-2-Clause */
/* The performance management agents of all ports, and the vendor's and congestion's that share their
 * counters. */
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
	struct sampler *samplers; /* of ports that have been asked for samples */
	/* Nodes that congestion control has been set up at, by row. */
	struct cc_node *cc_nodes[PMA_BUCKETS];
};

int pma_open(struct pma *p, struct mad_fabric *f) must_check;
/* Before the net and the loop end. */
void pma_close(struct pma *p);

/* What PMA reports: 64-bit running counts less what was cleared; files in sysfs use it too. */
uint64_t pma_count(const struct net *n, uint32_t row, enum net_counter c);
void pma_clear(struct net *n, uint32_t row, enum net_counter c);

/* ---- among the files of this folder ---- */

/* Where a count comes from: NET's, or one that follows from those. */
enum pma_source {
	PMA_UNICAST_XMIT = NET_COUNTERS,
	PMA_UNICAST_RCV,
	PMA_SOURCES,
	/* Of a service level and those after it; of the groups of these names alone. */
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
	PMA_GROUP_NONE = PMA_GROUPS, /* an attribute of counters that cannot rise here */
};

/* counters.c */
uint64_t pma_total(const struct net *n, uint32_t row, unsigned source);
uint64_t pma_group_get(const struct net *n, uint32_t row, enum pma_group group, unsigned source);
/* From now on the count goes on from 'value'. */
void pma_group_set(struct net *n, uint32_t row, enum pma_group group, unsigned source,
		   uint64_t value);

/* A request about ports of a node. */
struct pma_request {
	struct pma *pma;
	struct net *net;
	uint32_t node_row; /* where the MAD came in */
	uint32_t row;	   /* the port, or SUBNET_NONE: all external ones */
	bool set;
	uint8_t *data; /* MAD_GMP_BYTES, in and out */
};

/* attributes.c: those that are counters.  A mad_status. */
unsigned pma_attribute(struct pma_request *r, unsigned attribute);

/* samples.c */
unsigned pma_samples_control(struct pma_request *r);
unsigned pma_samples_result(struct pma_request *r);
void pma_samples_close(struct pma *p);

/* vendor.c, congestion.c */
enum mad_verdict pma_vendor(struct port_agent *a, uint32_t row, struct mad_packet *p);
enum mad_verdict pma_congestion(struct port_agent *a, uint32_t row, struct mad_packet *p);
void pma_congestion_close(struct pma *p);
