/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the host program of tests/flexio/network share. */
#pragma once

#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <stdbool.h>
#include <stddef.h>

#include "check.h"
#include "network.h"

extern struct flexio_app *network_app;
extern flexio_func_t peek, poke, send_requests, reflect, hammer, same_bytes, port_bytes;

#define OK(call)    CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define FAILS(call) CHECK((call) == FLEXIO_STATUS_FAILED)

#define USER_INDEX 0x1234u
/* From the peer to the queues of the DPA, and back. */
#define PEER_MAC "\x02\x42\x7e\x7f\xeb\x02"
#define DPA_MAC	 "\x02\x11\x22\x33\x44\x55"

/* A queue with its CQ, whose rings are on the heap. */
struct ring {
	struct flexio_cq *cq;
	uint32_t cqn, number;
	uint64_t cq_ring, cq_record, ring, record, data;
	struct flexio_mkey *key;
	struct flexio_rq *rq;
	struct flexio_sq *sq;
	uint32_t ci; /* of cq_next */
};

struct rule {
	struct mlx5dv_dr_domain *domain;
	struct mlx5dv_dr_table *table;
	struct mlx5dv_dr_matcher *matcher;
	struct mlx5dv_dr_action *action;
	struct mlx5dv_dr_rule *rule;
};

/* Fields of the outer headers, of a mask or a value. */
struct fields {
	size_t bytes;
	uint8_t at[64];
};

/* Where the addresses lie in them. */
#define FIELD_FROM 0u
#define FIELD_TO   8u

static inline struct mlx5dv_flow_match_parameters *fields_of(const struct fields *f)
{
	return (struct mlx5dv_flow_match_parameters *)(uintptr_t)f;
}

#define TABLE_RULES 4u

/* Rules of level 1. */
struct tables {
	struct mlx5dv_dr_domain *domain;
	struct mlx5dv_dr_table *root, *table;
	struct mlx5dv_dr_matcher *root_matcher, *matcher;
	struct mlx5dv_dr_action *to_table, *action[TABLE_RULES];
	struct mlx5dv_dr_rule *root_rule, *rule[TABLE_RULES];
	unsigned rules;
};

struct bench {
	struct ibv_context *ctx;
	struct ibv_pd *pd; /* of queues and keys */
	struct flexio_process *p;
	struct flexio_event_handler *eh;
	struct ring in, out;
	struct rule rule;
	uint64_t n; /* address of the struct network */
	struct flexio_wq_attr rq_attr, sq_attr;
	bool across; /* device code rings sends by the number of 'other', not by an outbox */
	struct ibv_context *other; /* of the queues, if it is not the process's, */
	uint32_t device;	   /* with its number for bells */
};

struct ibv_context *device_open(int link_layer);
#define ethernet_open() device_open(IBV_LINK_LAYER_ETHERNET)
uint64_t call1(struct flexio_process *p, flexio_func_t *f, uint64_t a);
void word_await(struct flexio_process *p, uint64_t addr, uint64_t value);
#define network_get(b, field) call1((b)->p, &peek, (b)->n + offsetof(struct network, field))
#define network_await(b, field, value) \
	word_await((b)->p, (b)->n + offsetof(struct network, field), value)

/* Process and handler; on a device with such a port. */
void bench_up_on(struct bench *b, int link_layer);
#define bench_up(b) bench_up_on(b, IBV_LINK_LAYER_ETHERNET)
/* CQ, ring, record, data and key.  activates: the handler, by the CQ. */
void ring_memory(struct bench *b, struct ring *r, bool activates);
void ring_down(struct bench *b, struct ring *r);
/* A receive queue with all its receives posted; a send queue. */
void rq_up(struct bench *b, struct ring *r);
void sq_up(struct bench *b, struct ring *r);
/* All, with a rule, and the handler running. */
void reflector_up(struct bench *b);
/* But the last. */
void reflector_make(struct bench *b);
void rule_up(struct bench *b, struct rule *rule, struct mlx5dv_devx_obj *tir);
void rule_down(struct rule *rule);
void bench_down(struct bench *b);

/* The next completion, within a while; 8 words of it. */
struct completion {
	uint32_t opcode, syndrome, counter, bytes, user_index, qpn;
};
bool cq_look(struct bench *b, struct ring *r, struct completion *out);
void cq_next(struct bench *b, struct ring *r, struct completion *out);
void requests(struct bench *b, struct request *r, uint64_t count);

/* ---- host_tables.c: tables of level 1 ---- */

#define UPLINK 0xffffu

/* mask: what their rules look at.  root_mask, root_value: which frames
 * come to them; NULL: all. */
void tables_up(struct tables *t, struct ibv_context *ctx, enum mlx5dv_dr_domain_type type,
	       const struct fields *mask, const struct fields *root_mask,
	       const struct fields *root_value);
/* The action goes with the tables. */
void tables_rule(struct tables *t, const struct fields *value, struct mlx5dv_dr_action *action);
void tables_down(struct tables *t);
/* In an order in which part of it is refused, as programs do that do not look at the result. */
void tables_abandon(struct tables *t);

/* ---- host_outside.c: memory of the host's for rings and records ---- */

#define OUTSIDE_BYTES 65536u

struct outside {
	uint8_t *area;
	struct mlx5dv_devx_umem *umem;
	struct ibv_mr *mr;
	struct flexio_window *window;
};

void outside_up(struct outside *o, struct bench *b);
void outside_down(struct outside *o);
/* What lies that far in it. */
struct flexio_qmem outside_at(const struct outside *o, uint64_t offset);
void outside_record(const struct outside *o, uint64_t offset, uint32_t value);
/* The ring of requests lies there. */
void outside_requests(const struct outside *o, struct request *r, uint64_t offset);

struct host_case {
	const char *name;
	void (*run)(void);
};

/* Each ends with an entry without a name. */
extern const struct host_case frame_cases[], refused_cases[], pair_cases[], flow_cases[],
	rule_cases[], outside_cases[], gone_cases[], scatter_cases[], switch_cases[],
	processor_cases[], counter_cases[];

/* ---- raw_peer.c: a verbs program with a raw packet queue pair ---- */

struct raw_peer;

struct raw_peer *raw_peer_make(void);
/* One that hears all frames. */
struct raw_peer *raw_peer_of_all(void);
/* The next one; its size. */
uint32_t raw_peer_hear(struct raw_peer *peer, uint8_t *frame, uint32_t room);
/* A frame to the DPA, of a kind of its own. */
void raw_peer_send(struct raw_peer *peer, uint32_t bytes, uint8_t kind);
/* Any frame. */
void raw_peer_send_frame(struct raw_peer *peer, const uint8_t *frame, uint32_t bytes);
/* The one that comes back is that with its addresses exchanged. */
void raw_peer_expect(struct raw_peer *peer, uint32_t bytes, uint8_t kind);
/* The same with another last byte. */
void raw_peer_expect_edited(struct raw_peer *peer, uint32_t bytes, uint8_t kind, uint8_t last);
/* What they send and expect: an IPv4 datagram full of bytes of that kind, addresses included. */
void raw_frame(uint8_t *frame, const char *to, const char *from, uint32_t bytes, uint8_t kind);
#define RAW_WINDOW 16u
#define RAW_SIZES  4u
/* Frames that flow both ways. */
struct raw_flow {
	unsigned window;	   /* frames under way, at most RAW_WINDOW */
	uint32_t bytes[RAW_SIZES]; /* their sizes, in turn */
	unsigned count;		   /* how many there are; 0: without end */
	bool whole;		   /* all come back, in their order */
	/* zeros at first */
	bool begun;
	unsigned sent, sending, under_way, back;
	double heard; /* when the last one came, or those under way were given up */
};
/* Takes what has come back, which must be whole, and sends as long as few are under way.  Those that do not
 * come back within a while are lost, if that may be. */
void raw_peer_flow(struct raw_peer *peer, struct raw_flow *f);
void raw_peer_free(struct raw_peer *peer);
