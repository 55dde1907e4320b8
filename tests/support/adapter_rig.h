/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A device on a table: registry, wire, adapter and queue pairs, all in this process, without daemon
 * or driver. The test plays the program: it writes WQEs into rings and reads CQEs from them.
 */
#pragma once

#include "adapter/adapter.h"
#include "prm/cqe.h"
#include "prm/wqe.h"
#include "wire/wire.h"

#define RIG_BLOCKS   64u
#define RIG_RECVS    64u
#define RIG_CQES     256u
#define RIG_RQ_BYTES 64u
#define RIG_ALL_ACCESS                                                            \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
	 IB_ACCESS_REMOTE_ATOMIC)

struct rig {
	struct registry *registry;
	struct subnet *subnet; /* own_subnet, or that of whoever put the rig together */
	struct subnet own_subnet;
	struct slot *slots;
	struct wire_process *host;
	struct wire *wire[2]; /* 0: InfiniBand, 1: Ethernet */
	struct adapter *adapter[2];
	uint32_t next_chunk;
	int kicks;
	bool silent; /* CQs made from now on have no events */
};

/* A CQ and the program's side of it. */
struct rig_cq {
	struct cq *cq;
	struct cqe64 ring[RIG_CQES];
	be32 dbrec[2];
	uint32_t ci;
	int events;
	int async;
};

struct rig_qp {
	struct rig_cq cq;
	struct qp *qp;
	enum ib_qp_type type;
	uint32_t pdn;
	_Alignas(64) uint8_t sq[RIG_BLOCKS * WQE_BLOCK];
	_Alignas(64) uint8_t rq[RIG_RECVS * RIG_RQ_BYTES];
	be32 dbrec[2];
	uint16_t sq_pi;
	uint16_t rq_pi;
	int async[32];
};

void rig_up(struct rig *r);
void rig_down(struct rig *r);

void rig_cq_up(struct rig *r, unsigned dev, struct rig_cq *cq);
/* The next CQE, or NULL. */
const struct cqe64 *rig_cq_poll(struct rig_cq *cq);

void rig_qp_up(struct rig *r, unsigned dev, struct rig_qp *q, enum ib_qp_type type);
void rig_qp_down(struct rig_qp *q);
/* Both from RESET to RTS, each other's peer; a may be b. */
void rig_connect(struct rig *r, unsigned dev, struct rig_qp *a, struct rig_qp *b);
void rig_attr(struct rig *r, unsigned dev, struct rig_qp *to, struct qp_attr *attr);

/* Builds a send WQE, returns a cursor for more segments; rig_wqe_end rings. */
struct rig_wqe {
	struct rig_qp *q;
	uint32_t at;
	uint8_t bytes[WQE_MAX_BYTES];
};

void rig_wqe_begin(struct rig_qp *q, struct rig_wqe *w, uint8_t opcode, uint8_t fm_ce_se,
		   uint32_t imm);
void rig_wqe_raddr(struct rig_wqe *w, uint64_t va, uint32_t rkey);
void rig_wqe_atomic(struct rig_wqe *w, uint64_t swap_add, uint64_t compare);
void rig_wqe_data(struct rig_wqe *w, const void *addr, uint32_t len, uint32_t lkey);
void rig_wqe_inline(struct rig_wqe *w, const void *data, uint32_t len);
void rig_wqe_end(struct rig_wqe *w);
/* The two parts of rig_wqe_end: into the ring, and the doorbell. */
void rig_wqe_put(struct rig_wqe *w);
void rig_ring(struct rig_qp *q);
void rig_recv(struct rig_qp *q, const void *addr, uint32_t len, uint32_t lkey);

uint32_t rig_mr(struct rig *r, unsigned dev, uint32_t pdn, void *addr, uint64_t len,
		uint32_t access, struct mkey **out);
