/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The target of dynamically connected transport: a number, an access key, a shared receive queue,
 * and one responder per initiator that has found it.  Each responder is a queue pair without a
 * number of its own and without a send side, so all rules of RC's responder hold.
 *
 * A responder is made when an initiator's first packet arrives, and stays for the next connection
 * of the same initiator.  An error ends the connection, never the target.
 *
 * Only this target knows what it has executed of a connection.  An initiator whose answer was lost
 * sends again, however long it was silent; a target that had forgotten the connection would execute
 * the message twice.  So an initiator keeps its place while its process lives.  After that nothing
 * opens a connection in its name, because packets still on their way may have been executed before.
 */
#pragma once

#include "adapter/adapter.h"

struct dct;
struct pkt;
struct qp;

struct dct *dct_create(const struct qp_create_attr *attr);
/* Takes a request to the BTH_DC queue pair, which need not be a target.  The caller is a reader. */
void dct_receive(struct qp *target, const struct pkt *pkt);
/*
 * Called when the target's number was withdrawn and no reader holds the target any more.
 * Sends what initiators are owed, and waits for threads that run a responder.
 */
void dct_destroy(struct qp *target);
