// SPDX-License-Identifier: BSD-2-Clause
/*
 * spurious_wakeups DEVICE listen|connect TCP-PORT HOW: the listener waits for a completion channel, by poll, select or epoll, which has
 * nothing to say while messages come; a thread of it takes them, and sends a signal into each wait.  The
 * wait must end then, with EINTR.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "answers.h"

#define ROUNDS	   400u
#define WAIT_MS	   3000
#define SKIPPED	   77
#define MAX_US	   150u
#define LAST_ROUND UINT32_MAX

struct waits {
	struct pair pair;
	struct ibv_comp_channel *channel;
	int set;
	const char *how;
	pthread_t waiter;
	int calls; /* of the waiter, in the kernel: a file that says which it sleeps in */
	_Atomic(uint32_t) round;
};

static volatile sig_atomic_t handled;

static void handler(int signum)
{
	(void)signum;
	handled++;
}

static int wait_once(const struct waits *w)
{
	struct pollfd one = {.fd = w->channel->fd, .events = POLLIN};
	struct timeval time = {WAIT_MS / 1000, 0};
	struct epoll_event event;
	fd_set fds;

	if (!strcmp(w->how, "poll"))
		return poll(&one, 1, WAIT_MS);
	if (!strcmp(w->how, "epoll"))
		return epoll_wait(w->set, &event, 1, WAIT_MS);
	FD_ZERO(&fds);
	FD_SET(one.fd, &fds);
	return select(one.fd + 1, &fds, NULL, NULL, &time);
}

/* ---- the thread that disturbs ---- */

static bool waiter_sleeps(const struct waits *w)
{
	static const long waits[] = {SYS_poll,	   SYS_ppoll,	   SYS_select,
				     SYS_pselect6, SYS_epoll_wait, SYS_epoll_pwait};
	char text[256] = "";
	long number;

	if (pread(w->calls, text, sizeof(text) - 1, 0) <= 0 || sscanf(text, "%ld", &number) != 1)
		return false;
	for (unsigned i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		if (number == waits[i])
			return true;
	return false;
}

static void messages_take(struct waits *w)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(w->pair.cq, 1, &wc) > 0) {
		if (wc.status)
			device_die("a completion: %s", ibv_wc_status_str(wc.status));
		answers_post_receive(&w->pair);
	}
}

static void *disturb_main(void *arg)
{
	struct waits *w = arg;
	uint32_t done = 0, round;
	char byte;

	while ((round = atomic_load(&w->round)) != LAST_ROUND) {
		/* Not while it waits: who polls is no one that has to be told. */
		if (round == done)
			messages_take(w);
		if (round == done || !waiter_sleeps(w))
			continue;
		usleep(round * 37 % MAX_US);
		pthread_kill(w->waiter, SIGUSR1);
		done = round;
	}
	/* The other ends with its last message. */
	if (send(w->pair.sock, "", 1, MSG_NOSIGNAL) != 1)
		device_die("the other has gone");
	while (recv(w->pair.sock, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		messages_take(w);
	return NULL;
}

/* ---- both sides ---- */

static void calls_open(struct waits *w)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", syscall(SYS_gettid));
	w->calls = open(path, O_RDONLY | O_CLOEXEC);
	if (w->calls < 0 || pread(w->calls, text, sizeof(text), 0) <= 0) {
		puts("the kernel does not say where a thread sleeps");
		exit(SKIPPED);
	}
}

static int listen_all(struct waits *w)
{
	struct sigaction act = {.sa_handler = handler};
	struct epoll_event event = {.events = EPOLLIN};
	pthread_t thread;

	w->waiter = pthread_self();
	w->set = epoll_create1(EPOLL_CLOEXEC);
	if (w->set < 0 || epoll_ctl(w->set, EPOLL_CTL_ADD, w->channel->fd, &event) ||
	    sigaction(SIGUSR1, &act, NULL) || pthread_create(&thread, NULL, disturb_main, w))
		device_die("preparing: %m");
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		sig_atomic_t before = handled;
		int n;

		atomic_store(&w->round, round);
		do
			n = wait_once(w);
		while (!n && handled == before);
		if (n != -1 || errno != EINTR)
			device_die("%s, round %u: %d, and a signal has come", w->how, round, n);
	}
	atomic_store(&w->round, LAST_ROUND);
	pthread_join(thread, NULL);
	return 0;
}

static int send_all(struct pair *p)
{
	unsigned messages = 0;
	char byte;

	while (recv(p->sock, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN) {
		answers_post_send(p);
		pair_complete(p, "a message");
		messages++;
	}
	if (send(p->sock, "", 1, MSG_NOSIGNAL) != 1)
		device_die("the other has gone");
	printf("%u signals\n", messages ? ROUNDS : 0);
	return 0;
}

int main(int argc, char **argv)
{
	struct waits w = {0};
	bool listens;
	int status;

	if (argc != 5)
		device_die(
			"usage: spurious_wakeups DEVICE listen|connect TCP-PORT poll|select|epoll");
	listens = !strcmp(argv[2], "listen");
	w.how = argv[4];
	pair_open(&w.pair, argv[1], &device_default_connection, ANSWERS_BYTES);
	if (listens) {
		calls_open(&w);
		w.channel = ibv_create_comp_channel(w.pair.port.ctx);
		if (!w.channel)
			device_die("no channel: %m");
		answers_use_channel(&w.pair, w.channel);
		for (unsigned i = 0; i < PAIR_DEPTH / 2; i++)
			answers_post_receive(&w.pair);
	}
	pair_meet(&w.pair, &device_default_connection, listens, pair_number(argv[3]));
	status = listens ? listen_all(&w) : send_all(&w.pair);
	if (listens)
		_exit(status);
	pair_close(&w.pair);
	return status;
}
