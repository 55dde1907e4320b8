/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device: one HCA as one process sees it.  A plain library without globals: the uverbs driver,
 * DEVX, the DPA and a unit test are equal callers.
 *
 * Threads.  Every function may be called from any thread.  Control functions (create, modify,
 * query, destroy) may block for a grace period; the data-path functions (qp_doorbell,
 * adapter_progress, ...) never block.  Upcalls run with locks of the device held: they may write to
 * a pipe or wake a thread, and must not call back into the adapter.
 *
 * Memory.  Rings, doorbell records and registered memory belong to the caller and are read and
 * written through wire/usermem.h only, which survives pages that have gone away.
 *
 * Errors.  Functions that return int give 0 or a negative errno, as the kernel driver would.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "prm/ib.h"
#include "base/compiler.h"
#include "base/endian.h"

struct adapter;
struct cq;
struct mkey;
struct qp;
struct srq;
struct wire;

/* What the numbers of a port mean to the data path; the driver keeps them fresh from the fabric. */
struct adapter_port {
	uint32_t fabric_port; /* row of this port in the fabric's registry */
	bool ethernet;
};

/* Supplies number ranges: a chunk of kind starts at the returned value; negative errno if none is
 * left. */
enum number_kind { NUMBER_QPN, NUMBER_SRQN, NUMBER_MKEY, NUMBER_KINDS };
#define NUMBER_CHUNK 1024u

struct adapter_attr {
	struct wire *wire;
	struct adapter_port port; /* one port; numbered 1 */
	int64_t (*number_chunk)(void *user, enum number_kind kind);
	void (*kick)(
		void *user); /* something needs adapter_progress soon, and nobody may be polling */
	void *user;
};

int adapter_create(const struct adapter_attr *attr, struct adapter **out) must_check;
/* All objects must have been destroyed. */
void adapter_destroy(struct adapter *a);

/*
 * Takes what the wire has received, continues queues that waited, and fires timers that are due.
 * Returns true if anything was done.  *deadline_ns (may be NULL) is lowered to the time of the next
 * timer.
 */
bool adapter_progress(struct adapter *a, uint64_t *deadline_ns);

/* Limits; the driver reports these and nothing else, so that caps are honest. */
#define ADAPTER_MAX_QP	      (1u << 18)
#define ADAPTER_MAX_QP_WR     32768u
#define ADAPTER_MAX_SGE	      30u
#define ADAPTER_MAX_CQ	      (1u << 24)
#define ADAPTER_MAX_CQE	      65535u
#define ADAPTER_MAX_SRQ	      (1u << 20)
#define ADAPTER_MAX_SRQ_WR    32767u
#define ADAPTER_MAX_SRQ_SGE   31u
#define ADAPTER_MAX_MR	      (1u << 24)
#define ADAPTER_MAX_RD_ATOMIC 16u

/* ---- protection domains ---- */

uint32_t pd_alloc(struct adapter *a);
void pd_free(struct adapter *a, uint32_t pdn);

/* ---- memory keys ---- */

struct mkey_attr {
	uint32_t pdn;
	uint32_t access; /* enum ib_access */
	uint64_t iova;	 /* address by which work requests name the first byte */
	uint64_t length;
	void *addr; /* the memory itself; pages were checked by the caller */
};

int mkey_create(struct adapter *a, const struct mkey_attr *attr, struct mkey **out) must_check;
uint32_t mkey_key(const struct mkey *m); /* lkey and rkey */
/* Swaps the attributes as one step; users of the key see the old or the new ones. */
int mkey_modify(struct adapter *a, struct mkey *m, const struct mkey_attr *attr) must_check;
/* On return nobody touches the memory any more. */
void mkey_destroy(struct adapter *a, struct mkey *m);

/* ---- completion queues ---- */

struct cq_attr {
	void *buf;	    /* ring; entries initialised to CQE_OP_INVALID by its owner */
	uint32_t entries;   /* power of two */
	uint32_t cqe_bytes; /* 64 or 128 */
	void *dbrec;	    /* two be32, see DBREC_CQ_* */
	/* An armed CQ got a completion.  Upcall. */
	void (*event)(void *user);
	/* IB_EVENT_CQ_ERR on overrun.  Upcall. */
	void (*async)(void *user, enum ib_event event);
	void *user;
};

int cq_create(struct adapter *a, const struct cq_attr *attr, struct cq **out) must_check;
uint32_t cq_number(const struct cq *cq);
/* The arm doorbell was (or may have been) rung: look at the arm record. */
void cq_doorbell(struct cq *cq);
/* -EINVAL if the entries outstanding do not fit. */
int cq_resize(struct cq *cq, void *buf, uint32_t entries, uint32_t cqe_bytes) must_check;
/* -EBUSY while a QP uses it. */
int cq_destroy(struct cq *cq) must_check;

/* ---- shared receive queues ---- */

struct srq_attr {
	uint32_t pdn;
	void *buf;
	uint32_t wqe_count; /* power of two */
	uint32_t wqe_bytes; /* power of two; next segment included */
	uint32_t max_sge;
	uint32_t limit;
	void *dbrec;					/* be32 producer counter at DBREC_RECV */
	void (*async)(void *user, enum ib_event event); /* upcall: SRQ_LIMIT_REACHED, SRQ_ERR */
	void *user;
	uint32_t uidx; /* reported in CQEs */
};

int srq_create(struct adapter *a, const struct srq_attr *attr, struct srq **out) must_check;
uint32_t srq_number(const struct srq *srq);
void srq_set_limit(struct srq *srq, uint32_t limit);
uint32_t srq_limit(const struct srq *srq);
/* -EBUSY while a QP uses it. */
int srq_destroy(struct srq *srq);

/* ---- queue pairs ---- */

struct qp_create_attr {
	enum ib_qp_type type;
	uint32_t pdn;
	uint32_t uidx;
	struct cq *send_cq;
	struct cq *recv_cq; /* may be NULL only where the type receives nothing */
	struct srq *srq;    /* or NULL */
	void *sq_buf;
	uint32_t sq_blocks; /* ring size in WQE_BLOCK; power of two or 0 */
	void *rq_buf;
	uint32_t rq_wqes;      /* power of two or 0 */
	uint32_t rq_wqe_bytes; /* power of two */
	void *dbrec;	       /* two be32, see DBREC_RECV, DBREC_SEND */
	bool sq_sig_all;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	void (*async)(void *user, enum ib_event event); /* upcall */
	void *user;
};

struct qp_attr {
	enum ib_qp_state state;
	enum ib_qp_state cur_state;
	enum ib_mtu path_mtu;
	uint32_t path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qpn;
	uint32_t access; /* enum ib_access */
	struct ib_ah ah;
	struct ib_ah alt_ah;
	uint32_t rate_limit;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
};

int qp_create(struct adapter *a, const struct qp_create_attr *attr, struct qp **out) must_check;
uint32_t qp_number(const struct qp *qp);
/* mask: enum ib_qp_attr_mask.  -EINVAL for a transition or an attribute the specification does not
 * allow. */
int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask) must_check;
void qp_query(struct qp *qp, struct qp_attr *attr);
/* The send doorbell was (or may have been) rung: execute what the send ring holds. */
void qp_doorbell(struct qp *qp);
/* Receives were posted: a QP in error flushes them at once, no other state needs to know. */
void qp_recv_posted(struct qp *qp);
/* Detaches from CQs and SRQ; on return neither rings nor registered memory are touched on its
 * behalf. */
void qp_destroy(struct qp *qp);
