// SPDX-License-Identifier: BSD-2-Clause
/*
 * knocked DEVICE listen|connect TCP-PORT HOW: the listener waits for a completion channel, by poll, select or epoll, which has
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

struct knocked {
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

static int wait_once(const struct knocked *k)
{
	struct pollfd one = {.fd = k->channel->fd, .events = POLLIN};
	struct timeval time = {WAIT_MS / 1000, 0};
	struct epoll_event event;
	fd_set fds;

	if (!strcmp(k->how, "poll"))
		return poll(&one, 1, WAIT_MS);
	if (!strcmp(k->how, "epoll"))
		return epoll_wait(k->set, &event, 1, WAIT_MS);
	FD_ZERO(&fds);
	FD_SET(one.fd, &fds);
	return select(one.fd + 1, &fds, NULL, NULL, &time);
}

/* ---- the thread that disturbs ---- */

static bool waiter_sleeps(const struct knocked *k)
{
	static const long waits[] = {SYS_poll,	   SYS_ppoll,	   SYS_select,
				     SYS_pselect6, SYS_epoll_wait, SYS_epoll_pwait};
	char text[256] = "";
	long number;

	if (pread(k->calls, text, sizeof(text) - 1, 0) <= 0 || sscanf(text, "%ld", &number) != 1)
		return false;
	for (unsigned i = 0; i < sizeof(waits) / sizeof(*waits); i++)
		if (number == waits[i])
			return true;
	return false;
}

static void messages_take(struct knocked *k)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(k->pair.cq, 1, &wc) > 0) {
		if (wc.status)
			device_die("a completion: %s", ibv_wc_status_str(wc.status));
		answers_post_receive(&k->pair);
	}
}

static void *disturb_main(void *arg)
{
	struct knocked *k = arg;
	uint32_t done = 0, round;
	char byte;

	while ((round = atomic_load(&k->round)) != LAST_ROUND) {
		/* Not while it waits: who polls is no one that has to be told. */
		if (round == done)
			messages_take(k);
		if (round == done || !waiter_sleeps(k))
			continue;
		usleep(round * 37 % MAX_US);
		pthread_kill(k->waiter, SIGUSR1);
		done = round;
	}
	/* The other ends with its last message. */
	if (send(k->pair.sock, "", 1, MSG_NOSIGNAL) != 1)
		device_die("the other has gone");
	while (recv(k->pair.sock, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN)
		messages_take(k);
	return NULL;
}

/* ---- both sides ---- */

static void calls_open(struct knocked *k)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", syscall(SYS_gettid));
	k->calls = open(path, O_RDONLY | O_CLOEXEC);
	if (k->calls < 0 || pread(k->calls, text, sizeof(text), 0) <= 0) {
		puts("the kernel does not say where a thread sleeps");
		exit(SKIPPED);
	}
}

static int listen_all(struct knocked *k)
{
	struct sigaction act = {.sa_handler = handler};
	struct epoll_event event = {.events = EPOLLIN};
	pthread_t thread;

	k->waiter = pthread_self();
	k->set = epoll_create1(EPOLL_CLOEXEC);
	if (k->set < 0 || epoll_ctl(k->set, EPOLL_CTL_ADD, k->channel->fd, &event) ||
	    sigaction(SIGUSR1, &act, NULL) || pthread_create(&thread, NULL, disturb_main, k))
		device_die("preparing: %m");
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		sig_atomic_t before = handled;
		int n;

		atomic_store(&k->round, round);
		do
			n = wait_once(k);
		while (!n && handled == before);
		if (n != -1 || errno != EINTR)
			device_die("%s, round %u: %d, and a signal has come", k->how, round, n);
	}
	atomic_store(&k->round, LAST_ROUND);
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
	struct knocked k = {0};
	bool listens;
	int status;

	if (argc != 5)
		device_die("usage: knocked DEVICE listen|connect TCP-PORT poll|select|epoll");
	listens = !strcmp(argv[2], "listen");
	k.how = argv[4];
	pair_open(&k.pair, argv[1], &device_default_connection, ANSWERS_BYTES);
	if (listens) {
		calls_open(&k);
		k.channel = ibv_create_comp_channel(k.pair.port.ctx);
		if (!k.channel)
			device_die("no channel: %m");
		answers_use_channel(&k.pair, k.channel);
		for (unsigned i = 0; i < PAIR_DEPTH / 2; i++)
			answers_post_receive(&k.pair);
	}
	pair_meet(&k.pair, &device_default_connection, listens, pair_number(argv[3]));
	status = listens ? listen_all(&k) : send_all(&k.pair);
	if (listens)
		_exit(status);
	pair_close(&k.pair);
	return status;
}
