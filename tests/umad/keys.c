// SPDX-License-Identifier: BSD-2-Clause
/*
 * Datagrams with keys that their receiver does not have, between queue pairs at this host's first port.
 * Usage: bad_keys COUNT     so many with another Q_Key, then as many of the second partition of the
 *                           port to a queue pair in the first; after each kind one that arrives
 * Prints the numbers of the queue pairs, sender and receiver.
 *        bad_keys COUNT LID so many of the second partition to nobody at another port, and by a connection a WRITE, once
 *                           and once again
 * Prints the number of the queue pair that the datagrams are from.
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>

#define GOOD_QKEY 0x1111u
#define BAD_QKEY  0x2222u
#define BYTES	  (40 + 64)

#define must(condition) ((condition) ? (void)0 : failed(#condition, __LINE__))

static void failed(const char *what, int line)
{
	fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, line, what);
	exit(1);
}

struct ends {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	/* In the first partition, the second, and the first. */
	struct ibv_qp *first, *second, *receiver;
	uint8_t memory[BYTES];
};

#define RC_RIGHTS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define NOBODY	  0x123456u

static struct ibv_qp *qp_new(const struct ends *e, uint16_t pkey_index)
{
	struct ibv_qp_init_attr init = {.send_cq = e->cq,
					.recv_cq = e->cq,
					.cap = {16, 16, 1, 1, 0},
					.qp_type = IBV_QPT_UD};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .pkey_index = pkey_index,
				   .qkey = GOOD_QKEY};

	must(qp != NULL);
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return qp;
}

static void ends_open(struct ends *e)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	struct ibv_ah_attr ah = {.port_num = 1};

	must(list && list[0]);
	e->context = ibv_open_device(list[0]);
	must(e->context && !ibv_query_port(e->context, 1, &port));
	e->pd = ibv_alloc_pd(e->context);
	must(e->pd != NULL);
	e->cq = ibv_create_cq(e->context, 64, NULL, NULL, 0);
	e->mr = ibv_reg_mr(e->pd, e->memory, sizeof(e->memory), IBV_ACCESS_LOCAL_WRITE);
	ah.dlid = port.lid;
	e->ah = ibv_create_ah(e->pd, &ah);
	must(e->cq && e->mr && e->ah);
	e->first = qp_new(e, 0);
	e->second = qp_new(e, 1);
	e->receiver = qp_new(e, 0);
}

static enum ibv_wc_opcode completed(const struct ends *e)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0)
		;
	must(n == 1 && wc.status == IBV_WC_SUCCESS);
	return wc.opcode;
}

static void datagram(const struct ends *e, struct ibv_qp *from, uint32_t qkey)
{
	struct ibv_sge sge = {(uintptr_t)e->memory, 64, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.ud = {e->ah, e->receiver->qp_num, qkey}};

	must(!ibv_post_send(from, &wr, &bad));
}

/* All that were sent before it have been judged when this one is there. */
static void good_one(const struct ends *e)
{
	struct ibv_sge sge = {(uintptr_t)e->memory, BYTES, e->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	unsigned received = 0;

	must(!ibv_post_recv(e->receiver, &wr, &bad));
	datagram(e, e->first, GOOD_QKEY);
	for (int i = 0; i < 2; i++)
		received += completed(e) == IBV_WC_RECV;
	must(received == 1);
}

/* A connection of the second partition to nobody, which asks once again. */
static struct ibv_qp *connection_new(const struct ends *e, uint16_t dlid)
{
	struct ibv_qp_init_attr init = {
		.send_cq = e->cq, .recv_cq = e->cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = ibv_create_qp(e->pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .pkey_index = 1,
				   .qp_access_flags = RC_RIGHTS,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = NOBODY,
				   .ah_attr = {.dlid = dlid, .port_num = 1},
				   .timeout = 10,
				   .retry_cnt = 1,
				   .max_rd_atomic = 1,
				   .max_dest_rd_atomic = 1};

	must(qp &&
	     !ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS));
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC));
	return qp;
}

static void write_to_nobody(const struct ends *e, uint16_t dlid)
{
	struct ibv_sge sge = {(uintptr_t)e->memory, 64, e->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	int n;

	must(!ibv_post_send(connection_new(e, dlid), &wr, &bad));
	while ((n = ibv_poll_cq(e->cq, 1, &wc)) == 0)
		;
	must(n == 1 && wc.status == IBV_WC_RETRY_EXC_ERR);
}

static void nobody_reached(struct ends *e, int count, uint16_t dlid)
{
	struct ibv_ah_attr ah = {.port_num = 1, .dlid = dlid};

	e->ah = ibv_create_ah(e->pd, &ah);
	must(e->ah != NULL);
	for (int i = 0; i < count; i++) {
		datagram(e, e->second, GOOD_QKEY);
		must(completed(e) == IBV_WC_SEND);
	}
	write_to_nobody(e, dlid);
	printf("%u\n", e->second->qp_num);
}

int main(int argc, char **argv)
{
	static struct ends e;
	int count = argc >= 2 ? atoi(argv[1]) : 0;

	must(count > 0);
	ends_open(&e);
	if (argc == 3) {
		nobody_reached(&e, count, (uint16_t)atoi(argv[2]));
		return 0;
	}
	for (int i = 0; i < count; i++) {
		datagram(&e, e.first, BAD_QKEY);
		must(completed(&e) == IBV_WC_SEND);
	}
	good_one(&e);
	for (int i = 0; i < count; i++) {
		datagram(&e, e.second, GOOD_QKEY);
		must(completed(&e) == IBV_WC_SEND);
	}
	good_one(&e);
	printf("%u %u %u\n", e.first->qp_num, e.second->qp_num, e.receiver->qp_num);
	return 0;
}
