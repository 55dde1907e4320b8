/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The adapter's inside: what its objects share.
 *
 * Locks, in the order in which threads take them:
 *
 *   qp->sq (baton)         requester: the send ring and what has been sent of it
 *   resp.lock              responder: expected PSN, the receive message in progress
 *   comp.lock              completer: outstanding requests, oldest first
 *   cqs.lock               the list of completion queues: waiters of them
 *   srq->lock, cq->lock, the locks of the run queue and of the timers: leaves
 *
 * On loopback one call chain takes them along the way of a packet: requester, the peer's responder,
 * our completer.  A thread that holds the responder's or the completer's lock and wants the
 * requester to go on calls qp_kick, which only notes it.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "adapter/adapter.h"
#include "adapter/core/number.h"
#include "adapter/core/runq.h"
#include "adapter/core/timer.h"
#include "base/spin.h"
#include "prm/cqe.h"
#include "wire/wire.h"

/* The queue pairs that a program has connected to themselves, to write steering entries with
 * them. */

struct qp;

#define ICM_WRITERS 256u

struct icm_writers {
	struct spin lock; /* held by threads that change it; readers take none */
	_Atomic(uint32_t) n;
	struct {
		_Atomic(struct qp *) qp;
		_Atomic(uint32_t) seen; /* all requests up to this producer counter are done */
	} row[ICM_WRITERS];
};

/*
 * A buffer in which code makes a message that goes straight to another process.  Each part of a
 * message has a cost of its own, such as a system call, which costs as much as a copy of some ten
 * kilobytes.  So the buffer is large, larger than stacks allow, and all threads of the adapter
 * share one.  A thread that finds it taken uses a smaller one.
 */

/* Less than one call of the kernel way moves (reach/way_internal.h), so that it stays in the
 * second-level cache. */
#define STAGE_BYTES (256u << 10)
/* The size of the buffer on the stack, which stays in the first-level cache. */
#define STAGE_SMALL_BYTES 16384u
/* Bytes that lie in one cache line at their destination lie in one line of the buffer, too. */
#define STAGE_ALIGN 64u

struct stage {
	struct spin lock; /* tried, never waited for: its holder may make system calls */
	uint8_t *bytes;	  /* NULL: there is no buffer */
};

/* Reserves the buffer, whose pages come when they are first used. */
void stage_init(struct stage *s);
void stage_release(struct stage *s);

typedef bool stage_fn(void *user, uint8_t *stage, uint64_t bytes);
/* Calls fn with the buffer; if there is none, or another thread has it, with one on the stack. */
bool stage_work(struct stage *s, stage_fn *fn, void *user);
/* Calls fn with a buffer on the stack. */
bool stage_work_small(stage_fn *fn, void *user);

struct cq_bell;
struct multicast;
struct null_mkey;
struct ethernet;

/* Regions that were deregistered lately, for explanations (memory/mkey.h). */
struct gone_key {
	uint32_t key;
	uint64_t iova;
	uint64_t length;
};

/* Completion queues that hear bells by value, by number (queue/cq_bell.h). */
#define CQ_BELL_ROWS 256u

struct cq_bells {
	struct spin lock; /* held by threads that change it; readers take none */
	_Atomic(struct cq_bell *) row[CQ_BELL_ROWS];
};

/* All completion queues by number (queue/cq.h). */
#define CQ_ROWS 256u

struct cq_entry {
	struct cq *cq;
	uint32_t cqn;
	struct cq_entry *next;
};

struct cq_list {
	struct spin lock;
	struct cq_entry *row[CQ_ROWS];
};

struct gone_keys {
	struct spin lock;
	unsigned next;
	struct gone_key keys[32];
};

/*
 * Makes the last link before our port look slower than the others, by a queue in front of it, which
 * requests fill and its rate empties.  While more than mark_bytes wait in the queue, it marks the
 * requests that pass.
 */
struct congestion {
	uint64_t bytes_per_second; /* 0: the link is not slow */
	uint64_t mark_bytes;
	struct spin lock;
	uint64_t bytes, filled_ns; /* bytes in the queue, and when that was so */
};

struct adapter {
	struct adapter_attr attr;
	struct wire *wire;
	const struct slot *slots;
	uint16_t slot;				 /* ours */
	const struct subnet_port *port;		 /* our row */
	const struct subnet_port *ports;	 /* all rows */
	const _Atomic(uint64_t) *epoch;		 /* of the subnet */
	const _Atomic(struct remote *) *remotes; /* see wire_remotes */
	_Atomic(uint64_t) *counters;
	struct traffic *traffic;	    /* see wire_traffic */
	const _Atomic(uint32_t) *observers; /* not 0: requests make packets, see wire/tap.h */
	const _Atomic(uint64_t) *flows_by; /* who controls the port's flows (wire/flow_control.h) */
	struct congestion congestion;
	struct domains *own_domains; /* NULL: attr.domains are the process's */
	_Atomic(uint32_t) next_cqn;
	struct cq_bells cq_bells;
	struct cq_list cqs;
	_Atomic(uint8_t) key_variant;
	_Atomic(uint32_t) lists_made;

	struct number_space qps;
	struct number_space srqs;
	struct number_space mkeys;
	struct number_space psvs;
	struct gone_keys gone;

	/* Each belongs to the folder that knows its inside. */
	struct multicast *multicast;
	struct ethernet *ethernet;
	struct icm_writers icm_writers;
	struct null_mkey *null_mkey;
	struct reserve reserve;
	struct stage stage;

	struct runq runq;	    /* queue pairs that have work */
	_Atomic(bool) prompt;	    /* run them at the end of the batch, see adapter_batch_end */
	_Atomic(bool) received;	    /* since somebody last asked adapter_has_received */
	_Atomic(uint32_t) frames;   /* of the batch that is being delivered; not exact */
	_Atomic(bool) few_receives; /* see adapter_few_receives */
	struct timer late;	    /* when packets that a fault has held back go on */
	struct timers timers;	    /* of queue pairs and of moderated completion queues */
	/* Called when packets of a QP may not have arrived, because their memory is no longer
	 * registered. */
	void (*payload_lost)(void *adapter, uint32_t qpn);
	/* When the port may tell of a P_Key, of a Q_Key again. */
	_Atomic(uint64_t) violation_next_ns[2];
	_Atomic(uint32_t) polls; /* since the last look at the clock, see adapter_progress */
};
/* Does the work noted in the run queue.  The caller holds no lock. */
static inline void adapter_run(struct adapter *a)
{
	runq_run(&a->runq);
}
