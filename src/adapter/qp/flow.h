/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows whose congestion is controlled: a connection that sends from a port that somebody controls
 * (wire/flow_control.h) has a row in the process's slot.  What it sends, and what it hears, is added up
 * there; it sends as fast as the row says.
 *
 * A queue pair that is not controlled has none of this: the requester asks only where a process is
 * observed.
 */
#pragma once

#include "adapter/qp/qp.h"

/*
 * May the packet go now?  False: it waits for a timer, which kicks the queue pair.  Under sq.
 * Only where the process is observed.
 */
bool flow_admit(struct qp *qp, const struct pkt *pkt) must_check;
/* It went.  Under sq; only if the queue pair has a row. */
void flow_sent(struct qp *qp, const struct pkt *pkt);
/* There is nothing more to send for now.  Under sq; only if the queue pair has a row. */
void flow_paused(struct qp *qp);
/* The peer has refused a packet.  Any lock may be held. */
void flow_refused(struct qp *qp, enum flow_nack kind);
/* A notification or a probe, of transport BTH_CNP.  Under RCU. */
void flow_receive(struct qp *qp, const struct pkt *pkt);
/* A request came through a port that is congested (adapter.congestion).  Under RCU. */
void flow_congested(struct qp *qp, const struct pkt *pkt);

/* The timer of a flow that waits. */
void flow_due(struct timer *t);
/* The row goes back. */
void flow_end(struct qp *qp);

/* Does it wait for its rate?  If nobody is observed any more, nobody controls it, either. */
static inline bool flow_holds_back(const struct qp *qp)
{
	return atomic_load(&qp->flow.waits) && atomic_load(qp->adapter->observers);
}

static inline struct slot_flow *flow_row(const struct qp *qp)
{
	return atomic_load_explicit(&qp->flow.row, memory_order_relaxed);
}
