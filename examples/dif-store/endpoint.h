/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One side of an RDMA connection: an adapter opened for direct verbs, one CQ for everything, and an
 * RC queue pair that can configure mkeys and, if wished, stops at a signature error (pipelining).
 * All functions complain on stderr when they fail.
 */
#pragma once

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdbool.h>

#include "protocol.h"

struct endpoint_options {
	const char *device; /* NULL: the first that has signature offload */
	int port;	    /* of the device, from 1 */
	int gid_index;	    /* -1: the first for RoCE v2 */
	bool pipelining;
	uint32_t send_wrs, receive_wrs, cqes;
};

struct endpoint {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *wr;
	struct mlx5dv_qp_ex *dv;
	struct ibv_port_attr port_attr;
	struct proto_address address; /* for the other side */
	int port, gid_index;
	bool pipelining; /* what the QP really does */
};

/* Not pipelining although wished is no failure: the device or kernel may lack it. */
bool endpoint_open(struct endpoint *e, const struct endpoint_options *o);
bool endpoint_connect(struct endpoint *e, const struct proto_address *peer);
/* Whatever has been opened; e may be zero. */
void endpoint_close(struct endpoint *e);

/* Work requests in wr/dv between these two go to the adapter at once, or not at all. */
static inline void endpoint_begin(struct endpoint *e)
{
	ibv_wr_start(e->wr);
}
bool endpoint_commit(struct endpoint *e);

/* How long to look for completions again and again before sleeping. */
#define ENDPOINT_SPIN_US 50u

enum endpoint_ready {
	ENDPOINT_CQ = 1,     /* look for completions */
	ENDPOINT_ASYNC = 2,  /* take an asynchronous event */
	ENDPOINT_CALLER = 4, /* one of the caller's descriptors is readable */
	ENDPOINT_LATE = 8    /* nothing happened for limit_ms */
};

/* Sleeps until there is something to do; call it when the CQ was found empty.  Returns a mask of
 * enum endpoint_ready, 0 on failure.  A limit of -1 is none. */
unsigned endpoint_sleep(struct endpoint *e, const int fds[2], int limit_ms);
