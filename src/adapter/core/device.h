/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter's inside: what its objects share.
 *
 * Locks, in the order in which they may be taken:
 *   qp->sq (baton)  requester: the send ring and what has been sent of it
 *   qp->rx          responder: expected PSN, the receive message in progress
 *   qp->comp        completer: outstanding requests, oldest first
 *   srq->lock, cq->lock, adapter->run_lock, adapter->timer_lock  leaves
 * On loopback one call chain takes them along the way of a packet: requester, the peer's responder,
 * our completer. Whoever holds rx or comp and wants the requester to go on calls qp_kick, which
 * only notes it.
 */
#pragma once

#include <stdatomic.h>

#include "adapter/adapter.h"
#include "adapter/queue/cq_timer.h"
#include "adapter/ethernet/flow.h"
#include "adapter/transport/multicast.h"
#include "adapter/memory/null_mkey.h"
#include "adapter/core/number.h"
#include "adapter/core/pd.h"
#include "adapter/core/reserve.h"
#include "base/spin.h"
#include "prm/cqe.h"
#include "wire/wire.h"

struct wqe_av;

struct adapter {
	struct adapter_attr attr;
	struct wire *wire;
	const struct slot *slots;
	uint16_t slot;			  /* ours */
	const struct registry_port *port; /* our row */
	_Atomic(uint64_t) *counters;
	struct pd_space pds;
	struct pd_space xrcds;
	_Atomic(uint32_t) next_cqn;
	_Atomic(uint8_t) key_variant;
	_Atomic(uint32_t) lists_made;

	struct number_space qps;
	struct number_space srqs;
	struct number_space mkeys;
	struct number_space psvs;

	struct multicast multicast;
	struct steering steering;
	struct null_mkey null_mkey;
	struct reserve reserve;

	/* Queue pairs that have something to do that their callers could not do (FIFO). */
	struct spin run_lock;
	struct qp *run_head, *run_tail;
	_Atomic(bool) run_any;
	_Atomic(bool) prompt; /* run them at the end of the batch, see adapter_batch_end */
	/* The same, but not before the next adapter_progress: the wire was busy. */
	struct qp *later_head;
	_Atomic(bool) later_any;

	/* Queue pairs with a request outstanding or an RNR wait. */
	struct spin timer_lock;
	struct qp *timers;
	_Atomic(uint64_t) timer_next_ns; /* UINT64_MAX: none */
	_Atomic(uint32_t) polls;	 /* without a look at the clock, see adapter_progress */
	struct cq_timers cq_timers;	 /* moderated events */
};

/* Note that qp has work; done by the outermost call on this thread, or by any progress. */
void qp_kick(struct qp *qp);
/* The wire had no room: try again at the next progress. */
void qp_kick_later(struct qp *qp);
/* Takes a QP that is going away out of the lists above. */
void adapter_forget_qp(struct adapter *a, struct qp *qp);
/* Runs what was kicked.  The caller holds no lock. */
void adapter_run_queued(struct adapter *a);

static inline void adapter_run(struct adapter *a)
{
	if (unlikely(atomic_load_explicit(&a->run_any, memory_order_relaxed)))
		adapter_run_queued(a);
}

/* Arms the QP's timer for deadline_ns (or leaves an earlier one). */
void adapter_timer(struct qp *qp, uint64_t deadline_ns);

/* Fills a path from an address vector. Unreachable destinations give a path that loses every
 * packet. */
void path_from_ah(const struct adapter *a, const struct ib_ah *ah, struct path *path);
/* The same from the form in which a work request carries it; without the extended bit only the
 * first 16 bytes count. */
void path_from_av(const struct adapter *a, const struct wqe_av *av, struct path *path);
/* The way back of a packet that came by that path. */
void path_reverse(const struct path *path, struct path *back);
/* What the 40 bytes in front of a datagram are, on Ethernet. */
enum cqe_roce_header path_header_type(const struct path *path);
/* These bytes: GRH, or for RoCE v2 over IPv4 the IP header at their end. */
void grh_from_path(const struct path *path, uint32_t payload_bytes, uint8_t out[IB_GRH_BYTES]);
