/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One side of the data checker: its device, its ends of the connections, and the rounds.
 *
 * Each connection carries two flows, one initiated by either side.  A round is one batch on every
 * flow: receives are posted, both sides meet, post, wait for every completion that must come, meet
 * again and compare all memory with the model.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "plan.h"
#include "../support/verbs_device.h"

#define SIDE_MAX_QPS 64u
#define SIDE_DEPTH   64u /* of the queues; a batch has to fit */

struct options {
	const char *device;
	int gid_index;
	enum ibv_qp_type type;
	enum ibv_mtu mtu;
	uint64_t seed;
	uint64_t ops; /* per flow, at least */
	uint32_t qps;
	uint32_t max_size;
	int processes;
	int side;    /* -1: both */
	int control; /* of that side alone */
	bool events;
	bool extended_cq;
	bool srq;
	bool spoil; /* change one byte behind the adapter's back: the test must fail */
	bool verbose;
};

/* One end of a connection. */
struct end {
	struct flow flows[2]; /* by the side that initiates */
	struct ibv_qp *qp;
	uint8_t *initiator; /* real memory: of the flow we initiate, of the flow that acts on us */
	uint8_t *target;
	struct ibv_mr *initiator_mr[2];
	struct ibv_mr *target_mr[2];
	struct ibv_ah *ah;
	uint64_t peer_target; /* address of the first registered byte */
	uint32_t peer_rkey[2];
	uint32_t peer_qpn;
	uint32_t sent;	   /* operations of this batch known to be complete */
	uint32_t received; /* operations of the peer's batch whose receive has completed */
};

struct traffic_side {
	const struct options *options;
	int index; /* 0 or 1 */
	int control;
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	union {
		struct ibv_cq *cq;
		struct ibv_cq_ex *ex;
	} send_cq, recv_cq;
	struct ibv_srq *srq;
	struct end *ends;
	uint32_t max_inline;
	uint64_t round;
};

/* Runs the whole test; true if all was as the model says.  control: a stream to the other side. */
bool side_run(const struct options *options, int index, int control);

/* A mismatch: what, and how to see it again. */
void side_complain(const struct traffic_side *side, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* side_post.c */
bool side_post_receives(struct traffic_side *side, uint32_t conn);
bool side_post_batch(struct traffic_side *side, uint32_t conn);

/* side_complete.c: waits for all completions of the round. */
bool side_complete(struct traffic_side *side);

/* wr_id: round, connection and index in the batch, so that an old or foreign one is noticed. */
static inline uint64_t side_wr_id(const struct traffic_side *side, uint32_t conn, uint32_t index)
{
	return side->round << 32 | conn << 8 | index;
}
