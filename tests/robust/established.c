// SPDX-License-Identifier: BSD-2-Clause
/*
 * established DEVICE: the first packet for a queue pair in RTR raises IBV_EVENT_COMM_EST, once, whatever request it begins and
 * whether the peer is in this process or in another one.  A queue pair that is in RTS before raises none.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_device.h"

#define BYTES	 64u
#define PSN	 7u
#define ROUNDS	 2u /* of each case, with a reset between them */
#define EVENT_MS 5000
#define QUIET_MS 100

static const struct kind {
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	const char *name;
} kinds[] = {
	{IBV_QPT_RC, IBV_WR_SEND, "RC SEND"},
	{IBV_QPT_RC, IBV_WR_RDMA_WRITE, "RC WRITE"},
	{IBV_QPT_RC, IBV_WR_RDMA_READ, "RC READ"},
	{IBV_QPT_RC, IBV_WR_ATOMIC_FETCH_AND_ADD, "RC atomic"},
	{IBV_QPT_UC, IBV_WR_SEND, "UC SEND"},
	{IBV_QPT_UC, IBV_WR_RDMA_WRITE, "UC WRITE"},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

struct end {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint64_t memory[BYTES / 8];
};

/* What the initiator must know of the target. */
struct target {
	struct device_address at;
	uint64_t addr;
	uint32_t rkey;
};

static unsigned failures;

static void end_open(struct end *e, const char *device)
{
	device_port_open(&e->port, device, -1);
	e->pd = ibv_alloc_pd(e->port.ctx);
	e->cq = ibv_create_cq(e->port.ctx, 64, NULL, NULL, 0);
	e->mr = ibv_reg_mr(e->pd, e->memory, BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!e->pd || !e->cq || !e->mr)
		device_die("objects: %m");
}

static void end_qp(struct end *e, const struct kind *k)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = k->type,
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.cap = {8, 8, 1, 1, 0},
	};

	e->qp = ibv_create_qp(e->pd, &attr);
	if (!e->qp)
		device_die("%s: %m", k->name);
}

static void reset(struct end *e)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	if (ibv_modify_qp(e->qp, &attr, IBV_QP_STATE))
		device_die("reset: %m");
}

/* The target stays in RTR. */
static void target_ready(struct end *e, const struct kind *k, const struct device_address *peer)
{
	struct ibv_sge entry = {(uintptr_t)e->memory, BYTES, e->mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &entry, .num_sge = 1}, *bad;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = device_ah_attr(&e->port, peer),
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (k->type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	device_qp_init(e->qp, &device_default_connection);
	if (ibv_modify_qp(e->qp, &attr, mask))
		device_die("%s to RTR: %m", k->name);
	for (unsigned i = 0; i < 2; i++)
		if (ibv_post_recv(e->qp, &wr, &bad))
			device_die("a receive: %m");
}

/* Sends two requests, one after the other. */
static void initiate(struct end *e, const struct kind *k, const struct target *t)
{
	struct ibv_sge entry = {(uintptr_t)e->memory, 8, e->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &entry,
				 .num_sge = 1,
				 .opcode = k->opcode,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_wc wc = {0};

	wr.wr.rdma.remote_addr = t->addr;
	wr.wr.rdma.rkey = t->rkey;
	if (k->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = t->addr;
		wr.wr.atomic.rkey = t->rkey;
	}
	device_qp_init(e->qp, &device_default_connection);
	device_qp_connect(&e->port, e->qp, &device_default_connection, &t->at, PSN);
	for (unsigned i = 0; i < 2; i++) {
		if (ibv_post_send(e->qp, &wr, &bad))
			device_die("%s: %m", k->name);
		while (!ibv_poll_cq(e->cq, 1, &wc))
			;
		if (wc.status != IBV_WC_SUCCESS)
			device_die("%s: %s", k->name, ibv_wc_status_str(wc.status));
	}
}

/* How many events of the kind come for the queue pair. */
static unsigned events(struct end *e)
{
	struct pollfd p = {.fd = e->port.ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	unsigned n = 0;

	while (poll(&p, 1, n ? QUIET_MS : EVENT_MS) == 1) {
		if (ibv_get_async_event(e->port.ctx, &event))
			device_die("ibv_get_async_event: %m");
		n += event.event_type == IBV_EVENT_COMM_EST && event.element.qp == e->qp;
		ibv_ack_async_event(&event);
	}
	return n;
}

static struct target target_of(struct end *e)
{
	return (struct target){device_address(&e->port, e->qp, PSN), (uintptr_t)e->memory,
			       e->mr->rkey};
}

static void verdict(const struct kind *k, const char *where, unsigned got)
{
	if (got == 1)
		return;
	failures++;
	printf("wrong: %s from %s to a QP in RTR: %u events\n", k->name, where, got);
}

static void drain(struct end *e)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(e->cq, 1, &wc) > 0)
		;
}

static void in_one_process(struct end *from, struct end *to)
{
	for (size_t k = 0; k < KINDS; k++) {
		end_qp(from, &kinds[k]);
		end_qp(to, &kinds[k]);
		for (unsigned round = 0; round < ROUNDS; round++) {
			struct device_address peer = device_address(&from->port, from->qp, PSN);
			struct target t = target_of(to);

			target_ready(to, &kinds[k], &peer);
			initiate(from, &kinds[k], &t);
			verdict(&kinds[k], "this process", events(to));
			reset(from);
			reset(to);
			drain(to);
		}
		ibv_destroy_qp(from->qp);
		ibv_destroy_qp(to->qp);
	}
}

static void transfer(int fd, bool out, void *data, size_t bytes)
{
	if ((out ? write(fd, data, bytes) : read(fd, data, bytes)) != (ssize_t)bytes)
		device_die("the other process: %m");
}

static void other_process(const char *device, int fd)
{
	static struct end e;

	end_open(&e, device);
	for (size_t k = 0; k < KINDS; k++) {
		struct device_address self;
		struct target t;

		end_qp(&e, &kinds[k]);
		self = device_address(&e.port, e.qp, PSN);
		for (unsigned round = 0; round < ROUNDS; round++) {
			transfer(fd, true, &self, sizeof(self));
			transfer(fd, false, &t, sizeof(t));
			initiate(&e, &kinds[k], &t);
			/* the target has heard of it */
			transfer(fd, false, &t, 1);
			reset(&e);
		}
		ibv_destroy_qp(e.qp);
	}
}

static void in_two_processes(struct end *to, int fd)
{
	for (size_t k = 0; k < KINDS; k++) {
		end_qp(to, &kinds[k]);
		for (unsigned round = 0; round < ROUNDS; round++) {
			struct target t = target_of(to);
			struct device_address peer;

			transfer(fd, false, &peer, sizeof(peer));
			target_ready(to, &kinds[k], &peer);
			transfer(fd, true, &t, sizeof(t));
			verdict(&kinds[k], "another process", events(to));
			transfer(fd, true, &t, 1);
			reset(to);
			drain(to);
		}
		ibv_destroy_qp(to->qp);
	}
}

/* What is in RTS before its first packet needs no event. */
static void ready_before(struct end *from, struct end *to)
{
	const struct kind *k = &kinds[1];
	struct device_address peer;
	struct pollfd p = {.fd = to->port.ctx->async_fd, .events = POLLIN};
	struct target t;

	end_qp(from, k);
	end_qp(to, k);
	peer = device_address(&from->port, from->qp, PSN);
	t = target_of(to);
	device_qp_init(to->qp, &device_default_connection);
	device_qp_connect(&to->port, to->qp, &device_default_connection, &peer, PSN);
	initiate(from, k, &t);
	if (poll(&p, 1, QUIET_MS)) {
		failures++;
		printf("wrong: an event of a QP in RTS\n");
	}
	ibv_destroy_qp(from->qp);
	ibv_destroy_qp(to->qp);
}

int main(int argc, char **argv)
{
	static struct end from, to;
	int fd[2], status;
	pid_t child;

	if (argc != 2 || socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		device_die("usage: established DEVICE");
	setvbuf(stdout, NULL, _IOLBF, 0);
	child = fork();
	if (!child) {
		close(fd[0]);
		other_process(argv[1], fd[1]);
		return 0;
	}
	close(fd[1]);
	end_open(&to, argv[1]);
	in_two_processes(&to, fd[0]);
	if (waitpid(child, &status, 0) != child || status)
		device_die("the other process fails");
	end_open(&from, argv[1]);
	in_one_process(&from, &to);
	ready_before(&from, &to);
	return failures != 0;
}
