// SPDX-License-Identifier: BSD-2-Clause
/*
 * targets DEVICE KIND ROUNDS SEED: what was given back is left alone, of targets of XRC and DC.
 *
 *     initiator   WRITE READ FETCH_ADD WRITE ...                          | hears of an error, ends
 *     target      ...wait...  [stopped, killed]  revoke  fill with poison  [goes on]    look
 *
 * A KIND is a transport and a way in which memory, or who answers for it, is taken back.  From then on no
 * byte of the memory may change, and no byte of the poison may come out at the initiator.  In every
 * third round that is stopped while the memory is taken back, in every third it is killed before.
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/mlx5dv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_device.h"

#define BYTES	  65536u
#define KEY	  0x1234u
#define FIRST_PSN 100u
#define WINDOW	  8u
#define MAX_WAIT  8000u /* microseconds until the memory is taken back, at most */
#define LIMIT_S	  60
#define REMOTE	  (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

enum { OLD = 0x11, VALUE = 0x5a, POISON = 0xee };

/* What the initiator is told. */
struct target_place {
	struct device_address address;
	uint64_t addr;
	uint32_t rkey;
	uint32_t srqn;
	uint32_t dc; /* not XRC */
	uint32_t reserved;
};

struct outcome {
	uint64_t done;
	uint64_t wrong; /* bytes of poison */
	uint64_t failed;
};

struct target {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *mem;
	int sock;
	pid_t initiator;
};

static void want(bool good, const char *what)
{
	if (!good)
		device_die("%s: %m", what);
}

static void exchange(int sock, const void *mine, size_t bytes, void *theirs, size_t theirs_bytes)
{
	if (mine && send(sock, mine, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		device_die("the other has gone: %m");
	if (theirs && recv(sock, theirs, theirs_bytes, MSG_WAITALL) != (ssize_t)theirs_bytes)
		device_die("the other says nothing: %m");
}

static void qp_to(struct ibv_qp *qp, enum ibv_qp_state state, struct ibv_qp_attr attr, int mask)
{
	int err;

	attr.qp_state = state;
	err = ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
	if (err)
		device_die("ibv_modify_qp to state %d: %s", (int)state, strerror(err));
}

static uint8_t *map_memory(size_t bytes)
{
	uint8_t *p = device_memory(bytes);

	memset(p, OLD, bytes);
	return p;
}

static size_t count_of(const uint8_t *at, size_t bytes, int value)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += at[i] == (uint8_t)value;
	return n;
}

/* ---- the initiator ---- */

struct initiator {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *ex;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	uint8_t *out, *in; /* BYTES each */
	struct target_place to;
	struct outcome outcome;
	unsigned outstanding;
};

static void initiator_open(struct initiator *i, const char *device, bool dc)
{
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCI}};
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = dc ? IBV_QPT_DRIVER : IBV_QPT_XRC_SEND,
		.cap = {.max_send_wr = 2 * WINDOW, .max_send_sge = 1},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
	};

	device_port_open(&i->port, device, -1);
	i->pd = attr.pd = ibv_alloc_pd(i->port.ctx);
	i->cq = attr.send_cq = attr.recv_cq = ibv_create_cq(i->port.ctx, 4 * WINDOW, NULL, NULL, 0);
	want(i->pd && i->cq, "PD or CQ");
	i->qp = mlx5dv_create_qp(i->port.ctx, &attr, dc ? &dv : NULL);
	want(i->qp, "the initiator's queue pair");
	i->ex = ibv_qp_to_qp_ex(i->qp);
	i->out = map_memory(2ul * BYTES);
	i->in = i->out + BYTES;
	i->mr = ibv_reg_mr(i->pd, i->out, 2ul * BYTES, IBV_ACCESS_LOCAL_WRITE);
	want(i->mr, "ibv_reg_mr");
	memset(i->out, VALUE, BYTES);
}

/* Gives up within some tenths of a second. */
static void initiator_connect(struct initiator *i)
{
	struct ibv_qp_attr init = {.port_num = DEVICE_PORT};
	struct ibv_qp_attr rtr = {.path_mtu = IBV_MTU_1024,
				  .dest_qp_num = i->to.address.qpn,
				  .rq_psn = FIRST_PSN,
				  .ah_attr = device_ah_attr(&i->port, &i->to.address)};
	struct ibv_qp_attr rts = {.timeout = 13,
				  .retry_cnt = 3,
				  .rnr_retry = 7,
				  .sq_psn = FIRST_PSN,
				  .max_rd_atomic = 8};
	int rest = i->to.dc ? 0 : IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	qp_to(i->qp, IBV_QPS_INIT, init,
	      IBV_QP_PKEY_INDEX | IBV_QP_PORT | (i->to.dc ? 0 : IBV_QP_ACCESS_FLAGS));
	qp_to(i->qp, IBV_QPS_RTR, rtr, IBV_QP_PATH_MTU | rest);
	qp_to(i->qp, IBV_QPS_RTS, rts,
	      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		      IBV_QP_MAX_QP_RD_ATOMIC);
	if (!i->to.dc)
		return;
	i->ah = ibv_create_ah(i->pd, &rtr.ah_attr);
	want(i->ah, "ibv_create_ah");
}

static void initiator_post(struct initiator *i)
{
	static const uint32_t sizes[] = {8, 64, 4096, BYTES};
	uint32_t bytes = sizes[random() % 4];
	uint64_t to = i->to.addr + ((uint64_t)random() % (BYTES - bytes + 1) & ~7ull);
	uint8_t *at = i->in;

	ibv_wr_start(i->ex);
	i->ex->wr_flags = IBV_SEND_SIGNALED;
	switch (random() % 4) {
	case 0:
		ibv_wr_rdma_read(i->ex, i->to.rkey, to);
		break;
	case 1:
		ibv_wr_atomic_fetch_add(i->ex, i->to.rkey, to, 1ull << 63);
		bytes = 8;
		break;
	default:
		ibv_wr_rdma_write(i->ex, i->to.rkey, to);
		at = i->out;
	}
	if (i->to.dc)
		mlx5dv_wr_set_dc_addr(mlx5dv_qp_ex_from_ibv_qp_ex(i->ex), i->ah, i->to.address.qpn,
				      KEY);
	else
		ibv_wr_set_xrc_srqn(i->ex, i->to.srqn);
	ibv_wr_set_sge(i->ex, i->mr->lkey, (uintptr_t)at, bytes);
	want(!ibv_wr_complete(i->ex), "ibv_wr_complete");
	i->outstanding++;
}

static void initiator_take(struct initiator *i)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(i->cq, 1, &wc);
	while (!n);
	want(n == 1, "ibv_poll_cq");
	i->outstanding--;
	if (wc.status == IBV_WC_SUCCESS)
		i->outcome.done++;
	else
		i->outcome.failed++;
}

static int initiator_main(int sock, const char *device, bool dc)
{
	struct initiator i = {0};
	struct device_address mine;

	alarm(LIMIT_S);
	initiator_open(&i, device, dc);
	mine = device_address(&i.port, i.qp, FIRST_PSN);
	exchange(sock, &mine, sizeof(mine), &i.to, sizeof(i.to));
	initiator_connect(&i);
	while (!i.outcome.failed) {
		while (i.outstanding < WINDOW)
			initiator_post(&i);
		initiator_take(&i);
	}
	while (i.outstanding)
		initiator_take(&i);
	i.outcome.wrong = count_of(i.in, BYTES, POISON);
	exchange(sock, &i.outcome, sizeof(i.outcome), NULL, 0);
	return 0;
}

/* ---- the target ---- */

static void xrc_make(struct target *t)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex receives = {
		.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.pd = t->pd,
		.cq = t->cq,
	};
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_XRC_RECV,
					   .comp_mask = IBV_QP_INIT_ATTR_XRCD};

	t->xrcd = receives.xrcd = attr.xrcd = ibv_open_xrcd(t->port.ctx, &domain);
	want(t->xrcd, "ibv_open_xrcd");
	t->srq = ibv_create_srq_ex(t->port.ctx, &receives);
	t->qp = ibv_create_qp_ex(t->port.ctx, &attr);
	want(t->srq && t->qp, "SRQ or target");
}

static void xrc_connect(struct target *t, const struct device_address *peer)
{
	struct ibv_qp_attr init = {.port_num = DEVICE_PORT, .qp_access_flags = REMOTE};
	struct ibv_qp_attr rtr = {.path_mtu = IBV_MTU_1024,
				  .dest_qp_num = peer->qpn,
				  .rq_psn = peer->psn,
				  .max_dest_rd_atomic = 8,
				  .min_rnr_timer = 1,
				  .ah_attr = device_ah_attr(&t->port, peer)};

	qp_to(t->qp, IBV_QPS_INIT, init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	qp_to(t->qp, IBV_QPS_RTR, rtr,
	      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static void dc_make(struct target *t)
{
	struct ibv_srq_init_attr receives = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct mlx5dv_qp_init_attr dv = {.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_DC,
					 .dc_init_attr = {.dc_type = MLX5DV_DCTYPE_DCT,
							  .dct_access_key = KEY}};
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER,
					   .send_cq = t->cq,
					   .recv_cq = t->cq,
					   .comp_mask = IBV_QP_INIT_ATTR_PD,
					   .pd = t->pd};

	t->srq = attr.srq = ibv_create_srq(t->pd, &receives);
	want(t->srq, "ibv_create_srq");
	t->qp = mlx5dv_create_qp(t->port.ctx, &attr, &dv);
	want(t->qp, "the target");
}

static void dc_connect(struct target *t, const struct device_address *peer)
{
	struct ibv_qp_attr init = {.port_num = DEVICE_PORT, .qp_access_flags = REMOTE};
	struct ibv_qp_attr rtr = {.path_mtu = IBV_MTU_1024,
				  .min_rnr_timer = 1,
				  .ah_attr = device_ah_attr(&t->port, peer)};

	qp_to(t->qp, IBV_QPS_INIT, init, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	qp_to(t->qp, IBV_QPS_RTR, rtr, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
}

static void by_dereg(struct target *t)
{
	want(!ibv_dereg_mr(t->mr), "ibv_dereg_mr");
	t->mr = NULL;
}

static void by_rights(struct target *t)
{
	want(!ibv_rereg_mr(t->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_LOCAL_WRITE),
	     "ibv_rereg_mr");
}

static void by_error(struct target *t)
{
	qp_to(t->qp, IBV_QPS_ERR, (struct ibv_qp_attr){0}, 0);
}

static void by_destroying(struct target *t)
{
	want(!ibv_destroy_qp(t->qp), "ibv_destroy_qp");
	t->qp = NULL;
}

/* Requests of XRC name the queue. */
static void by_queue(struct target *t)
{
	want(!ibv_destroy_srq(t->srq), "ibv_destroy_srq");
	t->srq = NULL;
}

static const struct kind {
	const char *name;
	bool dc;
	void (*revoke)(struct target *t);
} kinds[] = {
	{"xrc-dereg", false, by_dereg},		{"xrc-rights", false, by_rights},
	{"xrc-error", false, by_error},		{"xrc-destroy", false, by_destroying},
	{"xrc-queue-destroy", false, by_queue}, {"dc-dereg", true, by_dereg},
	{"dc-rights", true, by_rights},		{"dc-destroy", true, by_destroying},
};

static void target_start_initiator(struct target *t, const char *device, bool dc)
{
	char number[16];
	int pair[2];

	want(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
	snprintf(number, sizeof(number), "%d", pair[1]);
	t->initiator = fork();
	want(t->initiator >= 0, "fork");
	if (!t->initiator) {
		execl("/proc/self/exe", "targets", "initiator", number, device, dc ? "dc" : "xrc",
		      (char *)NULL);
		_exit(127);
	}
	close(pair[1]);
	t->sock = pair[0];
}

static void target_open(struct target *t, const char *device, bool dc)
{
	device_port_open(&t->port, device, -1);
	t->pd = ibv_alloc_pd(t->port.ctx);
	t->cq = ibv_create_cq(t->port.ctx, 16, NULL, NULL, 0);
	want(t->pd && t->cq, "PD or CQ");
	t->mem = map_memory(BYTES);
	t->mr = ibv_reg_mr(t->pd, t->mem, BYTES, IBV_ACCESS_LOCAL_WRITE | REMOTE);
	want(t->mr, "ibv_reg_mr");
	if (dc)
		dc_make(t);
	else
		xrc_make(t);
}

static void target_meet(struct target *t, bool dc)
{
	struct target_place place = {.addr = (uintptr_t)t->mem, .rkey = t->mr->rkey, .dc = dc};
	struct device_address peer;

	exchange(t->sock, NULL, 0, &peer, sizeof(peer));
	if (dc)
		dc_connect(t, &peer);
	else
		xrc_connect(t, &peer);
	/* A target of DC has its number when it is ready. */
	place.address = device_address(&t->port, t->qp, FIRST_PSN);
	if (!dc)
		want(!ibv_get_srq_num(t->srq, &place.srqn), "ibv_get_srq_num");
	exchange(t->sock, &place, sizeof(place), NULL, 0);
}

static void target_close(struct target *t)
{
	want(!(t->qp && ibv_destroy_qp(t->qp)), "ibv_destroy_qp");
	want(!(t->srq && ibv_destroy_srq(t->srq)), "ibv_destroy_srq");
	want(!(t->xrcd && ibv_close_xrcd(t->xrcd)), "ibv_close_xrcd");
	want(!(t->mr && ibv_dereg_mr(t->mr)), "ibv_dereg_mr");
	want(!ibv_destroy_cq(t->cq) && !ibv_dealloc_pd(t->pd), "CQ or PD");
	device_port_close(&t->port);
	munmap(t->mem, BYTES);
	close(t->sock);
}

enum { RUNS, IS_STOPPED, IS_KILLED, FATES };

static uint64_t play_round(const char *device, const struct kind *k, int fate)
{
	struct outcome o = {0};
	struct target t = {0};
	int status;

	target_start_initiator(&t, device, k->dc);
	target_open(&t, device, k->dc);
	target_meet(&t, k->dc);
	while (count_of(t.mem, BYTES, OLD) == BYTES)
		usleep(100);
	usleep((useconds_t)(random() % MAX_WAIT));
	if (fate != RUNS)
		kill(t.initiator, fate == IS_STOPPED ? SIGSTOP : SIGKILL);
	k->revoke(&t);
	memset(t.mem, POISON, BYTES);
	if (fate == IS_STOPPED)
		kill(t.initiator, SIGCONT);
	if (fate != IS_KILLED)
		exchange(t.sock, NULL, 0, &o, sizeof(o));
	want(waitpid(t.initiator, &status, 0) == t.initiator, "waitpid");
	if (fate != IS_KILLED && status)
		device_die("the initiator ended with status 0x%x", (unsigned)status);
	if (count_of(t.mem, BYTES, POISON) != BYTES)
		device_die("memory that was taken back has changed");
	if (o.wrong)
		device_die("the initiator has got memory that was taken back");
	target_close(&t);
	return o.done;
}

static int list_kinds(void)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		puts(kinds[i].name);
	return 0;
}

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	device_die("'%s' is no kind", name);
}

int main(int argc, char **argv)
{
	const struct kind *k;
	uint64_t done = 0;

	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list_kinds();
	if (argc != 5)
		device_die("usage: targets DEVICE KIND ROUNDS SEED | --list");
	if (!strcmp(argv[1], "initiator"))
		return initiator_main(atoi(argv[2]), argv[3], !strcmp(argv[4], "dc"));
	k = find_kind(argv[2]);
	srandom((unsigned)atoi(argv[4]));
	alarm(LIMIT_S);
	for (int i = 0; i < atoi(argv[3]); i++)
		done += play_round(argv[1], k, i % FATES);
	printf("%s rounds, %lu requests before\n", argv[3], (unsigned long)done);
	return 0;
}
