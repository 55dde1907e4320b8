/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests at the limits that libmlx5 itself allows: the longest inline data, the most entries of a
 * send and of a receive, with which a queue pair can be made.  Each must complete.  Prints a line
 * for each case: PASS or FAIL, name, reason.  A program of libibverbs alone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/verbs_device.h"

#define BYTES	 8192u
#define ENTRY	 8u
#define MOST	 1100u
#define UD_FRONT 40u

enum limit { INLINE, SEND_SGE, RECV_SGE, LIMITS };

static const char *const limit_name[] = {"inline data", "entries of a send",
					 "entries of a receive"};

static struct device_port port;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static uint8_t memory[2][BYTES];

/* NULL: the library allows no so large queue pair. */
static struct ibv_qp *make_qp(enum ibv_qp_type type, enum limit what, uint32_t n)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = type,
					.sq_sig_all = 1,
					.cap = {.max_send_wr = 16,
						.max_recv_wr = 16,
						.max_send_sge = what == SEND_SGE ? n : 1,
						.max_recv_sge = what == RECV_SGE ? n : 1,
						.max_inline_data = what == INLINE ? n : 0}};

	return ibv_create_qp(pd, &init);
}

/* What a query says of the largest one that there is. */
static uint32_t granted(enum ibv_qp_type type, enum limit what)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t best = 0;

	for (uint32_t n = 1; n < MOST; n++) {
		struct ibv_qp *qp = make_qp(type, what, n);

		if (!qp)
			continue;
		if (ibv_query_qp(qp, &attr, IBV_QP_CAP | IBV_QP_PORT, &init))
			device_die("ibv_query_qp: %m");
		/* Nobody has set it yet; programs ask which port they can use. */
		if (attr.port_num != 1)
			device_die("a new queue pair is of port %u", attr.port_num);
		best = what == INLINE	  ? init.cap.max_inline_data
		       : what == SEND_SGE ? init.cap.max_send_sge
					  : init.cap.max_recv_sge;
		if (ibv_destroy_qp(qp))
			device_die("ibv_destroy_qp: %m");
	}
	return best;
}

static uint32_t list_make(struct ibv_sge *list, uint8_t *at, uint32_t entries)
{
	for (uint32_t i = 0; i < entries; i++)
		list[i] = (struct ibv_sge){(uintptr_t)at + i * ENTRY, ENTRY, mr->lkey};
	return entries * ENTRY;
}

static const char *exchange(struct ibv_qp *qp[2], enum limit what, uint32_t n)
{
	static struct ibv_sge out[MOST], in[MOST];
	uint32_t front = qp[0]->qp_type == IBV_QPT_UD ? UD_FRONT : 0, bytes;
	struct ibv_recv_wr recv = {.sg_list = in, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = out, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad_send;
	uint64_t start = device_now_ns();
	struct ibv_wc wc;

	in[0] = (struct ibv_sge){(uintptr_t)memory[1], BYTES, mr->lkey};
	bytes = what == SEND_SGE ? list_make(out, memory[0], n) : n;
	if (what == SEND_SGE)
		send.num_sge = (int)n;
	if (what == RECV_SGE) {
		bytes = list_make(in, memory[1], n) - front;
		recv.num_sge = (int)n;
	}
	if (what != SEND_SGE)
		out[0] = (struct ibv_sge){(uintptr_t)memory[0], bytes, mr->lkey};
	if (what == INLINE)
		send.send_flags = IBV_SEND_INLINE;
	if (front) {
		struct device_address to = device_address(&port, qp[1], 0);
		struct ibv_ah_attr attr = device_ah_attr(&port, &to);

		send.wr.ud.ah = ibv_create_ah(pd, &attr);
		send.wr.ud.remote_qpn = qp[1]->qp_num;
		send.wr.ud.remote_qkey = DEVICE_QKEY;
		if (!send.wr.ud.ah)
			device_die("ibv_create_ah: %m");
	}
	memset(memory[1], 0, BYTES);
	if (ibv_post_recv(qp[1], &recv, &bad_recv) || ibv_post_send(qp[0], &send, &bad_send))
		return "a post is refused";
	for (int i = 0; i < 2; i++) {
		while (!ibv_poll_cq(cq, 1, &wc))
			if (device_now_ns() - start > 5000000000u)
				return i ? "only one completion" : "no completion";
		if (wc.status)
			return ibv_wc_status_str(wc.status);
	}
	if (front && ibv_destroy_ah(send.wr.ud.ah))
		device_die("ibv_destroy_ah: %m");
	return memcmp(memory[0], memory[1] + front, bytes) ? "other data" : NULL;
}

static int run_case(enum ibv_qp_type type, const char *type_name, enum limit what)
{
	struct device_connection how = device_default_connection;
	uint32_t n = granted(type, what);
	struct device_address address[2];
	struct ibv_qp *qp[2];
	const char *why;

	if (type == IBV_QPT_UC)
		how.access = IBV_ACCESS_REMOTE_WRITE;
	for (int i = 0; i < 2; i++) {
		qp[i] = make_qp(type, what, n);
		if (!qp[i])
			device_die("no queue pair with %u %s: %m", n, limit_name[what]);
		address[i] = device_address(&port, qp[i], 7);
	}
	for (int i = 0; i < 2; i++) {
		device_qp_init(qp[i], &how);
		device_qp_connect(&port, qp[i], &how, &address[!i], 7);
	}
	why = exchange(qp, what, n);
	printf("%s\t%s, most %s\t%u: %s\n", why ? "FAIL" : "PASS", type_name, limit_name[what], n,
	       why ? why : "complete");
	for (int i = 0; i < 2; i++)
		if (ibv_destroy_qp(qp[i]))
			device_die("ibv_destroy_qp: %m");
	return !!why;
}

int main(int argc, char **argv)
{
	static const enum ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD};
	static const char *const names[] = {"RC", "UC", "UD"};
	int failed = 0;

	device_port_open(&port, argc > 1 ? argv[1] : NULL, argc > 2 ? atoi(argv[2]) : -1);
	pd = ibv_alloc_pd(port.ctx);
	cq = ibv_create_cq(port.ctx, 64, NULL, NULL, 0);
	mr = pd ? ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE) : NULL;
	if (!cq || !mr)
		device_die("PD, CQ or MR: %m");
	for (uint32_t i = 0; i < BYTES; i++)
		memory[0][i] = (uint8_t)(i * 7 + (i >> 8));
	for (int t = 0; t < 3; t++)
		for (int what = 0; what < LIMITS; what++)
			failed += run_case(types[t], names[t], (enum limit)what);
	return !!failed;
}
