/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive work requests, from a QP's own ring or from a shared one. */
#pragma once

#include "adapter/core/device.h"
#include "adapter/memory/mkey.h"
#include "prm/wqe.h"
#include "usermem/usermem_touch.h"

/* The ring of a receive queue, in the program's memory. */
struct recv_ring {
	const uint8_t *buf;
	uint32_t wqes;	    /* power of two, or 0: no ring */
	uint32_t wqe_bytes; /* power of two */
	const be32 *dbrec;
	uint32_t head; /* the next receive to take; a counter, not masked */
	/* What the record said last.  We read it again only when all that it said is taken: the
	 * program writes it for each receive, and its line need not come over each time. */
	uint32_t producer;
	/* How many receives may be taken, in 16 bits; NULL: all that are posted. */
	const _Atomic(uint32_t) *enabled;
};

/* The largest receive of a queue pair (max_rq_desc_sz, 512 bytes) holds so many entries; that of an
 * SRQ one less, because it begins with a link. */
#define RECV_MAX_SGE 32u

/* A receive, which is copied out of the ring before anybody looks at it. */
struct recv_wqe {
	uint16_t index; /* for completions: an index in an SRQ, a counter in a ring */
	uint16_t count; /* of an SRQ: how many had been taken before */
	uint32_t nsge;
	struct wqe_data sge[RECV_MAX_SGE];
};

enum recv_verdict {
	RECV_OK,
	RECV_EMPTY,
	RECV_FAULT, /* the ring cannot be read, or its counters make no sense */
};

/* Takes a receive from the QP's ring.  The caller holds resp.lock. */
enum recv_verdict recv_ring_take(struct recv_ring *ring, struct recv_wqe *out) must_check;

/* Returns how many receives are left in the ring, or, if there are 'enough', at least as many. */
uint16_t recv_ring_left(struct recv_ring *ring, uint16_t enough);

/*
 * For callers that take several receives in a row and need only the first entry of each: reads that
 * entry of the receive that recv_ring_take would take next.  False: recv_ring_take has to look.
 */
static inline must_check bool recv_ring_peek(const struct recv_ring *ring, struct wqe_data *first)
{
	uint16_t ready = (uint16_t)(ring->producer - ring->head);
	uint32_t slot = ring->head & (ring->wqes - 1);

	return ready && ready <= ring->wqes && likely(!ring->enabled) &&
	       usermem_fetch(first, ring->buf + (size_t)slot * ring->wqe_bytes, sizeof(*first));
}

/* Takes the receive that was peeked at; returns its index. */
static inline uint16_t recv_ring_taken(struct recv_ring *ring)
{
	return (uint16_t)ring->head++;
}

/* Appends the runs of bytes [off, off + len) of a receive's scatter list; MKEY_OUT_OF_RANGE if the
 * list is shorter. */
enum mkey_verdict recv_runs(struct adapter *a, const struct recv_wqe *wqe, uint32_t pdn,
			    uint64_t off, uint64_t len, struct runs *runs) must_check;
uint64_t recv_capacity(const struct recv_wqe *wqe);

/* Says where shared queues have their figures, for people (exposure/object.h); a process need call
 * it only once. */
void srq_form_expose(struct wire *wire);
/* Takes a receive from a shared queue. */
enum recv_verdict srq_take(struct srq *srq, struct recv_wqe *out) must_check;
/* The same for several in a row; the queue is locked from srq_begin to srq_end. */
void srq_begin(struct srq *srq);
enum recv_verdict srq_take_next(struct srq *srq, struct recv_wqe *out) must_check;
void srq_end(struct srq *srq);
uint32_t srq_pdn(const struct srq *srq);
uint32_t srq_uidx(const struct srq *srq);
/* XRC: the queue with that number in that domain, or NULL.  The caller is a reader. */
struct srq *srq_find_xrc(struct adapter *a, uint32_t srqn, uint32_t xrcdn);
struct cq *srq_cq(const struct srq *srq);
/* Acts as if the queue had come below its limit, if it has one. */
void srq_reach_limit(struct srq *srq);
/* Acts as if its ring could not be read. */
void srq_fail(struct srq *srq);
bool srq_has_failed(const struct srq *srq);
void srq_hold(struct srq *srq);
void srq_release(struct srq *srq);

/* Completions of failed receives, of queue pairs and of receive work queues. */

/* number: the queue's; index: the receive's in its ring; syndrome: enum cqe_syndrome. */
bool recv_error_push(struct adapter *a, struct cq *cq, uint32_t uidx, uint32_t number,
		     uint16_t index, uint8_t syndrome);

/* Receive work queues: receive rings without a queue pair, for RSS. */

struct wq {
	struct adapter *adapter;
	struct wq_attr create;
	uint32_t wqn;
	struct spin lock;
	_Atomic(uint32_t) state; /* enum ib_wq_state; written under the lock */
	bool strip_vlan;
	struct recv_ring ring;
};

/* Called when the ring or its memory is unusable: enters the error state and raises the event.  The
 * caller holds the lock. */
void wq_fail(struct wq *wq);
