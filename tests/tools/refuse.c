// SPDX-License-Identifier: BSD-2-Clause
/* Control operations that the device refuses, on RoCE, in the order of tests/tools/explain.py. */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INIT (IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS)
#define RTR                                                                             \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

#define must(condition)                                              \
	do {                                                         \
		if (!(condition)) {                                  \
			fprintf(stderr, "failed: %s\n", #condition); \
			exit(2);                                     \
		}                                                    \
	} while (0)

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	must(list);
	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	must(context);
	ibv_free_device_list(list);
	return context;
}

static void to_rtr(struct ibv_qp *qp, struct ibv_qp_attr attr)
{
	attr.qp_state = IBV_QPS_RTR;
	must(ibv_modify_qp(qp, &attr, RTR));
}

static void refuse_modify(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX));
	attr.port_num = 3;
	must(ibv_modify_qp(qp, &attr, INIT));
	attr.port_num = 1;
	must(ibv_modify_qp(qp, &attr, INIT | IBV_QP_SQ_PSN));
	must(!ibv_modify_qp(qp, &attr, INIT));
	attr.qp_state = IBV_QPS_RTS;
	must(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	attr.path_mtu = IBV_MTU_1024;
	attr.ah_attr.port_num = 1;
	to_rtr(qp, attr);
	attr.ah_attr.is_global = 1;
	to_rtr(qp, attr);
	attr.ah_attr.grh.sgid_index = 20;
	to_rtr(qp, attr);
	attr.path_mtu = 9;
	to_rtr(qp, attr);
}

int main(void)
{
	struct ibv_context *context = open_device("mlx5_1");
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_cq *cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.cap = {.max_send_wr = 4, .max_recv_wr = 4},
					.qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
	char *memory = malloc(100);

	must(qp && memory);
	refuse_modify(qp);
	must(!ibv_reg_mr(pd, memory, 100, IBV_ACCESS_REMOTE_WRITE));
	must(!ibv_reg_mr(pd, (void *)4096, 100, 0)); /* where no program has memory */
	free(memory);
	return 0;
}
