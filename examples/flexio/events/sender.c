// SPDX-License-Identifier: BSD-2-Clause
/* The other end: a queue pair of verbs that sends messages of all sizes. */
#include "sender.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "events.h"

static void give_up(const char *what)
{
	perror(what);
	exit(1);
}

struct ibv_context *open_infiniband(uint16_t *lid)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;
	struct ibv_port_attr port;

	for (int i = 0; list && list[i] && !context; i++) {
		context = ibv_open_device(list[i]);
		if (context && (ibv_query_port(context, 1, &port) ||
				port.link_layer != IBV_LINK_LAYER_INFINIBAND)) {
			ibv_close_device(context);
			context = NULL;
		}
	}
	if (list)
		ibv_free_device_list(list);
	if (!context) {
		fprintf(stderr, "there is no InfiniBand device: try softhca run -- ...\n");
		exit(1);
	}
	*lid = port.lid;
	return context;
}

void say(int socket, const void *what, size_t bytes)
{
	if (send(socket, what, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		give_up("the other end");
}

void hear(int socket, void *what, size_t bytes)
{
	if (recv(socket, what, bytes, MSG_WAITALL) != (ssize_t)bytes) {
		fprintf(stderr, "the other end has gone\n");
		exit(1);
	}
}

static void connect_to(struct ibv_qp *qp, uint32_t qpn, uint16_t lid)
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
		.rnr_retry = 7, /* as often as the receiver has no room */
		.ah_attr = {.dlid = lid, .port_num = 1},
	};

	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		give_up("INIT");
	attr.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				  IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		give_up("RTR");
	attr.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &attr,
			  IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				  IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC))
		give_up("RTS");
}

/* One message; it has arrived when this returns. */
static void send_one(struct ibv_qp *qp, struct ibv_mr *mr, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, bytes, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_wc wc;
	int found;

	if (ibv_post_send(qp, &wr, &bad))
		give_up("ibv_post_send");
	do
		found = ibv_poll_cq(qp->send_cq, 1, &wc);
	while (!found);
	if (found < 0 || wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "a message: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static struct account send_all(struct ibv_qp *qp, struct ibv_mr *mr, unsigned int messages)
{
	struct account account = {0};
	uint8_t *data = mr->addr;

	for (unsigned int i = 0; i < messages; i++) {
		uint32_t bytes = i % (MESSAGE_BYTES + 1);

		for (uint32_t at = 0; at < bytes; at++) {
			data[at] = (uint8_t)(i + at);
			account.sum += data[at];
		}
		send_one(qp, mr, bytes);
		account.bytes += bytes;
		account.messages++;
	}
	return account;
}

void send_messages(int socket, unsigned int messages)
{
	static uint8_t data[MESSAGE_BYTES];
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_send_sge = 1, .max_recv_wr = 1, .max_recv_sge = 1},
		.sq_sig_all = 1};
	uint16_t lid;
	struct ibv_context *context = open_infiniband(&lid);
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr = pd ? ibv_reg_mr(pd, data, sizeof(data), 0) : NULL;
	struct ibv_qp *qp;
	struct place here, there;
	struct account account;

	attr.send_cq = attr.recv_cq = ibv_create_cq(context, 1, NULL, NULL, 0);
	qp = mr && attr.send_cq ? ibv_create_qp(pd, &attr) : NULL;
	if (!qp)
		give_up("a queue pair");
	here = (struct place){htonl(qp->qp_num), htonl(lid)};
	say(socket, &here, sizeof(here));
	hear(socket, &there, sizeof(there));
	connect_to(qp, ntohl(there.qpn), (uint16_t)ntohl(there.lid));
	account = send_all(qp, mr, messages);
	account = (struct account){htobe64(account.messages), htobe64(account.bytes),
				   htobe64(account.sum)};
	say(socket, &account, sizeof(account));
	if (ibv_destroy_qp(qp) || ibv_destroy_cq(attr.send_cq) || ibv_dereg_mr(mr) ||
	    ibv_dealloc_pd(pd) || ibv_close_device(context))
		give_up("the end of the queue pair");
}
