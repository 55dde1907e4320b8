// SPDX-License-Identifier: BSD-2-Clause
/*
 * failing DEVICE listen|connect TCP-PORT key|local|receive|killed: one request that must fail, for
 * tests that look at what is told of it.
 *
 *   key       an RDMA WRITE with a key that the other never made
 *   local     a SEND from memory with a key that was never made
 *   receive   a SEND to one that has posted no receive
 *   killed    RDMA WRITEs to one that somebody kills after the line "going"
 *
 * The one that connects prints the status of its first request that failed, and ends with 0 if
 * there was one.  The one that listens waits until the other has gone.  Status 3: the other never
 * came.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "pair.h"

#define BYTES	    4096u
#define PATIENCE_MS 20000u

static const struct device_connection impatient = {
	.access = IBV_ACCESS_REMOTE_WRITE,
	.rnr_retry = 1,
	.retry_cnt = 1,
	.timeout = 12,
	.min_rnr_timer = 1,
	.rd_atomic = 1,
	.mtu = IBV_MTU_1024,
};

/* The first completion there is. */
static enum ibv_wc_status await(struct pair *p)
{
	uint64_t end = pair_now_ms() + PATIENCE_MS;
	struct ibv_wc wc;

	while (pair_now_ms() < end) {
		int n = ibv_poll_cq(p->cq, 1, &wc);

		if (n < 0)
			device_die("polling fails");
		if (n)
			return wc.status;
	}
	device_die("no completion");
}

static void post_send(struct pair *p, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)p->mem, 64, lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	if (ibv_post_send(p->qp, &wr, &bad))
		device_die("ibv_post_send: %m");
}

static enum ibv_wc_status fail(struct pair *p, const char *how)
{
	enum ibv_wc_status status;

	if (!strcmp(how, "receive") || !strcmp(how, "local")) {
		post_send(p, p->mr->lkey + (*how == 'l' ? 0x100 : 0));
		return await(p);
	}
	if (!strcmp(how, "key")) {
		p->peer_rkey += 0x100;
		pair_write(p, 0, 0, 0, 64);
		return await(p);
	}
	pair_write(p, 0, 0, 0, 64);
	status = await(p);
	puts("going");
	fflush(stdout);
	while (status == IBV_WC_SUCCESS) {
		pair_write(p, 0, 0, 0, 64);
		status = await(p);
	}
	return status;
}

static void wait_for_the_other(struct pair *p)
{
	struct pollfd ended = {.fd = p->sock, .events = POLLIN};
	char byte;

	if (poll(&ended, 1, (int)(2 * PATIENCE_MS)) != 1 || recv(p->sock, &byte, 1, 0) > 0)
		device_die("the other does not end");
}

int main(int argc, char **argv)
{
	enum ibv_wc_status status = IBV_WC_GENERAL_ERR;
	struct pair p;
	bool listens;

	if (argc != 5)
		device_die(
			"usage: failing DEVICE listen|connect TCP-PORT key|local|receive|killed");
	listens = !strcmp(argv[2], "listen");
	pair_open(&p, argv[1], &impatient, BYTES);
	pair_meet(&p, &impatient, listens, pair_number(argv[3]));
	if (listens) {
		wait_for_the_other(&p);
	} else {
		status = fail(&p, argv[4]);
		printf("%s\n", ibv_wc_status_str(status));
	}
	pair_close(&p);
	return !listens && status == IBV_WC_SUCCESS;
}
