// SPDX-License-Identifier: BSD-2-Clause
/* SET_PSV: work requests that write a protected signature value. */
#include "adapter/local/local.h"

#include <string.h>

#include "adapter/memory/psv.h"
#include "adapter/qp/qp.h"
#include "base/log.h"

uint8_t set_psv_execute(struct qp *qp, const struct send_wqe *w)
{
	struct wqe_set_psv set;
	uint32_t number;

	if (wqe_ds(&w->ctrl) * WQE_UNIT != sizeof(w->ctrl) + sizeof(set)) {
		log_info("QP 0x%x: SET_PSV of one PSV has ds 2, not %u", qp->qpn, wqe_ds(&w->ctrl));
		return CQE_SYN_LOCAL_QP_OP;
	}
	memcpy(&set, w->bytes + sizeof(w->ctrl), sizeof(set));
	number = be32_get(set.psv_index) & PSV_INDEX_MASK;
	if (psv_set(qp->adapter, number, qp->create.pdn, be64_get(set.transient_signature)))
		return 0;
	log_info("QP 0x%x: SET_PSV: no PSV 0x%x in its protection domain", qp->qpn, number);
	return CQE_SYN_LOCAL_PROT;
}
