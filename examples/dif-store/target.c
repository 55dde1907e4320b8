/* SPDX-License-Identifier: BSD-2-Clause */
/* dif-store-target: options, and a thread per client. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "complain.h"
#include "session.h"
#include "tcp.h"

#define CLIENTS_MAX 16u

static const char usage[] =
	"usage: dif-store-target FILE [OPTION...]\n"
	"Serves the blocks of a store (see dif-store format) over RDMA.  The adapter checks the\n"
	"protection information of each block on its way.  Ends on SIGINT or SIGTERM.\n"
	"\n"
	"  -p, --port N       TCP port where clients say hello (18650)\n"
	"  -d, --device NAME  RDMA device (the first with T10-DIF signature offload)\n"
	"      --ib-port N    port of the device (1)\n"
	"      --gid N        GID index (Ethernet: the first of RoCE v2)\n"
	"      --plain        no signature pipelining, even for clients that ask for it\n"
	"      --read-only    refuse writes\n"
	"      --once         end when no client is left\n";

/* Sessions that live, for the end of the program to wait for. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t fewer;
	unsigned live;
	int fewer_fd; /* counts the ends, for the loop that accepts */
} sessions = {.lock = PTHREAD_MUTEX_INITIALIZER, .fewer = PTHREAD_COND_INITIALIZER};

struct visit {
	struct target *target;
	int tcp;
	unsigned number;
};

static void *visit_run(void *argument)
{
	struct visit *v = argument;
	uint64_t one = 1;

	session_run(v->target, v->tcp, v->number);
	free(v);
	pthread_mutex_lock(&sessions.lock);
	sessions.live--;
	pthread_cond_signal(&sessions.fewer);
	/* Under the lock: the main thread closes it after the last session. */
	if (write(sessions.fewer_fd, &one, sizeof(one)) != sizeof(one))
		complain("cannot wake the main thread: %m");
	pthread_mutex_unlock(&sessions.lock);
	return NULL;
}

static void admit(struct target *target, int tcp, unsigned number)
{
	struct visit *v = malloc(sizeof(*v));
	pthread_t thread;
	int error = ENOMEM;

	pthread_mutex_lock(&sessions.lock);
	if (v && sessions.live < CLIENTS_MAX) {
		*v = (struct visit){.target = target, .tcp = tcp, .number = number};
		error = pthread_create(&thread, NULL, visit_run, v);
	}
	if (!error) {
		pthread_detach(thread);
		sessions.live++;
	}
	pthread_mutex_unlock(&sessions.lock);
	if (error) {
		complain("a client was sent away: there are %u, or memory is short", CLIENTS_MAX);
		free(v);
		close(tcp);
	}
}

static bool nobody_left(void)
{
	pthread_mutex_lock(&sessions.lock);
	bool none = sessions.live == 0;

	pthread_mutex_unlock(&sessions.lock);
	return none;
}

static void accept_clients(struct target *target, int listener, int signals, bool once)
{
	unsigned number = 0;

	for (;;) {
		struct pollfd watched[] = {{.fd = listener, .events = POLLIN},
					   {.fd = signals, .events = POLLIN},
					   {.fd = sessions.fewer_fd, .events = POLLIN}};
		uint64_t ends;

		if (poll(watched, 3, -1) < 0 && errno != EINTR) {
			complain("poll: %m");
			return;
		}
		if (watched[1].revents)
			return;
		if (watched[0].revents) {
			int tcp = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

			if (tcp >= 0)
				admit(target, tcp, ++number);
		}
		if (watched[2].revents &&
		    read(sessions.fewer_fd, &ends, sizeof(ends)) == sizeof(ends) && once &&
		    nobody_left())
			return;
	}
}

static void end_sessions(struct target *target)
{
	uint64_t one = 1;

	if (write(target->stop_fd, &one, sizeof(one)) != sizeof(one))
		complain("cannot stop the sessions: %m");
	pthread_mutex_lock(&sessions.lock);
	while (sessions.live > 0)
		pthread_cond_wait(&sessions.fewer, &sessions.lock);
	pthread_mutex_unlock(&sessions.lock);
}

static int serve_store(struct target *target, unsigned port, bool once)
{
	int status = 1, listener, signals;
	sigset_t ends;

	/* Before the first thread, which inherits it: a signal shall end all, not one of them. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	signals = signalfd(-1, &ends, SFD_CLOEXEC);
	target->stop_fd = eventfd(0, EFD_CLOEXEC);
	sessions.fewer_fd = eventfd(0, EFD_CLOEXEC);
	if (signals < 0 || target->stop_fd < 0 || sessions.fewer_fd < 0) {
		complain("cannot create descriptors: %m");
		return 1;
	}
	listener = tcp_listen(port);
	if (listener >= 0) {
		printf("serving %llu blocks of %u + %u bytes on TCP port %u\n",
		       (unsigned long long)target->store.blocks, target->store.format.block_size,
		       DIF_BYTES, port);
		accept_clients(target, listener, signals, once);
		close(listener);
		end_sessions(target);
		status = 0;
	}
	close(sessions.fewer_fd);
	close(target->stop_fd);
	close(signals);
	return status;
}

struct options {
	struct target target;
	uint64_t tcp_port, port, gid;
	bool once, gid_given;
};

static bool take_option(struct options *o, int letter, const char *text)
{
	switch (letter) {
	case 'p':
		return parse_number("--port", text, 1, UINT16_MAX, &o->tcp_port);
	case 'd':
		o->target.device = text;
		return true;
	case 'i':
		return parse_number("--ib-port", text, 1, 255, &o->port);
	case 'g':
		o->gid_given = true;
		return parse_number("--gid", text, 0, 255, &o->gid);
	case 'l':
		o->target.plain = true;
		return true;
	case 'r':
		o->target.read_only = true;
		return true;
	case 'o':
		o->once = true;
		return true;
	default:
		return false; /* getopt has complained */
	}
}

int main(int argc, char **argv)
{
	static const struct option longs[] = {
		{"port", required_argument, NULL, 'p'},
		{"device", required_argument, NULL, 'd'},
		{"ib-port", required_argument, NULL, 'i'},
		{"gid", required_argument, NULL, 'g'},
		{"plain", no_argument, NULL, 'l'},
		{"read-only", no_argument, NULL, 'r'},
		{"once", no_argument, NULL, 'o'},
		{"help", no_argument, NULL, 'h'},
		{},
	};
	struct options o = {.tcp_port = PROTO_DEFAULT_PORT, .port = 1};
	int letter;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((letter = getopt_long(argc, argv, "p:d:h", longs, NULL)) != -1) {
		if (letter == 'h') {
			fputs(usage, stdout);
			return 0;
		}
		if (!take_option(&o, letter, optarg))
			return 2;
	}
	if (argc - optind != 1) {
		complain("needs the file of one store; try dif-store-target --help");
		return 2;
	}
	o.target.port = (int)o.port;
	o.target.gid_index = o.gid_given ? (int)o.gid : -1;
	if (!store_open(&o.target.store, argv[optind], !o.target.read_only))
		return 1;
	int status = serve_store(&o.target, (unsigned)o.tcp_port, o.once);

	store_close(&o.target.store);
	return status;
}
