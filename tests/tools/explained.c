// SPDX-License-Identifier: BSD-2-Clause
/*
 * Makes one mistake between two processes and prints how the request ended: explained MISTAKE.  The
 * parent posts the request, its child is the peer.  tests/tools/explain.py reads what the device
 * says of it.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define BUF_BYTES 8192
#define PSN	  0x1000u
#define QKEY	  0x11111111u
/* Timeouts: 4 ms; and 4 s, so that a busy machine keeps no answer away for so long. */
#define GIVES_UP 10
#define WAITS	 20
#define ALL_RIGHTS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

#define must(condition)                                                                     \
	do {                                                                                \
		if (!(condition)) {                                                         \
			fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #condition); \
			exit(2);                                                            \
		}                                                                           \
	} while (0)

/* What is done otherwise than usual; the rest is a good RDMA_WRITE or SEND of 512 bytes. */
struct mistake {
	const char *name;
	enum ibv_qp_type type; /* 0: RC */
	enum ibv_wr_opcode opcode;
	uint32_t bytes; /* 0: 512 */
	/* of the requester */
	uint32_t lkey_add;
	uint64_t local_add;
	uint32_t rkey_add;
	uint64_t remote_add;
	uint32_t psn_add;
	uint32_t qkey_add;
	uint32_t qpn_flip;
	int to_itself; /* connected to its own number */
	int gives_up;  /* soon: nobody answers */
	int read_depth;
	int local_rights; /* taken from the MR */
	int local_gone;
	int posts;    /* 0: 1 */
	int farewell; /* a good one follows */
	int forks;    /* before it ends */
	/* of the peer */
	int peer_mr_lacks;
	int peer_qp_lacks;
	int peer_other_pd;
	int peer_gone;	    /* deregistered */
	int peer_not_ready; /* QP stays in INIT */
	int peer_ends;
	uint32_t receive;      /* bytes; 0: none posted */
	int receive_elsewhere; /* with an lkey of another PD */
	int depth_0;
};

#define WRITE .opcode = IBV_WR_RDMA_WRITE
#define READ  .opcode = IBV_WR_RDMA_READ
#define SEND  .opcode = IBV_WR_SEND
#define FAA   .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .bytes = 8
#define UD    .type = IBV_QPT_UD, .opcode = IBV_WR_SEND

static const struct mistake mistakes[] = {
	{.name = "nothing", WRITE},
	{.name = "local-key", WRITE, .lkey_add = 0x100000},
	{.name = "local-stale", WRITE, .lkey_add = 1},
	{.name = "local-end", WRITE, .local_add = BUF_BYTES - 500},
	{.name = "local-start", WRITE, .local_add = (uint64_t)-16},
	{.name = "local-gone", WRITE, .local_gone = 1},
	{.name = "local-write", READ, .local_rights = IBV_ACCESS_LOCAL_WRITE},
	{.name = "remote-key", WRITE, .rkey_add = 0x100000},
	{.name = "remote-end", WRITE, .remote_add = BUF_BYTES - 500},
	{.name = "remote-right", WRITE, .peer_mr_lacks = IBV_ACCESS_REMOTE_WRITE},
	{.name = "remote-read", READ, .peer_mr_lacks = IBV_ACCESS_REMOTE_READ},
	{.name = "remote-qp", WRITE, .peer_qp_lacks = IBV_ACCESS_REMOTE_WRITE},
	{.name = "remote-pd", WRITE, .peer_other_pd = 1},
	{.name = "remote-gone", WRITE, .peer_gone = 1},
	{.name = "atomic-odd", FAA, .remote_add = 4},
	{.name = "read-depth", READ, .depth_0 = 1},
	{.name = "short", SEND, .receive = 400},
	{.name = "receive-key", SEND, .receive = 512, .receive_elsewhere = 1},
	{.name = "no-receive", SEND},
	{.name = "peer-state", SEND, .peer_not_ready = 1, .gives_up = 1},
	{.name = "peer-ended", SEND, .peer_ends = 1, .gives_up = 1},
	{.name = "peer-number", SEND, .qpn_flip = 0x8000, .gives_up = 1},
	{.name = "psn-ahead", SEND, .receive = 512, .psn_add = 5, .gives_up = 1},
	{.name = "psn-behind", SEND, .receive = 512, .psn_add = 0xfffffb, .gives_up = 1},
	{.name = "psn-itself", SEND, .to_itself = 1, .psn_add = 0xfffffb, .gives_up = 1},
	{.name = "flush", WRITE, .rkey_add = 0x100000, .posts = 20, .forks = 1},
	{.name = "ud-qkey", UD, .receive = 4096, .qkey_add = 1, .farewell = 1},
	{.name = "ud-long", UD, .bytes = 5000},
	{.name = "ud-grh", UD, .receive = 512, .farewell = 1},
};

struct side {
	const struct mistake *m;
	struct ibv_context *context;
	struct ibv_pd *pd, *other_pd;
	struct ibv_mr *mr;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	char *memory, *buf;
	int other;
};

/* What one side tells the other. */
struct address {
	uint32_t qpn, rkey;
	uint64_t va;
	uint16_t lid;
};

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

static void to_init(struct side *s, int lacks)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qkey = QKEY,
				   .qp_access_flags = (unsigned)(ALL_RIGHTS & ~lacks)};

	must(!ibv_modify_qp(s->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    (s->m->type ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)));
}

/* mr_rights: of the region; pd: its domain */
static void side_open(struct side *s, int mr_rights, int elsewhere, int qp_lacks)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = s->m->type ? s->m->type : IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	s->context = open_device("mlx5_0");
	s->pd = ibv_alloc_pd(s->context);
	s->other_pd = ibv_alloc_pd(s->context);
	s->cq = ibv_create_cq(s->context, 128, NULL, NULL, 0);
	s->memory = aligned_alloc(4096, 3ul * BUF_BYTES);
	must(s->pd && s->other_pd && s->cq && s->memory);
	s->buf = s->memory + BUF_BYTES;
	s->mr = ibv_reg_mr(elsewhere ? s->other_pd : s->pd, s->buf, BUF_BYTES, mr_rights);
	init.send_cq = s->cq;
	init.recv_cq = s->cq;
	s->qp = ibv_create_qp(s->pd, &init);
	must(s->mr && s->qp);
	to_init(s, qp_lacks);
}

static struct address tell(struct side *s)
{
	struct address mine = {.qpn = s->qp->qp_num, .rkey = s->mr->rkey, .va = (uintptr_t)s->buf},
		       theirs;
	struct ibv_port_attr port;

	must(!ibv_query_port(s->context, 1, &port));
	mine.lid = port.lid;
	must(write(s->other, &mine, sizeof(mine)) == sizeof(mine));
	must(read(s->other, &theirs, sizeof(theirs)) == sizeof(theirs));
	return theirs;
}

static void to_rtr(struct side *s, const struct address *peer, int depth)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .rq_psn = PSN,
				   .ah_attr = {.port_num = 1},
				   .max_dest_rd_atomic = (uint8_t)depth,
				   .min_rnr_timer = 1};

	if (peer) {
		attr.dest_qp_num = peer->qpn;
		attr.ah_attr.dlid = peer->lid;
	}

	must(!ibv_modify_qp(s->qp, &attr,
			    s->m->type ? IBV_QP_STATE
				       : IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
						 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
						 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
}

static void to_rts(struct side *s, uint32_t psn)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
				   .sq_psn = psn & 0xffffff,
				   .timeout = s->m->gives_up ? GIVES_UP : WAITS,
				   .retry_cnt = 2,
				   .rnr_retry = 3,
				   .max_rd_atomic = 1};

	must(!ibv_modify_qp(s->qp, &attr,
			    IBV_QP_STATE | IBV_QP_SQ_PSN |
				    (s->m->type ? 0
						: IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
							  IBV_QP_RNR_RETRY |
							  IBV_QP_MAX_QP_RD_ATOMIC)));
}

static void post_receive(struct side *s, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)s->buf, bytes, s->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	must(!ibv_post_recv(s->qp, &wr, &bad));
}

static enum ibv_wc_status wait_for_one(struct side *s)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(s->cq, 1, &wc))
		;
	return wc.status;
}

static void be_peer(const struct mistake *m, int other)
{
	struct side s = {.m = m, .other = other};
	struct address theirs;
	char done;

	side_open(&s, ALL_RIGHTS & ~m->peer_mr_lacks, m->peer_other_pd || m->receive_elsewhere,
		  m->peer_qp_lacks);
	if (m->type) {
		post_receive(&s, BUF_BYTES);
		to_rtr(&s, NULL, 0);
	}
	if (m->receive)
		post_receive(&s, m->receive);
	theirs = tell(&s);
	if (m->type)
		must(wait_for_one(&s) == IBV_WC_SUCCESS);
	else if (!m->peer_not_ready)
		to_rtr(&s, &theirs, m->depth_0 ? 0 : 1);
	if (m->peer_gone)
		must(!ibv_dereg_mr(s.mr));
	if (m->peer_ends)
		_exit(0);
	must(write(other, "r", 1) == 1);
	/* The parent closes its end when it has done. */
	(void)!read(other, &done, 1);
	/* Datagrams have no answers, so they may be on their way still. */
	if (m->type && m->receive)
		(void)wait_for_one(&s);
	if (!m->peer_gone)
		must(!ibv_dereg_mr(s.mr));
	must(!ibv_destroy_qp(s.qp));
	exit(0);
}

static void post(struct side *s, const struct mistake *m, const struct address *peer)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->buf + m->local_add,
			      .length = m->bytes ? m->bytes : 512,
			      .lkey = s->mr->lkey + m->lkey_add};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = m->opcode}, *bad;

	if (m->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = peer->va + m->remote_add;
		wr.wr.atomic.rkey = peer->rkey + m->rkey_add;
	} else if (m->type) {
		struct ibv_ah_attr ah = {.dlid = peer->lid, .port_num = 1};

		wr.wr.ud.ah = ibv_create_ah(s->pd, &ah);
		wr.wr.ud.remote_qpn = peer->qpn;
		wr.wr.ud.remote_qkey = QKEY + m->qkey_add;
		must(wr.wr.ud.ah);
	} else {
		wr.wr.rdma.remote_addr = peer->va + m->remote_add;
		wr.wr.rdma.rkey = peer->rkey + m->rkey_add;
	}
	if (m->local_gone)
		must(!ibv_dereg_mr(s->mr));
	errno = ibv_post_send(s->qp, &wr, &bad);
	must(!errno);
}

/* Good datagrams; the second one fits into each receive. */
static const struct mistake greeting = {UD}, farewell = {UD, .bytes = 64};

/* A child that has nothing to do with the device. */
static void fork_for_nothing(void)
{
	pid_t child;
	int status;

	fflush(stdout);
	child = fork();
	if (!child)
		exit(0);
	must(waitpid(child, &status, 0) == child && !status);
}

static void be_requester(const struct mistake *m, int other)
{
	struct side s = {.m = m, .other = other};
	int posts = m->posts ? m->posts : 1, status;
	struct address peer;
	char ready;

	side_open(&s, ALL_RIGHTS & ~m->local_rights & ~(m->local_rights ? ALL_RIGHTS : 0), 0, 0);
	peer = tell(&s);
	if (m->peer_ends)
		must(wait(&status) > 0);
	peer.qpn ^= m->qpn_flip;
	if (m->to_itself)
		peer.qpn = s.qp->qp_num;
	to_rtr(&s, &peer, 1);
	to_rts(&s, PSN + m->psn_add);
	/* The first datagram opens the way between the processes.  Later ones are there at once. */
	if (m->type) {
		post(&s, &greeting, &peer);
		must(wait_for_one(&s) == IBV_WC_SUCCESS);
	}
	if (!m->peer_ends)
		must(read(other, &ready, 1) == 1);
	for (int i = 0; i < posts; i++)
		post(&s, m, &peer);
	if (m->farewell)
		post(&s, &farewell, &peer);
	for (int i = 0; i < posts; i++)
		printf("%s\n", ibv_wc_status_str(wait_for_one(&s)));
	if (m->forks)
		fork_for_nothing();
	must(!ibv_destroy_qp(s.qp));
	close(other);
}

int main(int argc, char **argv)
{
	const struct mistake *m = NULL;
	int ends[2];
	pid_t peer;

	for (size_t i = 0; argc == 2 && i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		if (!strcmp(mistakes[i].name, argv[1]))
			m = &mistakes[i];
	if (!m) {
		fprintf(stderr, "usage: explained MISTAKE\n");
		return 2;
	}
	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	peer = fork();
	must(peer >= 0);
	close(ends[!peer ? 0 : 1]);
	if (!peer)
		be_peer(m, ends[1]);
	be_requester(m, ends[0]);
	if (!m->peer_ends)
		must(wait(NULL) > 0);
	return 0;
}
