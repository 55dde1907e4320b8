/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet administration (IBTA 15) at the built-in SM's port.  An attribute is a file with a struct
 * sa_record: how many records there may be, and how number i looks; queries walk them in slices and
 * compare under the component mask.
 */
#pragma once

#include "fabric/daemon/mad/agent.h"
#include "fabric/daemon/mad/rmpp.h"
#include "prm/sa.h"

#define SA_RECORD_BYTES 256u
/* Of an answer: as long as what a program is given at most; and of all that are being made.  More:
 * SA_NO_RESOURCES. */
#define SA_MOST_BYTES	 (RMPP_MOST_BYTES - MAD_BYTES)
#define SA_MOST_ALL	 (4ull * RMPP_MOST_BYTES)
#define SA_SLICE	 4096u	  /* records looked at in one run of work */
#define SA_MOST_QUERIES	 1024u	  /* under way; more are told that we are busy */
#define SA_SM_KEY	 1ull	  /* of those whom we trust; OpenSM's default */
#define SA_REQUEST_BYTES 512u	  /* the longest that is read */
#define SA_SILENCE	 0x10000u /* in place of a status: the request is not answered */

struct sa_field {
	uint16_t bit;
	uint16_t width; /* 0: never compared */
};

struct sa_query;

struct sa_record {
	uint16_t attribute;
	uint16_t bytes;		       /* of a record, before rounding up to 8 */
	uint16_t answered_as;	       /* attribute of the answer; 0: the same */
	const struct sa_field *fields; /* component n of the mask */
	uint32_t nfields;
	/* May the query be asked?  A status.  NULL: yes.  It may note in q->scratch what 'count' finds. */
	unsigned (*check)(struct sa_query *q);
	/* Where an enumeration begins and ends; it may narrow to what the query fixes.  NULL: the
	 * attribute cannot be asked for. */
	uint64_t (*count)(const struct sa_query *q);
	/* Record i into 'out', which is zeroed; false: there is none of that number. */
	bool (*get)(const struct sa_query *q, uint64_t i, uint8_t out[SA_RECORD_BYTES]);
	/* Beyond the fields; NULL: the fields say all. */
	bool (*match)(const struct sa_query *q, const uint8_t *record);
	/* Set and Delete; NULL: the method is refused.  A status, or SA_SILENCE. */
	unsigned (*change)(struct sa_query *q, unsigned method);
};

/* What the SM tells of itself, for SMInfo and its record. */
struct sa_sm {
	uint64_t guid, key;
	uint32_t act_count;
	uint8_t priority, state;
};

/* Bits of a member's JoinState. */
enum sa_join {
	SA_JOIN_FULL = 1,
	SA_JOIN_NOT = 2, /* receives and keeps no group alive */
	SA_JOIN_SENDS = 4,
	SA_JOIN_SENDS_FULL = 8, /* sends, and keeps the group alive */
};

struct sa_member {
	uint32_t row;
	union ib_gid gid;
	uint8_t join_state; /* enum sa_join */
	bool proxy;
};

/* A multicast group; the SM makes its tree (sm/mcast.c) and calls nothing back. */
struct sa_group {
	struct sa_group *next;
	union ib_gid mgid;
	uint16_t mlid, pkey;
	uint32_t qkey, flow;
	uint8_t mtu, rate, life, sl, scope, traffic_class, hop_limit;
	bool well_known; /* stays without members: the broadcast group of IPoIB */
	uint32_t nmembers;
	struct sa_member *members;
};

struct sa_service;
struct sa_subscription;

struct sa {
	struct mad_fabric *fabric;
	struct mad_agent agent;
	struct mad_scope scope;
	uint32_t row;		  /* the port that we are at */
	struct sa_query *queries; /* that are not answered yet */
	struct sa_query **queries_end;
	uint32_t nqueries;
	uint64_t answer_bytes; /* that these take, with the rows that they list */
	struct loop_work work;
	struct sa_sm sm;
	struct sa_group *groups;
	struct loop_work *groups_changed; /* the SM's; queued when a tree must be made anew */
	struct sa_service **services;
	uint32_t nservices;
	struct loop_timer lease; /* of the service that ends first */
	struct sa_subscription **subscriptions;
	uint32_t nsubscriptions, ngroups;
	uint16_t next_enum;
	uint32_t next_mgid, next_tid;
	bool open;
};

struct sa_query {
	struct sa_query *next;
	struct sa *sa;
	struct net *net;
	const struct sa_record *kind;
	uint32_t from; /* row of who asks, or SUBNET_NONE */
	bool trusted;  /* has the SM_Key */
	unsigned method;
	uint64_t mask;
	uint32_t modifier;
	uint8_t *record; /* of the request; 'change' makes the answer of it */
	uint32_t record_bytes;
	uint32_t scratch[4]; /* check's */
	uint32_t *rows;	     /* sa_list_ports's, and ways to them */
	struct sa_ways *ways;
	uint32_t nrows;
	uint64_t at, end; /* of the enumeration */
	uint32_t nrecords;
	uint32_t room;	 /* bytes of the answer */
	uint8_t *answer; /* header and records */
	struct mad_address who;
	uint32_t request_bytes;
	uint8_t request[SA_REQUEST_BYTES];
};

int sa_open(struct sa *s, struct mad_fabric *f, uint32_t row) must_check;
/* Queries end without an answer; groups, services and subscriptions are forgotten. */
void sa_close(struct sa *s);
/* Notices to those who have subscribed (InformInfo): 64 bytes of Notice. */
void sa_report(struct sa *s, const uint8_t *notice);
/* The SM's own: a port came or went, a group was made or removed. */
void sa_report_port(struct sa *s, uint32_t row, enum sa_trap trap);
void sa_report_group(struct sa *s, const struct sa_group *g, enum sa_trap trap);
/* By MGID, or NULL. */
struct sa_group *sa_group_find(const struct sa *s, const uint8_t *mgid);
bool sa_is_multicast(const uint8_t *gid);
const struct sa_record *sa_record_find(unsigned attribute);

static inline bool sa_asked(const struct sa_query *q, unsigned component)
{
	return q->mask >> component & 1;
}

/* ---- compare.c ---- */

/* Do the components in the mask agree? */
bool sa_compare(const struct sa_record *kind, uint64_t mask, const uint8_t *wanted,
		const uint8_t *record);
/* Is a value what the selector says of the one wanted? */
bool sa_select(enum sa_selector selector, uint32_t wanted, uint32_t value);
/* The same of rates, whose numbers are not in their order. */
bool sa_select_rate(enum sa_selector selector, uint32_t wanted, uint32_t rate);
bool sa_rate_valid(uint32_t rate);
/* Place among all rates by speed, from 1; 0: no rate.  And back. */
uint32_t sa_rate_order(uint32_t rate);
uint32_t sa_rate_of_order(uint32_t order);
/* By speed: below 0, 0 or above. */
int sa_rate_compare(uint32_t a, uint32_t b);
/* The rate of a port's link (IBTA 15.2.5.16). */
uint32_t sa_port_rate(const struct net *n, uint32_t row);

/* ---- query.c: walks ---- */

/* Begins a query; it is q's end when it is answered, now or later. */
void sa_query_begin(struct sa_query *q);
void sa_query_run(struct loop *l, struct loop_work *w);
void sa_query_free(struct sa_query *q);

/* ---- sa.c: answers ---- */

/* 'data': what follows the header, for an answer that is no table. */
void sa_answer(struct sa_query *q, unsigned status);
/* All records that the query has collected, by RMPP. */
void sa_answer_table(struct sa_query *q);

/* ---- place.c: where things are ---- */

/* An end port that the subnet has configured: with a LID, and a link if it is no switch's. */
bool sa_port_there(const struct net *n, uint32_t row);
void sa_port_gid(const struct net *n, uint32_t row, union ib_gid *gid);
/* Row of an end port, or SUBNET_NONE. */
uint32_t sa_port_by_gid(const struct net *n, const uint8_t *gid);
uint32_t sa_port_by_lid(const struct net *n, uint32_t lid);
/* LID of the node's end port, which its records go by. */
uint32_t sa_lid_of(const struct net *n, uint32_t row);
/* Do both have a P_Key in common, one of them as a full member?  *pkey: the first. */
bool sa_share_pkey(const struct net *n, uint32_t a, uint32_t b, uint16_t *pkey);
/* Has it this one, or its partition with the other membership? */
bool sa_has_pkey(const struct net *n, uint32_t row, uint16_t pkey);
/* All end ports that are there into q->rows, so that pairs of them need not be looked for among all rows.  A status. */
unsigned sa_list_ports(struct sa_query *q);
void sa_list_free(struct sa_query *q);
/* Begins and ends an enumeration of rows: all, or those of the node that the LID is of. */
struct sa_rows {
	uint32_t first, count;
};
struct sa_rows sa_rows_of(const struct sa_query *q, bool lid_asked, uint32_t lid);

/* ---- way.c ---- */

/* What the links of a way allow. */
struct sa_limits {
	uint32_t mtu, rate;
};

/* From one end port to another as the tables lead for that LID; false: they do not lead there. */
bool sa_way(const struct net *n, uint32_t from, uint32_t to, uint32_t lid, struct sa_limits *l);
/* To the port q->rows[index], by its own LID; what is found is remembered in q->ways. */
bool sa_way_listed(const struct sa_query *q, uint32_t from, uint32_t index, uint32_t lid,
		   struct sa_limits *l);
size_t sa_ways_bytes(uint32_t count);
/* Of none; free() it.  NULL: no memory. */
struct sa_ways *sa_ways_make(const struct net *n, uint32_t count);

/* ---- records ---- */

extern const struct sa_record sa_class_port_info, sa_node_record, sa_port_info_record,
	sa_switch_info_record, sa_linear_record, sa_multicast_record, sa_sm_info_record,
	sa_link_record, sa_guid_info_record, sa_pkey_record, sa_sl_to_vl_record, sa_vlarb_record,
	sa_path_record, sa_multi_path_record, sa_mc_member_record, sa_service_record,
	sa_inform_info, sa_inform_info_record;

/* ---- what lives as long as the SA ---- */

int sa_groups_open(struct sa *s) must_check; /* the broadcast group */
void sa_groups_close(struct sa *s);
void sa_services_close(struct sa *s);
void sa_service_lease(struct loop *l, struct loop_timer *t);
void sa_subscriptions_close(struct sa *s);
