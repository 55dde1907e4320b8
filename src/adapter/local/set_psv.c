// SPDX-License-Identifier: BSD-2-Clause
/* SET_PSV: work requests that write a protected signature value. */
#include "adapter/local/local.h"

#include <string.h>

#include "adapter/memory/psv.h"
#include "adapter/qp/qp.h"
#include "base/explain.h"

uint8_t set_psv_execute(struct qp *qp, const struct send_wqe *w)
{
	struct wqe_set_psv set;
	uint32_t number;

	if (wqe_ds(&w->ctrl) * WQE_UNIT != sizeof(w->ctrl) + sizeof(set))
		return explained(CQE_SYN_LOCAL_QP_OP, "SET_PSV of one PSV has ds 2, not %u",
				 wqe_ds(&w->ctrl));
	memcpy(&set, w->bytes + sizeof(w->ctrl), sizeof(set));
	number = be32_get(set.psv_index) & PSV_INDEX_MASK;
	if (psv_set(qp->adapter, number, qp->create.pdn, be64_get(set.transient_signature)))
		return 0;
	return explained(CQE_SYN_LOCAL_PROT, "there is no PSV 0x%x in PD %u, which is the QP's",
			 number, qp->create.pdn);
}
