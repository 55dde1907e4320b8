/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering of Ethernet frames: a part of adapter.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "adapter/flow_key.h"
#include "base/compiler.h"

struct adapter;
struct flow;
struct flow_counter;
struct flow_headers;
struct flow_table;
struct icm;
struct qp;

enum flow_type {
	FLOW_NORMAL,
	FLOW_ALL_DEFAULT, /* frames that no other rule wanted */
	FLOW_MC_DEFAULT,  /* such frames to a group address */
};

/* The root table that a rule is in. */
enum flow_domain {
	FLOW_NIC_RX, /* frames that arrive at the host's port */
	FLOW_NIC_TX, /* frames that queues send */
	FLOW_FDB,    /* frames between that port and the wire, in either direction */
	/* Not a way of frames: the queues of all its rules get copies of what passes the port in
	 * either direction, packets of queue pairs included. */
	FLOW_SNIFFER,
	FLOW_DOMAINS,
};

/* Changes of headers, as actions of steering entries (prm/ste.h). */
#define FLOW_MODIFY_BYTES 8u

struct flow_modify {
	uint32_t n;
	uint8_t action[][FLOW_MODIFY_BYTES];
};

struct flow_attr {
	enum flow_domain domain;
	enum flow_type type;
	uint32_t priority; /* below ADAPTER_FLOW_PRIORITIES; 0 comes first */
	struct flow_key value;
	struct flow_key mask;
	struct flow_deep deep_value;
	struct flow_deep deep_mask;
	struct qp *qp; /* raw packet QP that gets the frame */
	/* Without qp and table, the rule drops the frame. */
	struct flow_table *table;
	bool pass;    /* instead of a drop: the frame goes on as if there were no rules */
	uint32_t tag; /* goes into the completion; FLOW_TAG_MASK */
	const struct flow_modify *modify; /* applied first; or NULL; outlives the rule */
	struct flow_counter *counter;	  /* or NULL; outlives the rule */
	bool go_on;			  /* rules of less precedence get the frame too */
};

/* Counts the frames that rules have taken, whether for a queue or to drop them. */
int flow_counter_create(struct flow_counter **out) must_check;
void flow_counter_read(const struct flow_counter *c, uint64_t *packets, uint64_t *bytes);
/* The caller makes sure that no rule names it. */
void flow_counter_destroy(struct flow_counter *c);

/* Counters with a number, by which entries of tables name them. */
int flow_counter_create_numbered(struct adapter *a, struct flow_counter **out,
				 uint32_t *number) must_check;
void flow_counter_destroy_numbered(struct adapter *a, struct flow_counter *c, uint32_t number);

/*
 * Headers of a tunnel, which rules and entries name by a number.  They have at most
 * FLOW_HEADERS_MAX bytes, an even number.  Returns 0, -EINVAL, -ENOMEM or -ENOSPC.
 */
#define FLOW_HEADERS_MAX 126u
int flow_headers_create(struct adapter *a, const uint8_t *bytes, uint32_t n,
			struct flow_headers **out, uint32_t *number) must_check;
/* From now on frames of entries that name it are dropped. */
void flow_headers_destroy(struct adapter *a, struct flow_headers *h, uint32_t number);

/*
 * A kind of tag for entries in device memory (ste/definer.h), by the number of its format and a
 * mask of what counts of it.  -EOPNOTSUPP: the format is unknown; -ENOMEM, -ENOSPC.
 */
#define FLOW_DEFINER_BYTES 32u
int flow_definer_create(struct adapter *a, uint32_t format, const uint8_t mask[FLOW_DEFINER_BYTES],
			uint32_t *number) must_check;
/* From now on frames that come to entries with it are dropped. */
void flow_definer_destroy(struct adapter *a, uint32_t number);

/* -EEXIST if a rule with the same match treats the frame differently. */
int flow_create(struct adapter *a, const struct flow_attr *attr, struct flow **out) must_check;
void flow_destroy(struct flow *flow);

/*
 * Tables beyond the root.  Either the program writes entries into device memory, and the table is
 * where these begin; or the table is the device's, and has one entry, which takes all frames.
 */
struct flow_table_attr {
	enum flow_domain domain;
	bool by_entries;
	/* Device addresses; for FLOW_FDB the second one is for frames of the host. */
	uint64_t root[2];
};

struct flow_dest {
	enum { FLOW_TO_TIR, FLOW_TO_TABLE, FLOW_TO_VPORT } kind;
	uint32_t number;
};

struct flow_entry_attr {
	uint32_t counter; /* the counter's number, or 0 */
	uint32_t tag;	  /* goes into the completion; 0: the tag of earlier rules stays */
	bool drop;
	uint32_t n;
	const struct flow_dest *dest;
};

int flow_table_create(struct adapter *a, const struct flow_table_attr *attr,
		      struct flow_table **out) must_check;
uint32_t flow_table_number(const struct flow_table *t);
/* The address by which entries in device memory lead to the table. */
uint64_t flow_table_address(const struct flow_table *t, bool sent);
/* -EBUSY: the table has an entry. */
int flow_table_set_entry(struct flow_table *t, const struct flow_entry_attr *attr) must_check;
/* Puts another one in the place of the table's entry: each frame meets either of them. */
int flow_table_change_entry(struct flow_table *t, const struct flow_entry_attr *attr) must_check;
void flow_table_clear_entry(struct flow_table *t);
/* The caller makes sure that no rule leads there; frames that entries lead there are dropped. */
void flow_table_destroy(struct flow_table *t);

/* Every ratio-th frame goes to one table, and all frames go to the other.  Tables are named by
 * number. */
struct flow_sampler_attr {
	uint32_t ratio; /* not 0 */
	uint32_t sample_table;
	uint32_t default_table;
};

struct flow_sampler;
int flow_sampler_create(struct adapter *a, const struct flow_sampler_attr *attr,
			struct flow_sampler **out) must_check;
uint32_t flow_sampler_number(const struct flow_sampler *s);
uint64_t flow_sampler_address(const struct flow_sampler *s);
void flow_sampler_destroy(struct adapter *a, struct flow_sampler *s);

/* The queue pair is connected to itself, to write steering entries: frames do not overtake what is
 * posted to it. */
void qp_writes_icm(struct qp *qp);
/* Device memory of steering; see ste/icm.h. */
struct icm *adapter_icm(struct adapter *a);
