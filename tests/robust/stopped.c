// SPDX-License-Identifier: BSD-2-Clause
/*
 * stopped DEVICE HOW: a peer that is stopped, as by a debugger, holds up nobody; and what was sent
 * to it and given up meanwhile does not arrive when it goes on, least of all with other bytes.
 *
 *     sender ---- 64 KiB ----> receiver, stopped; the sender's buffer gets other contents; receiver
 * goes on
 *            ---- "end"  ---->           all before this has been seen when it comes
 *
 * HOW the request ends while the receiver is stopped: retries, error, reset, destroy, dereg.
 * HOW datagrams: to a receiver that is stopped and one that is not, in turn.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define BYTES	  (64u << 10)
#define WARM_UPS  3u
#define RECEIVES  8u
#define END_ID	  100u
#define DATAGRAMS 4000u
#define WINDOW	  32u
#define LIMIT_S	  50 /* nothing may hang */

enum { WARM = 0x11, SENT = 0x22, REUSED = 0xee };
enum { DATA, END, QPS };

struct end {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_mr *mr[QPS];
	struct ibv_cq *cq;
	struct ibv_qp *qp[QPS];
	struct ibv_ah *ah;
	uint8_t *mem[QPS];
	int sock;
	pid_t child;
};

static const struct device_connection patient = {
	.rnr_retry = 7,
	.retry_cnt = 7,
	.timeout = 18,
	.min_rnr_timer = 1,
	.rd_atomic = 1,
	.mtu = IBV_MTU_1024,
};

/* ---- both sides ---- */

static void end_open(struct end *e, const char *device, enum ibv_qp_type type)
{
	struct ibv_comp_channel *events;
	struct ibv_qp_init_attr attr = {
		.cap = {.max_send_wr = PAIR_DEPTH,
			.max_recv_wr = PAIR_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = type,
	};

	device_port_open(&e->port, device, -1);
	e->pd = ibv_alloc_pd(e->port.ctx);
	/* A CQ with events is completed by its own process: so data goes in packets. */
	events = ibv_create_comp_channel(e->port.ctx);
	e->cq = events ? ibv_create_cq(e->port.ctx, 4 * PAIR_DEPTH, NULL, events, 0) : NULL;
	if (!e->pd || !e->cq)
		device_die("no PD, channel or CQ: %m");
	attr.send_cq = attr.recv_cq = e->cq;
	for (int i = 0; i < QPS; i++) {
		e->mem[i] = aligned_alloc(4096, RECEIVES * BYTES);
		e->mr[i] = e->mem[i] ? ibv_reg_mr(e->pd, e->mem[i], RECEIVES * BYTES,
						  IBV_ACCESS_LOCAL_WRITE)
				     : NULL;
		e->qp[i] = ibv_create_qp(e->pd, &attr);
		if (!e->mr[i] || !e->qp[i])
			device_die("no MR or QP: %m");
		device_qp_init(e->qp[i], i == DATA ? &pair_impatient : &patient);
	}
}

static void tell_words(struct end *e, const void *what, size_t n)
{
	if (send(e->sock, what, n, MSG_NOSIGNAL) != (ssize_t)n)
		device_die("the other has gone: %m");
}

static void hear_words(struct end *e, void *what, size_t n)
{
	if (recv(e->sock, what, n, MSG_WAITALL) != (ssize_t)n)
		device_die("the other has gone");
}

static void end_meet(struct end *e)
{
	struct device_address mine[QPS], theirs[QPS];
	char byte = 0;

	for (int i = 0; i < QPS; i++)
		mine[i] = device_address(&e->port, e->qp[i], 100);
	tell_words(e, mine, sizeof(mine));
	hear_words(e, theirs, sizeof(theirs));
	for (int i = 0; i < QPS; i++)
		device_qp_connect(&e->port, e->qp[i], i == DATA ? &pair_impatient : &patient,
				  &theirs[i], 100);
	tell_words(e, &byte, 1);
	hear_words(e, &byte, 1);
}

static struct ibv_wc next_wc(struct end *e)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(e->cq, 1, &wc);
	while (!n);
	if (n < 0)
		device_die("polling fails");
	return wc;
}

/* The child runs fn, which does not return; the parent goes on. */
static void end_fork(struct end *e, void (*fn)(struct end *e, const char *device),
		     const char *device)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		device_die("socketpair: %m");
	e->child = fork();
	if (e->child < 0)
		device_die("fork: %m");
	e->sock = pair[e->child ? 0 : 1];
	close(pair[e->child ? 1 : 0]);
	if (e->child)
		return;
	alarm(LIMIT_S);
	fn(e, device);
	exit(0);
}

static void stop_child(const struct end *e)
{
	int status;

	if (kill(e->child, SIGSTOP) || waitpid(e->child, &status, WUNTRACED) != e->child ||
	    !WIFSTOPPED(status))
		device_die("the receiver cannot be stopped");
}

static int child_status(const struct end *e)
{
	int status;

	if (waitpid(e->child, &status, 0) != e->child || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

/* ---- messages ---- */

static void post_recv(struct end *e, int qp, uint64_t id, size_t at)
{
	struct ibv_sge sge = {(uintptr_t)e->mem[qp] + at, BYTES, e->mr[qp]->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(e->qp[qp], &wr, &bad))
		device_die("ibv_post_recv: %m");
}

static void post_send(struct end *e, int qp, uint64_t id, uint32_t bytes)
{
	struct ibv_sge sge = {(uintptr_t)e->mem[qp], bytes, e->mr[qp]->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if (ibv_post_send(e->qp[qp], &wr, &bad))
		device_die("ibv_post_send: %m");
}

static void check_contents(const struct end *e, const struct ibv_wc *wc, unsigned number)
{
	const uint8_t *got = e->mem[DATA] + wc->wr_id * BYTES;
	uint8_t want = number < WARM_UPS ? WARM : SENT;

	if (wc->byte_len != BYTES)
		device_die("receive %u: %u bytes", number, wc->byte_len);
	for (unsigned i = 0; i < BYTES; i++)
		if (got[i] != want)
			device_die("receive %u: byte %u is 0x%02x, which was never sent", number, i,
				   got[i]);
}

static void receiver_process(struct end *e, const char *device)
{
	unsigned got = 0;
	char byte;

	end_open(e, device, IBV_QPT_RC);
	for (unsigned i = 0; i < RECEIVES; i++)
		post_recv(e, DATA, i, (size_t)i * BYTES);
	post_recv(e, END, END_ID, 0);
	end_meet(e);
	for (;;) {
		struct ibv_wc wc = next_wc(e);

		if (wc.status != IBV_WC_SUCCESS)
			device_die("a receive ends with %s", ibv_wc_status_str(wc.status));
		if (wc.wr_id == END_ID)
			break;
		check_contents(e, &wc, got++);
	}
	if (got < WARM_UPS)
		device_die("%u of %u messages arrived", got, WARM_UPS);
	(void)recv(e->sock, &byte, 1, 0); /* until the sender has its answer */
}

/* ---- how a request ends ---- */

static void by_retries(struct end *e)
{
	struct ibv_wc wc = next_wc(e);

	if (wc.status != IBV_WC_RETRY_EXC_ERR)
		device_die("the request ends with %s", ibv_wc_status_str(wc.status));
}

static void to_state(struct end *e, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	if (ibv_modify_qp(e->qp[DATA], &attr, IBV_QP_STATE))
		device_die("the queue pair cannot be modified: %m");
}

static void by_error(struct end *e)
{
	to_state(e, IBV_QPS_ERR);
}

static void by_reset(struct end *e)
{
	to_state(e, IBV_QPS_RESET);
}

static void by_destroy(struct end *e)
{
	if (ibv_destroy_qp(e->qp[DATA]))
		device_die("the queue pair cannot be destroyed: %m");
}

static void by_dereg(struct end *e)
{
	if (ibv_dereg_mr(e->mr[DATA]))
		device_die("the region cannot be deregistered: %m");
}

static int message_given_up(const char *device, void (*give_up)(struct end *e))
{
	struct end e = {0};
	struct ibv_wc wc;

	end_fork(&e, receiver_process, device);
	end_open(&e, device, IBV_QPT_RC);
	end_meet(&e);
	memset(e.mem[DATA], WARM, BYTES);
	for (unsigned i = 0; i < WARM_UPS; i++) {
		post_send(&e, DATA, i, BYTES);
		wc = next_wc(&e);
		if (wc.status != IBV_WC_SUCCESS)
			device_die("the first messages: %s", ibv_wc_status_str(wc.status));
	}
	stop_child(&e);
	memset(e.mem[DATA], SENT, BYTES);
	post_send(&e, DATA, WARM_UPS, BYTES);
	give_up(&e);
	memset(e.mem[DATA], REUSED, BYTES);
	kill(e.child, SIGCONT);
	post_send(&e, END, END_ID, 8);
	do
		wc = next_wc(&e);
	while (wc.wr_id != END_ID);
	if (wc.status != IBV_WC_SUCCESS)
		device_die("the last message: %s", ibv_wc_status_str(wc.status));
	close(e.sock);
	return child_status(&e);
}

/* ---- datagrams ---- */

/* Has no receives: what arrives is dropped by the device. */
static void datagram_receiver(struct end *e, const char *device)
{
	char byte = 0;

	end_open(e, device, IBV_QPT_UD);
	end_meet(e);
	(void)recv(e->sock, &byte, 1, 0); /* until the sender has done */
}

static void post_datagram(struct end *from, const struct end *to, uint32_t qpn)
{
	struct ibv_sge sge = {(uintptr_t)from->mem[DATA], 1024, from->mr[DATA]->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_SEND,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.ud = {.ah = to->ah, .remote_qpn = qpn, .remote_qkey = DEVICE_QKEY}};

	if (ibv_post_send(from->qp[DATA], &wr, &bad))
		device_die("ibv_post_send: %m");
}

static void collect_completions(struct end *e, unsigned *done)
{
	struct ibv_wc wc = next_wc(e);

	if (wc.status != IBV_WC_SUCCESS)
		device_die("a datagram ends with %s", ibv_wc_status_str(wc.status));
	++*done;
}

static int datagrams_pass(const char *device)
{
	struct end to[2] = {0};
	struct device_address address[2][QPS], mine[QPS];
	unsigned done = 0;
	char byte = 0;

	for (int k = 0; k < 2; k++)
		end_fork(&to[k], datagram_receiver, device);
	end_open(&to[0], device, IBV_QPT_UD);
	for (int i = 0; i < QPS; i++)
		mine[i] = device_address(&to[0].port, to[0].qp[i], 100);
	device_qp_connect(&to[0].port, to[0].qp[DATA], &pair_impatient, &mine[DATA], 100);
	for (int k = 0; k < 2; k++) {
		struct ibv_ah_attr attr;

		hear_words(&to[k], address[k], sizeof(address[k]));
		tell_words(&to[k], mine, sizeof(mine));
		hear_words(&to[k], &byte, 1);
		tell_words(&to[k], &byte, 1);
		attr = device_ah_attr(&to[0].port, &address[k][DATA]);
		to[k].ah = ibv_create_ah(to[0].pd, &attr);
		if (!to[k].ah)
			device_die("no address handle: %m");
	}
	stop_child(&to[0]);
	for (unsigned posted = 0; posted < DATAGRAMS; posted++) {
		if (posted - done == WINDOW)
			collect_completions(&to[0], &done);
		post_datagram(&to[0], &to[posted % 2], address[posted % 2][DATA].qpn);
	}
	while (done < DATAGRAMS)
		collect_completions(&to[0], &done);
	kill(to[0].child, SIGCONT);
	close(to[0].sock);
	close(to[1].sock);
	return child_status(&to[0]) | child_status(&to[1]);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*give_up)(struct end *e);
	} ways[] = {{"retries", by_retries},
		    {"error", by_error},
		    {"reset", by_reset},
		    {"destroy", by_destroy},
		    {"dereg", by_dereg}};

	if (argc != 3)
		device_die("usage: stopped DEVICE retries|error|reset|destroy|dereg|datagrams");
	alarm(LIMIT_S);
	if (!strcmp(argv[2], "datagrams"))
		return datagrams_pass(argv[1]);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(argv[2], ways[i].name))
			return message_given_up(argv[1], ways[i].give_up);
	device_die("'%s' is no way for a request to end", argv[2]);
}
