// SPDX-License-Identifier: BSD-2-Clause
/* See target.h. */
#include "target.h"

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define NUMBERS_MAX 1000u

struct target {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint64_t numbers[NUMBERS_MAX];
};

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

void exchange(int socket, const struct address *ours, struct address *theirs)
{
	must(send(socket, ours, sizeof(*ours), MSG_NOSIGNAL) == sizeof(*ours), "send");
	must(recv(socket, theirs, sizeof(*theirs), MSG_WAITALL) == sizeof(*theirs), "recv");
}

static int meet(const char *host, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int s = socket(AF_INET, SOCK_STREAM, 0);

	must(inet_pton(AF_INET, host, &to.sin_addr) == 1, host);
	must(s >= 0 && !connect(s, (struct sockaddr *)&to, sizeof(to)), "connect");
	return s;
}

static void target_open(struct target *t)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1}};

	t->context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	must(t->context, "no device: try softhca run -- ...");
	ibv_free_device_list(list);
	t->pd = ibv_alloc_pd(t->context);
	t->cq = ibv_create_cq(t->context, 2, NULL, NULL, 0);
	must(t->pd && t->cq, "protection domain, completion queue");
	t->mr = ibv_reg_mr(t->pd, t->numbers, sizeof(t->numbers),
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	init.send_cq = init.recv_cq = t->cq;
	t->qp = ibv_create_qp(t->pd, &init);
	must(t->mr && t->qp, "memory, queue pair");
}

static void target_connect(struct target *t, const struct address *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.min_rnr_timer = 12,
		.ah_attr = {.dlid = (uint16_t)peer->lid, .port_num = 1},
	};
	/* The write with an immediate takes a receive, which has no memory of its own. */
	struct ibv_recv_wr wr = {.num_sge = 0}, *bad;

	must(!ibv_modify_qp(t->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	must(!ibv_post_recv(t->qp, &wr, &bad), "ibv_post_recv");
	attr.qp_state = IBV_QPS_RTR;
	must(!ibv_modify_qp(t->qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
}

/* How many of the numbers from the beginning on are the primes. */
static uint32_t primes(const uint64_t *numbers, uint32_t count)
{
	uint32_t found = 0;

	for (uint64_t n = 2; found < count; n++) {
		uint64_t d = 2;

		while (d * d <= n && n % d)
			d++;
		if (d * d <= n)
			continue;
		if (numbers[found] != n)
			break;
		found++;
	}
	return found;
}

int target_run(const char *host, uint16_t port)
{
	static struct target t;
	struct address ours = {.qpn = 0}, theirs;
	struct ibv_port_attr attr;
	struct ibv_wc wc;
	uint32_t count;
	int s = meet(host, port), n;

	target_open(&t);
	must(!ibv_query_port(t.context, 1, &attr), "ibv_query_port");
	ours.qpn = t.qp->qp_num;
	ours.lid = attr.lid;
	ours.memory = (uintptr_t)t.numbers;
	ours.rkey = t.mr->rkey;
	exchange(s, &ours, &theirs);
	target_connect(&t, &theirs);
	/* The other end may begin. */
	exchange(s, &ours, &theirs);
	while (!(n = ibv_poll_cq(t.cq, 1, &wc)))
		;
	must(n == 1 && wc.status == IBV_WC_SUCCESS, "completion");
	count = be32toh(wc.imm_data);
	must(count <= NUMBERS_MAX, "immediate");
	n = primes(t.numbers, count) == count && count ? 0 : 1;
	printf("%u prime numbers have arrived: %s\n", count, n ? "wrong" : "right");
	ibv_destroy_qp(t.qp);
	ibv_dereg_mr(t.mr);
	ibv_destroy_cq(t.cq);
	ibv_dealloc_pd(t.pd);
	ibv_close_device(t.context);
	close(s);
	return n;
}
