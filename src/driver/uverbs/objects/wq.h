/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive work queues of Ethernet, and the indirection tables over them. */
#pragma once

#include "driver/uverbs/objects/cq.h"
#include "driver/uverbs/objects/pd.h"

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
