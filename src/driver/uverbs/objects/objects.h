/* SPDX-License-Identifier: BSD-2-Clause */
/* The records of verbs objects, and what their files and other folders need of each. */
#pragma once

#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>

#include "adapter/adapter.h"
#include "driver/doorbell/doorbell.h"
#include "driver/uverbs/core/file.h"
#include "driver/uverbs/core/object.h"
#include "driver/uverbs/core/request.h"
#include "driver/uverbs/core/spec.h"
#include "exposure/segment.h"

/* ---- protection domains ---- */

struct upd {
	struct uobj uobj;
	uint32_t pdn;
	struct object_row *row; /* for people; may be NULL */
};

/* ---- UARs: pages with doorbell registers ---- */

/* Registers of a page that the program names, or NULL. */
uint8_t *uuar_regs(struct ufile *f, uint32_t page);
/* The program has mapped a part of the file; or no mapping of its pages counts any more. */
void uuar_mapped(struct ufile *f, uintptr_t addr, size_t len, off_t offset);
void uuar_forget(struct ufile *f);
/* Makes sure that the next request for a region succeeds; the file's end gives the region back. */
int uuar_reserve(struct ufile *f) must_check;
void uuar_release(struct ufile *f);

/* ---- completion queues ---- */

struct ucq {
	struct uobj uobj;
	struct cq *cq;
	struct doorbell_user bell;
	struct uchannel *comp; /* or NULL */
	uint32_t comp_events;  /* under the channel's lock */
	uint32_t entries;
	uint32_t cqe_bytes;
};

/* The program asks for an event of the CQ, or may have asked. */
void ucq_ring(struct ucq *cq);

/* ---- shared receive queues ---- */

struct uxrcd;

struct usrq {
	struct uobj uobj;
	struct upd *pd;
	struct uxrcd *xrcd; /* XRC, with its CQ; otherwise NULL */
	struct ucq *cq;
	struct srq *srq;
	uint32_t max_wr;
	uint32_t max_sge;
};

/* ---- receive work queues of Ethernet, and the indirection tables over them ---- */

struct uwq {
	struct uobj uobj;
	struct upd *pd;
	struct ucq *cq;
	struct wq *wq;
};

struct uind_table {
	struct uobj uobj;
	uint32_t log_size;
	struct uwq *wqs[];
};

/* ---- queue pairs ---- */

struct uind_table;
struct uxrcd;
struct xrc_target;

struct uqp {
	struct uobj uobj;
	/* NULL where the type has none */
	struct upd *pd;
	struct ucq *send_cq;
	struct ucq *recv_cq;
	struct usrq *srq;
	struct uxrcd *xrcd;
	struct uind_table *ind_table; /* RSS */
	uint32_t groups;	      /* how many multicast groups it is attached to */
	struct xrc_target *target;    /* with it, other handles share qp */
	struct uqp *prev_handle, *next_handle;
	struct qp *qp;
	struct doorbell_user bell;
	enum ib_qp_type type;
	uint32_t max_recv_wr; /* of the ring as it is; query reports it */
	uint32_t max_recv_sge;
	bool sq_sig_all;
	/* Numbers that the program asked for; the library may give more. */
	uint32_t max_send_wr;
	uint32_t max_send_sge;
	uint32_t max_inline;
};

extern const struct uobj_class uqp_class;

/* ---- dynamically connected queue pairs ---- */

/*
 * What creation and modification of queue pairs need to know of dynamically connected ones.  The
 * ABI has one type for all types that are the driver's own; mlx5's private part says which is
 * meant.
 */

struct ib_uverbs_qp_cap;

/* The number as the program sees it: a DCT gets its number at the transition to RTR. */
uint32_t uqp_number(const struct uqp *qp);
/* Before a modification: whether the answer has room for the number that a DCT gets. */
int uqp_check_modify_dc(const struct uqp *qp, const struct ib_uverbs_modify_qp *cmd,
			uint64_t answer_bytes) must_check;

/* ---- queue pairs over an indirection table (RSS), and what raw packet QPs have in common ---- */

struct mlx5_ib_create_qp_resp;

/* Tells whether the caller may send and sniff frames, as the kernel does: CAP_NET_RAW, or root. */
bool uverbs_may_raw(void);

/* A QP that distributes frames to the work queues of a table. */
struct urss_request {
	uint64_t user_handle;
	struct upd *pd;
	struct uind_table *table;
	struct uchannel *async;
	uint64_t type;
	uint32_t flags;
	bool has_queues; /* the program asked for receives or send requests as well */
};

/* MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_* as enum qp_loopback. */
uint32_t uraw_loopback(uint32_t uhw_flags);
/* The numbers of the parts of which hardware would make a raw packet QP. */
void uraw_numbers(const struct qp *qp, struct mlx5_ib_create_qp_resp *resp);

int urss_create(struct ureq *req, const struct urss_request *r, struct uqp **out) must_check;

/* ---- address handles ---- */

struct ib_uverbs_ah_attr;

/* Checks address handle attributes against the port and decodes them.  Negative errno as ib_core. */
int uah_decode(const struct ufile *f, const struct ib_uverbs_ah_attr *in,
	       struct ib_ah *out) must_check;

/* Finds the destination MAC of a decoded address on Ethernet, and does nothing on InfiniBand. */
int uah_resolve(const struct ufile *f, struct ib_ah *ah) must_check;

/* ---- memory regions, and the memory of the program that objects lie in ---- */

struct umr {
	struct uobj uobj;
	struct upd *pd;
	struct mkey *mkey;
	struct mkey_attr attr;
	uint32_t dm_handle; /* the device memory under it, or 0 */
	struct uobj *icm;   /* the steering memory under it, or NULL */
	/* The file under it that peers may map; generation 0: none. */
	struct segment_ref segment;
	/* List of the regions that peers reach; NULL: it is not in the list (share.c). */
	struct umr *open_next, **open_at;
	/* List of those that peers have mapped. */
	struct umr *mapped_next, **mapped_at;
};

/*
 * Checks that the memory of the program is there, and writable if asked, and makes it resident, as
 * pinning would.  -EFAULT if it is not there, -EINVAL for an empty or wrapping range.
 */
int umem_populate(uint64_t start, uint64_t length, bool write) must_check;

/* Checks which rights may be asked for together; -EINVAL. */
int umr_check_access(uint32_t access) must_check;
/* Makes a region with a handle; the caller has checked rights and memory. */
int umr_create(struct ufile *f, struct upd *pd, const struct mkey_attr *attr,
	       struct umr **out) must_check;

/* ---- how peers reach regions ---- */

/*
 * Regions whose memory peers may reach without us (exposure/expose.h).  Memory that the program has
 * mapped shared from a file (driver/runtime/shared_file.h) is opened to peers as that file; other
 * memory they reach by the kernel.
 */

struct umr;

/* Decides how peers reach the region, if it has remote rights, and tells the device. */
void ushare_region(const struct ufile *f, struct umr *mr);
/* Called before the region's key changes or goes: nobody else withdraws it afterwards. */
void ushare_end(struct umr *mr);
/* Called when no peer reaches the memory by the region's key any more. */
void ushare_release(struct umr *mr);

/*
 * The driver calls these around the moment at which the program begins to serve faults of memory
 * (userfaultfd).  Peers reach regions there by packets only, from before that moment, so that
 * nobody who waits for a fault holds up the withdrawal.
 */
void ushare_serving_begin(uint64_t addr, uint64_t bytes);
void ushare_serving_end(void);

/*
 * The program takes pages from these addresses, or has done so.  Peers that have mapped the same
 * pages would reach what the program no longer does, so they use packets from now on: these find
 * what is there, or nothing.
 */
void ushare_unmapping(uint64_t addr, uint64_t bytes);

/* The driver calls these around fork(2). */
void ushare_fork_lock(void);
void ushare_fork_unlock(void);

/* ---- steering rules, and the counters that they count into ---- */

struct mlx5_ib_flow_counters_data;

struct uflow {
	struct uobj uobj;
	struct uobj *to; /* what the rule leads to; each of these may be NULL */
	struct uobj *counters;
	struct uobj *matcher;
	struct uobj *devx_counter;
	struct uobj *action;
	struct flow *flow;
};

/* Makes a rule with a handle; to: the object that it leads to, or NULL. */
int uflow_create(struct ufile *f, const struct flow_attr *attr, struct uobj *to,
		 struct uflow **out) must_check;

/* ---- the families; the end of each file says which requests its family takes ---- */

extern const struct uverbs_family uah_family;
extern const struct uverbs_family ucq_family;
extern const struct uverbs_family udm_family;
extern const struct uverbs_family uflow_family;
extern const struct uverbs_family umatcher_family;
extern const struct uverbs_family umr_family;
extern const struct uverbs_family upd_family;
extern const struct uverbs_family uqp_family;
extern const struct uverbs_family uqp_attr_family;
extern const struct uverbs_family usrq_family;
extern const struct uverbs_family uuar_family;
extern const struct uverbs_family uwq_family;
extern const struct uverbs_family uxrcd_family;
