/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs and registered memory for targets below the driver.  Every ring lies alone between
 * zones of no access; every registered range does so at one end at least, and what of its pages is
 * not registered holds a pattern that nobody may change.
 */
#pragma once

#include "adapter_device.h"
#include "fuzz.h"
#include "memory.h"

#define FUZZ_BLOCKS   64u
#define FUZZ_RECVS    64u
#define FUZZ_RQ_BYTES 64u
#define FUZZ_SRQ_WQES 32u
#define FUZZ_CQES     256u
#define FUZZ_QPS      3u
#define FUZZ_MRS      5u
#define FUZZ_WINDOWS  2u /* one of each type */
#define FUZZ_LISTS    3u /* KLMs, with signatures, KSMs */
#define FUZZ_KEYS     (FUZZ_MRS + FUZZ_WINDOWS + FUZZ_LISTS)
#define FUZZ_PSVS     2u
#define FUZZ_FLOWS    4u

/* Access key of DC targets: what an address vector has for the Q_Key as well. */
#define FUZZ_DC_KEY 0x1111111100000000ull

#define FUZZ_LIST_BYTES 8192u
#define FUZZ_LIST_ROOM	12u

/* The variant that binding gives to a window's key; lists are made with it. */
#define FUZZ_WINDOW_VARIANT 0x11u

/* Kinds of queue pairs, for fuzz_device_qp_create. */
enum fuzz_kind {
	FUZZ_RC,
	FUZZ_UC,
	FUZZ_UD,
	FUZZ_XRC, /* the initiator; of an odd index the target, which has the SRQ */
	FUZZ_RAW, /* UD on InfiniBand */
	FUZZ_RC_SRQ,
	FUZZ_UD_SRQ,
	FUZZ_DC, /* the initiator, with streams; of an odd index the target, which has the SRQ */
	FUZZ_KINDS = 8,
};
#define FUZZ_ALL_SIGNALED 8u
#define FUZZ_LARGE_CQES	  16u
/* Not of the first two, whose bit says which device: completions stand together, in one layout or the other. */
#define FUZZ_COMPRESSED 128u
/* As queues of a DPA: doorbells say the index, and frames may be many to a request. */
#define FUZZ_BY_VALUE 32u
/* And the second one is a slave of the first. */
#define FUZZ_SLAVE  64u
#define FUZZ_REGION 7u /* where these come from */

struct fuzz_qp {
	enum ib_qp_type type;
	bool by_value;
	bool all_signaled;
	struct qp *qp;
	struct cq *cq;
	struct srq *srq; /* or NULL */
	uint8_t *sq;
	uint8_t *rq;
	uint8_t *srq_ring;
	uint8_t *cq_ring;
	/* At a page's end each: QP (send and receive counter), CQ, SRQ. */
	be32 *dbrec;
	be32 *cq_dbrec;
	be32 *srq_dbrec;
	uint16_t sq_pi;
	uint16_t rq_pi;
	uint16_t srq_pi;
};

struct fuzz_mr {
	uint8_t *area;
	size_t area_bytes;
	size_t off; /* registered: [off, off + len) of the area */
	size_t len;
	uint32_t access;
	bool closed;
	struct mkey *mkey;
};

struct fuzz_device {
	struct test_device device;
	unsigned dev; /* 0: InfiniBand, 1: Ethernet; of this input */
	uint32_t pdn;
	uint32_t xrcdn;
	struct fuzz_qp qp[FUZZ_QPS];
	struct fuzz_mr mr[FUZZ_MRS];
	struct window *window[FUZZ_WINDOWS];
	struct mkey *list[FUZZ_LISTS];
	struct psv *psv[FUZZ_PSVS];
	struct flow *flow[FUZZ_FLOWS];
};

/* Once. */
void fuzz_device_init(struct fuzz_device *d);

/* For each input: PD and registrations; queue pairs, by kind and FUZZ_ALL_SIGNALED, ... */
void fuzz_device_begin(struct fuzz_device *d, unsigned dev);
void fuzz_device_qp_create(struct fuzz_device *d, unsigned index, uint8_t kind);
/* To RTS, connected with a QP number on the port of "row"; attributes from the input. */
void fuzz_device_qp_connect(struct fuzz_device *d, unsigned index, uint32_t dest_qpn, unsigned row,
			    struct input *in);
/* Destroys everything and checks that nothing was touched or left that should not be. */
void fuzz_device_end(struct fuzz_device *d);

/* Key and address of byte "off" of region, window or list "index"; a window is of region 0. */
uint32_t fuzz_device_key(const struct fuzz_device *d, unsigned index);
uint64_t fuzz_device_addr(const struct fuzz_device *d, unsigned index, uint32_t off);
uint32_t fuzz_device_bytes(const struct fuzz_device *d, unsigned index);
/* Program and device disagree on what is mapped: accesses then fault and must be survived. */
void fuzz_device_mr_close(struct fuzz_device *d, unsigned index, bool closed);
/* Any attributes, any state, any mask.  True: the queue pair was reset, and its rings begin anew. */
bool fuzz_device_qp_modify(struct fuzz_device *d, unsigned index, struct input *in);
