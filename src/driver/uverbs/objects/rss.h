/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs over an indirection table (RSS), and what raw packet QPs have in common. */
#pragma once

#include "driver/uverbs/core/request.h"
#include "driver/uverbs/objects/qp.h"
#include "driver/uverbs/objects/wq.h"

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
