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

#define DEVICE_BLOCKS	64u
#define DEVICE_RECVS	64u
#define DEVICE_CQES	256u
#define DEVICE_RQ_BYTES 64u
#define DEVICE_ALL_ACCESS                                                         \
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
	 IB_ACCESS_REMOTE_ATOMIC)

struct test_device {
	struct registry *registry;
	struct subnet *subnet; /* own_subnet, or that of whoever put the device together */
	struct subnet own_subnet;
	struct slot *slots;
	struct wire_process *host;
	struct wire *wire[2]; /* 0: InfiniBand, 1: Ethernet */
	struct adapter *adapter[2];
	uint32_t next_chunk;
	int kicks;
	bool silent; /* CQs made from now on have no events */
	/* QPs made from now on */
	bool master, slave_send, slave_receive;
	bool patient;	 /* their senders wait for receives for ever */
	uint32_t region; /* not 0: their bells say the index */
};

/* A CQ and the program's side of it. */
struct device_cq {
	struct cq *cq;
	struct cqe64 ring[DEVICE_CQES];
	be32 dbrec[2];
	uint32_t ci;
	int events;
	int async;
};

struct device_qp {
	struct device_cq cq;
	struct qp *qp;
	struct adapter *adapter;
	uint32_t region;
	enum ib_qp_type type;
	uint32_t pdn;
	_Alignas(64) uint8_t sq[DEVICE_BLOCKS * WQE_BLOCK];
	_Alignas(64) uint8_t rq[DEVICE_RECVS * DEVICE_RQ_BYTES];
	be32 dbrec[2];
	uint16_t sq_pi;
	uint16_t rq_pi;
	int async[32];
};

void device_up(struct test_device *r);
/* The same with two Ethernet devices. */
void device_up_ethernet(struct test_device *r);
void device_down(struct test_device *r);

void device_cq_up(struct test_device *r, unsigned dev, struct device_cq *cq);
/* The next CQE, or NULL. */
const struct cqe64 *device_cq_poll(struct device_cq *cq);

void device_qp_up(struct test_device *r, unsigned dev, struct device_qp *q, enum ib_qp_type type);
void device_qp_down(struct device_qp *q);
/* Both from RESET to RTS, each other's peer; a may be b. */
void device_connect(struct test_device *r, unsigned dev, struct device_qp *a, struct device_qp *b);
void device_attr(struct test_device *r, unsigned dev, struct device_qp *to, struct qp_attr *attr);
/* From RESET to RTS with these attributes. */
void device_qp_ready(struct device_qp *q, struct qp_attr *attr);
/* Makes a queue pair that sends datagrams, on a CQ of the caller's, and to itself. */
void device_sender_up(struct test_device *r, struct device_qp *q, struct cq *cq);

/* Builds a send WQE, returns a cursor for more segments; device_wqe_end rings. */
struct device_wqe {
	struct device_qp *q;
	uint32_t at;
	uint8_t bytes[WQE_MAX_BYTES];
};

void device_wqe_begin(struct device_qp *q, struct device_wqe *w, uint8_t opcode, uint8_t fm_ce_se,
		      uint32_t imm);
void device_wqe_raddr(struct device_wqe *w, uint64_t va, uint32_t rkey);
void device_wqe_atomic(struct device_wqe *w, uint64_t swap_add, uint64_t compare);
void device_wqe_data(struct device_wqe *w, const void *addr, uint32_t len, uint32_t lkey);
void device_wqe_inline(struct device_wqe *w, const void *data, uint32_t len);
void device_wqe_end(struct device_wqe *w);
/* The two parts of device_wqe_end: into the ring, and the doorbell. */
void device_wqe_put(struct device_wqe *w);
void device_ring(struct device_qp *q);
void device_recv(struct device_qp *q, const void *addr, uint32_t len, uint32_t lkey);

uint32_t device_mr(struct test_device *r, unsigned dev, uint32_t pdn, void *addr, uint64_t len,
		   uint32_t access, struct mkey **out);
