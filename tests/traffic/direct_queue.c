// SPDX-License-Identifier: BSD-2-Clause
/* Rings, records and registers by hand; see direct_queue.h. */
#include "direct_queue.h"

#include <dlfcn.h>
#include <endian.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "../support/verbs_device.h"

static __typeof__(&mlx5dv_init_obj) init_obj = mlx5dv_init_obj;

void direct_announce(bool on)
{
	void *library = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_NOLOAD);

	init_obj = on	     ? mlx5dv_init_obj
		   : library ? (__typeof__(init_obj))dlvsym(library, "mlx5dv_init_obj", "MLX5_1.2")
			     : NULL;
	if (!init_obj)
		device_die("no mlx5dv_init_obj: %s", dlerror());
}

#define BLOCK 64u
enum { CQ_CONSUMED, CQ_ARM }; /* words of its record */
#define CQ_DOORBELL 0x20u

static struct direct_reg *reg_at(uint8_t *at, uint32_t size, struct direct_reg *regs,
				 unsigned nregs)
{
	for (unsigned i = 0; i < nregs; i++) {
		if (!regs[i].at)
			regs[i] = (struct direct_reg){.at = at, .half = size};
		if (regs[i].at == at)
			return &regs[i];
	}
	device_die("more registers than expected");
}

void direct_take_qp(struct ibv_qp *qp, struct direct_sq *sq, struct direct_rq *rq,
		    struct direct_reg *regs, unsigned nregs)
{
	struct mlx5dv_qp dv = {0};
	struct mlx5dv_obj obj = {.qp = {.in = qp, .out = &dv}};
	int err = init_obj(&obj, MLX5DV_OBJ_QP);

	if (err)
		device_die("mlx5dv_init_obj: %s", strerror(err));
	if (dv.sq.stride != BLOCK)
		device_die("a send queue of %u-byte blocks", dv.sq.stride);
	*sq = (struct direct_sq){
		.ring = dv.sq.buf,
		.blocks = dv.sq.wqe_cnt,
		.record = &dv.dbrec[MLX5_SND_DBR],
		.qpn = qp->qp_num,
		.reg = reg_at(dv.bf.reg, dv.bf.size, regs, nregs),
	};
	*rq = (struct direct_rq){
		.ring = dv.rq.buf,
		.wqes = dv.rq.wqe_cnt,
		.stride = dv.rq.stride,
		.record = &dv.dbrec[MLX5_RCV_DBR],
	};
}

void direct_take_cq(struct ibv_cq *cq, struct direct_cq *out)
{
	struct mlx5dv_cq dv = {0};
	struct mlx5dv_obj obj = {.cq = {.in = cq, .out = &dv}};
	int err = init_obj(&obj, MLX5DV_OBJ_CQ);

	if (err)
		device_die("mlx5dv_init_obj: %s", strerror(err));
	*out = (struct direct_cq){
		.ring = dv.buf,
		.cqes = dv.cqe_cnt,
		.cqe_bytes = dv.cqe_size,
		.cqn = dv.cqn,
		.records = dv.dbrec,
		.uar = dv.cq_uar,
	};
}

static struct mlx5_wqe_ctrl_seg *begin_request(struct direct_sq *sq, uint8_t opcode, uint8_t ds)
{
	struct mlx5_wqe_ctrl_seg *ctrl = (void *)(sq->ring + (sq->next % sq->blocks) * BLOCK);

	mlx5dv_set_ctrl_seg(ctrl, (uint16_t)sq->next, opcode, 0, sq->qpn, MLX5_WQE_CTRL_CQ_UPDATE,
			    ds, 0, 0);
	sq->next++; /* every request here fits a block */
	return ctrl;
}

void direct_write(struct direct_sq *sq, struct direct_slice from, struct direct_slice to)
{
	struct mlx5_wqe_ctrl_seg *ctrl = begin_request(sq, MLX5_OPCODE_RDMA_WRITE, 3);
	struct mlx5_wqe_raddr_seg *raddr = (void *)(ctrl + 1);

	*raddr = (struct mlx5_wqe_raddr_seg){.raddr = htobe64(to.addr), .rkey = htobe32(to.key)};
	mlx5dv_set_data_seg((void *)(raddr + 1), from.bytes, from.key, from.addr);
}

void direct_send(struct direct_sq *sq, struct direct_slice from)
{
	struct mlx5_wqe_ctrl_seg *ctrl = begin_request(sq, MLX5_OPCODE_SEND, 2);

	mlx5dv_set_data_seg((void *)(ctrl + 1), from.bytes, from.key, from.addr);
}

void direct_post_recv(struct direct_rq *rq, struct direct_slice to)
{
	struct mlx5_wqe_data_seg *seg = (void *)(rq->ring + (rq->next % rq->wqes) * rq->stride);

	mlx5dv_set_data_seg(seg, to.bytes, to.key, to.addr);
	if (rq->stride > sizeof(*seg))
		mlx5dv_set_data_seg(seg + 1, 0, MLX5_INVALID_LKEY, 0);
	rq->next++;
	atomic_thread_fence(memory_order_release);
	*(volatile __be32 *)rq->record = htobe32(rq->next & 0xffff);
}

void direct_ring(struct direct_sq *sq)
{
	atomic_thread_fence(memory_order_release);
	*(volatile __be32 *)sq->record = htobe32(sq->next & 0xffff);
	direct_ring_register(sq);
}

void direct_ring_register(struct direct_sq *sq)
{
	const uint8_t *last = sq->ring + ((sq->next - 1) % sq->blocks) * BLOCK;
	uint64_t head;

	memcpy(&head, last, sizeof(head));
	atomic_thread_fence(memory_order_seq_cst);
	*(volatile uint64_t *)(void *)(sq->reg->at + sq->reg->offset) = head;
	sq->reg->offset ^= sq->reg->half;
}

bool direct_poll_any(struct direct_cq *cq, uint8_t *syndrome)
{
	const uint8_t *end = cq->ring + (cq->next % cq->cqes + 1) * cq->cqe_bytes;
	const struct mlx5_cqe64 *cqe = (const void *)(end - sizeof(*cqe));
	uint8_t op_own = *(const volatile uint8_t *)&cqe->op_own;
	uint8_t opcode = op_own >> 4;

	if (opcode == MLX5_CQE_INVALID || (op_own & 1) != !!(cq->next & cq->cqes))
		return false;
	atomic_thread_fence(memory_order_acquire);
	*syndrome = opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR
			    ? ((const struct mlx5_err_cqe *)cqe)->syndrome
			    : 0;
	cq->next++;
	*(volatile __be32 *)&cq->records[CQ_CONSUMED] = htobe32(cq->next & 0xffffff);
	return true;
}

bool direct_poll(struct direct_cq *cq)
{
	uint8_t syndrome;

	if (!direct_poll_any(cq, &syndrome))
		return false;
	if (syndrome)
		device_die("a completion with error, syndrome 0x%x", syndrome);
	return true;
}

bool direct_wait(struct direct_cq *cq, uint64_t limit_ns)
{
	uint64_t start = 0;

	for (unsigned round = 0; !direct_poll(cq); round++) {
		if (round % 1024 != 1023)
			continue;
		sched_yield(); /* the device may wait for this CPU */
		if (!start)
			start = device_now_ns();
		if (device_now_ns() - start > limit_ns)
			return false;
	}
	return true;
}

void direct_arm(struct direct_cq *cq)
{
	uint32_t arm = (cq->arm_sn & 3) << 28 | (cq->next & 0xffffff);

	*(volatile __be32 *)&cq->records[CQ_ARM] = htobe32(arm);
	atomic_thread_fence(memory_order_seq_cst);
	*(volatile uint64_t *)(void *)(cq->uar + CQ_DOORBELL) =
		htobe64((uint64_t)arm << 32 | cq->cqn);
}

void direct_armed_again(struct direct_cq *cq)
{
	cq->arm_sn++;
}
