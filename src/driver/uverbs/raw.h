/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects of Ethernet queues: work queues, their indirection tables, steering rules. */
#pragma once

#include "driver/uverbs/objects.h"

struct mlx5_ib_create_qp_resp;
struct mlx5_ib_flow_counters_data;

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

struct uflow {
	struct uobj uobj;
	struct uqp *qp; /* each of these may be NULL */
	struct uobj *counters;
	struct uobj *matcher;
	struct flow *flow;
};

/* A rule with a handle; qp: what it leads to, or NULL. */
int uflow_create(struct ufile *f, const struct flow_attr *attr, struct uqp *qp,
		 struct uflow **out) must_check;

/*
 * A rule counts into this counters object.  data says which counts go where; NULL if an earlier
 * rule told.
 */
int ucounters_attach(struct uobj *obj, const struct mlx5_ib_flow_counters_data *data) must_check;
void ucounters_detach(struct uobj *obj);
struct flow_counter *ucounters_counter(struct uobj *obj);

/* May the caller send and sniff frames?  As the kernel: CAP_NET_RAW, or root. */
bool uverbs_may_raw(void);

/* A QP that distributes frames to the work queues of a table. */
struct urss_request {
	uint64_t user_handle;
	struct upd *pd;
	struct uind_table *table;
	struct uchannel *async;
	uint64_t type;
	uint32_t flags;
	bool has_queues; /* receives or send requests were asked for as well */
};

/* MLX5_QP_FLAG_TIR_ALLOW_SELF_LB_* as enum qp_loopback. */
uint32_t uraw_loopback(uint32_t uhw_flags);
/* The numbers of the parts of which hardware makes a raw packet QP. */
void uraw_numbers(const struct qp *qp, struct mlx5_ib_create_qp_resp *resp);

int urss_create(struct ureq *req, const struct urss_request *r, struct uqp **out) must_check;
