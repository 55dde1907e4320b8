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

#include "verbs_device.h"

#define BYTES 65536u

struct desk {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
};

struct work {
	const char *name;
	void (*run)(struct desk *d);
};

struct victim {
	struct desk *desk;
	const struct work *work;
	_Atomic bool cancelled, done;
};

static struct ibv_qp *qp_make(struct desk *d)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC, .cap = {8, 8, 1, 1, 0}, .send_cq = d->cq, .recv_cq = d->cq};
	struct ibv_qp *qp = ibv_create_qp(d->pd, &attr);

	if (!qp)
		device_die("ibv_create_qp: %m");
	return qp;
}

/* Ends with an event on the channel, and one message. */
static void message(struct desk *d)
{
	struct ibv_sge sge = {(uintptr_t)d->mr->addr, 64, d->mr->lkey};
	struct ibv_recv_wr rr = {.sg_list = &sge, .num_sge = 1}, *bad_rr;
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_SEND,
				 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int seen = 0;

	if (ibv_req_notify_cq(d->cq, 0) || ibv_post_recv(d->qp, &rr, &bad_rr) ||
	    ibv_post_send(d->qp, &wr, &bad))
		device_die("posting: %m");
	while (seen < 2) {
		int n = ibv_poll_cq(d->cq, 1, &wc);

		if (n < 0 || (n && wc.status))
			device_die("message: %d, status %d", n, wc.status);
		seen += n;
	}
}

static void queues(struct desk *d)
{
	struct ibv_qp *qp = qp_make(d);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_cq *cq;

	device_qp_init(qp, &device_default_connection);
	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) || ibv_destroy_qp(qp))
		device_die("queue pair: %m");
	cq = ibv_create_cq(d->port.ctx, 64, NULL, d->channel, 0);
	if (!cq || ibv_destroy_cq(cq))
		device_die("completion queue: %m");
}

static void memory(struct desk *d)
{
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_pd *pd = ibv_alloc_pd(d->port.ctx);
	struct ibv_mr *mr = at == MAP_FAILED || !pd ? NULL : ibv_reg_mr(pd, at, BYTES, access);

	if (!mr || ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) || munmap(at, BYTES))
		device_die("region: %m");
}

static void port(struct desk *d)
{
	struct device_address self = device_address(&d->port, d->qp, 1);
	struct ibv_ah_attr attr = device_ah_attr(&d->port, &self);
	struct ibv_port_attr port_attr;
	struct ibv_ah *ah = ibv_create_ah(d->pd, &attr);

	if (!ah || ibv_destroy_ah(ah) || ibv_query_port(d->port.ctx, DEVICE_PORT, &port_attr))
		device_die("address: %m");
}

static const struct work works[] = {
	{"posting and polling with events", message},
	{"making queues", queues},
	{"registering memory", memory},
	{"addresses and the port", port},
};

static void *victim_main(void *arg)
{
	struct victim *v = arg;

	while (!atomic_load(&v->cancelled))
		;
	v->work->run(v->desk);
	atomic_store(&v->done, true);
	for (;;)
		pthread_testcancel();
	return NULL;
}

static void run_cancelled(struct desk *d, const struct work *work)
{
	struct victim v = {.desk = d, .work = work};
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

static void take_events(struct desk *d)
{
	struct pollfd p = {.fd = d->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	while (poll(&p, 1, 0) == 1) {
		if (ibv_get_cq_event(d->channel, &cq, &context))
			device_die("ibv_get_cq_event: %m");
		ibv_ack_cq_events(cq, 1);
	}
}

static void desk_open(struct desk *d, const char *device)
{
	static uint8_t bytes[BYTES];
	struct device_address self;

	device_port_open(&d->port, device, -1);
	d->pd = ibv_alloc_pd(d->port.ctx);
	d->channel = ibv_create_comp_channel(d->port.ctx);
	d->cq = ibv_create_cq(d->port.ctx, 64, NULL, d->channel, 0);
	d->mr = ibv_reg_mr(d->pd, bytes, BYTES, IBV_ACCESS_LOCAL_WRITE);
	if (!d->cq || !d->mr)
		device_die("setting up: %m");
	d->qp = qp_make(d);
	self = device_address(&d->port, d->qp, 1);
	device_qp_init(d->qp, &device_default_connection);
	device_qp_connect(&d->port, d->qp, &device_default_connection, &self, 1);
}

int main(int argc, char **argv)
{
	struct desk d;

	desk_open(&d, argc > 1 ? argv[1] : NULL);
	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++) {
		run_cancelled(&d, &works[i]);
		message(&d);
		take_events(&d);
	}
	if (ibv_destroy_qp(d.qp) || ibv_destroy_cq(d.cq) || ibv_destroy_comp_channel(d.channel) ||
	    ibv_dereg_mr(d.mr) || ibv_dealloc_pd(d.pd))
		device_die("taking down: %m");
	device_port_close(&d.port);
	printf("no verb was cut short\n");
	return 0;
}
