// SPDX-License-Identifier: BSD-2-Clause
/* The smallest RC program: a queue pair sends to another one of the same process, which prints it. */
#include <err.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>

#define MUST(this) ((this) ? (void)0 : err(1, "%s", #this))

/* From state to state; each takes the attributes that its mask names. */
static void connect_qp(struct ibv_qp *qp, uint32_t peer, struct ibv_ah_attr path)
{
	static const int masks[] = {
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
	};
	struct ibv_qp_attr a = {.port_num = 1, .path_mtu = IBV_MTU_1024, .timeout = 14};

	a.dest_qp_num = peer, a.ah_attr = path, a.retry_cnt = a.rnr_retry = 7;
	for (a.qp_state = IBV_QPS_INIT; a.qp_state <= IBV_QPS_RTS; a.qp_state++)
		MUST(!(errno = ibv_modify_qp(qp, &a, IBV_QP_STATE | masks[a.qp_state])));
}

int main(void)
{
	static char text[2][64] = {"hello by RDMA"}; /* the message, and where it arrives */
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_context *ctx = devices && *devices ? ibv_open_device(*devices) : NULL;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(ctx, 2, NULL, NULL, 0) : NULL;
	struct ibv_mr *mr = cq ? ibv_reg_mr(pd, text, 128, IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct ibv_qp_init_attr how = {NULL, cq, cq, NULL, {1, 1, 1, 1, 0}, IBV_QPT_RC, 1};
	struct ibv_qp *from = mr ? ibv_create_qp(pd, &how) : NULL;
	struct ibv_qp *to = from ? ibv_create_qp(pd, &how) : NULL;
	struct ibv_ah_attr path = {.is_global = 1, .port_num = 1};
	struct ibv_port_attr port;
	struct ibv_wc wc;

	MUST(devices && *devices && ctx && pd && cq && mr && from && to);
	MUST(!(errno = ibv_query_port(ctx, 1, &port)));
	MUST(!ibv_query_gid(ctx, 1, 0, &path.grh.dgid));
	path.dlid = port.lid; /* InfiniBand goes by LID, Ethernet by GID */
	connect_qp(from, to->qp_num, path);
	connect_qp(to, from->qp_num, path);

	struct ibv_sge source = {(uintptr_t)text[0], 64, mr->lkey};
	struct ibv_sge target = {(uintptr_t)text[1], 64, mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &target, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &source, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
	MUST(!(errno = ibv_post_recv(to, &recv, &bad_recv)));
	MUST(!(errno = ibv_post_send(from, &send, &bad)));
	for (int left = 2; left; left--) { /* the completions of both */
		while (!ibv_poll_cq(cq, 1, &wc))
			;
		if (wc.status)
			errx(1, "%s, vendor_err 0x%x", ibv_wc_status_str(wc.status), wc.vendor_err);
	}
	printf("%s: %s\n", ibv_get_device_name(*devices), text[1]);

	MUST(!(errno = ibv_destroy_qp(to)) && !(errno = ibv_destroy_qp(from)));
	MUST(!(errno = ibv_destroy_cq(cq)) && !(errno = ibv_dereg_mr(mr)));
	MUST(!(errno = ibv_dealloc_pd(pd)) && !(errno = ibv_close_device(ctx)));
	ibv_free_device_list(devices);
	return 0;
}
