/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues taken out of libmlx5's hands (mlx5dv_init_obj): requests are written into the ring, the
 * doorbell is a bare store, completions are read from memory.  No call of libibverbs comes near the
 * data path.
 */
#pragma once

#include <infiniband/mlx5dv.h>
#include <stdbool.h>

#define DIRECT_NAP_MS 3 /* the device has gone to sleep by then */

/* One hardware register; queue pairs that share it alternate between its halves together. */
struct direct_reg {
	uint8_t *at;
	uint32_t half;
	uint32_t offset;
};

struct direct_sq {
	uint8_t *ring;
	uint32_t blocks;
	uint32_t next;
	__be32 *record;
	uint32_t qpn;
	struct direct_reg *reg;
};

struct direct_rq {
	uint8_t *ring;
	uint32_t wqes;
	uint32_t stride;
	uint32_t next;
	__be32 *record;
};

struct direct_cq {
	uint8_t *ring;
	uint32_t cqes;
	uint32_t cqe_bytes;
	uint32_t next;
	uint32_t arm_sn;
	uint32_t cqn;
	__be32 *records;
	uint8_t *uar;
};

struct direct_slice {
	uint64_t addr;
	uint32_t key;
	uint32_t bytes;
};

/* Whether libraries between us and libmlx5 may see that queues are taken; at first they do. */
void direct_announce(bool on);
/* reg is that of an earlier queue pair at the same register, or fresh. */
void direct_take_qp(struct ibv_qp *qp, struct direct_sq *sq, struct direct_rq *rq,
		    struct direct_reg *regs, unsigned nregs);
void direct_take_cq(struct ibv_cq *cq, struct direct_cq *out);

void direct_write(struct direct_sq *sq, struct direct_slice from, struct direct_slice to);
void direct_send(struct direct_sq *sq, struct direct_slice from);
void direct_post_recv(struct direct_rq *rq, struct direct_slice to);
/* Tells the device of the requests so far: the record, then the register. */
void direct_ring(struct direct_sq *sq);
/* The same without the record. */
void direct_ring_register(struct direct_sq *sq);

/* Takes the next completion, if there is one; the opcode of an error ends the program. */
bool direct_poll(struct direct_cq *cq);
/* The same; *syndrome is that of an error, or 0. */
bool direct_poll_any(struct direct_cq *cq, uint8_t *syndrome);
/* Waits for one; false after limit_ns. */
bool direct_wait(struct direct_cq *cq, uint64_t limit_ns);
void direct_arm(struct direct_cq *cq);
/* An event has come. */
void direct_armed_again(struct direct_cq *cq);
