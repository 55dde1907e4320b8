/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target of dynamically connected transport: a number, an access key, a shared receive queue,
 * and one responder per initiator that has found it.  Each of those is a queue pair without a
 * number of its own and without a send side, so that all of the responder's rules are those of RC.
 *
 * A responder is made when an initiator's first packet arrives, and stays for the next connection
 * of the same initiator.  An error ends the connection, never the target.
 *
 * What has been executed of a connection is known here alone: an initiator whose answer was lost
 * sends again, however long it was silent, and would have the message executed twice by a target
 * that had forgotten it.  So an initiator keeps its place while its process lives.  After that
 * nothing opens a connection in its name, for what is still on its way may have been executed.
 */
#pragma once

#include "adapter/adapter.h"

struct dct;
struct pkt;
struct qp;

struct dct *dct_create(const struct qp_create_attr *attr);
/* A request to the number of this queue pair of BTH_DC, target or not.  Under RCU. */
void dct_receive(struct qp *target, const struct pkt *pkt);
/*
 * A grace period after the target's number has gone: no packet finds it any more.  Sends what
 * initiators are owed, and waits for those that run a responder.
 */
void dct_destroy(struct qp *target);
