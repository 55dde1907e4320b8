/* SPDX-License-Identifier: BSD-2-Clause */
/* Steering of Ethernet frames: a part of adapter.h. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/* The fields of an Ethernet frame that steering compares. */

enum { FRAME_TYPE_IPV4 = 0x0800, FRAME_TYPE_VLAN = 0x8100, FRAME_TYPE_IPV6 = 0x86dd };
enum { IP_PROTO_TCP = 6, IP_PROTO_UDP = 17, IP_PROTO_GRE = 47 };

/*
 * The fields that tell frames apart.  Numbers are in network order, absent fields zero; an IPv4
 * address takes the first 4 bytes.  All bytes belong to fields, so that masked comparison works on
 * words.
 */
struct flow_key {
	union {
		struct {
			uint8_t dst_mac[6];
			uint8_t src_mac[6];
			uint8_t ether_type[2]; /* the type behind a VLAN tag */
			uint8_t vlan_tag[2];
			uint8_t src_ip[16];
			uint8_t dst_ip[16];
			uint8_t flow_label[4];
			uint8_t ip_proto; /* IPv6: next header */
			uint8_t ip_tos;	  /* IPv6: traffic class */
			uint8_t ip_ttl;
			uint8_t ip_flags; /* IPv4: more fragments 0, don't fragment 1 */
			uint8_t src_port[2];
			uint8_t dst_port[2];
			uint8_t ip_version; /* 4, 6 or 0 */
			uint8_t l4_proto;   /* protocol that the ports belong to: TCP, UDP or 0 */
			uint8_t vlan;	    /* 1: tagged */
			uint8_t reserved;
		};
		uint64_t word[8];
	};
};

#define FLOW_KEY_WORDS 8u

/* What lies behind the outer headers; the same holds for its fields. */
struct flow_deep {
	union {
		struct {
			struct flow_key inner; /* the headers inside a tunnel */
			uint8_t vni[4];	       /* VXLAN; the first byte is zero */
			uint8_t gre_key[4];
			uint8_t gre_protocol[2];
			uint8_t reserved[2];
			uint8_t esp_spi[4];
			/* The first entry of a label stack: behind the Ethernet header, behind that
			 * of a frame in a tunnel, in GRE, in UDP. */
			uint8_t mpls[4];
			uint8_t mpls_inner[4];
			uint8_t mpls_over_gre[4];
			uint8_t mpls_over_udp[4];
		};
		uint64_t word[12];
	};
};

#define FLOW_DEEP_WORDS 12u

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
 * A kind of tag for entries in device memory (ste/tag.h), by the number of its format and a
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
