// SPDX-License-Identifier: BSD-2-Clause
/*
 * reader DEVICE listen|connect TCP-PORT HOW: the listener sleeps in read of its completion channel and
 * answers each message.  HOW says what happens to the thread that sleeps, before the other sends and
 * meanwhile; no message may be left behind.
 *
 *	restarted    handlers of signals run, and the read goes on
 *	interrupted  the same, but the read ends with EINTR
 *	jumped       a handler leaves the read by siglongjmp
 *	cancelled    the thread is cancelled
 *	polled       every second message is waited for by poll
 *	crowded      a second thread sleeps in a read of the same channel
 *	forking      another thread makes processes meanwhile
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define ROUNDS	    40u
#define BURST	    16u /* the longest row of messages */
#define RECEIVES    8u
#define BYTES	    4096u
#define DISTURBANCE 300 /* us */

struct how {
	const char *name;
	/* What happens to a read of a channel that has no events. */
	void (*disturb)(struct ibv_comp_channel *channel);
	/* Every so many us a signal comes, also while messages do; 0: none. */
	int signal_us;
	int handler_flags;
	bool polls, crowd, forks;
};

struct listener {
	struct pair pair;
	struct ibv_comp_channel *channel, *silent;
	const struct how *how;
	pthread_mutex_t lock; /* the completion queue */
	_Atomic(unsigned) messages, answered;
	unsigned wanted;
	_Atomic(bool) over;
};

static sigjmp_buf out_of_read;

/* ---- what happens to a reader ---- */

static void handler_nothing(int signum)
{
	(void)signum;
}

static void handler_jump(int signum)
{
	(void)signum;
	siglongjmp(out_of_read, 1);
}

static void handler_set(void (*handler)(int), int flags)
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = flags};

	if (sigaction(SIGALRM, &act, NULL))
		device_die("sigaction: %m");
}

static void timer_set(int first_us, int next_us)
{
	struct itimerval t = {.it_interval.tv_usec = next_us, .it_value.tv_usec = first_us};

	if (setitimer(ITIMER_REAL, &t, NULL))
		device_die("setitimer: %m");
}

static void read_nothing(const struct ibv_comp_channel *channel)
{
	char event[64];
	ssize_t n = read(channel->fd, event, sizeof(event));

	device_die("a read returned %zd: there is no event", n);
}

static void disturb_by_jump(struct ibv_comp_channel *channel)
{
	handler_set(handler_jump, 0);
	if (sigsetjmp(out_of_read, 1))
		return;
	timer_set(DISTURBANCE, 0);
	read_nothing(channel);
}

static void *cancelled_main(void *arg)
{
	read_nothing(arg);
	return NULL;
}

static void disturb_by_cancel(struct ibv_comp_channel *channel)
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, cancelled_main, channel))
		device_die("a thread: %m");
	usleep(DISTURBANCE);
	if (pthread_cancel(thread) || pthread_join(thread, &result) || result != PTHREAD_CANCELED)
		device_die("a thread was not cancelled");
}

static const struct how hows[] = {
	{.name = "restarted", .signal_us = DISTURBANCE, .handler_flags = SA_RESTART},
	{.name = "interrupted", .signal_us = DISTURBANCE},
	{.name = "jumped", .disturb = disturb_by_jump},
	{.name = "cancelled", .disturb = disturb_by_cancel},
	{.name = "polled", .polls = true},
	{.name = "crowded", .crowd = true},
	{.name = "forking", .forks = true},
};

static const struct how *how_find(const char *name)
{
	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++)
		if (!strcmp(hows[i].name, name))
			return &hows[i];
	device_die("there is no \"%s\"", name);
}

/* ---- messages ---- */

static void post_receive(struct pair *p)
{
	struct ibv_sge sge = {(uintptr_t)p->mem, BYTES, p->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};

	if (ibv_post_recv(p->qp, &wr, &bad))
		device_die("ibv_post_recv: %m");
}

static void post_send(struct pair *p)
{
	struct ibv_sge sge = {(uintptr_t)p->mem, 8, p->mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_SEND,
				       .send_flags = IBV_SEND_SIGNALED};

	if (ibv_post_send(p->qp, &wr, &bad))
		device_die("ibv_post_send: %m");
}

/* ---- the one that listens ---- */

static void answer_all(struct listener *l)
{
	struct pair *p = &l->pair;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(p->cq, 1, &wc)) == 1) {
		if (wc.status)
			device_die("a completion: %s", ibv_wc_status_str(wc.status));
		if (wc.opcode != IBV_WC_RECV) {
			atomic_fetch_add(&l->answered, 1);
			continue;
		}
		post_receive(p);
		post_send(p);
		atomic_fetch_add(&l->messages, 1);
	}
	if (n)
		device_die("ibv_poll_cq returned %d", n);
}

static void take_event(struct listener *l)
{
	struct pollfd ready = {.fd = l->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (l->how->polls && atomic_load(&l->messages) % 2 && poll(&ready, 1, -1) != 1)
		device_die("poll: %m");
	while (ibv_get_cq_event(l->channel, &cq, &context))
		if (errno != EINTR || !l->how->signal_us || l->how->handler_flags & SA_RESTART)
			device_die("ibv_get_cq_event: %m");
	pthread_mutex_lock(&l->lock);
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		device_die("ibv_req_notify_cq: %m");
	answer_all(l);
	pthread_mutex_unlock(&l->lock);
}

static void *crowd_main(void *arg)
{
	struct listener *l = arg;

	for (;;)
		take_event(l);
	return NULL;
}

static void *fork_main(void *arg)
{
	struct listener *l = arg;

	while (!atomic_load(&l->over)) {
		pid_t pid = fork();
		int status;

		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			device_die("fork: %m");
		usleep(DISTURBANCE);
	}
	return NULL;
}

static void listen_round(struct listener *l, unsigned burst)
{
	char byte = (char)burst;

	for (unsigned i = 0; l->how->disturb && i < 3; i++)
		l->how->disturb(l->silent);
	l->wanted += burst;
	if (send(l->pair.sock, &byte, 1, MSG_NOSIGNAL) != 1)
		device_die("the other has gone");
	while (atomic_load(&l->answered) < l->wanted)
		if (l->how->crowd)
			usleep(DISTURBANCE);
		else
			take_event(l);
}

static void listener_start(struct listener *l)
{
	pthread_t thread;

	for (unsigned i = 0; i < RECEIVES; i++)
		post_receive(&l->pair);
	if (ibv_req_notify_cq(l->pair.cq, 0))
		device_die("ibv_req_notify_cq: %m");
	if (l->how->signal_us) {
		handler_set(handler_nothing, l->how->handler_flags);
		timer_set(l->how->signal_us, l->how->signal_us);
	}
	for (unsigned i = 0; l->how->crowd && i < 2; i++)
		if (pthread_create(&thread, NULL, crowd_main, l))
			device_die("a thread: %m");
	if (l->how->forks && pthread_create(&thread, NULL, fork_main, l))
		device_die("a thread: %m");
}

static int listen_to_all(struct listener *l)
{
	listener_start(l);
	for (unsigned i = 0; i < ROUNDS; i++)
		listen_round(l, 1 + i % BURST);
	atomic_store(&l->over, true);
	return atomic_load(&l->messages) != l->wanted;
}

/* ---- the one that sends ---- */

static void send_and_hear(struct pair *p)
{
	post_receive(p);
	post_send(p);
	pair_complete(p, "a message");
	pair_complete(p, "its answer");
}

static int send_to_all(struct pair *p)
{
	unsigned messages = 0;
	char burst;

	for (unsigned i = 0; i < ROUNDS; i++) {
		if (recv(p->sock, &burst, 1, 0) != 1)
			device_die("the other has gone");
		usleep(i * 37 % 200);
		for (messages += (unsigned)burst; burst; burst--)
			send_and_hear(p);
	}
	printf("%u messages\n", messages);
	return 0;
}

/* ---- both ---- */

/* The queue pair again, with a queue that has a channel. */
static void use_channel(struct pair *p, struct ibv_comp_channel *channel)
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

int main(int argc, char **argv)
{
	struct listener l = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct pair *p = &l.pair;
	bool listens;
	int status;

	if (argc != 5)
		device_die("usage: reader DEVICE listen|connect TCP-PORT HOW");
	listens = !strcmp(argv[2], "listen");
	l.how = how_find(argv[4]);
	pair_open(p, argv[1], &device_default_connection, BYTES);
	if (listens) {
		l.channel = ibv_create_comp_channel(p->port.ctx);
		l.silent = ibv_create_comp_channel(p->port.ctx);
		if (!l.silent)
			device_die("no channel: %m");
		use_channel(p, l.channel);
	}
	pair_meet(p, &device_default_connection, listens, pair_number(argv[3]));
	status = listens ? listen_to_all(&l) : send_to_all(p);
	/* Threads of it may still sleep in the channel. */
	if (listens)
		_exit(status);
	pair_close(p);
	return status;
}
