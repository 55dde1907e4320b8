/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs of queue pairs that the test drives by hand; see direct.c for what is done with them. */
#pragma once

#include "direct_queue.h"
#include "../support/verbs_device.h"

#define DIRECT_PAIRS_MAX 24u
#define DIRECT_BYTES	 8u
#define DIRECT_LIMIT_NS	 60000000000ull
#define DIRECT_DEPTH	 32u

struct direct_pair {
	struct ibv_qp *from, *to;
	struct direct_sq sq, to_sq;
	struct direct_rq rq, to_rq;
};

struct direct_field {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *sent, *received;
	struct direct_cq sends, receives;
	struct ibv_mr *mr;
	uint64_t *memory; /* for each pair what is sent and what is received */
	struct direct_reg regs[2 * DIRECT_PAIRS_MAX];
	struct direct_pair pairs[DIRECT_PAIRS_MAX];
	unsigned npairs;
};

void direct_open(struct direct_field *f, const char *device, int gid_index, unsigned npairs);
void direct_close(struct direct_field *f);

/* A pair of which the other end is elsewhere. */
void direct_add_single(struct direct_field *f);
/* One that is connected with itself. */
void direct_add_loopback(struct direct_field *f);
/* Queue pairs of one process, connected with each other or with those of another process. */
void direct_connect(struct direct_field *f, struct ibv_qp *qp, const struct device_address *peer);

struct direct_slice direct_source(const struct direct_field *f, unsigned pair);
struct direct_slice direct_target(const struct direct_field *f, unsigned pair);

void direct_nap(void);
/* The first pair posts and rings so often, each time while the device sleeps, so that the store may
 * fault; a request that does not complete ends the program. */
void direct_ring_asleep(struct direct_field *f, unsigned rings);

/* direct_copy.c: a case; says on standard error what is wrong. */
bool direct_copies(struct direct_field *f);
