/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two connected queue pairs in one process, and one block of memory on either side: what the
 * programs of bench/run measure with.  A call that fails ends the program with a message.
 */
#pragma once

#include "verbs_device.h"

struct pair {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	size_t bytes;
	size_t mapped;
	uint8_t *source;
	uint8_t *target;
};

/* device NULL: the first.  depth: requests under way at most; bytes: size of a request. */
void pair_open(struct pair *p, const char *device, unsigned depth, size_t bytes);
void pair_close(struct pair *p);

/* RC, with one completion queue for all; not connected. */
struct ibv_qp *pair_qp_create(struct pair *p, unsigned depth);
void pair_qp_connect(const struct pair *p, struct ibv_qp *const qp[2]);

/* Requests that follow each other; only the last asks for a completion. */
void pair_build(const struct pair *p, enum ibv_wr_opcode opcode, struct ibv_send_wr *wrs,
		struct ibv_sge *sge, unsigned n);
void pair_post(const struct pair *p, struct ibv_send_wr *wrs);
/* Completions taken, all of them good. */
unsigned pair_reap(const struct pair *p);

/* Times from the post of one WRITE to its completion, sorted. */
void pair_latency(const struct pair *p, uint64_t *ns, unsigned samples);
