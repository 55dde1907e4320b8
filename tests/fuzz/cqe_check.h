/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a program may expect of the completions of a queue pair of the wqe target.  Each completion
 * has an opcode, a syndrome and a number that the specification knows.  One of a request is for a
 * request that was posted and has not completed, in the order of the ring; in success only if the
 * request asked for it.  Receives complete in their order.  When the queue pair is in the error
 * state at the end, every receive and every request that asked for a completion has one.
 *
 * Where the input has written over rings or records nobody knows what was posted, and where the
 * queue has overrun nobody knows what completed.  There the check is of each completion alone.
 */
#pragma once

#include "fuzz_device.h"

struct cqe_check {
	struct {
		uint16_t block;
		uint8_t opcode;
		bool signaled;
	} posted[FUZZ_BLOCKS];
	uint32_t first, last; /* of those that have not completed; never masked */
	uint32_t looked;      /* at the completions before this one */
	uint16_t received;    /* receives that have completed */
	uint16_t receives;    /* receives that were posted */
	bool overwritten;     /* by the input */
};

/* The rings are empty, and completions up to now are of no interest. */
void cqe_check_begin(struct cqe_check *c, const struct fuzz_qp *q);
/* A request is posted at the ring's producer index. */
void cqe_check_posted(struct cqe_check *c, const struct fuzz_qp *q, uint8_t opcode,
		      uint8_t fm_ce_se, uint32_t blocks);
void cqe_check_received(struct cqe_check *c);
/* From now on, until the rings are empty, nobody knows what was posted. */
void cqe_check_overwritten(struct cqe_check *c);
/* Looks at the completions that have come since the last call. */
void cqe_check_look(struct cqe_check *c, const struct fuzz_qp *q);
/* Puts all queue pairs into the error state and waits until all have completed. */
void cqe_check_end(struct cqe_check *c, struct fuzz_device *d);
