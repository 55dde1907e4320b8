/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of a queue pair has three roles, each with its own lock (see device.h for their
 * order).
 *
 *   requester  (transport/requester.c)  reads the send ring, makes request packets
 *       under sq, a baton
 *   responder  (transport/responder.c)  takes request packets, makes responses
 *       under resp.lock
 *   completer  (transport/completer.c)  takes responses, retires requests in order
 *       under comp.lock
 *
 * The ring of outstanding requests, struct send_op, stands between requester and completer: the
 * requester appends at tail, the completer retires at head.
 */
#pragma once

#include "adapter/core/device.h"
#include "adapter/memory/mkey_indirect.h"
#include "adapter/queue/cq.h"
#include "adapter/queue/recvq.h"
#include "exposure/expose.h"
#include "prm/wqe.h"
#include "usermem/usermem_touch.h"

/* A send work request from its fetch to its completion. */
struct send_op {
	uint16_t block; /* ring index of its first block, as the program counts */
	uint8_t opcode; /* enum wqe_opcode */
	uint8_t nblocks;
	uint8_t ce;	    /* when it completes, as qp_ce says */
	bool awaits_answer; /* a read or atomic that was sent and is counted in rd_outstanding */
	bool executed;	    /* an atomic that was executed, see requester.executed */
	bool asked;	    /* a READ or atomic of which a packet has gone */
	bool offered;	    /* a READ whose peer may write the answer to its places */
	bool injected;	    /* it fails on demand (wire/fault.h) */
	_Atomic(bool) done; /* ended; it retires after the older requests */
	uint8_t syndrome;   /* enum cqe_syndrome, 0: success */
	uint8_t vendor_err; /* 0: the usual one of the syndrome */
	uint32_t first_psn;
	uint32_t npkts;		      /* PSNs that it takes; 0: a local operation */
	uint32_t len;		      /* bytes of the message (READ: of the answer) */
	_Atomic(uint32_t) read_bytes; /* READ: bytes of the answer that have arrived */
};

/* What the requester waits for before it continues.  Bits in qp->waiting. */
enum qp_wait {
	QP_WAIT_FENCE = 1 << 0,	   /* reads and atomics before a fenced request have to end */
	QP_WAIT_RD_DEPTH = 1 << 1, /* max_rd_atomic reads and atomics are outstanding */
	QP_WAIT_READS = QP_WAIT_FENCE | QP_WAIT_RD_DEPTH,
	QP_WAIT_RNR = 1 << 2,  /* the receiver was not ready: the requester waits for the timer */
	QP_WAIT_PSNS = 1 << 3, /* too many PSNs are outstanding to tell old from new */
	QP_WAIT_ANSWERS = QP_WAIT_READS | QP_WAIT_PSNS,
};

/* A read or atomic that the responder has accepted and keeps for repetition (IBTA 9.4.4). */
struct rd_resource {
	bool atomic;
	bool placed; /* the rest of the answer is where the peer wants it */
	uint32_t first_psn;
	uint32_t npkts;
	uint64_t va;
	uint32_t rkey;
	uint32_t pdn;  /* the protection domain in which rkey is looked up */
	uint32_t srqn; /* XRC */
	uint32_t len;
	uint32_t number; /* counts as responder.rd_count */
	uint64_t orig;	 /* atomic: the answer */
};

/* The address range in which the whole answer to an outstanding READ or atomic lies. */
struct answer_places {
	uint32_t op; /* counts as requester.tail */
	uintptr_t from, end;
};

struct requester {
	uint32_t next_block; /* next block to fetch, never masked */
	uint32_t cur;	     /* the request being sent; counts like tail */
	uint64_t cur_off;    /* how many bytes of it are sent */
	uint32_t psn;	     /* next PSN to give to a new request */
	_Atomic(uint32_t) tail;
	bool stopped;	     /* a request failed on this side: nothing after it may start */
	uint32_t last_chunk; /* datagrams: chunk of QP numbers of the last receiver; 0: none yet */
	uint32_t around;     /* datagrams that still count as sent to several processes */
	bool direct;	     /* requests may be executed without packets, see qp_is_direct */
	bool drained;	     /* nothing was outstanding once, after the peer had answered */
	uint64_t connection; /* a DCI's connection, by which its target knows it; 0: none */
	/* The target of a DCI without streams: requests to it go on as on RC.  NULL: see
	 * dci_admit. */
	const struct wqe_av *target;
	_Atomic(uint64_t)
		silent_plus_1; /* a record that tells nothing, see send_ring_rung; 0: none */
	uint32_t marked;       /* frames that have gone and are not retired; see sent_frames_add */
	uint64_t
		steered_plus_1; /* frames: rung and record when rules were last executed; 0: never */
	uint64_t revocation;	/* must be over before anything completes in error; 0: none */
	uint32_t revocation_for; /* value of completer.given_up when we asked for it */
	struct key_memo memo;	 /* adapter/bypass/remote_memory.c */
	/* A peer's key whose memory is not mapped, and how many more atomics to it go by packets at
	 * once. */
	uint32_t packets_key, packets_left;
	struct answer_places places[ADAPTER_MAX_RD_ATOMIC]; /* transport/read_offer.c */
	/*
	 * The next request is an atomic that we have executed in the peer's memory but could not
	 * count, so it goes by a packet that says so. executed_before, what the memory held, stays
	 * until the answer comes, because we execute no other atomic before that.
	 */
	bool executed;
	uint64_t executed_before;
};

/*
 * The window of a connection to a peer outside of the fabric.  Sockets and interfaces lose what comes
 * faster than it is taken, and then all that follows is sent again; but while the peer waits for a
 * processor, a small window leaves the network idle.  So it grows by WINDOW_ANSWER, after so many of
 * whose packets an answer is asked for, with each answer that the requester has waited for, and half
 * of it is left when something was lost or the peer tells of congestion.  From there on it grows by WINDOW_ANSWER only when all of
 * it has been answered, as TCP's does.
 */
#define WINDOW_FIRST  64
#define WINDOW_LEAST  16
#define WINDOW_MOST   1024
#define WINDOW_ANSWER 16

/* Why timeouts did not count since the peer's last sign of life (transport/ack_timer.c); zeros: none
 * has been due. */
struct ack_lateness {
	/* Since when (ns) the peer's process lacks a processor; 0: it does not. */
	uint64_t behind_since;
	/* What the peer's process has to take until its silence counts; see wire_peer_is_behind. */
	uint64_t behind_up_to;
	/* Since when (ns) a peer outside of the fabric has not answered; 0: it has. */
	uint64_t silent_since;
	uint8_t grace; /* why the last one did not */
};

struct completer {
	struct spin lock;
	_Atomic(uint32_t) head;
	/*
	 * As head, but stored when the request's completion is in the completion queue.  head moves
	 * first, because a program that sees the completion may post a request that takes the place
	 * of this one.  Whoever makes a completion or an event of its own without our lock must find
	 * that nothing is outstanding by this count, see qp_all_completed.
	 */
	_Atomic(uint32_t) completed;
	_Atomic(uint32_t) rd_outstanding; /* reads and atomics */
	_Atomic(uint32_t) acked_psn;	  /* all PSNs before this one are acknowledged */
	/* How many packets may be on their way to a peer outside of the fabric. */
	_Atomic(int32_t) window;
	int32_t window_calm; /* from here on it grows slowly: half of what was too much */
	uint8_t retry_left;
	uint8_t adaptive; /* early retransmissions since the last sign of life (ack_timer.c) */
	uint8_t rnr_left;
	/* Answers from asked_psn on were missing, and we have asked for them again. */
	bool asked;
	uint32_t asked_psn;
	struct ack_lateness late;
	/* Since the timer was started, an answer has come, or a request was sent while none was
	 * outstanding. */
	_Atomic(bool) fresh;
	/* Since the queue last began to execute, a request has completed in error. */
	_Atomic(bool) error_told;
	/* The requester must go back to acked_psn. */
	_Atomic(bool) resend;
	/* Requests were given up, and the program may use their memory again: no more data may
	 * leave that memory (see pkt.withdrawn). */
	_Atomic(uint32_t) withdrawn;
	/* How often requests were given up that a peer may have been reading, and for how many of
	 * these we have waited for the peer.  Nothing completes in error while the two differ. */
	_Atomic(uint32_t) given_up, waited_for;
};

struct responder {
	/* The bypass within the process touches these, which lie in one line. */
	cacheline_aligned struct spin lock;
	/* While 'published' is set, the word holds these numbers, and the copies here date from
	 * when the lock was last taken. */
	uint32_t epsn;
	uint32_t msn;
	/* Peers of this process may execute requests without packets: see resp_bypass_ok. */
	uint32_t bypass_ok;
	struct qp_view view;
	struct mkey_stay stay; /* the window in which a copy is under way */
	/* Shared with a peer in another process; NULL: such peers send packets. */
	struct qp_block *shared;
	bool remote;	  /* the peer is in another process */
	bool published;	  /* the word belongs to the peer since we opened it */
	bool established; /* a packet has come since the QP was moved to RTR, or it is DC */
	/* The QP has failed, and nobody has flushed it since. */
	_Atomic(bool) revoked;
	/* We have reported a sequence error, and are silent until the PSN comes. */
	bool nak_sent;
	uint32_t nak_psn; /* the PSN that we expected then */
	/* the message in progress */
	bool in_message;
	bool in_write;
	/* We have taken recv and not completed it.  If no message is in progress, the next message
	 * uses it. */
	bool have_recv;
	bool injected; /* the receive that has been taken fails on demand (wire/fault.h) */
	struct recv_wqe recv;
	uint32_t recv_srqn; /* XRC: the queue that recv comes from */
	/*
	 * The shared receive queue and protection domain of requests.  An XRC target takes both
	 * from the queue that the packet names, and only while it handles that packet.
	 */
	struct srq *srq;
	uint32_t pdn;
	uint32_t srqn; /* XRC: of the message in progress */
	uint64_t off;  /* bytes placed */
	uint64_t write_va;
	uint32_t write_rkey;
	uint32_t write_len;
	/* An answer that we owe the peer; changed under the lock. */
	_Atomic(bool) ack_owed;
	uint8_t ack_syndrome;
	uint32_t ack_psn;
	/* Reads and atomics, in a ring of ADAPTER_MAX_RD_ATOMIC entries. */
	struct rd_resource rd[ADAPTER_MAX_RD_ATOMIC];
	uint32_t rd_count;    /* accepted so far */
	uint32_t rd_answered; /* answered so far; the next one answers from rd_off */
	uint32_t rd_once;     /* answered at least once so far; never decreases */
	uint64_t rd_off;
	/* Why we refuse a request as soon as those before it have been answered: enum resp_state;
	 * 0: we refuse none.  Until then no request behind it counts. */
	uint8_t refusal;
	uint32_t refusal_psn, refusal_srqn;
};

/* What adapter/qp/flow.c keeps, under sq except where a comment says otherwise. */
struct qp_flow {
	_Atomic(struct slot_flow *) row; /* NULL: nobody controls it, or no row was left */
	uint64_t by;			 /* the process that controlled it when it got the row */
	int64_t credit;			 /* bytes that may go; below 0: bytes that went too early */
	uint64_t filled_ns;
	_Atomic(bool) waits; /* it waits for its rate, in the middle of what it sends */
	uint32_t untold;     /* bytes of which the controlling process has not heard */
	uint32_t probed;     /* how many of the requested probes it has sent */
	uint64_t cnp_ns; /* the last notification to the peer; only a guess, written by readers */
	struct timer timer;
};

/* What a WAIT request keeps (adapter/local/wait.c), under sq. */
struct send_wait {
	struct cq_waiter completions;
	struct timer timer; /* for the next look at memory or the clock */
	uint64_t pause_ns;
};

struct qp {
	struct adapter *adapter;
	struct qp_create_attr create;
	uint32_t qpn;
	uint8_t bth; /* enum bth_transport */
	bool reliable;
	_Atomic(uint32_t) state; /* enum ib_qp_state */
	/* enum ib_mig_state, or see transport/path_migration.h */
	_Atomic(uint32_t) migration;
	_Atomic(bool) migration_refused; /* PATH_MIG_ERR has been raised since it was armed */
	struct qp_attr attr; /* as the program set them; changed under all three locks */
	struct path path;    /* of connected types */
	struct route route;  /* of that path */
	/* Why it is in the error state, for explanations; a string constant. */
	_Atomic(const char *) failed_by;
	bool icm_writer;	    /* see transport/icm_writer.h */
	_Atomic(struct rss *) rss;  /* raw packet: it distributes frames to these queues */
	_Atomic(uint32_t) loopback; /* enum qp_loopback */
	struct dci *dci;	    /* DCI */
	struct dct *dct;	    /* DCT; NULL for its responders */
	uint32_t mtu;
	uint64_t ack_timeout_ns; /* 0: no timeout */
	uint16_t pkey;
	struct object_row *row; /* for people; may be NULL */

	struct baton sq;
	/* Where the index of the next free block is, as a be32: in the doorbell record, or in
	 * bell. */
	const void *producer;
	_Atomic(uint32_t) bell; /* the last index that a bell by value gave */
	/* The index that the doorbell register gave and no request has reached yet, and QP_RUNG; 0:
	 * there is none.  See send_ring_rung. */
	_Atomic(uint32_t) rung;
	struct requester req;
	struct send_op *send_ops;  /* create.sq_blocks entries */
	_Atomic(uint32_t) waiting; /* enum qp_wait */

	struct completer comp;
	struct responder resp;
	struct recv_ring rq;

	struct run_entry run;
	struct timer timer; /* for the oldest unanswered request, or for an RNR wait */
	/* Somebody waits for the last outstanding request to end: SQ_DRAINED is owed, or a DCI
	 * turns to another peer. */
	_Atomic(bool) drain_notify;
	/* LAST_WQE_REACHED is owed, behind the completion of the receive that is in use. */
	_Atomic(bool) last_wqe_due;
	_Atomic(bool) drain_sigerr; /* see qp_set_drain_sigerr */
	bool was_ready;		    /* it has been in RTR since it was made */

	/* Where accesses to signed keys stopped.  They lie apart from the fields of the plain data
	 * path. */
	struct sig_resume sent;	    /* what the requester gathers; under sq */
	struct sig_resume answered; /* what the completer scatters; under comp.lock */
	struct sig_resume written;  /* what the responder scatters; under its lock */
	struct sig_resume read;	    /* what the responder gathers; under its lock */

	struct qp_flow flow;
	struct send_wait wait;
	_Atomic(uint32_t) enabled;	    /* create.slave_send: blocks up to this one, 16 bits */
	_Atomic(uint32_t) receives_enabled; /* create.slave_receive: how many, 16 bits */
};

static inline enum ib_qp_state qp_state(const struct qp *qp)
{
	return (enum ib_qp_state)atomic_load_explicit(&qp->state, memory_order_acquire);
}

/* True if no migration to the alternate path is wanted, as for nearly all queue pairs. */
static inline bool qp_is_migrated(const struct qp *qp)
{
	return likely(atomic_load_explicit(&qp->migration, memory_order_relaxed) ==
		      IB_MIG_MIGRATED);
}

static inline bool qp_is_reliable(const struct qp *qp)
{
	return qp->reliable;
}

static inline struct send_op *qp_send_op(struct qp *qp, uint32_t n)
{
	return &qp->send_ops[n & (qp->create.sq_blocks - 1)];
}

/* True if no request is outstanding and the completions of all are in the completion queue.  The
 * caller holds sq. */
static inline bool qp_all_completed(const struct qp *qp)
{
	return atomic_load_explicit(&qp->comp.completed, memory_order_acquire) ==
	       atomic_load_explicit(&qp->req.tail, memory_order_relaxed);
}

/* Notes that the QP has work.  The outermost call of this thread does it, or any progress call. */
static inline void qp_kick(struct qp *qp)
{
	runq_add(&qp->adapter->runq, &qp->run);
}

/* Called when the wire had no room: the QP tries again at the next progress call. */
static inline void qp_kick_later(struct qp *qp)
{
	runq_add_later(&qp->adapter->runq, &qp->run);
}

static inline void qp_timer_arm(struct qp *qp, uint64_t deadline_ns)
{
	timer_arm(&qp->adapter->timers, &qp->timer, deadline_ns);
}

/* Takes the numbers from the word, which the peer has advanced; see qp_word.h. */
static inline void resp_take_numbers(struct responder *r, uint64_t word)
{
	r->epsn = qp_word_epsn(word);
	r->msn = qp_word_msn(word);
}

/* Called when the lock has just been taken. */
static inline void resp_locked(struct responder *r)
{
	if (r->published)
		resp_take_numbers(r, qp_word_load(&r->shared->word));
}

static inline void resp_lock(struct qp *qp)
{
	spin_lock(&qp->resp.lock);
	resp_locked(&qp->resp);
}

static inline must_check bool resp_try_lock(struct qp *qp)
{
	if (!spin_try(&qp->resp.lock))
		return false;
	resp_locked(&qp->resp);
	return true;
}

/* Takes the word back, so that nobody else moves the responder's numbers until the lock is
 * released.  The caller holds the lock. */
static inline void resp_close(struct qp *qp)
{
	struct responder *r = &qp->resp;

	if (!r->published)
		return;
	resp_take_numbers(r, qp_word_close(&r->shared->word));
	r->published = false;
}

/* The use of a key that a peer names in a request to the QP which needs this right (0: none).  The
 * caller holds the responder's lock. */
static inline struct mkey_use qp_remote_use(struct qp *qp, uint32_t key, uint32_t pdn,
					    uint32_t right)
{
	return (struct mkey_use){
		.key = key, .pdn = pdn, .qpn = qp->qpn, .remote = &qp->resp.stay, .access = right};
}

/*
 * True for transports whose requests a peer may execute directly, at the next PSN that its
 * responder expects.  On UC, a request that was sent may still be under way when it has completed;
 * but then the responder expects that request's PSN, not the next one.
 */
static inline bool qp_is_direct(const struct qp *qp)
{
	return qp->bth == BTH_RC || qp->bth == BTH_UC || qp->bth == BTH_XRC || qp->bth == BTH_DC;
}

/* True for those of them that a modification connects once for all. */
static inline bool qp_is_connected(const struct qp *qp)
{
	return qp_is_direct(qp) && qp->bth != BTH_DC;
}

/* True if requests may be executed in a short way.  The first one in RTR comes as a packet that the
 * responder looks at, because it raises an event. */
static inline bool resp_is_established(const struct qp *qp)
{
	enum ib_qp_state state = qp_state(qp);

	return state == IB_QPS_RTS || (state == IB_QPS_RTR && qp->resp.established);
}

/* True if peers may now execute requests directly, without packets. */
static inline uint32_t resp_bypass_ok(const struct qp *qp)
{
	const struct responder *r = &qp->resp;

	return resp_is_established(qp) && qp_is_migrated(qp) && qp_is_direct(qp) &&
	       qp->create.type != IB_QPT_XRC_INI && !r->nak_sent && !r->in_message &&
	       !r->have_recv && !r->ack_owed && r->rd_answered == r->rd_count;
}

/* Opens the word to a peer in another process, unless the QP is in error.  The caller holds the
 * lock. */
void resp_open(struct qp *qp);

static inline void resp_unlock(struct qp *qp)
{
	struct responder *r = &qp->resp;

	mkey_stay_end(&r->stay);
	if (!r->remote)
		r->bypass_ok = resp_bypass_ok(qp);
	else if (!r->published && resp_bypass_ok(qp))
		resp_open(qp);
	spin_unlock(&r->lock);
}

/* Sets what a request must match.  True: a peer may be in an access that is no longer allowed.  The
 * caller holds the lock. */
bool resp_set_view(struct qp *qp, const struct qp_view *view);
/* From here on peers may execute nothing, and what they have begun does not count.  The caller may
 * hold any locks, and has set a state in which the QP takes no requests. */
void resp_revoke(struct qp *qp);

/* A connected QP accepts requests and responses only from its peer (IBTA 9.6.1.1.3). */
static inline bool qp_is_peer(const struct qp *qp, uint32_t src_port, uint32_t sqpn)
{
	return src_port == qp->path.dst_port && sqpn == qp->attr.dest_qpn;
}

/* When a request with these flags completes, one of WQE_CTRL_CE_*.  Every way of execution asks
 * here. */
static inline uint8_t qp_ce(const struct qp *qp, uint8_t fm_ce_se)
{
	uint8_t ce = fm_ce_se & WQE_CTRL_CE_MASK;

	return ce & WQE_CTRL_CE_ALWAYS || likely(!qp->create.sq_sig_all) ? ce : WQE_CTRL_CE_ALWAYS;
}

/* True if it completes when it succeeds. */
static inline bool ce_is_signaled(uint8_t ce)
{
	return ce & WQE_CTRL_CE_ALWAYS;
}

/* The address of a block of the send ring; block is a counter, not masked. */
static inline const uint8_t *send_ring_at(const struct qp *qp, uint32_t block)
{
	return (const uint8_t *)qp->create.sq_buf +
	       (size_t)(block & (qp->create.sq_blocks - 1)) * WQE_BLOCK;
}

/* How many of the 'ready' blocks posted beyond block another queue has enabled. */
static inline uint16_t send_ring_enabled(const struct qp *qp, uint32_t block, uint16_t ready)
{
	uint16_t enabled = (uint16_t)(atomic_load(&qp->enabled) - block);

	/* in error the whole queue is flushed */
	if (qp_state(qp) == IB_QPS_ERR)
		return ready;
	return enabled & 0x8000 ? 0 : enabled < ready ? enabled : ready;
}

/*
 * Called when the index says that more blocks are posted beyond block than the ring has.  If the
 * doorbell record says so, it is a fault: -1.  But bells come from device code, which may outrun
 * the adapter here, as it does not on a card: it has overwritten requests that nobody has read, and
 * everything that it rang for goes out as it stands.  An index that is more than half the counter
 * ahead is really behind, because one thread's bell came late: then nothing is ready.
 */
static inline int send_ring_outrun(const struct qp *qp, uint16_t ready)
{
	if (!qp->create.region)
		return -1;
	return ready & 0x8000 ? 0 : (int)qp->create.sq_blocks;
}

#define QP_RUNG 0x10000u

/*
 * How many blocks the program has posted beyond block, where the doorbell register was seen to say
 * another index than the record.  A card executes what the register says.  The device does not see
 * every store, and learns of most requests from the record; so the index that is further ahead counts.  A
 * record that was overtaken tells nothing until it changes, because its index comes again after
 * 65,536 blocks; and so does one that was there when the queue pair left RESET.
 */
uint16_t send_ring_rung(struct qp *qp, uint32_t block, uint32_t producer) __attribute__((cold));

static inline bool send_ring_was_rung(const struct qp *qp)
{
	return atomic_load_explicit(&qp->rung, memory_order_acquire) ||
	       atomic_load_explicit(&qp->req.silent_plus_1, memory_order_relaxed);
}

/* How many blocks the program has posted beyond block and may be sent; -1 on a fault. */
static inline int send_ring_ready(struct qp *qp, uint32_t block)
{
	uint32_t producer;
	uint16_t ready;

	if (!qp->create.sq_blocks)
		return 0;
	if (!usermem_fetch_be32(qp->producer, &producer))
		return -1;
	ready = (uint16_t)(producer - block);
	if (unlikely(send_ring_was_rung(qp)))
		ready = send_ring_rung(qp, block, producer);
	if (unlikely(ready > qp->create.sq_blocks)) {
		int outrun = send_ring_outrun(qp, ready);

		if (outrun <= 0)
			return outrun;
		ready = (uint16_t)outrun;
	}
	return likely(!qp->create.slave_send) ? ready : send_ring_enabled(qp, block, ready);
}

/* Takes all three locks, for the control path. */
void qp_lock(struct qp *qp);
/* Releases them and executes what the program posted meanwhile, so the caller holds no other
 * lock. */
void qp_unlock(struct qp *qp);

/*
 * Moves the QP to the error state, if it is not there, and kicks it: the requester flushes when it
 * runs next.  The caller may hold locks.  'why' is for traces.
 */
void qp_fail(struct qp *qp, const char *why);
/*
 * Fails the QP with an event, because its completion queue has overrun and a completion is lost
 * (IBTA 11.6.3.1, local work queue catastrophic error).  The caller may hold locks.
 */
void qp_cannot_complete(struct qp *qp) __attribute__((cold));
void qp_async(struct qp *qp, enum ib_event event);
/* Halves the window to a peer outside of the fabric.  Call it with comp.lock held. */
void qp_window_shrink(struct qp *qp);
/*
 * Called when a request has found a signature error: if the QP asked for it, no request starts
 * behind those that have begun.  The caller holds sq or comp.lock.
 */
void qp_drain(struct qp *qp);
/* Sets the numbers and queues of a fresh connection.  The caller holds all three locks, or the QP
 * is not published. */
void qp_reset_queues(struct qp *qp);
/* Implements adapter.payload_lost. */
void qp_payload_lost(void *adapter, uint32_t qpn);
/* Takes a QP that goes away out of the run queue and the timers. */
void qp_forget(struct qp *qp);

/* Queue pairs as people see them (exposure/object.h). */

/* Says where queue pairs have their figures; a process need call it only once. */
void qp_form_expose(struct wire *wire);
/* Lists the queue pair, whose numbers are set, and sets qp->row. */
void qp_list(struct qp *qp);
