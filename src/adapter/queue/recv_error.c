// SPDX-License-Identifier: BSD-2-Clause
/* See recv_error.h. */
#include "adapter/queue/recv_error.h"

#include "adapter/queue/cq.h"
#include "prm/vendor_err.h"
#include "wire/counter_shard.h"

bool recv_error_push(struct adapter *a, struct cq *cq, uint32_t uidx, uint32_t number,
		     uint16_t index, uint8_t syndrome)
{
	struct cqe64_err cqe = {
		.srqn = be32_of(uidx),
		.vendor_err_synd = vendor_err_of(CQE_OP_RESP_ERR, syndrome),
		.syndrome = syndrome,
		.s_wqe_opcode_qpn = be32_of(number),
		.wqe_counter = be16_of(index),
		.op_own = CQE_OP_RESP_ERR << 4 | CQE_SOLICITED,
	};
	bool flush = syndrome == CQE_SYN_WR_FLUSH;

	shard_count(a->counters, flush ? HW_RESP_CQE_FLUSH_ERROR : HW_RESP_CQE_ERROR, 1);
	return cq_push(cq, (struct cqe64 *)&cqe, CQ_WAKE_SOLICITED);
}
