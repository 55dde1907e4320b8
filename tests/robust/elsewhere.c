// SPDX-License-Identifier: BSD-2-Clause
/*
 * A device is opened and used where few programs are, by HOW:
 *
 *   leader  the main thread has ended, so that the process's own directories in /proc are empty
 *   high    all descriptors below 65536 are taken
 *
 *	elsewhere DEVICE HOW
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loopback.h"

#define SKIPPED	  77
#define LOW_FDS	  65536
#define ROUNDS	  20u
#define SETTLE_US 50000

static const char *device;

/* Messages of which the thread hears by the channel. */
static void use_device(void)
{
	struct loopback l;

	loopback_open(&l, device);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct ibv_sge sge = {(uintptr_t)l.mr->addr, 64, l.mr->lkey};
		struct ibv_recv_wr rr = {.sg_list = &sge, .num_sge = 1}, *bad_rr;
		struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
		struct ibv_send_wr *bad;
		struct ibv_cq *cq;
		struct ibv_wc wc;
		void *context;

		wr.send_flags = i % 2 ? IBV_SEND_SIGNALED : 0;
		if (ibv_req_notify_cq(l.cq, 0) || ibv_post_recv(l.qp, &rr, &bad_rr) ||
		    ibv_post_send(l.qp, &wr, &bad) || ibv_get_cq_event(l.channel, &cq, &context))
			device_die("round %u: %m", i);
		ibv_ack_cq_events(cq, 1);
		while (ibv_poll_cq(l.cq, 1, &wc) > 0)
			if (wc.status)
				device_die("round %u: status %d", i, wc.status);
	}
	loopback_close(&l);
}

static void *open_later(void *unused)
{
	usleep(SETTLE_US);
	use_device();
	exit(0);
	return unused;
}

static void take_low_descriptors(void)
{
	struct rlimit limit;
	int fd;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_max < 2 * LOW_FDS) {
		printf("no more than %lu descriptors\n", (unsigned long)limit.rlim_max);
		exit(SKIPPED);
	}
	limit.rlim_cur = 2 * LOW_FDS;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		device_die("setrlimit: %m");
	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd < LOW_FDS);
	if (fd < 0)
		device_die("open: %m");
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 3)
		device_die("usage: elsewhere DEVICE leader|high");
	device = argv[1];
	if (!strcmp(argv[2], "high")) {
		take_low_descriptors();
		use_device();
		return 0;
	}
	if (pthread_create(&thread, NULL, open_later, NULL))
		device_die("no thread");
	pthread_exit(NULL);
}
