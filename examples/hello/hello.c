// SPDX-License-Identifier: BSD-2-Clause
/*
 * The smallest RC program: two queue pairs of one process, connected to each other, and a message
 * from one to the other.  "softhca run -- ./hello" prints it; so does a machine with an adapter.
 */
#include <err.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

enum { PORT = 1, HALF = 64 };
static char memory[2 * HALF]; /* the message, and where it arrives */

static void must(const char *what, int error)
{
	errno = error;
	if (error)
		err(1, "%s", what);
}

static void connect_to(struct ibv_qp *qp, const struct ibv_qp *peer, uint16_t lid,
		       union ibv_gid gid)
{
	struct ibv_qp_attr a = {
		.port_num = PORT,
		.dest_qp_num = peer->qp_num,
		.path_mtu = IBV_MTU_1024,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.ah_attr = {.port_num = PORT, .dlid = lid, .is_global = 1, .grh = {.dgid = gid}},
	};

	a.qp_state = IBV_QPS_INIT;
	must("to INIT",
	     ibv_modify_qp(qp, &a,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	must("to RTR", ibv_modify_qp(qp, &a,
				     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					     IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					     IBV_QP_MIN_RNR_TIMER));
	a.qp_state = IBV_QPS_RTS;
	must("to RTS",
	     ibv_modify_qp(qp, &a,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

int main(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *ctx = devices && *devices ? ibv_open_device(*devices) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_mr *mr =
		pd ? ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_cq *cq = mr ? ibv_create_cq(ctx, 4, NULL, NULL, 0) : NULL;
	struct ibv_qp_init_attr how = {.send_cq = cq,
				       .recv_cq = cq,
				       .qp_type = IBV_QPT_RC,
				       .cap = {1, 1, 1, 1, 0},
				       .sq_sig_all = 1};
	struct ibv_qp *from = cq ? ibv_create_qp(pd, &how) : NULL;
	struct ibv_qp *to = from ? ibv_create_qp(pd, &how) : NULL;
	struct ibv_port_attr port;
	union ibv_gid gid;
	struct ibv_wc wc;

	if (!to)
		err(1, "no device, or it refuses an object");
	must("the port's attributes", ibv_query_port(ctx, PORT, &port));
	must("the port's address", ibv_query_gid(ctx, PORT, 0, &gid));
	connect_to(from, to, port.lid, gid);
	connect_to(to, from, port.lid, gid);

	strcpy(memory, "hello by RDMA");
	struct ibv_sge out = {(uintptr_t)memory, HALF, mr->lkey};
	struct ibv_sge in = {(uintptr_t)memory + HALF, HALF, mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &in, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &out, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
	must("ibv_post_recv", ibv_post_recv(to, &recv, &bad_recv));
	must("ibv_post_send", ibv_post_send(from, &send, &bad_send));
	for (int left = 2; left; left--) { /* the receive's completion and the send's */
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		if (wc.status)
			errx(1, "%s (vendor_err 0x%x)", ibv_wc_status_str(wc.status),
			     wc.vendor_err);
	}
	printf("%s: %s\n", ibv_get_device_name(*devices), memory + HALF);

	must("ibv_destroy_qp", ibv_destroy_qp(to) | ibv_destroy_qp(from));
	must("ibv_destroy_cq", ibv_destroy_cq(cq));
	must("ibv_dereg_mr", ibv_dereg_mr(mr));
	must("ibv_dealloc_pd", ibv_dealloc_pd(pd));
	must("ibv_close_device", ibv_close_device(ctx));
	ibv_free_device_list(devices);
	return 0;
}
