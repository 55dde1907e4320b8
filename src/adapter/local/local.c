// SPDX-License-Identifier: BSD-2-Clause
/* Which function executes which local operation (local.h). */
#include "adapter/local/local.h"

uint8_t local_execute(struct qp *qp, const struct send_wqe *w, bool *waits)
{
	switch (w->opcode) {
	case WQE_OP_UMR:
		return umr_execute(qp, w);
	case WQE_OP_SET_PSV:
		return set_psv_execute(qp, w);
	case WQE_OP_MMO:
	case WQE_OP_LOCAL_MMO:
		return mmo_execute(qp, w);
	case WQE_OP_WAIT:
		return wait_execute(qp, w, waits);
	case WQE_OP_RECEIVE_EN:
		return receive_en_execute(qp, w);
	case WQE_OP_SEND_EN:
		return send_en_execute(qp, w);
	default: /* NOP */
		return 0;
	}
}
