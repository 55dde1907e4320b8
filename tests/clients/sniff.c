// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes what passes an Ethernet port into a pcap file until SIGTERM, as libpcap's module for RDMA devices
 * does: a raw packet queue pair, a completion channel and a rule of type IBV_FLOW_ATTR_SNIFFER.
 *
 *	sniff DEVICE FILE
 *
 * It prints a line when it looks, and one with the number of frames at its end.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECEIVES 1024u
#define ROOM	 10000u
#define QUIET_MS 500

#define NEED(what)                                                                     \
	do {                                                                           \
		if (!(what)) {                                                         \
			fprintf(stderr, "%s:%d: %s: %m\n", __FILE__, __LINE__, #what); \
			exit(1);                                                       \
		}                                                                      \
	} while (0)

static volatile sig_atomic_t stop;
static uint8_t frames[RECEIVES][ROOM];
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static struct ibv_cq *cq;
static unsigned long count;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (struct ibv_device **d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			ctx = ibv_open_device(*d);
	ibv_free_device_list(list);
	return ctx;
}

static void post(uint64_t i)
{
	struct ibv_sge sge = {(uintptr_t)frames[i], ROOM, mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1}, *bad;

	NEED(!ibv_post_recv(qp, &wr, &bad));
}

static void make_queue(struct ibv_context *ctx, struct ibv_comp_channel *channel)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RAW_PACKET,
					.cap = {.max_recv_wr = RECEIVES, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	NEED(pd && (cq = ibv_create_cq(ctx, RECEIVES, NULL, channel, 0)));
	NEED(!ibv_req_notify_cq(cq, 0));
	init.send_cq = init.recv_cq = cq;
	NEED((qp = ibv_create_qp(pd, &init)));
	NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
	attr.qp_state = IBV_QPS_RTR;
	NEED(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	NEED((mr = ibv_reg_mr(pd, frames, sizeof(frames), IBV_ACCESS_LOCAL_WRITE)));
	for (uint64_t i = 0; i < RECEIVES; i++)
		post(i);
}

static void write_words(FILE *f, const uint32_t *words, size_t n)
{
	NEED(fwrite(words, sizeof(*words), n, f) == n);
}

static void take(FILE *f)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(cq, 1, &wc) > 0) {
		NEED(wc.status == IBV_WC_SUCCESS);
		write_words(f, (const uint32_t[]){0, 0, wc.byte_len, wc.byte_len}, 4);
		NEED(fwrite(frames[wc.wr_id], 1, wc.byte_len, f) == wc.byte_len);
		count++;
		post(wc.wr_id);
	}
}

int main(int argc, char **argv)
{
	struct ibv_flow_attr sniffer = {
		.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(sniffer), .port = 1};
	struct sigaction sa = {.sa_handler = on_term};
	struct ibv_comp_channel *channel;
	struct ibv_context *ctx;
	struct ibv_flow *flow;
	struct ibv_cq *which;
	void *user;
	int quiet = 0;
	FILE *f;

	NEED(argc == 3 && (ctx = open_device(argv[1])) && (f = fopen(argv[2], "w")));
	NEED((channel = ibv_create_comp_channel(ctx)));
	make_queue(ctx, channel);
	NEED((flow = ibv_create_flow(qp, &sniffer)));
	write_words(f, (const uint32_t[]){0xa1b2c3d4, 4 << 16 | 2, 0, 0, 65535, 1}, 6);
	sigaction(SIGTERM, &sa, NULL);
	puts("sniffs");
	fflush(stdout);
	/* What was sent before the signal may still be on its way. */
	while (!stop || !quiet) {
		struct pollfd p = {channel->fd, POLLIN, 0};

		quiet = poll(&p, 1, QUIET_MS) == 0;
		if (!(p.revents & POLLIN))
			continue;
		NEED(!ibv_get_cq_event(channel, &which, &user));
		ibv_ack_cq_events(cq, 1);
		NEED(!ibv_req_notify_cq(cq, 0));
		take(f);
	}
	NEED(!ibv_destroy_flow(flow) && !fclose(f));
	printf("%lu frames\n", count);
	return 0;
}
