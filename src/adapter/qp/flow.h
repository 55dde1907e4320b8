/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows whose congestion somebody controls.  A connection that sends from a port that a process
 * controls (wire/flow_control.h) has a row in its own process's slot.  The row adds up what the
 * connection sends and hears, and the connection sends as fast as the row says.
 *
 * A queue pair that nobody controls has none of this: the requester only asks where a process is
 * observed.
 */
#pragma once

#include "adapter/qp/qp.h"

/*
 * True if the packet may go now.  False: it waits for a timer, which kicks the queue pair.  Call it
 * with sq held, and only where the process is observed.
 */
bool flow_admit(struct qp *qp, const struct pkt *pkt) must_check;
/* Notes that the packet has gone.  Call it with sq held, and only if the queue pair has a row. */
void flow_sent(struct qp *qp, const struct pkt *pkt);
/* Notes that there is nothing more to send for now.  Call it with sq held, and only if the queue
 * pair has a row. */
void flow_paused(struct qp *qp);
/* Notes that the peer has refused a packet.  The caller may hold any lock. */
void flow_refused(struct qp *qp, enum flow_nack kind);
/* Takes a notification or a probe, of transport BTH_CNP.  The caller is a reader. */
void flow_receive(struct qp *qp, const struct pkt *pkt);
/* Notifies the sender of a packet that came through a congested port (adapter.congestion), or
 * that a router on its way has marked.  The caller is a reader. */
void flow_congested(struct qp *qp, const struct pkt *pkt);

/* Runs when the timer of a waiting flow fires. */
void flow_due(struct timer *t);
/* Gives the row back. */
void flow_end(struct qp *qp);

/* True if the queue pair waits for its rate.  If nobody is observed any more, nobody controls it
 * either. */
static inline bool flow_holds_back(const struct qp *qp)
{
	return atomic_load(&qp->flow.waits) && atomic_load(qp->adapter->observers);
}

static inline struct slot_flow *flow_row(const struct qp *qp)
{
	return atomic_load_explicit(&qp->flow.row, memory_order_relaxed);
}
