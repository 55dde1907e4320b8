// SPDX-License-Identifier: BSD-2-Clause
/*
 * lossy DEVICE rc|uc|ud MESSAGES [fork]: sends numbered messages from one queue pair to another, over links
 * that may lose, double and reorder packets, and looks at each one that comes.
 *
 * The number is the immediate data, and each byte follows from it.  On RC every message must come, once
 * and in order; on UC and UD some may be missing, and only on UD may one come twice or late.  Prints how
 * many messages came, how many were missing, and how many came twice or late.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/verbs_device.h"

#define MESSAGES_MAX 20000u
#define DEPTH	     64u
#define GRH	     40u
#define BYTES_MAX    (5000u + GRH)
#define SILENCE_NS   2000000000ull /* after which nothing comes any more */
#define PATIENCE_NS  60000000000ull

struct lossy {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_qp *from, *to;
	struct ibv_mr *mr;
	struct ibv_ah *ah;
	uint8_t *memory;
	enum ibv_qp_type type;
	uint32_t bytes, messages;
	uint32_t posted, sent;
	uint32_t came, again, next;
	bool seen[MESSAGES_MAX];
};

static uint8_t byte_of(uint32_t number, uint32_t i)
{
	return (uint8_t)(number * 7 + i + (i >> 8));
}

static uint8_t *send_place(struct lossy *l, uint32_t number)
{
	return l->memory + (size_t)(number % DEPTH) * BYTES_MAX;
}

static uint8_t *receive_place(struct lossy *l, uint32_t i)
{
	return l->memory + (size_t)(DEPTH + i) * BYTES_MAX;
}

static struct ibv_qp *qp_make(struct lossy *l)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = l->send_cq,
		.recv_cq = l->recv_cq,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = l->type,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(l->pd, &attr);

	if (!qp)
		device_die("ibv_create_qp: %m");
	return qp;
}

static void connect_both(struct lossy *l)
{
	struct device_connection how = device_default_connection;
	struct device_address from, to;
	struct ibv_ah_attr attr;

	how.timeout = 12;
	device_qp_init(l->from, &how);
	device_qp_init(l->to, &how);
	from = device_address(&l->port, l->from, 1000);
	to = device_address(&l->port, l->to, 2000);
	device_qp_connect(&l->port, l->from, &how, &to, 1000);
	device_qp_connect(&l->port, l->to, &how, &from, 2000);
	if (l->type != IBV_QPT_UD)
		return;
	attr = device_ah_attr(&l->port, &to);
	l->ah = ibv_create_ah(l->pd, &attr);
	if (!l->ah)
		device_die("ibv_create_ah: %m");
}

static void post_receive(struct lossy *l, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)receive_place(l, i), BYTES_MAX, l->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	memset(receive_place(l, i), 0xee, BYTES_MAX);
	if (ibv_post_recv(l->to, &wr, &bad))
		device_die("ibv_post_recv failed");
}

static void post_send(struct lossy *l)
{
	uint32_t number = l->posted++;
	uint8_t *bytes = send_place(l, number);
	struct ibv_sge sge = {(uintptr_t)bytes, l->bytes, l->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = number, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM};
	struct ibv_send_wr *bad;

	wr.imm_data = htonl(number);
	if (l->type == IBV_QPT_UD) {
		wr.wr.ud.ah = l->ah;
		wr.wr.ud.remote_qpn = l->to->qp_num;
		wr.wr.ud.remote_qkey = DEVICE_QKEY;
	}
	for (uint32_t i = 0; i < l->bytes; i++)
		bytes[i] = byte_of(number, i);
	if (ibv_post_send(l->from, &wr, &bad))
		device_die("ibv_post_send failed");
}

static void take_message(struct lossy *l, const struct ibv_wc *wc)
{
	uint32_t number = ntohl(wc->imm_data), grh = l->type == IBV_QPT_UD ? GRH : 0;
	const uint8_t *bytes = receive_place(l, (uint32_t)wc->wr_id) + grh;

	if (wc->status)
		device_die("a receive ends with %s", ibv_wc_status_str(wc->status));
	if (number >= l->posted || wc->byte_len != l->bytes + grh)
		device_die("message %u of %u bytes", number, wc->byte_len);
	for (uint32_t i = 0; i < l->bytes; i++)
		if (bytes[i] != byte_of(number, i))
			device_die("byte %u of message %u is wrong", i, number);
	if (l->seen[number] || number < l->next) {
		l->again++;
		if (l->type != IBV_QPT_UD)
			device_die("message %u comes after message %u", number, l->next - 1);
	}
	if (l->type == IBV_QPT_RC && number != l->next)
		device_die("message %u is missing", l->next);
	l->came += !l->seen[number];
	l->seen[number] = true;
	if (number >= l->next)
		l->next = number + 1;
	post_receive(l, (uint32_t)wc->wr_id);
}

static bool poll_both(struct lossy *l)
{
	struct ibv_wc wc;
	bool any = false;

	while (ibv_poll_cq(l->recv_cq, 1, &wc) > 0) {
		take_message(l, &wc);
		any = true;
	}
	while (ibv_poll_cq(l->send_cq, 1, &wc) > 0) {
		if (wc.status)
			device_die("a send ends with %s", ibv_wc_status_str(wc.status));
		l->sent++;
		any = true;
	}
	return any;
}

/* Unreliable queue pairs send as fast as half of the receives let them. */
static void send_all(struct lossy *l)
{
	uint64_t last = device_now_ns(), begin = last;

	while (l->sent < l->messages ||
	       (l->type == IBV_QPT_RC ? l->came < l->messages
				      : device_now_ns() - last < SILENCE_NS)) {
		if (l->posted < l->messages && l->posted - l->sent < DEPTH / 4)
			post_send(l);
		if (poll_both(l))
			last = device_now_ns();
		if (device_now_ns() - begin > PATIENCE_NS)
			device_die("%u of %u messages sent, %u have come", l->sent, l->messages,
				   l->came);
	}
}

int main(int argc, char **argv)
{
	static struct lossy l;

	/* A parent that has opened the device, as process pools do, and a child that does the work. */
	if (argc == 5 && !strcmp(argv[4], "fork")) {
		device_port_open(&l.port, argv[1], -1);
		if (!ibv_alloc_pd(l.port.ctx))
			device_die("ibv_alloc_pd: %m");
		if (fork()) {
			int status = 0;

			return wait(&status) < 0 || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
		}
		memset(&l, 0, sizeof(l));
		argc--;
	}
	if (argc != 4 || atoi(argv[3]) < 1 || (uint32_t)atoi(argv[3]) > MESSAGES_MAX)
		device_die("usage: lossy DEVICE rc|uc|ud MESSAGES");
	l.messages = (uint32_t)atoi(argv[3]);
	l.type = !strcmp(argv[2], "rc")	  ? IBV_QPT_RC
		 : !strcmp(argv[2], "uc") ? IBV_QPT_UC
					  : IBV_QPT_UD;
	l.bytes = l.type == IBV_QPT_UD ? 900 : 5000;
	device_port_open(&l.port, argv[1], -1);
	l.pd = ibv_alloc_pd(l.port.ctx);
	l.send_cq = ibv_create_cq(l.port.ctx, 4 * DEPTH, NULL, NULL, 0);
	l.recv_cq = ibv_create_cq(l.port.ctx, 4 * DEPTH, NULL, NULL, 0);
	l.memory = device_memory((size_t)2 * DEPTH * BYTES_MAX);
	l.mr = ibv_reg_mr(l.pd, l.memory, (size_t)2 * DEPTH * BYTES_MAX, IBV_ACCESS_LOCAL_WRITE);
	if (!l.pd || !l.send_cq || !l.recv_cq || !l.mr)
		device_die("no device: %m");
	l.from = qp_make(&l);
	l.to = qp_make(&l);
	connect_both(&l);
	for (uint32_t i = 0; i < DEPTH; i++)
		post_receive(&l, i);
	send_all(&l);
	printf("%u came, %u missing, %u again\n", l.came, l.messages - l.came, l.again);
	return 0;
}
