/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues. */
#pragma once

#include "adapter/adapter.h"
#include "driver/doorbell/doorbell.h"
#include "driver/uverbs/core/file.h"

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
