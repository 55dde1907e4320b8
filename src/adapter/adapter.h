/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device: one HCA as one process sees it.  A plain library without globals: the uverbs driver,
 * DEVX and a unit test are equal callers.
 *
 * Threads.  Every function may be called from any thread.  Control functions (create, modify,
 * query, destroy) may block for a grace period; the data-path functions (qp_doorbell,
 * adapter_progress, ...) never block.  Upcalls run with locks of the device held: they may write to
 * a pipe or wake a thread, and must not call back into the adapter.
 *
 * Memory.  Rings, doorbell records and registered memory belong to the caller and are read and
 * written through usermem/usermem.h only, which survives pages that have gone away.
 *
 * Errors.  Functions that return int give 0 or a negative errno, as the kernel driver would.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapter/steering.h"
#include "prm/eth.h"
#include "prm/ib.h"
#include "prm/number.h"
#include "exposure/expose.h"
#include "base/compiler.h"
#include "base/endian.h"

struct adapter;
struct cq;
struct key_violation;
struct mkey;
struct psv;
struct qp;
struct srq;
struct window;
struct wire;
struct wq;

/* What the data path knows of a port; the driver keeps it up to date from the fabric. */
struct adapter_port {
	uint32_t fabric_port; /* row of this port in the subnet */
	bool ethernet;
};

#define NUMBER_CHUNK 1024u

struct adapter_attr {
	struct wire *wire;
	struct adapter_port port; /* one port; numbered 1 */
	/* The first number of a chunk of that kind, or negative errno if none is left.  Any thread;
	 * it may ask the daemon and wait. */
	int64_t (*number_chunk)(void *user, enum number_kind kind);
	/* Signature errors as devices are seen to report them, not as the manual says
	 * (sig/error.h). */
	bool sig_report_hardware;
	uint8_t steering_format; /* prm/model.h */
	void (*kick)(
		void *user); /* something needs adapter_progress soon, and nobody may be polling */
	/* A packet had a key that its receiver has not; told seldom (adapter/core/violation.h).  It makes
	 * no thread wait.  NULL: nobody wants to know. */
	void (*violated)(void *user, const struct key_violation *v);
	void *user;
};

/* 0 or -ENOMEM. */
int adapter_create(const struct adapter_attr *attr, struct adapter **out) must_check;
/* All objects must have been destroyed. */
void adapter_destroy(struct adapter *a);

/*
 * Takes packets from the wire, continues queues that waited, and fires timers that are due.
 * Returns true if anything was done.  Lowers *deadline_ns (may be NULL) to the time of the next
 * timer.
 */
bool adapter_progress(struct adapter *a, uint64_t *deadline_ns);

/* After a batch of packets from the wire: sends the answers that nobody else will send soon. */
void adapter_batch_end(struct adapter *a);
/* Is work left for the next adapter_progress (acknowledgements owed, queues that waited)? */
bool adapter_owes(const struct adapter *a);
/* Is some left, and only such as the program's next request takes along (acknowledgements)? */
bool adapter_owes_patiently(const struct adapter *a);
/* Has a receive of the program been completed since this was asked last? */
bool adapter_has_received(struct adapter *a);

/* Queue pairs are at a device's first port, also if it has more. */
#define ADAPTER_QP_PORTS 1u

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
#define ADAPTER_MAX_TSO	      (1u << 18)
/* Initiators whose state a DCT keeps: it tells further ones to try again later. */
#define ADAPTER_LOG_MAX_DCT_PEERS  14u
#define ADAPTER_LOG_MAX_DC_STREAMS 6u /* at a time */
#define ADAPTER_LOG_MAX_DC_ERRORED 6u
#define ADAPTER_LOG_RESERVED_QPNS  6u
#define ADAPTER_LOG_MAX_DMA	   20u /* one copy within memory */

#define ADAPTER_MAX_LOG_IND_TBL	 11u
#define ADAPTER_FLOW_PRIORITIES	 16u
#define ADAPTER_MAX_MCAST_GROUPS 65536u
#define ADAPTER_MAX_MCAST_QPS	 1024u /* in one group */

/* ---- protection domains ---- */

/* Never fails and never returns 0; of any thread. */
uint32_t pd_alloc(struct adapter *a);
/* Without memory to remember it, the number is not used again. */
void pd_free(struct adapter *a, uint32_t pdn);

/* XRC domains: numbers like those of protection domains, which never fail either; 0 is none. */
uint32_t xrcd_alloc(struct adapter *a);
void xrcd_free(struct adapter *a, uint32_t xrcdn);

/* ---- memory keys ---- */

struct mkey_attr {
	uint32_t pdn;
	uint32_t access; /* enum ib_access */
	uint64_t iova;	 /* address by which work requests name the first byte */
	uint64_t length;
	void *addr;	    /* the memory itself; pages were checked by the caller */
	bool given_variant; /* the low byte of the key is the caller's; else one of our own */
	uint8_t variant;
};

int mkey_create(struct adapter *a, const struct mkey_attr *attr, struct mkey **out) must_check;
uint32_t mkey_key(const struct mkey *m); /* lkey and rkey */
/* Swaps the attributes as one step; users of the key see the old or the new ones.  -EBUSY while
 * windows are bound to it. */
int mkey_modify(struct adapter *a, struct mkey *m, const struct mkey_attr *attr) must_check;
/* -EBUSY while windows are bound to it; afterwards none can be.  Before mkey_destroy, for regions
 * with IB_ACCESS_MW_BIND. */
int mkey_retire(struct mkey *m) must_check;
/* What a region's key stands for now; -ENOENT if for nothing, -EINVAL for other kinds of key. */
int mkey_query(struct adapter *a, uint32_t key, struct mkey_attr *out) must_check;

/* Peers may access the region's memory in this way by themselves (exposure/expose.h), until the
 * region is modified or destroyed. */
void mkey_expose(struct adapter *a, struct mkey *m, const struct key_place *place);
/* Lists a key that peers reach by packets alone, with the reason, for people who ask; until the
 * same time. */
void mkey_note(struct adapter *a, struct mkey *m, enum key_why why);
/* Ends both alone.  When this returns, no peer is in the memory but by packets. */
void mkey_conceal(struct adapter *a, struct mkey *m);
/* On return nobody touches the memory any more. */
void mkey_destroy(struct adapter *a, struct mkey *m);
/* The null lkey: writes are discarded, reads give zeros, in every PD.  Negative errno if it cannot
 * be made. */
int64_t adapter_null_key(struct adapter *a) must_check;

/*
 * ---- indirect memory keys: a list of pieces of other keys ----
 *
 * Made by CREATE_MKEY, given their meaning by UMR work requests (umr.h).  mkey_destroy is theirs
 * too, as is mkey_key; the other functions above are for regions.
 */

struct umr_klm;

enum mkey_list {
	MKEY_LIST_KLM, /* each entry has its length; a UMR may also write a strided list */
	MKEY_LIST_KSM, /* all entries are of 1 << log_entry_bytes */
};

struct mkey_indirect_attr {
	uint32_t pdn;
	uint32_t access;	/* enum ib_access */
	bool local_read;	/* mkc.lr */
	uint8_t variant;	/* mkc.mkey_7_0: low byte of the key */
	uint32_t qpn;		/* mkc.qpn: the only one that may use it; 0xffffff: any */
	bool free;		/* no access until a UMR clears it */
	bool remote_invalidate; /* mkc.en_rinval */
	bool umr;		/* mkc.umr_en */
	bool signature;		/* mkc.bsf_en */
	enum mkey_list list;
	uint8_t log_entry_bytes; /* KSM only */
	uint64_t start;		 /* address of the first byte */
	uint64_t length;
	uint32_t bsf_octowords; /* room for a BSF, in 16 bytes */
	uint32_t max_entries;	/* room for the list */
	uint32_t entries;	/* of them given now */
	const struct umr_klm *entry;
};

#define ADAPTER_MAX_KLM (1u << 16) /* in one list */

int mkey_create_indirect(struct adapter *a, const struct mkey_indirect_attr *attr,
			 struct mkey **out) must_check;

/* ---- protected signature values ---- */

/* 0, -ENOMEM, or what number_chunk says. */
int psv_create(struct adapter *a, uint32_t pdn, struct psv **out) must_check;
uint32_t psv_number(const struct psv *p); /* 24 bits */
/* Keys may still name it: their signatures then have no state to report to. */
void psv_destroy(struct adapter *a, struct psv *p);
/* What SET_PSV wrote; whether an error has been reported since. */
void psv_query(const struct psv *p, uint64_t *transient, bool *error);

/* ---- memory windows: bound and invalidated by work requests ---- */

enum window_type { WINDOW_TYPE_1 = 1, WINDOW_TYPE_2 = 2 };

/* 0, -EINVAL for a type that there is not, -ENOMEM, or what number_chunk says. */
int window_create(struct adapter *a, uint32_t pdn, enum window_type type,
		  struct window **out) must_check;
/* The key until the first bind, which allows nothing. */
uint32_t window_key(const struct window *w);
void window_destroy(struct adapter *a, struct window *w);

/* ---- completion queues ---- */

/* How a program asks for an event. */
enum cq_arming {
	CQ_ARM_RECORD, /* by the arm word of the doorbell record, and a bell */
	CQ_ARM_VALUE,  /* by a bell that says the consumer index: cq_bell_arm */
	CQ_ARM_ALWAYS, /* it need not ask: each completion is an event */
};

/* How completions of the same kind are written (queue/cq_zip.h). */
enum cq_compression { CQ_PLAIN, CQ_COMPRESSED_BASIC, CQ_COMPRESSED_ENHANCED };
#define ADAPTER_MAX_COMPRESSED 64u /* one upon the other */

struct cq_attr {
	void *buf;	     /* ring; entries initialised to CQE_OP_INVALID by its owner */
	uint32_t entries;    /* power of two */
	uint32_t cqe_bytes;  /* 64 or 128 */
	void *dbrec;	     /* two be32, see DBREC_CQ_* */
	bool timestamps;     /* CQEs say when (clock_ns) */
	bool overrun_ignore; /* what was not consumed is overwritten */
	bool padded;	     /* of 128 bytes: all are written, not only the half with the CQE */
	bool collapsed;	     /* each CQE is written to the first entry; owner bits as without */
	uint8_t compression; /* enum cq_compression */
	uint8_t mini_format; /* enum cqe_mini_format */
	uint8_t arming;	     /* enum cq_arming */
	bool armed;	     /* from the beginning, of CQ_ARM_VALUE */
	uint32_t region;     /* where bells by value come from; 0: it hears none */
	/* An armed CQ got a completion.  Upcall; NULL: nobody wants to know. */
	void (*event)(void *user);
	/* IB_EVENT_CQ_ERR on overrun.  Upcall. */
	void (*async)(void *user, enum ib_event event);
	void *user;
};

/* 0, -EINVAL if the sizes are not the device's, -EFAULT if the doorbell record cannot be written,
 * -ENOMEM. */
int cq_create(struct adapter *a, const struct cq_attr *attr, struct cq **out) must_check;
uint32_t cq_number(const struct cq *cq);
/* The arm doorbell was (or may have been) rung: look at the arm record. */
void cq_doorbell(struct cq *cq);
/*
 * Bells by value, which a DPA rings: they name the queue by its number, as a program does, and the
 * region that they come from.  False: no queue has that number and that region, and nothing
 * happens.  From any thread.
 *   arm    the program has consumed all before index ci, of 24 bits, and wants an event for the
 *	    completion of that index or a later one; at once, if it is there
 *   empty  an empty completion comes, by the way of all others
 */
bool cq_bell_arm(struct adapter *a, uint32_t region, uint32_t cqn, uint32_t ci);
bool cq_bell_empty(struct adapter *a, uint32_t region, uint32_t cqn);
/*
 * From now on an event waits until there are count unreported completions, or the first of them is
 * period_us old; 0 switches that condition off, 0 and 0 moderation as a whole.
 */
#define ADAPTER_MAX_CQ_COUNT  0xffffu
#define ADAPTER_MAX_CQ_PERIOD 0xfffu
void cq_moderate(struct cq *cq, uint32_t count, uint32_t period_us);
/* Before it: does the period count from the newest of them instead? */
void cq_moderate_newest(struct cq *cq, bool newest);
struct cq_counters {
	uint32_t producer; /* 24 bits, as the program counts */
	uint32_t consumer;
	bool armed;
	bool overrun;
};

void cq_query(struct cq *cq, struct cq_counters *out);
/* -EINVAL if the entries outstanding do not fit. */
int cq_resize(struct cq *cq, void *buf, uint32_t entries, uint32_t cqe_bytes) must_check;
/* -EBUSY while a QP uses it. */
int cq_destroy(struct cq *cq) must_check;

/* ---- shared receive queues ---- */

struct srq_attr {
	uint32_t pdn;
	void *buf;
	uint32_t wqe_count, wqe_bytes; /* powers of two; next segment included */
	bool cyclic;		       /* taken in ring order; next segments are ignored */
	uint32_t max_sge;
	uint32_t limit;
	void *dbrec;					/* be32 producer counter at DBREC_RECV */
	void (*async)(void *user, enum ib_event event); /* upcall: SRQ_LIMIT_REACHED, SRQ_ERR */
	void *user;
	uint32_t uidx; /* reported in CQEs */
	/* XRC: its domain and the CQ for what is received; otherwise 0 and NULL. */
	uint32_t xrcdn;
	struct cq *cq;
};

int srq_create(struct adapter *a, const struct srq_attr *attr, struct srq **out) must_check;
uint32_t srq_number(const struct srq *srq);
void srq_set_limit(struct srq *srq, uint32_t limit);
uint32_t srq_limit(const struct srq *srq);
/* -EBUSY while a QP uses it. */
int srq_destroy(struct srq *srq);

/* ---- receive work queues, for RSS ---- */

struct wq_attr {
	uint32_t pdn;
	uint32_t uidx;
	struct cq *cq;
	void *buf;
	uint32_t wqes, wqe_bytes; /* powers of two */
	void *dbrec;		  /* be32 producer counter at DBREC_RECV */
	bool strip_vlan;	  /* the tag goes into the completion */
	bool silent;		  /* in error, what is posted completes not */
	struct srq *srq; /* or NULL: takes from it, and has no ring and no domain of its own */
	void (*async)(void *user, enum ib_event event); /* upcall: WQ_FATAL */
	void *user;
};

int wq_create(struct adapter *a, const struct wq_attr *attr, struct wq **out) must_check;
uint32_t wq_number(const struct wq *wq);
enum ib_wq_state wq_state(const struct wq *wq);
/* -EINVAL if it is not in state cur, or cannot go from there to next. */
int wq_modify(struct wq *wq, enum ib_wq_state cur, enum ib_wq_state next) must_check;
void wq_strip_vlan(struct wq *wq, bool strip);
/* Receives were posted: a queue in error flushes them at once; other states ignore the call. */
void wq_recv_posted(struct wq *wq);
/* Requires that no queue pair distributes to it any more. */
void wq_destroy(struct wq *wq);

/* Numbered as in the mlx5 ABI. */
enum rss_field {
	RSS_SRC_IPV4 = 1 << 0,
	RSS_DST_IPV4 = 1 << 1,
	RSS_SRC_IPV6 = 1 << 2,
	RSS_DST_IPV6 = 1 << 3,
	RSS_SRC_PORT_TCP = 1 << 4,
	RSS_DST_PORT_TCP = 1 << 5,
	RSS_SRC_PORT_UDP = 1 << 6,
	RSS_DST_PORT_UDP = 1 << 7,
	RSS_ALL_FIELDS = (1 << 8) - 1,
};

#define RSS_KEY_BYTES 40u

struct rss; /* of which a queue pair makes use: qp_set_rss */

/* A raw packet QP without rings, which distributes frames to work queues. */
struct rss_attr {
	uint32_t fields; /* enum rss_field; one L3 and one L4 protocol at most */
	uint8_t key[RSS_KEY_BYTES];
	uint32_t log_size;
	struct wq *const *wqs; /* 1 << log_size; copied */
};

/* ---- queue pairs ---- */

/* Raw packet QP: the frames of its own context that it gets. */
enum qp_loopback { QP_LOOPBACK_UC = 1 << 0, QP_LOOPBACK_MC = 1 << 1 };

struct qp_create_attr {
	enum ib_qp_type type;
	bool multi_packet;  /* raw packet: takes requests of many frames */
	bool master;	    /* may wait for completions of others and enable their requests */
	bool slave_send;    /* what is posted is sent when a master has enabled it */
	bool slave_receive; /* likewise receives of its own ring are taken */
	uint32_t pdn;	    /* XRC_TGT: 0, the shared receive queue's counts */
	uint32_t xrcdn;	    /* XRC_TGT only */
	uint32_t uidx;
	/* Each may be NULL only where the type has no such side: XRC_INI and DCI do not receive,
	 * XRC_TGT and DCT do not send, XRC_TGT receives into the CQ of the shared receive queue. */
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq; /* or NULL; a DCT has no other receives */
	void *sq_buf;
	uint32_t sq_blocks; /* ring size in WQE_BLOCK; power of two or 0 */
	void *rq_buf;
	uint32_t rq_wqes;      /* power of two or 0 */
	uint32_t rq_wqe_bytes; /* power of two */
	void *dbrec;	       /* two be32, see DBREC_RECV, DBREC_SEND */
	/* 0: bells say nothing, and the send index is in the record.  Else where bells come from that
	 * say it (qp_bell); the record, which may be NULL without receives, has none then. */
	uint32_t region;
	bool silent; /* in error, what is posted to send completes not */
	bool sq_sig_all;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	bool block_self_mcast;	    /* UD: no copy of what it sends to its own groups */
	bool strip_vlan;	    /* raw packet */
	uint32_t loopback;	    /* raw packet: enum qp_loopback */
	const void *domain;	    /* raw packet: queues of one context have the same */
	const struct rss_attr *rss; /* raw packet: no rings and no CQs then */
	uint64_t dc_key;	    /* DCT: requests must bring it */
	/*
	 * DCI: its requests belong to streams.  An error flushes the requests of its stream, and
	 * the others go on, until 1 << log_dc_errored streams are in error; then the whole queue
	 * pair is.
	 */
	bool dc_streams;
	uint8_t log_dc_errored;				/* up to ADAPTER_LOG_MAX_DC_ERRORED */
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
	uint16_t udp_sport; /* RoCE v2; by qp_set_udp_sport only */
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

/* 0, -EINVAL if the parts do not go together, -EOPNOTSUPP for a type that the device or this port
 * has not, -ENOMEM, or what number_chunk says.  The attributes may be freed afterwards. */
int qp_create(struct adapter *a, const struct qp_create_attr *attr, struct qp **out) must_check;
uint32_t qp_number(const struct qp *qp);
/* mask: enum ib_qp_attr_mask.  -EINVAL for a transition or an attribute the specification does not
 * allow. */
int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask) must_check;
void qp_query(struct qp *qp, struct qp_attr *attr);
/*
 * INIT2INIT_QP with DRAIN_SIGERR: a signature error that a request of this QP finds stops the send
 * queue in SQD, right behind that request.  Requests under way are finished first, then comes
 * IB_EVENT_SQ_DRAINED.  RESET clears it.
 */
void qp_set_drain_sigerr(struct qp *qp, bool drain);
/* Running counters of WQE_BLOCK in the send ring: the first block of the first request that has not
 * been executed (hw), and the last doorbell record (sw). */
void qp_sq_counters(struct qp *qp, uint16_t *hw, uint16_t *sw);
/* Raw packet, with a table of work queues: another table and hash, or other frames of its own
 * context.  Frames on their way may still go by the old ones until the call returns. */
int rss_make(const struct rss_attr *attr, struct rss **out) must_check;
void rss_discard(struct rss *rss); /* one that no queue pair got; NULL is allowed */
void qp_set_rss(struct qp *qp, struct rss *rss);
void qp_set_loopback(struct qp *qp, uint32_t loopback);
/* RoCE v2: sets the source port of its packets, which a query reports; the wire does not carry
 * it. */
void qp_set_udp_sport(struct qp *qp, uint16_t port);
/* DCI: requests of the stream are executed again.  -EINVAL if it is not in error. */
int qp_reset_stream(struct qp *qp, uint16_t stream) must_check;
/* The send doorbell was (or may have been) rung: executes the requests on the send ring.  Inside
 * rcu_enter (base/rcu.h), where a caller that has just looked up the queue pair already is. */
void qp_doorbell(struct qp *qp);
/* The same for the queue pair that a doorbell register names; the number may be anybody's. */
void adapter_doorbell(struct adapter *a, uint32_t qpn);
/*
 * A bell by value, which a DPA rings: all before send block pi is posted.  False: no queue pair has
 * that number and that region, and nothing happens.  From any thread.
 */
bool qp_bell(struct adapter *a, uint32_t region, uint32_t qpn, uint16_t pi);
/* Receives were posted: a QP in error flushes them at once; other states ignore the call. */
void qp_recv_posted(struct qp *qp);
/* Detaches from CQs and SRQ; on return neither rings nor registered memory are touched on its
 * behalf. */
void qp_destroy(struct qp *qp);

/*
 * A range of 1 << ADAPTER_LOG_RESERVED_QPNS QP numbers that no queue pair gets, for programs that
 * need numbers without queue pairs.  The first of them, a multiple of the range; negative errno.
 */
int64_t qpn_reserve(struct adapter *a) must_check;
void qpn_unreserve(struct adapter *a, uint32_t first);

/* ---- multicast ---- */

/*
 * UD only.  1, or 0 if the QP is attached already; -EINVAL if it is no multicast address, -ENOMEM
 * beyond the limits.
 */
int qp_attach_mcast(struct qp *qp, const union ib_gid *gid, uint16_t mlid) must_check;
/* -EINVAL if it is not attached. */
int qp_detach_mcast(struct qp *qp, const union ib_gid *gid, uint16_t mlid) must_check;
