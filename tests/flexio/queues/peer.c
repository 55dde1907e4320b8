// SPDX-License-Identifier: BSD-2-Clause
/*
 * The device, and both ends of what feeds the queues: a sender of plain verbs, and a queue pair of DEVX that
 * receives.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "host.h"
#include "prm/cmd_qp.h"

#define BUFFER	  4096u
#define LOG_RECVS 8u
#define PAGE	  4096u

struct ibv_context *device_open(unsigned n)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	CHECK(list && list[0] && list[n]);
	ctx = mlx5dv_open_device(list[n], &attr);
	CHECK(ctx);
	ibv_free_device_list(list);
	return ctx;
}

uint16_t peer_lid(struct ibv_context *ctx)
{
	struct ibv_port_attr port;

	CHECK(!ibv_query_port(ctx, 1, &port));
	return port.lid;
}

/* ---- the sender ---- */

struct peer {
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t memory[BUFFER];
};

struct peer *peer_make(struct ibv_context *ctx)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
		.sq_sig_all = 1,
	};

	CHECK(peer);
	peer->pd = ibv_alloc_pd(ctx);
	peer->cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	CHECK(peer->pd && peer->cq);
	attr.send_cq = attr.recv_cq = peer->cq;
	peer->qp = ibv_create_qp(peer->pd, &attr);
	peer->mr = ibv_reg_mr(peer->pd, peer->memory, BUFFER, 0);
	CHECK(peer->qp && peer->mr);
	return peer;
}

uint32_t peer_number(const struct peer *peer)
{
	return peer->qp->qp_num;
}

void peer_connect(struct peer *peer, uint32_t qpn, uint16_t lid)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = qpn,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.dlid = lid, .port_num = 1},
	};

	CHECK(!ibv_modify_qp(peer->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(peer->qp, &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(peer->qp, &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

void peer_send(struct peer *peer, unsigned n, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)peer->memory, bytes, peer->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_wc wc;

	while (n--) {
		int found;

		CHECK(!ibv_post_send(peer->qp, &wr, &bad));
		while (!(found = ibv_poll_cq(peer->cq, 1, &wc)))
			;
		CHECK_SAY(found == 1 && wc.status == IBV_WC_SUCCESS, "status %d", (int)wc.status);
	}
}

void peer_free(struct peer *peer)
{
	CHECK(!ibv_destroy_qp(peer->qp) && !ibv_destroy_cq(peer->cq) && !ibv_dereg_mr(peer->mr) &&
	      !ibv_dealloc_pd(peer->pd));
	free(peer);
}

/* Says its number; hears whom to send to, then how many messages of how many bytes, again and again. */
int peer_main(int argc, char **argv)
{
	struct ibv_context *ctx = device_open(0);
	struct peer *peer = peer_make(ctx);
	unsigned a, b;

	(void)argc;
	(void)argv;
	printf("%u\n", peer_number(peer));
	fflush(stdout);
	CHECK(scanf("%u %u", &a, &b) == 2);
	peer_connect(peer, a, (uint16_t)b);
	while (scanf("%u %u", &a, &b) == 2) {
		peer_send(peer, a, b);
		printf("sent\n");
		fflush(stdout);
	}
	peer_free(peer);
	CHECK(!ibv_close_device(ctx));
	return 0;
}

/* ---- the receiver ---- */

struct receiver {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_obj *qp;
	uint8_t *memory; /* ring, record, data: a page each */
	uint32_t number, posted;
};

static uint32_t receiver_pdn(const struct receiver *r)
{
	struct mlx5dv_pd dvpd;
	struct mlx5dv_obj obj = {.pd = {.in = r->pd, .out = &dvpd}};

	CHECK(!mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD));
	return dvpd.pdn;
}

struct receiver *receiver_make(struct ibv_context *ctx, uint32_t cqn, uint32_t user_index)
{
	uint8_t in[CREATE_QP_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0}, *c = in + CREATE_QP_CONTEXT;
	struct receiver *r = calloc(1, sizeof(*r));

	CHECK(r);
	r->ctx = ctx;
	r->memory = aligned_alloc(PAGE, 3 * PAGE);
	CHECK(r->memory);
	memset(r->memory, 0, 3 * PAGE);
	r->pd = ibv_alloc_pd(ctx);
	CHECK(r->pd);
	r->mr = ibv_reg_mr(r->pd, r->memory + 2 * PAGE, PAGE, IBV_ACCESS_LOCAL_WRITE);
	r->umem = mlx5dv_devx_umem_reg(ctx, r->memory, 3 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(r->mr && r->umem);
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_QP);
	prm_set(in, CREATE_QP_UMEM, r->umem->umem_id);
	prm_set(c, QPC_PD, receiver_pdn(r));
	prm_set(c, QPC_NO_SQ, 1);
	prm_set(c, QPC_LOG_RQ_SIZE, LOG_RECVS);
	prm_set(c, QPC_CQN_RECV, cqn);
	prm_set(c, QPC_USER_INDEX, user_index);
	prm_set(c, QPC_DBR_UMEM, r->umem->umem_id);
	prm_set(c, QPC_DBR_ADDR, PAGE);
	r->qp = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	CHECK(r->qp);
	r->number = prm_get32(out, CMD_OUT_NUMBER);
	return r;
}

uint32_t receiver_number(const struct receiver *r)
{
	return r->number;
}

static void receiver_move(struct receiver *r, unsigned op, uint32_t qpn, uint16_t lid)
{
	uint8_t in[MODIFY_QP_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};
	uint8_t *c = in + MODIFY_QP_CONTEXT, *path = c + QPC_PRIMARY_PATH;

	prm_set(in, CMD_IN_OPCODE, op);
	prm_set(in, CMD_IN_NUMBER, r->number);
	prm_set(c, QPC_MTU, 3);
	prm_set(c, QPC_REMOTE_QPN, qpn);
	prm_set(c, QPC_MIN_RNR_NAK, 12);
	prm_set(path, ADS_PORT, 1);
	prm_set(path, ADS_RLID, lid);
	CHECK(!mlx5dv_devx_obj_modify(r->qp, in, sizeof(in), out, sizeof(out)));
}

void receiver_connect(struct receiver *r, uint32_t qpn, uint16_t lid)
{
	receiver_move(r, PRM_OP_RST2INIT_QP, qpn, lid);
	receiver_move(r, PRM_OP_INIT2RTR_QP, qpn, lid);
}

struct receiver *receiver_with_peer(struct ibv_context *ctx, uint32_t cqn, uint32_t user_index,
				    struct peer **peer)
{
	struct receiver *r = receiver_make(ctx, cqn, user_index);

	*peer = peer_make(ctx);
	receiver_connect(r, peer_number(*peer), peer_lid(ctx));
	peer_connect(*peer, receiver_number(r), peer_lid(ctx));
	return r;
}

void receiver_post(struct receiver *r, unsigned n)
{
	uint32_t *record = (uint32_t *)(void *)(r->memory + PAGE);

	while (n--) {
		struct mlx5_wqe_data_seg *d = (struct mlx5_wqe_data_seg *)(void *)r->memory +
					      r->posted++ % (1u << LOG_RECVS);

		mlx5dv_set_data_seg(d, PAGE, r->mr->lkey, (uintptr_t)r->memory + 2 * PAGE);
	}
	__atomic_store_n(record, htonl(r->posted & 0xffff), __ATOMIC_RELEASE);
}

void receiver_free(struct receiver *r)
{
	CHECK(!mlx5dv_devx_obj_destroy(r->qp) && !mlx5dv_devx_umem_dereg(r->umem));
	CHECK(!ibv_dereg_mr(r->mr) && !ibv_dealloc_pd(r->pd));
	free(r->memory);
	free(r);
}
