/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues. */
#pragma once

#include "driver/uverbs/objects/cq.h"
#include "driver/uverbs/objects/pd.h"

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
