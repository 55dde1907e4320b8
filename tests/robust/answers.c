// SPDX-License-Identifier: BSD-2-Clause
/* See answers.h. */
#include "answers.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void answers_use_channel(struct pair *p, struct ibv_comp_channel *channel)
{
	struct ibv_qp_init_attr attr = {
		.cap = {PAIR_DEPTH, PAIR_DEPTH, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};

	if (ibv_destroy_qp(p->qp) || ibv_destroy_cq(p->cq))
		device_die("destroying: %m");
	p->cq = channel ? ibv_create_cq(p->port.ctx, 2 * PAIR_DEPTH, NULL, channel, 0) : NULL;
	attr.send_cq = attr.recv_cq = p->cq;
	p->qp = p->cq ? ibv_create_qp(p->pd, &attr) : NULL;
	if (!p->qp)
		device_die("no channel, CQ or QP: %m");
	device_qp_init(p->qp, &device_default_connection);
}

void answers_post_receive(struct pair *p)
{
	struct ibv_sge sge = {(uintptr_t)p->mem, ANSWERS_BYTES, p->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(p->qp, &wr, &bad))
		device_die("ibv_post_recv: %m");
}

void answers_post_send(struct pair *p)
{
	struct ibv_sge sge = {(uintptr_t)p->mem, 8, p->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if (ibv_post_send(p->qp, &wr, &bad))
		device_die("ibv_post_send: %m");
}

void answers_give(struct pair *p, unsigned *messages, unsigned *answered)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(p->cq, 1, &wc)) == 1) {
		if (wc.status)
			device_die("a completion: %s", ibv_wc_status_str(wc.status));
		if (wc.opcode != IBV_WC_RECV) {
			(*answered)++;
			continue;
		}
		answers_post_receive(p);
		answers_post_send(p);
		(*messages)++;
	}
	if (n)
		device_die("ibv_poll_cq returned %d", n);
}

void answers_ask(struct pair *p, unsigned burst)
{
	char byte = (char)burst;

	if (send(p->sock, &byte, 1, MSG_NOSIGNAL) != 1)
		device_die("the other has gone");
}

static void send_and_hear(struct pair *p)
{
	answers_post_receive(p);
	answers_post_send(p);
	pair_complete(p, "a message");
	pair_complete(p, "its answer");
}

int answers_send_all(struct pair *p)
{
	unsigned messages = 0;
	char burst;

	for (unsigned i = 0; i < ANSWERS_ROUNDS; i++) {
		if (recv(p->sock, &burst, 1, 0) != 1)
			device_die("the other has gone");
		usleep(i * 37 % 200);
		for (messages += (unsigned)burst; burst; burst--)
			send_and_hear(p);
	}
	printf("%u messages\n", messages);
	return 0;
}

int answers_main(struct pair *p, char **argv,
		 int (*listen)(void *user, struct ibv_comp_channel *channel), void *user)
{
	struct ibv_comp_channel *channel = NULL;
	bool listens = !strcmp(argv[2], "listen");
	int status;

	pair_open(p, argv[1], &device_default_connection, ANSWERS_BYTES);
	if (listens) {
		channel = ibv_create_comp_channel(p->port.ctx);
		if (!channel)
			device_die("no channel: %m");
		answers_use_channel(p, channel);
	}
	pair_meet(p, &device_default_connection, listens, pair_number(argv[3]));
	if (listens)
		_exit(listen(user, channel));
	status = answers_send_all(p);
	pair_close(p);
	return status;
}
