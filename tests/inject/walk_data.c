/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections, data and events. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "walk.h"

#define QKEY	      0x11223344u
#define LARGE	      (64u << 10)
#define LOST_EVENT_MS 200
#define GRH_BYTES     40u

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct walk_address walk_address(const struct walk *w, const struct ibv_qp *qp)
{
	return (struct walk_address){
		.qpn = qp->qp_num,
		.rkey = w->mr ? w->mr->rkey : 0,
		.addr = (uintptr_t)w->memory,
		.lid = w->port.lid,
		.gid = w->gid,
	};
}

struct ibv_ah_attr walk_ah_attr(const struct walk *w, const struct walk_address *peer)
{
	struct ibv_ah_attr attr = {.dlid = peer->lid, .port_num = 1};

	if (w->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.is_global = 1;
		attr.grh.dgid = peer->gid;
		attr.grh.hop_limit = 64;
	}
	return attr;
}

static int to_init(struct walk_end *e, bool ud)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = QKEY,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	return ibv_modify_qp(e->qp, &attr,
			     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				     (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

int walk_connect(const struct walk *w, struct walk_end *e, const struct walk_address *peer)
{
	enum ibv_qp_type type = e->qp->qp_type;
	bool ud = type == IBV_QPT_UD, sends = type != IBV_QPT_XRC_RECV;
	bool reliable = !ud && type != IBV_QPT_UC, answers = reliable && type != IBV_QPT_XRC_SEND;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};
	int ret = to_init(e, ud);

	if (ret)
		return ret;
	attr.dest_qp_num = peer->qpn;
	attr.ah_attr = walk_ah_attr(w, peer);
	attr.max_dest_rd_atomic = attr.max_rd_atomic = 4;
	attr.min_rnr_timer = 1;
	ret = ibv_modify_qp(
		e->qp, &attr,
		IBV_QP_STATE |
			(ud ? 0 : IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN) |
			(answers ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
	if (ret)
		return ret;
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 16; /* 268 ms */
	attr.retry_cnt = attr.rnr_retry = 6;
	ret = ibv_modify_qp(e->qp, &attr,
			    IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? IBV_QP_TIMEOUT : 0) |
				    (reliable && sends ? IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
								 IBV_QP_MAX_QP_RD_ATOMIC
						       : 0));
	e->ready = !ret;
	return ret;
}

int walk_completions(const struct walk *w, struct ibv_cq *cq, unsigned n)
{
	double end = now_s() + WALK_PATIENCE_S;

	while (n) {
		struct ibv_wc wc;
		int got = ibv_poll_cq(cq, 1, &wc);

		if (got < 0)
			return EIO;
		if (got && wc.status) {
			if (w->faulty)
				return EIO;
			fprintf(stderr, "completion %u: %s\n", (unsigned)wc.wr_id,
				ibv_wc_status_str(wc.status));
			return WALK_WRONG;
		}
		n -= (unsigned)got;
		if (!got && now_s() > end)
			return WALK_HUNG;
	}
	return 0;
}

static int post_receive(struct walk *w, struct walk_end *e, uint32_t bytes)
{
	struct ibv_sge to = {(uintptr_t)w->memory + WALK_BYTES / 2, bytes, w->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &to, .num_sge = 1}, *bad;

	return e->qp->srq ? ibv_post_srq_recv(e->qp->srq, &wr, &bad)
			  : ibv_post_recv(e->qp, &wr, &bad);
}

static int post_request(struct walk *w, struct walk_end *e, enum ibv_wr_opcode opcode,
			uint32_t bytes, const struct walk_address *peer)
{
	struct ibv_sge from = {(uintptr_t)w->memory, bytes, w->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = opcode,
				 .sg_list = &from,
				 .num_sge = 1,
				 .opcode = opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = peer->addr + WALK_BYTES / 4;
		wr.wr.atomic.rkey = peer->rkey;
	} else {
		wr.wr.rdma.remote_addr = peer->addr + WALK_BYTES / 4;
		wr.wr.rdma.rkey = peer->rkey;
	}
	return ibv_post_send(e->qp, &wr, &bad);
}

/* Requests that target needs no receive for, one after the other. */
static int one_sided(struct walk *w, struct walk_end *e, const struct walk_address *peer)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t bytes;
	} requests[] = {
		{IBV_WR_RDMA_WRITE, 8},
		{IBV_WR_RDMA_WRITE, LARGE},
		{IBV_WR_RDMA_READ, LARGE},
		{IBV_WR_ATOMIC_FETCH_AND_ADD, 8},
		{IBV_WR_RDMA_WRITE, WALK_BYTES / 4},
	};

	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++) {
		int ret = post_request(w, e, requests[i].opcode, requests[i].bytes, peer);

		if (!ret)
			ret = walk_completions(w, w->cq[0], 1);
		if (ret)
			return ret;
	}
	return 0;
}

static bool ends_usable(const struct walk *w, const struct walk_end *a, const struct walk_end *b)
{
	return w->mr && w->cq[0] && w->cq[1] && a->ready && b->ready;
}

WALK_STEP(rc_data)
{
	struct walk_address self;
	int ret;

	if (!ends_usable(w, &w->rc[0], &w->rc[1]))
		return WALK_SKIP;
	self = walk_address(w, w->rc[1].qp);
	ret = one_sided(w, &w->rc[0], &self);
	if (!ret)
		ret = post_receive(w, &w->rc[1], LARGE);
	if (!ret)
		ret = post_request(w, &w->rc[0], IBV_WR_SEND, LARGE, &self);
	if (!ret)
		ret = walk_completions(w, w->cq[0], 1);
	return ret ? ret : walk_completions(w, w->cq[1], 1);
}

WALK_STEP(srq_data)
{
	struct walk_address self;
	int ret;

	if (!ends_usable(w, &w->on_srq, &w->on_srq) || !w->srq)
		return WALK_SKIP;
	self = walk_address(w, w->on_srq.qp);
	ret = post_receive(w, &w->on_srq, LARGE);
	if (!ret)
		ret = post_request(w, &w->on_srq, IBV_WR_SEND, LARGE, &self);
	if (!ret)
		ret = walk_completions(w, w->cq[0], 1);
	return ret ? ret : walk_completions(w, w->cq[1], 1);
}

WALK_STEP(uc_data)
{
	struct walk_address self;
	int ret;

	if (!ends_usable(w, &w->uc[0], &w->uc[1]))
		return WALK_SKIP;
	self = walk_address(w, w->uc[1].qp);
	ret = post_request(w, &w->uc[0], IBV_WR_RDMA_WRITE, LARGE, &self);
	return ret ? ret : walk_completions(w, w->cq[0], 1);
}

/* A SEND of so many bytes, to wherever the queue pair or the rest of the request says. */
static int send_bytes(struct walk *w, struct ibv_qp *qp, uint32_t bytes, struct ibv_send_wr wr)
{
	struct ibv_sge from = {(uintptr_t)w->memory, bytes, w->mr->lkey};
	struct ibv_send_wr *bad;
	int ret;

	wr.sg_list = &from;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_SEND;
	wr.send_flags = IBV_SEND_SIGNALED;
	ret = ibv_post_send(qp, &wr, &bad);
	return ret ? ret : walk_completions(w, w->cq[0], 1);
}

/* To the other one and to the group.  What arrives is not waited for: a datagram may be lost. */
WALK_STEP(ud_data)
{
	struct ibv_send_wr wr = {0};
	int ret;

	if (!ends_usable(w, &w->ud[0], &w->ud[1]) || !w->ah)
		return WALK_SKIP;
	ret = post_receive(w, &w->ud[1], 256 + GRH_BYTES);
	wr.wr.ud.ah = w->ah;
	wr.wr.ud.remote_qpn = w->ud[1].qp->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	return ret ? ret : send_bytes(w, w->ud[0].qp, 256, wr);
}

WALK_STEP(raw_data)
{
	if (!ends_usable(w, &w->raw, &w->raw))
		return WALK_SKIP;
	return send_bytes(w, w->raw.qp, 100, (struct ibv_send_wr){0});
}

WALK_STEP(bind_data)
{
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
				   .bind_info = {.mr = w->mr,
						 .addr = (uintptr_t)w->memory,
						 .length = WALK_PAGE,
						 .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
	int ret;

	if (!ends_usable(w, &w->rc[0], &w->rc[1]) || !w->mw[0])
		return WALK_SKIP;
	ret = ibv_bind_mw(w->rc[0].qp, w->mw[0], &bind);
	return ret ? ret : walk_completions(w, w->cq[0], 1);
}

/*
 * An event for a completion.  It may be lost only if every attempt to deliver it fails, as the
 * kernel loses what it has no memory for.
 */
static int event_wait(struct walk *w)
{
	struct pollfd wait = {.fd = w->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *user;
	int n = poll(&wait, 1, w->lasting ? LOST_EVENT_MS : WALK_PATIENCE_S * 1000);

	if (n != 1)
		return w->lasting ? ENOMEM : WALK_HUNG;
	errno = 0;
	if (ibv_get_cq_event(w->channel, &cq, &user))
		return walk_errno();
	ibv_ack_cq_events(cq, 1);
	return 0;
}

WALK_STEP(event_data)
{
	struct walk_address self;
	int ret;

	if (!ends_usable(w, &w->rc[0], &w->rc[1]))
		return WALK_SKIP;
	self = walk_address(w, w->rc[1].qp);
	ret = ibv_req_notify_cq(w->cq[0], 0);
	if (!ret)
		ret = post_request(w, &w->rc[0], IBV_WR_RDMA_WRITE, 8, &self);
	if (!ret)
		ret = walk_completions(w, w->cq[0], 1);
	return ret ? ret : event_wait(w);
}

/* An event that nobody takes: whoever destroys the CQ must not wait for it. */
WALK_STEP(late_event_data)
{
	struct walk_address self;
	int ret;

	if (!ends_usable(w, &w->rc[0], &w->rc[1]))
		return WALK_SKIP;
	self = walk_address(w, w->rc[1].qp);
	ret = ibv_req_notify_cq(w->cq[0], 0);
	if (!ret)
		ret = post_request(w, &w->rc[0], IBV_WR_RDMA_WRITE, 8, &self);
	return ret ? ret : walk_completions(w, w->cq[0], 1);
}

/* The error state flushes what is posted, and tells the SRQ's user. */
WALK_STEP(flush_data)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	int ret;

	if (!w->on_srq.ready)
		return WALK_SKIP;
	ret = ibv_modify_qp(w->on_srq.qp, &attr, IBV_QP_STATE);
	w->on_srq.ready = false;
	return ret;
}

WALK_STEP(fork_data)
{
	int status = 0;
	pid_t child;

	if (!w->ctx)
		return WALK_SKIP;
	child = fork();
	if (child < 0)
		return errno;
	if (!child)
		_exit(7);
	if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
		fprintf(stderr, "fork: status %#x of the child\n", (unsigned)status);
		return WALK_WRONG;
	}
	return 0;
}

const struct walk_step walk_data[] = {
	{"rc data", rc_data, NULL},   {"srq data", srq_data, NULL},
	{"uc data", uc_data, NULL},   {"ud data", ud_data, NULL},
	{"raw data", raw_data, NULL}, {"bind", bind_data, NULL},
	{"event", event_data, NULL},  {"late event", late_event_data, NULL},
	{"fork", fork_data, NULL},    {"flush", flush_data, NULL},
	{NULL, NULL, NULL},
};

/* ---- with another process ---- */

static int peer_ask(struct walk *w, const struct walk_address *mine, struct walk_address *theirs)
{
	struct pollfd wait = {.fd = w->peer, .events = POLLIN};

	if (send(w->peer, mine, sizeof(*mine), MSG_NOSIGNAL) != sizeof(*mine))
		return w->peer_may_fail ? EIO : WALK_WRONG;
	/* The other one may have to wait several times for a daemon that does not answer. */
	if (poll(&wait, 1, (w->peer_may_fail ? 4 : 1) * WALK_PATIENCE_S * 1000) != 1)
		return WALK_HUNG;
	if (read(w->peer, theirs, sizeof(*theirs)) != sizeof(*theirs)) {
		if (w->peer_may_fail)
			return EIO;
		fprintf(stderr, "the other process has gone\n");
		return WALK_WRONG;
	}
	return 0;
}

WALK_STEP(remote_make)
{
	struct walk_address mine, theirs;
	int ret;

	if (!w->remote.qp || !w->mr || !w->have_port)
		return WALK_SKIP;
	mine = walk_address(w, w->remote.qp);
	ret = peer_ask(w, &mine, &theirs);
	if (ret)
		return ret;
	w->remote_peer = theirs;
	ret = walk_connect(w, &w->remote, &theirs);
	if (!ret)
		ret = one_sided(w, &w->remote, &theirs);
	for (unsigned bytes = 8; !ret && bytes <= LARGE; bytes *= LARGE / 8) {
		ret = post_request(w, &w->remote, IBV_WR_SEND, bytes, &theirs);
		if (!ret)
			ret = walk_completions(w, w->cq[0], 1);
	}
	return ret;
}

/* The other one takes down what it has. */
WALK_STEP(remote_drop)
{
	struct walk_address none = {0};
	int ret = peer_ask(w, &none, &none);

	return ret > 0 ? 0 : ret;
}

int walk_remote_again(struct walk *w)
{
	return one_sided(w, &w->remote, &w->remote_peer);
}

const struct walk_step walk_remote[] = {
	{"remote data", remote_make, remote_drop},
	{NULL, NULL, NULL},
};
