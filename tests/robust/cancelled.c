// SPDX-License-Identifier: BSD-2-Clause
/*
 * Threads whose cancellation is pending use the device.  Verbs are no cancellation points (but
 *those that open, close and read descriptors), so each gets to the end, and the device serves the
 *rest of the program.
 *
 *	cancelled DEVICE
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "loopback.h"

struct work {
	const char *name;
	void (*run)(struct loopback *l);
};

struct victim {
	struct loopback *loopback;
	const struct work *work;
	_Atomic bool cancelled, done;
};

/* Ends with an event on the channel, and one message. */
static void send_message(struct loopback *l)
{
	struct ibv_sge sge = {(uintptr_t)l->mr->addr, 64, l->mr->lkey};
	struct ibv_recv_wr rr = {.sg_list = &sge, .num_sge = 1}, *bad_rr;
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int seen = 0;

	if (ibv_req_notify_cq(l->cq, 0) || ibv_post_recv(l->qp, &rr, &bad_rr) ||
	    ibv_post_send(l->qp, &wr, &bad))
		device_die("posting: %m");
	while (seen < 2) {
		int n = ibv_poll_cq(l->cq, 1, &wc);

		if (n < 0 || (n && wc.status))
			device_die("message: %d, status %d", n, wc.status);
		seen += n;
	}
}

static void use_queues(struct loopback *l)
{
	struct ibv_qp *qp = loopback_qp_make(l);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_cq *cq;

	device_qp_init(qp, &device_default_connection);
	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) || ibv_destroy_qp(qp))
		device_die("queue pair: %m");
	cq = ibv_create_cq(l->port.ctx, 64, NULL, l->channel, 0);
	if (!cq || ibv_destroy_cq(cq))
		device_die("completion queue: %m");
}

static void use_memory(struct loopback *l)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	void *at = mmap(NULL, LOOPBACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	struct ibv_pd *pd = ibv_alloc_pd(l->port.ctx);
	struct ibv_mr *mr =
		at == MAP_FAILED || !pd ? NULL : ibv_reg_mr(pd, at, LOOPBACK_BYTES, access);

	if (!mr || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) || munmap(at, LOOPBACK_BYTES))
		device_die("region: %m");
}

static void use_port(struct loopback *l)
{
	struct device_address self = device_address(&l->port, l->qp, 1);
	struct ibv_ah_attr attr = device_ah_attr(&l->port, &self);
	struct ibv_port_attr port_attr;
	struct ibv_ah *ah = ibv_create_ah(l->pd, &attr);

	if (!ah || ibv_destroy_ah(ah) || ibv_query_port(l->port.ctx, DEVICE_PORT, &port_attr))
		device_die("address: %m");
}

static const struct work works[] = {
	{"posting and polling with events", send_message},
	{"making queues", use_queues},
	{"registering memory", use_memory},
	{"addresses and the port", use_port},
};

static void *victim_main(void *arg)
{
	struct victim *v = arg;

	while (!atomic_load(&v->cancelled))
		;
	v->work->run(v->loopback);
	atomic_store(&v->done, true);
	for (;;)
		pthread_testcancel();
	return NULL;
}

static void run_cancelled(struct loopback *l, const struct work *work)
{
	struct victim v = {.loopback = l, .work = work};
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, victim_main, &v) || pthread_cancel(thread))
		device_die("a thread: %m");
	atomic_store(&v.cancelled, true);
	if (pthread_join(thread, &result) || result != PTHREAD_CANCELED)
		device_die("%s: the thread ended by itself", work->name);
	if (!atomic_load(&v.done))
		device_die("%s: cancelled in the middle", work->name);
}

static void take_events(struct loopback *l)
{
	struct pollfd p = {.fd = l->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	while (poll(&p, 1, 0) == 1) {
		if (ibv_get_cq_event(l->channel, &cq, &context))
			device_die("ibv_get_cq_event: %m");
		ibv_ack_cq_events(cq, 1);
	}
}

int main(int argc, char **argv)
{
	struct loopback l;

	loopback_open(&l, argc > 1 ? argv[1] : NULL);
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		run_cancelled(&l, &works[i]);
		send_message(&l);
		take_events(&l);
	}
	loopback_close(&l);
	printf("no verb was cut short\n");
	return 0;
}
