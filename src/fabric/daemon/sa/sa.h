/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet administration (IBTA 15) at the built-in SM's port.  An attribute is a file with a struct
 * sa_record: how many records there may be, and how number i looks; queries walk them in slices and
 * compare under the component mask.
 */
#pragma once

#include "fabric/daemon/mad/agent.h"

#define SA_RECORD_BYTES 256u
#define SA_MOST_RECORDS 100000u /* of an answer; more: status "too many records" */
#define SA_SLICE	4096u	/* records looked at in one run of work */

enum sa_status {
	SA_NO_RESOURCES = 0x0100,
	SA_INVALID = 0x0200,
	SA_NO_RECORDS = 0x0300,
	SA_TOO_MANY = 0x0400,
	SA_INVALID_GID = 0x0500,
	SA_INSUFFICIENT = 0x0600,
	SA_DENIED = 0x0700,
};

struct sa_field {
	uint16_t bit;
	uint16_t width;
};

struct sa_query;

struct sa_record {
	uint16_t attribute;
	uint16_t bytes;		       /* of a record, before rounding up to 8 */
	const struct sa_field *fields; /* component n of the mask */
	uint32_t nfields;
	/* Where an enumeration begins and ends; it may narrow to what the query fixes. */
	uint64_t (*count)(const struct sa_query *q);
	/* Record i into 'out'; false: there is none of that number. */
	bool (*get)(const struct sa_query *q, uint64_t i, uint8_t out[SA_RECORD_BYTES]);
	/* Set, Delete, Report; NULL: the method is refused.  A status. */
	unsigned (*change)(struct sa_query *q, unsigned method);
};

/* What the SM tells of itself, for SMInfo and its record. */
struct sa_sm {
	uint64_t guid, key;
	uint32_t act_count;
	uint8_t priority, state;
};

/* A multicast group; the SM makes its tree (sm/mcast.c) and calls nothing back. */
struct sa_group {
	struct sa_group *next;
	union ib_gid mgid;
	uint16_t mlid, pkey;
	uint32_t qkey, flow;
	uint8_t mtu, rate, life, sl, scope, traffic_class;
	uint32_t nmembers;
	uint32_t *members;   /* rows of full members and of non-members that receive */
	uint8_t *join_state; /* of each */
};

struct sa {
	struct mad_fabric *fabric;
	struct mad_agent agent;
	struct mad_scope scope;
	struct sa_query *queries; /* that are not answered yet */
	struct sa_sm sm;
	struct sa_group *groups;
	struct loop_work *groups_changed; /* the SM's; queued when a tree must be made anew */
	bool open;
};

struct sa_query {
	struct sa *sa;
	struct net *net;
	uint32_t from; /* row of who asks */
	uint64_t mask;
	uint32_t modifier;
	uint8_t *record; /* of the request; 'change' makes the answer of it */
};

int sa_open(struct sa *s, struct mad_fabric *f, uint32_t row) must_check;
void sa_close(struct sa *s);
/* Notices to those who have subscribed (InformInfo): 64 bytes of Notice. */
void sa_report(struct sa *s, const uint8_t *notice);
const struct sa_record *sa_record_find(unsigned attribute);
