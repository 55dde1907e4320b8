// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program opens its device, makes a queue pair, and closes all of it, again and again, while another
 * sends to each of these queue pairs for the first time.  Between the two opens a way that neither
 * has had before, and it may open when the device is hardly there yet, or no longer.
 *
 *	leaving DEVICE
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_device.h"

#define ROUNDS	 400u
#define DELAYS	 20u /* different times between the queue pair and its end */
#define DELAY_NS 20000u
#define BYTES	 64u

static const struct device_connection impatient = {
	.timeout = 1, .min_rnr_timer = 1, .rd_atomic = 1, .mtu = IBV_MTU_1024};

/* What a side of a round has. */
struct side {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void side_open(struct side *s, const char *device)
{
	device_port_open(&s->port, device, -1);
	s->pd = ibv_alloc_pd(s->port.ctx);
	s->cq = ibv_create_cq(s->port.ctx, 16, NULL, NULL, 0);
	if (!s->pd || !s->cq)
		device_die("a domain and a queue: %m");
}

static void qp_create(struct side *s)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = s->cq,
		.recv_cq = s->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	s->qp = ibv_create_qp(s->pd, &attr);
	if (!s->qp)
		device_die("a queue pair: %m");
}

static void exchange(int sock, const struct device_address *own, struct device_address *other)
{
	if (send(sock, own, sizeof(*own), MSG_NOSIGNAL) != (ssize_t)sizeof(*own) ||
	    recv(sock, other, sizeof(*other), MSG_WAITALL) != (ssize_t)sizeof(*other))
		device_die("the other has gone");
}

/* Makes the queue pair, and tells the other. */
static struct device_address meet(struct side *s, int sock)
{
	struct device_address own, other;

	qp_create(s);
	own = device_address(&s->port, s->qp, 0);
	exchange(sock, &own, &other);
	return other;
}

static void leave_often(const char *device, int sock)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t end;
		struct side s;

		side_open(&s, device);
		(void)meet(&s, sock);
		end = device_now_ns() + (uint64_t)(i % DELAYS) * DELAY_NS;
		while (device_now_ns() < end)
			;
		if (ibv_destroy_qp(s.qp) || ibv_destroy_cq(s.cq) || ibv_dealloc_pd(s.pd))
			device_die("round %u: %m", i);
		device_port_close(&s.port);
	}
}

static void send_once(struct side *s, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, BYTES, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc;
	int n;

	if (ibv_post_send(s->qp, &wr, &bad))
		device_die("ibv_post_send: %m");
	while ((n = ibv_poll_cq(s->cq, 1, &wc)) == 0)
		;
	if (n < 0)
		device_die("polling fails");
	/* There is no receive, if there is anybody. */
	if (wc.status != IBV_WC_RETRY_EXC_ERR && wc.status != IBV_WC_RNR_RETRY_EXC_ERR)
		device_die("the SEND ends with %s", ibv_wc_status_str(wc.status));
}

static void send_often(const char *device, int sock)
{
	static uint8_t mem[BYTES];
	struct device_address leaver;
	struct ibv_mr *mr;
	struct side s;

	side_open(&s, device);
	mr = ibv_reg_mr(s.pd, mem, BYTES, 0);
	if (!mr)
		device_die("ibv_reg_mr: %m");
	for (unsigned i = 0; i < ROUNDS; i++) {
		leaver = meet(&s, sock);
		device_qp_init(s.qp, &impatient);
		device_qp_connect(&s.port, s.qp, &impatient, &leaver, 0);
		send_once(&s, mr);
		if (ibv_destroy_qp(s.qp))
			device_die("ibv_destroy_qp: %m");
	}
	ibv_dereg_mr(mr);
	ibv_destroy_cq(s.cq);
	ibv_dealloc_pd(s.pd);
	device_port_close(&s.port);
}

int main(int argc, char **argv)
{
	int socks[2], status;
	pid_t leaver;

	if (argc != 2)
		device_die("usage: leaving DEVICE");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, socks))
		device_die("socketpair: %m");
	leaver = fork();
	if (leaver < 0)
		device_die("fork: %m");
	if (!leaver) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(socks[0]);
		leave_often(argv[1], socks[1]);
		_exit(0);
	}
	close(socks[1]);
	send_often(argv[1], socks[0]);
	if (waitpid(leaver, &status, 0) != leaver || status)
		device_die("who leaves ended with status %#x", (unsigned)status);
	return 0;
}
