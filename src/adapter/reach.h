/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A peer within reach: a responder that requests are executed at directly, because it is one of
 * this process or lies open to it (wire/expose.h).
 */
#pragma once

#include "adapter/qp.h"
#include "wire/size.h"

struct reach {
	struct qp_block *b;
	struct far *far; /* the process that it is in; NULL: this one */
	uint32_t pdn;
};

/*
 * The peer of a connected queue pair that would accept a request of this right (0: SEND) with our
 * next PSN.  Its responder's lock is held on success.  sq held, under RCU.
 */
bool reach_enter(const struct qp *qp, uint32_t right, struct reach *r) must_check;
/* Ends it, when these were executed; NULL: none. */
void reach_leave(const struct qp *qp, const struct reach *r, const struct message_sizes *done);
/* Where [va, va + len) of a key of another process lies here; NULL: the key refuses. */
uint8_t *reach_far_memory(const struct reach *r, uint32_t rkey, uint32_t right, uint64_t va,
			  uint64_t len) must_check;
