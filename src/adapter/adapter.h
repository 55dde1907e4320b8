/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device: one HCA as one process sees it.  It is a plain library without globals: the uverbs
 * driver, DEVX and a unit test call it in the same way.
 *
 * Threads.  Every function may be called from any thread.  Control functions (create, modify,
 * query, destroy) may wait for readers of the object; the data-path functions (qp_doorbell,
 * adapter_progress, ...) never block.  Upcalls run with locks of the device held: they may write
 * to a pipe or wake a thread, and must not call back into the adapter.
 *
 * Memory.  Rings, doorbell records and registered memory belong to the caller.  The adapter touches
 * them only through usermem/usermem.h, which survives pages that are no longer mapped.
 *
 * Errors.  Functions that return int give 0 or a negative errno, as the kernel driver would.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "adapter/steering.h"
#include "base/compiler.h"
#include "base/endian.h"
#include "exposure/expose.h"
#include "prm/ib.h"
#include "prm/wqe.h"

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

/*
 * The numbers of protection domains and of XRC domains that the devices of a process share.
 * domains_create returns NULL without memory.
 */
struct domains;
struct domains *domains_create(void);
/* The devices are destroyed before. */
void domains_destroy(struct domains *d);

struct adapter_attr {
	struct wire *wire;
	struct domains *domains;  /* NULL: the device has its own */
	struct adapter_port port; /* the one port, whose number is 1 */
	/* Returns a number of a new chunk of that kind, from which on the adapter uses the chunk's
	 * numbers, or negative errno if no chunk is left.  Any thread may call it; it may ask the daemon
	 * and wait. */
	int64_t (*number_chunk)(void *user, enum number_kind kind);
	/* Report signature errors as devices do, and not as the manual says (sig/sig.h). */
	bool sig_report_hardware;
	bool timing_hardware;	 /* retries as cards time them (transport/ack_timer.c) */
	uint8_t steering_format; /* prm/model.h */
	uint32_t clock_khz;	 /* of time stamps in completions; 0: 1 GHz */
	/* Called when something needs adapter_progress soon, and nobody may be polling. */
	void (*kick)(void *user);
	/* Hears of a packet with a key that its receiver does not have, but seldom
	 * (adapter/core/violation.h).  It makes no thread wait.  NULL: nobody wants to know. */
	void (*violated)(void *user, const struct key_violation *v);
	void *user;
};

/* Returns 0 or -ENOMEM. */
int adapter_create(const struct adapter_attr *attr, struct adapter **out) must_check;
/* The caller has destroyed all objects before. */
void adapter_destroy(struct adapter *a);

/*
 * Continues queues that waited, and fires timers that are due; packets come by the wire's client.
 * Returns true if anything was done.  Lowers *deadline_ns (may be NULL) to the time of the next
 * timer.
 */
bool adapter_progress(struct adapter *a, uint64_t *deadline_ns);

/* Called after a batch of packets from the wire: sends the answers that nobody else will send
 * soon. */
void adapter_batch_end(struct adapter *a);
/* True if work is left for the next adapter_progress (acknowledgements owed, queues that
 * waited). */
bool adapter_owes(const struct adapter *a);
/* True if a receive of the program was completed since the last call. */
bool adapter_has_received(struct adapter *a);
/* True if a batch of many frames since the last call has left a queue with too few receives for
 * another such batch. */
bool adapter_few_receives(struct adapter *a);

/* Queue pairs are at a device's first port, even if it has more. */
#define ADAPTER_QP_PORTS 1u

/* Limits.  The driver reports these and nothing else, so that the capabilities are true. */
#define ADAPTER_MAX_QP	      (1u << 18)
#define ADAPTER_MAX_QP_WR     32768u
#define ADAPTER_MAX_SGE	      30u
#define ADAPTER_MAX_CQ	      (1u << 24)
#define ADAPTER_MAX_CQE	      ((1u << 22) - 1)
#define ADAPTER_MAX_SRQ	      (1u << 23)
#define ADAPTER_MAX_SRQ_WR    32767u
#define ADAPTER_MAX_SRQ_SGE   31u
#define ADAPTER_MAX_MR	      (1u << 24)
#define ADAPTER_MAX_RD_ATOMIC 16u
#define ADAPTER_MAX_TSO	      (1u << 18)
/* Initiators whose state a DCT keeps; it tells further ones to try again later. */
#define ADAPTER_LOG_MAX_DCT_PEERS  14u
#define ADAPTER_LOG_MAX_DC_STREAMS 6u /* streams of a DCI at a time */
#define ADAPTER_LOG_MAX_DC_ERRORED 6u
#define ADAPTER_LOG_RESERVED_QPNS  6u
#define ADAPTER_LOG_MAX_DMA	   20u /* bytes of one copy within memory */

#define ADAPTER_MAX_LOG_IND_TBL	 11u
#define ADAPTER_LOG_MAX_IND_TBLS 20u
#define ADAPTER_FLOW_PRIORITIES	 16u
#define ADAPTER_MAX_MCAST_GROUPS (1u << 21)
#define ADAPTER_MAX_MCAST_QPS	 240u /* in one group */

/* ---- protection domains ---- */

/* Never fails and never returns 0; any thread may call it. */
uint32_t pd_alloc(struct adapter *a);
/* Without memory to remember it, nobody uses the number again. */
void pd_free(struct adapter *a, uint32_t pdn);

/* XRC domains: numbers like those of protection domains, which never fail either; 0 stands for
 * none. */
uint32_t xrcd_alloc(struct adapter *a);
void xrcd_free(struct adapter *a, uint32_t xrcdn);

/* ---- memory keys ---- */

struct mkey_attr {
	uint32_t pdn;
	uint32_t access; /* enum ib_access */
	uint64_t iova;	 /* address by which work requests name the first byte */
	uint64_t length;
	void *addr;	    /* the memory itself, whose pages the caller has checked */
	bool given_variant; /* the caller chooses the low byte of the key; else we do */
	uint8_t variant;
};

int mkey_create(struct adapter *a, const struct mkey_attr *attr, struct mkey **out) must_check;
uint32_t mkey_key(const struct mkey *m); /* both lkey and rkey */
/* Swaps the attributes in one step; users of the key see the old or the new ones. */
int mkey_modify(struct adapter *a, struct mkey *m, const struct mkey_attr *attr) must_check;
/* What a region's key stands for now.  -ENOENT: it stands for nothing; -EINVAL: the key is of
 * another kind. */
int mkey_query(struct adapter *a, uint32_t key, struct mkey_attr *out) must_check;

/* Lets peers access the region's memory in this way by themselves (exposure/expose.h), until the
 * region is modified or destroyed. */
void mkey_expose(struct adapter *a, struct mkey *m, const struct key_place *place);
/* Lists, for people, a key that peers reach by packets alone, with the reason; also until the
 * region is modified or destroyed. */
void mkey_note(struct adapter *a, struct mkey *m, enum key_why why);
/* Ends what the last two have begun.  When it returns, peers reach the memory by packets alone. */
void mkey_conceal(struct adapter *a, struct mkey *m);
/* When it returns, nobody touches the memory any more. */
void mkey_destroy(struct adapter *a, struct mkey *m);
/* The null lkey: in every PD it discards writes, and reads give zeros.  Negative errno if it cannot
 * be made. */
int64_t adapter_null_key(struct adapter *a) must_check;

/*
 * ---- indirect memory keys: a list of pieces of other keys ----
 *
 * Made by CREATE_MKEY, given their meaning by UMR work requests (prm/wqe.h).  mkey_destroy is theirs
 * too, as is mkey_key; the other functions above are for regions.
 */

struct umr_klm;

enum mkey_list {
	MKEY_LIST_KLM, /* each entry has its own length; a UMR may also write a strided list */
	MKEY_LIST_KSM, /* all entries have 1 << log_entry_bytes bytes */
};

struct mkey_indirect_attr {
	uint32_t pdn;
	uint32_t access;	/* enum ib_access */
	bool local_read;	/* mkc.lr */
	uint8_t variant;	/* mkc.mkey_7_0: low byte of the key */
	uint32_t qpn;		/* mkc.qpn: the only QP that may use it; 0xffffff: any QP */
	bool free;		/* no access until a UMR clears this */
	bool remote_invalidate; /* mkc.en_rinval */
	bool umr;		/* mkc.umr_en */
	bool signature;		/* mkc.bsf_en */
	enum mkey_list list;
	uint8_t log_entry_bytes; /* KSM only */
	uint64_t start;		 /* address of the first byte */
	uint64_t length;
	uint32_t bsf_octowords; /* room for a BSF, in 16 bytes */
	uint32_t max_entries;	/* room for the list */
	uint32_t entries;	/* how many of them are given now */
	const struct umr_klm *entry;
};

#define ADAPTER_MAX_KLM (1u << 16) /* entries of one list */

int mkey_create_indirect(struct adapter *a, const struct mkey_indirect_attr *attr,
			 struct mkey **out) must_check;

/* ---- protected signature values ---- */

/* Returns 0, -ENOMEM, or what number_chunk returns. */
int psv_create(struct adapter *a, uint32_t pdn, struct psv **out) must_check;
uint32_t psv_number(const struct psv *p); /* 24 bits */
/* Keys may still name it; their signatures then have no state to report to. */
void psv_destroy(struct adapter *a, struct psv *p);
/* What SET_PSV wrote, and whether an error was reported since. */
void psv_query(const struct psv *p, uint64_t *transient, bool *error);

/* ---- memory windows, which work requests bind and invalidate ---- */

enum window_type { WINDOW_TYPE_1 = 1, WINDOW_TYPE_2 = 2 };

/* Returns 0, -EINVAL for an unknown type, -ENOMEM, or what number_chunk returns. */
int window_create(struct adapter *a, uint32_t pdn, enum window_type type,
		  struct window **out) must_check;
/* The key before the first bind, which allows nothing. */
uint32_t window_key(const struct window *w);
void window_destroy(struct adapter *a, struct window *w);

/* ---- completion queues ---- */

/* How a program asks for an event. */
enum cq_arming {
	CQ_ARM_RECORD, /* by the arm word of the doorbell record, and a bell */
	CQ_ARM_VALUE,  /* by a bell with the consumer index: cq_bell_arm */
	CQ_ARM_ALWAYS, /* it need not ask, because each completion is an event */
};

/* How the device writes completions of the same kind (queue/cq_internal.h). */
enum cq_compression { CQ_PLAIN, CQ_COMPRESSED_BASIC, CQ_COMPRESSED_ENHANCED };
#define ADAPTER_MAX_COMPRESSED 64u /* completions in one group */

struct cq_attr {
	void *buf;	     /* ring; entries initialised to CQE_OP_INVALID by its owner */
	uint32_t entries;    /* power of two */
	uint32_t cqe_bytes;  /* 64 or 128 */
	void *dbrec;	     /* two be32, see DBREC_CQ_* */
	bool timestamps;     /* CQEs have the time (clock_ns) */
	bool overrun_ignore; /* completions overwrite those that were not consumed */
	/* For 128-byte CQEs: write all bytes, not only the half with the CQE. */
	bool padded;
	bool collapsed;	     /* each CQE goes to the first entry; owner bits as otherwise */
	uint8_t compression; /* enum cq_compression */
	uint8_t mini_format; /* enum cqe_mini_format */
	uint8_t arming;	     /* enum cq_arming */
	bool armed;	     /* CQ_ARM_VALUE: armed from the beginning */
	uint32_t region;     /* where its bells by value come from; 0: it hears none */
	uint32_t context;    /* number of who made it, for people (exposure/object.h) */
	/* Upcall: an armed CQ got a completion.  NULL: nobody wants to know. */
	void (*event)(void *user);
	/* Upcall: IB_EVENT_CQ_ERR on overrun. */
	void (*async)(void *user, enum ib_event event);
	void *user;
};

/* Returns 0, -EINVAL if the device has no such sizes, -EFAULT if the doorbell record cannot be
 * written, or -ENOMEM. */
int cq_create(struct adapter *a, const struct cq_attr *attr, struct cq **out) must_check;
uint32_t cq_number(const struct cq *cq);
/* Looks at the arm record, because the program has rung the arm doorbell, or may have. */
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
 * From now on an event waits until there are count unreported completions, or until the first of
 * them is period_us old.  0 switches that condition off; two zeros switch off moderation as a
 * whole.
 */
#define ADAPTER_MAX_CQ_COUNT  0xffffu
#define ADAPTER_MAX_CQ_PERIOD 0xfffu
void cq_moderate(struct cq *cq, uint32_t count, uint32_t period_us);
/* Called before it: says whether the period counts from the newest completion instead. */
void cq_moderate_newest(struct cq *cq, bool newest);
struct cq_counters {
	uint32_t producer; /* 24 bits, counted as the program does */
	uint32_t consumer;
	bool armed;
	bool overrun;
};

void cq_query(struct cq *cq, struct cq_counters *out);
/* -EINVAL if the outstanding entries do not fit. */
int cq_resize(struct cq *cq, void *buf, uint32_t entries, uint32_t cqe_bytes) must_check;
/* -EBUSY while a QP uses it. */
int cq_destroy(struct cq *cq) must_check;

/* ---- shared receive queues ---- */

struct srq_attr {
	uint32_t pdn;
	void *buf;
	uint32_t wqe_count, wqe_bytes; /* powers of two; next segment included */
	bool cyclic;		       /* taken in ring order, without next segments */
	uint32_t max_sge;
	uint32_t limit;
	void *dbrec;					/* be32 producer counter at DBREC_RECV */
	void (*async)(void *user, enum ib_event event); /* upcall: SRQ_LIMIT_REACHED, SRQ_ERR */
	void *user;
	uint32_t uidx; /* reported in CQEs */
	/* XRC: its domain, and the CQ for what it receives; otherwise 0 and NULL. */
	uint32_t xrcdn;
	struct cq *cq;
};

int srq_create(struct adapter *a, const struct srq_attr *attr, struct srq **out) must_check;
uint32_t srq_number(const struct srq *srq);
/* How many receives the program has posted, by the doorbell record. */
uint16_t srq_posted(const struct srq *srq);
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
	bool silent;		  /* in error, posted receives do not complete */
	/* Takes receives from it, without a ring and a domain of its own; or NULL. */
	struct srq *srq;
	void (*async)(void *user, enum ib_event event); /* upcall: WQ_FATAL */
	void *user;
};

int wq_create(struct adapter *a, const struct wq_attr *attr, struct wq **out) must_check;
uint32_t wq_number(const struct wq *wq);
enum ib_wq_state wq_state(const struct wq *wq);
/* -EINVAL if the queue is not in state cur, or cannot go from there to next. */
int wq_modify(struct wq *wq, enum ib_wq_state cur, enum ib_wq_state next) must_check;
void wq_strip_vlan(struct wq *wq, bool strip);
/* Called when receives were posted: a queue in error flushes them at once, other states ignore
 * it. */
void wq_recv_posted(struct wq *wq);
/* The caller makes sure that no queue pair distributes to it any more. */
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

struct rss; /* a queue pair uses it: qp_set_rss */

/* A raw packet QP without rings, which distributes frames to work queues. */
struct rss_attr {
	uint32_t fields; /* enum rss_field; at most one L3 and one L4 protocol */
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
	bool master;	    /* may wait for completions of other queues and enable their requests */
	bool slave_send;    /* posted requests are sent when a master has enabled them */
	bool slave_receive; /* posted receives of its own ring likewise */
	uint32_t pdn;	    /* XRC_TGT: 0, because that of the shared receive queue counts */
	uint32_t xrcdn;	    /* XRC_TGT only */
	uint32_t uidx;
	/* Each may be NULL only where the type has no such side.  XRC_INI and DCI do not receive;
	 * XRC_TGT and DCT do not send; XRC_TGT receives into the CQ of the shared receive queue. */
	struct cq *send_cq;
	struct cq *recv_cq;
	struct srq *srq; /* or NULL; a DCT has no other receives */
	void *sq_buf;
	uint32_t sq_blocks; /* ring size in WQE_BLOCK; power of two or 0 */
	void *rq_buf;
	uint32_t rq_wqes;      /* power of two or 0 */
	uint32_t rq_wqe_bytes; /* power of two */
	void *dbrec;	       /* two be32, see DBREC_RECV, DBREC_SEND */
	/* 0: the send index is in the record, and bells do not say it.  Otherwise: where the bells
	 * come from that say it (qp_bell); then the record has no send index, and may be NULL
	 * without receives. */
	uint32_t region;
	bool silent; /* in error, posted requests do not complete */
	bool sq_sig_all;
	uint32_t max_recv_sge;
	uint32_t max_inline;
	bool block_self_mcast;	    /* UD: its own groups get no copy of what it sends */
	bool strip_vlan;	    /* raw packet */
	uint32_t loopback;	    /* raw packet: enum qp_loopback */
	const void *domain;	    /* raw packet: the same for all queues of one context */
	const struct rss_attr *rss; /* raw packet: it then has no rings and no CQs */
	uint64_t dc_key;	    /* DCT: requests must have this key */
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
	uint32_t path_mig_state; /* enum ib_mig_state */
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qpn;
	uint32_t access; /* enum ib_access */
	struct ib_ah ah;
	struct ib_ah alt_ah;
	uint32_t rate_limit;
	uint16_t udp_sport; /* RoCE v2; only qp_set_udp_sport sets it */
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

/* Returns 0, -EINVAL if the parts do not fit together, -EOPNOTSUPP for a type that the device or
 * this port does not have, -ENOMEM, or what number_chunk returns.  The caller may free the
 * attributes afterwards. */
int qp_create(struct adapter *a, const struct qp_create_attr *attr, struct qp **out) must_check;
uint32_t qp_number(const struct qp *qp);
/* mask: enum ib_qp_attr_mask.  -EINVAL for a transition or an attribute that the specification does
 * not allow. */
int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask) must_check;
void qp_query(struct qp *qp, struct qp_attr *attr);
/*
 * INIT2INIT_QP with DRAIN_SIGERR: when a request of this QP finds a signature error, the send queue
 * stops in SQD right behind that request.  Requests under way end first, then IB_EVENT_SQ_DRAINED
 * comes.  RESET clears it.
 */
void qp_set_drain_sigerr(struct qp *qp, bool drain);
/* Counters of WQE_BLOCK in the send ring: hw, the first block of the first request that was not
 * executed, and sw, the last doorbell record. */
void qp_sq_counters(struct qp *qp, uint16_t *hw, uint16_t *sw);
/* Raw packet QP with a table of work queues: sets another table and hash, or other frames of its
 * own context that it gets.  Frames on their way may go by the old ones until the call returns. */
int rss_make(const struct rss_attr *attr, struct rss **out) must_check;
void rss_discard(struct rss *rss); /* rss that no queue pair has got; may be NULL */
void qp_set_rss(struct qp *qp, struct rss *rss);
void qp_set_loopback(struct qp *qp, uint32_t loopback);
/* RoCE v2: sets the source port of its packets, which a query reports; the wire does not carry
 * it. */
void qp_set_udp_sport(struct qp *qp, uint16_t port);
/* DCI: lets requests of the stream be executed again.  -EINVAL if the stream is not in error. */
int qp_reset_stream(struct qp *qp, uint16_t stream) must_check;
/* Executes the requests on the send ring, because the program has rung the send doorbell, or may
 * have.  Call it inside hazard_enter (base/hazard.h), where a caller that has just looked up the queue
 * pair already is. */
void qp_doorbell(struct qp *qp);
/*
 * The same for the queue pair that a doorbell register names: all blocks before send block pi are
 * posted, whatever the record says.  Number and index come from a program and may be any.  One
 * thread at a time may call it.
 */
void adapter_doorbell(struct adapter *a, uint32_t qpn, uint16_t pi);
/*
 * A bell by value, which a DPA rings: all blocks before send block pi are posted.  False: no queue
 * pair has that number and that region, and nothing happens.  Any thread may call it.
 */
bool qp_bell(struct adapter *a, uint32_t region, uint32_t qpn, uint16_t pi);
/* Called when receives were posted: a QP in error flushes them at once, other states ignore it. */
void qp_recv_posted(struct qp *qp);
/* Detaches the QP from CQs and SRQ.  When it returns, nobody touches rings or registered memory on
 * its behalf. */
void qp_destroy(struct qp *qp);

/*
 * Reserves a range of 1 << ADAPTER_LOG_RESERVED_QPNS QP numbers that no queue pair gets, for
 * programs that need numbers without queue pairs.  Returns the first one, a multiple of the range,
 * or negative errno.
 */
int64_t qpn_reserve(struct adapter *a) must_check;
void qpn_unreserve(struct adapter *a, uint32_t first);

/* ---- faults on demand ---- */

struct fault_counts;
struct fault_view;

/*
 * Makes happen to the queues of the device what the view's rule in that row says (registry/fault.h);
 * counts in the view and in counts.  A device that fails takes its queue pairs with it.  Call it inside
 * hazard_enter, and from one thread at a time for a view.
 */
void adapter_inject(struct adapter *a, struct fault_view *view, uint32_t row,
		    struct fault_counts *counts);

/* ---- multicast ---- */

/*
 * UD only.  Returns 1, 0 if the QP is attached already, -EINVAL if the GID is no multicast address,
 * or -ENOMEM beyond the limits.
 */
int qp_attach_mcast(struct qp *qp, const union ib_gid *gid, uint16_t mlid) must_check;
/* -EINVAL if the QP is not attached. */
int qp_detach_mcast(struct qp *qp, const union ib_gid *gid, uint16_t mlid) must_check;

/* A port whose link is slow. */

/* Makes the last link to the port take only so many bytes a second, and mark packets while
 * mark_bytes wait in front of it; 0: the link is not slow.  Call it before packets arrive. */
void adapter_congest(struct adapter *a, uint64_t bytes_per_second, uint64_t mark_bytes);
