// SPDX-License-Identifier: BSD-2-Clause
/* The send doorbell: first the bursts of plain requests, then the requester for the rest. */
#include "adapter/bypass/write_burst.h"
#include "adapter/transport/requester.h"
#include "adapter/transport/send_burst.h"

void qp_run(struct qp *qp)
{
	if (!baton_enter(&qp->sq))
		return;
	do {
		if (!write_burst_run(qp) && !send_burst_run(qp))
			requester_run(qp);
	} while (!baton_leave(&qp->sq));
}

void qp_doorbell(struct qp *qp)
{
	qp_run(qp);
	adapter_run(qp->adapter);
}
