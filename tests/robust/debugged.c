// SPDX-License-Identifier: BSD-2-Clause
/*
 * debugged DEVICE listen|connect TCP-PORT COUNTS: one of two processes that are busy with each other,
 * for a debugger to stop one of them.  A thread writes to the peer, reads it again and sends, for
 * ever; another asks and changes what it has, in which the peer has no part.  COUNTS is a file of
 * three numbers: turns of the one, turns of the other, and whether to end.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pair.h"

#define BYTES	 65536u
#define MESSAGE	 256u
#define RECEIVES 16u
#define RECV_ID	 (1ull << 63)

/* Where things are in the block: what is written from, what the peer writes to, ... */
enum { SOURCE = 0, TARGET = BYTES, COPY = 2 * BYTES, MESSAGES = 3 * BYTES, BLOCK = 4 * BYTES };

struct counts {
	_Atomic uint64_t turns, looks, end;
};

static struct pair pair;
static struct counts *counts;

/* A debugger takes its time: ten seconds, eight times. */
static const struct device_connection patient = {
	.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	.rnr_retry = 7,
	.retry_cnt = 7,
	.timeout = 21,
	.min_rnr_timer = 1,
	.rd_atomic = 8,
	.mtu = IBV_MTU_1024,
};

static struct counts *counts_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *p = mmap(NULL, sizeof(struct counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (fd < 0 || p == MAP_FAILED)
		device_die("%s: %m", path);
	close(fd);
	return p;
}

/* ---- with the peer ---- */

static void post_receive(uint64_t place)
{
	struct ibv_sge sge = {(uintptr_t)pair.mem + MESSAGES + place * MESSAGE, MESSAGE,
			      pair.mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = RECV_ID | place, .sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(pair.qp, &wr, &bad))
		device_die("ibv_post_recv: %m");
}

static void post_sends(uint64_t id)
{
	struct ibv_sge sge = {(uintptr_t)pair.mem + SOURCE, MESSAGE, pair.mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = id,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if (ibv_post_send(pair.qp, &wr, &bad))
		device_die("ibv_post_send: %m");
}

/* The peer's messages are whole; says whether a request of ours has ended. */
static bool reap_completions(void)
{
	struct ibv_wc wc;
	int n = ibv_poll_cq(pair.cq, 1, &wc);

	if (n < 0)
		device_die("ibv_poll_cq fails");
	if (!n)
		return false;
	if (wc.status != IBV_WC_SUCCESS)
		device_die("request %lx: %s", (unsigned long)wc.wr_id,
			   ibv_wc_status_str(wc.status));
	if (!(wc.wr_id & RECV_ID))
		return true;
	for (const uint8_t *at = pair.mem + MESSAGES + (wc.wr_id & ~RECV_ID) * MESSAGE, *m = at;
	     m < at + MESSAGE; m++)
		if (*m != *at)
			device_die("a message is torn");
	post_receive(wc.wr_id & ~RECV_ID);
	return false;
}

static void wait_for(unsigned requests)
{
	while (requests)
		requests -= reap_completions();
}

static void take_turn(uint64_t number)
{
	uint8_t value = (uint8_t)number;

	memset(pair.mem + SOURCE, value, BYTES);
	pair_write(&pair, 1, SOURCE, TARGET, BYTES);
	pair_write(&pair, 2, SOURCE, TARGET, sizeof(uint64_t));
	pair_read(&pair, 3, COPY, TARGET, BYTES);
	post_sends(4);
	wait_for(4);
	for (unsigned i = 0; i < BYTES; i++)
		if (pair.mem[COPY + i] != value)
			device_die("turn %lu: byte %u is 0x%02x and not 0x%02x",
				   (unsigned long)number, i, pair.mem[COPY + i], value);
}

/* The peer is in the middle of a turn when we want to end. */
static void part_company(void)
{
	char byte;

	shutdown(pair.sock, SHUT_WR);
	while (recv(pair.sock, &byte, 1, MSG_DONTWAIT) != 0)
		reap_completions();
}

/* ---- without it ---- */

static void look_at_memory(void)
{
	static uint8_t mem[8192];
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.send_cq = pair.cq,
		.recv_cq = pair.cq,
	};
	struct ibv_qp_attr attr = {.min_rnr_timer = 1};
	struct ibv_mr *mr = ibv_reg_mr(pair.pd, mem, sizeof(mem),
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	struct ibv_qp *qp = ibv_create_qp(pair.pd, &init);

	if (!mr || !qp)
		device_die("no MR or QP: %m");
	if (ibv_query_qp(pair.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init) ||
	    attr.qp_state != IBV_QPS_RTS)
		device_die("the queue pair is in state %d: %m", attr.qp_state);
	attr.min_rnr_timer = 1;
	if (ibv_modify_qp(pair.qp, &attr, IBV_QP_MIN_RNR_TIMER))
		device_die("ibv_modify_qp: %m");
	if (ibv_destroy_qp(qp) || ibv_dereg_mr(mr))
		device_die("something cannot be destroyed: %m");
}

static void *look_for_ever(void *arg)
{
	while (!counts->end) {
		look_at_memory();
		counts->looks++;
		usleep(1000);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t looker;

	if (argc != 5)
		device_die("usage: debugged DEVICE listen|connect TCP-PORT COUNTS");
	counts = counts_map(argv[4]);
	pair_open(&pair, argv[1], &patient, BLOCK);
	for (unsigned i = 0; i < RECEIVES; i++)
		post_receive(i);
	pair_meet(&pair, &patient, !strcmp(argv[2], "listen"), pair_number(argv[3]));
	if (pthread_create(&looker, NULL, look_for_ever, NULL))
		device_die("no thread");
	for (; !counts->end; counts->turns++)
		take_turn(counts->turns);
	part_company();
	pthread_join(looker, NULL);
	printf("%lu turns, %lu looks\n", (unsigned long)counts->turns,
	       (unsigned long)counts->looks);
	pair_close(&pair);
	return 0;
}
