/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which memory of a file's objects goes to the arena (share.h), and tells the device of it:
 *
 *   regions with remote rights                    when they are registered
 *   receive ring and CQ of a queue pair           when it is connected to another process
 *   regions with local write, into which it       then, and from then on when they are registered:
 *   may receive                                   a program that only sends should not pay for it
 */
#pragma once

#include "driver/uverbs/core/file.h"

struct umr;
struct uqp;

/* A ring that peers may see (uverbs/objects/share.c), with its doorbell record. */
struct ushared_ring {
	uint64_t buf, dbrec;
	struct share *pages[2]; /* where they are in the arena, or NULL */
};

void ushare_region(struct ufile *f, struct umr *mr);
/* After a modification of the queue pair. */
void ushare_receive(struct ufile *f, struct uqp *qp);
/* The device does not use the ring any more, or not from there. */
void ushare_ring_end(struct ushared_ring *r);
