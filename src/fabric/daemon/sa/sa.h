/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Subnet administration (IBTA 15) at the built-in SM's port.  An attribute is a file with a struct
 * sa_record, which says how many records there may be, and how number i looks; queries walk them in
 * slices and compare under the component mask.
 */
#pragma once

#include "fabric/daemon/mad/agent.h"
#include "fabric/daemon/mad/rmpp.h"
#include "prm/sa.h"

#define SA_RECORD_BYTES 256u
/* Bytes of one answer, the most that a program is given; and of all answers being made.  For more,
 * the SA says SA_NO_RESOURCES. */
#define SA_MOST_BYTES	 (RMPP_MOST_BYTES - MAD_BYTES)
#define SA_MOST_ALL	 (4ull * RMPP_MOST_BYTES)
#define SA_SLICE	 4096u	  /* records that one run of work looks at */
#define SA_MOST_QUERIES	 1024u	  /* under way; further ones hear that we are busy */
#define SA_SM_KEY	 1ull	  /* of programs that we trust; OpenSM's default */
#define SA_REQUEST_BYTES 512u	  /* the longest request that we read */
#define SA_SILENCE	 0x10000u /* in place of a status: the request gets no answer */

struct sa_field {
	uint16_t bit;
	uint16_t width; /* 0: never compared */
};

struct sa_query;

struct sa_record {
	uint16_t attribute;
	uint16_t bytes;		       /* bytes of a record, before rounding up to 8 */
	uint16_t answered_as;	       /* attribute of the answer; 0: the same */
	const struct sa_field *fields; /* component n of the mask has field n */
	uint32_t nfields;
	/* Decides whether the query may be asked; returns a status.  NULL: yes.  It may note in
	 * q->scratch what 'count' finds. */
	unsigned (*check)(struct sa_query *q);
	/* Number of records in an enumeration, which may be narrowed to what the query fixes.
	 * NULL: programs cannot ask for the attribute. */
	uint64_t (*count)(const struct sa_query *q);
	/* Writes record i into 'out', which is zeroed; false: there is none of that number. */
	bool (*get)(const struct sa_query *q, uint64_t i, uint8_t out[SA_RECORD_BYTES]);
	/* Matches beyond the fields; NULL: the fields are enough. */
	bool (*match)(const struct sa_query *q, const uint8_t *record);
	/* Does Set and Delete; NULL: the method is refused.  Returns a status, or SA_SILENCE. */
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
	SA_JOIN_NOT = 2, /* receives, but does not keep the group alive */
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
	bool well_known; /* stays without members: IPoIB's broadcast group */
	uint32_t nmembers;
	struct sa_member *members;
};

struct sa_service;
struct sa_subscription;

struct sa {
	struct mad_fabric *fabric;
	struct mad_agent agent;
	struct mad_scope scope;
	uint32_t row;		  /* row of the port that we are at */
	struct sa_query *queries; /* queries that are not answered yet */
	struct sa_query **queries_end;
	uint32_t nqueries;
	uint64_t answer_bytes; /* bytes of their answers, with the rows that they list */
	struct loop_work work;
	struct sa_sm sm;
	struct sa_group *groups;
	struct loop_work *groups_changed; /* the SM's; queued when a tree must be made anew */
	struct sa_service **services;
	uint32_t nservices;
	struct loop_timer lease; /* lease of the service that ends first */
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
	uint32_t from; /* row of the asker, or SUBNET_NONE */
	bool trusted;  /* the asker has the SM_Key */
	unsigned method;
	uint64_t mask;
	uint32_t modifier;
	uint8_t *record; /* record of the request; 'change' turns it into the answer's */
	uint32_t record_bytes;
	uint32_t scratch[4]; /* for 'check' */
	uint32_t *rows;	     /* made by sa_list_ports, with ways to these ports */
	struct sa_ways *ways;
	uint32_t nrows;
	uint64_t at, end; /* bounds of the enumeration */
	uint32_t nrecords;
	uint32_t room;	 /* bytes of the answer */
	uint8_t *answer; /* header and records */
	struct mad_address who;
	uint32_t request_bytes;
	uint8_t request[SA_REQUEST_BYTES];
};

int sa_open(struct sa *s, struct mad_fabric *f, uint32_t row) must_check;
/* Ends queries without an answer; forgets groups, services and subscriptions. */
void sa_close(struct sa *s);
/* Reports a notice, 64 bytes, to those who have subscribed (InformInfo). */
void sa_report(struct sa *s, const uint8_t *notice);
/* Reports the SM's own notices: a port came or went, a group was made or removed. */
void sa_report_port(struct sa *s, uint32_t row, enum sa_trap trap);
void sa_report_group(struct sa *s, const struct sa_group *g, enum sa_trap trap);
/* Finds a group by its MGID; or NULL. */
struct sa_group *sa_group_find(const struct sa *s, const uint8_t *mgid);
bool sa_is_multicast(const uint8_t *gid);
const struct sa_record *sa_record_find(unsigned attribute);

static inline bool sa_asked(const struct sa_query *q, unsigned component)
{
	return q->mask >> component & 1;
}

/* ---- compare.c ---- */

/* Tells whether the components in the mask agree. */
bool sa_compare(const struct sa_record *kind, uint64_t mask, const uint8_t *wanted,
		const uint8_t *record);
/* Tells whether a value stands to the wanted one as the selector says. */
bool sa_select(enum sa_selector selector, uint32_t wanted, uint32_t value);
/* The same for rates, whose numbers are not in the order of speed. */
bool sa_select_rate(enum sa_selector selector, uint32_t wanted, uint32_t rate);
bool sa_rate_valid(uint32_t rate);
/*
 * The place of a rate among all rates by speed, from 1; 0: no rate.  The second goes the other way.
 */
uint32_t sa_rate_order(uint32_t rate);
uint32_t sa_rate_of_order(uint32_t order);
/* Compares speeds: returns below 0, 0 or above. */
int sa_rate_compare(uint32_t a, uint32_t b);
/* The rate of a port's link (IBTA 15.2.5.16). */
uint32_t sa_port_rate(const struct net *n, uint32_t row);

/* ---- query.c: walks ---- */

/* Begins a query, and owns q until it is answered, now or later. */
void sa_query_begin(struct sa_query *q);
void sa_query_run(struct loop *l, struct loop_work *w);
void sa_query_free(struct sa_query *q);

/* ---- sa.c: answers ---- */

/* Answers with a status and q->record; for an answer that is no table. */
void sa_answer(struct sa_query *q, unsigned status);
/* Sends all records that the query has collected, by RMPP. */
void sa_answer_table(struct sa_query *q);

/* ---- place.c: where things are ---- */

/*
 * Tells whether this is an end port that the subnet has configured: it has a LID, and a link unless
 * it is a switch's.
 */
bool sa_port_there(const struct net *n, uint32_t row);
void sa_port_gid(const struct net *n, uint32_t row, union ib_gid *gid);
/* Returns the row of an end port, or SUBNET_NONE. */
uint32_t sa_port_by_gid(const struct net *n, const uint8_t *gid);
uint32_t sa_port_by_lid(const struct net *n, uint32_t lid);
/* LID of the node's end port, which its records go by. */
uint32_t sa_lid_of(const struct net *n, uint32_t row);
/*
 * Tells whether both have a P_Key in common, one of them as a full member.  *pkey: the first such
 * key.
 */
bool sa_share_pkey(const struct net *n, uint32_t a, uint32_t b, uint16_t *pkey);
/* Tells whether the port has this P_Key, or its partition with the other membership. */
bool sa_has_pkey(const struct net *n, uint32_t row, uint16_t pkey);
/*
 * Lists all end ports that are there in q->rows, so that pairs of them need not be looked for among
 * all rows.  Returns a status.
 */
unsigned sa_list_ports(struct sa_query *q);
void sa_list_free(struct sa_query *q);
/* Bounds of an enumeration of rows: all rows, or those of the node that has the LID. */
struct sa_rows {
	uint32_t first, count;
};
struct sa_rows sa_rows_of(const struct sa_query *q, bool lid_asked, uint32_t lid);

/* ---- place.c: ways ---- */

/* What the links on a way allow. */
struct sa_limits {
	uint32_t mtu, rate;
};

/* Follows the tables for that LID from one end port to another; false: they do not lead there. */
bool sa_way(const struct net *n, uint32_t from, uint32_t to, uint32_t lid, struct sa_limits *l);
/* The same to the port q->rows[index], by its own LID; q->ways remembers what it finds. */
bool sa_way_listed(const struct sa_query *q, uint32_t from, uint32_t index, uint32_t lid,
		   struct sa_limits *l);
size_t sa_ways_bytes(uint32_t count);
/* Makes an empty memory of ways, to be freed by free().  NULL: no memory. */
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

/* The store of multicast groups; record_mcmember.c decides who may join and leave. */

struct sa_member *sa_member_find(struct sa_group *g, const uint8_t *gid);
