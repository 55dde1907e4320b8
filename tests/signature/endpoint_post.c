// SPDX-License-Identifier: BSD-2-Clause
/* Work requests of a side. */
#include <errno.h>

#include "endpoint.h"

static bool build_request(struct endpoint *d, const struct request *r)
{
	struct ibv_qp_ex *q = d->qpx;
	struct ibv_sge sge[ORDER_SGES];

	q->wr_id = r->id;
	q->wr_flags = r->flags;
	switch (r->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(q);
		break;
	case IBV_WR_SEND_WITH_INV:
		ibv_wr_send_inv(q, r->rkey);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(q, 0);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(q, r->rkey, r->raddr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(q, r->rkey, r->raddr, 0);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(q, r->rkey, r->raddr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(q, r->rkey, r->raddr, r->operand[0], r->operand[1]);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(q, r->rkey, r->raddr, r->operand[0]);
		break;
	case IBV_WR_LOCAL_INV:
		ibv_wr_local_inv(q, r->rkey);
		return true; /* no data */
	default:
		return false;
	}
	for (unsigned i = 0; i < r->slices; i++)
		sge[i] = endpoint_sge(d, r->slice[i].key, r->slice[i].at, r->slice[i].bytes);
	ibv_wr_set_sge_list(q, r->slices, sge);
	return true;
}

int endpoint_post(struct endpoint *d, unsigned count, const struct request *request)
{
	ibv_wr_start(d->qpx);
	for (unsigned i = 0; i < count; i++) {
		if (!build_request(d, &request[i])) {
			ibv_wr_abort(d->qpx);
			return EINVAL;
		}
	}
	return ibv_wr_complete(d->qpx);
}

int endpoint_receive(struct endpoint *d, uint64_t id, unsigned slices, const struct slice *slice)
{
	struct ibv_sge sge[ORDER_SGES];
	struct ibv_recv_wr wr = {.wr_id = id, .sg_list = sge, .num_sge = (int)slices};
	struct ibv_recv_wr *bad;

	for (unsigned i = 0; i < slices; i++)
		sge[i] = endpoint_sge(d, slice[i].key, slice[i].at, slice[i].bytes);
	return ibv_post_recv(d->qp, &wr, &bad);
}
