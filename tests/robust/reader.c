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
 *	replaced     the channel's number names another file for a while, by calls of the kernel
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "answers.h"

#define DISTURBANCE 300 /* us */

struct how {
	const char *name;
	/* What happens to a read of a channel that has no events. */
	void (*disturb)(struct ibv_comp_channel *channel);
	/* Every so many us a signal comes, also while messages do; 0: none. */
	int signal_us;
	int handler_flags;
	bool polls, crowd, forks, replaces;
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

static void read_another_file(const struct ibv_comp_channel *channel)
{
	int number = channel->fd, kept = (int)syscall(SYS_dup, number), fds[2];
	char byte = 0;

	if (kept < 0 || pipe(fds) || write(fds[1], "x", 1) != 1 ||
	    syscall(SYS_dup2, fds[0], number) != number)
		device_die("another file: %m");
	if (read(number, &byte, 1) != 1 || byte != 'x')
		device_die("the read is not of the file that has the number");
	if (syscall(SYS_dup2, kept, number) != number || syscall(SYS_close, kept) ||
	    close(fds[0]) || close(fds[1]))
		device_die("back to the channel: %m");
}

static const struct how hows[] = {
	{.name = "restarted", .signal_us = DISTURBANCE, .handler_flags = SA_RESTART},
	{.name = "interrupted", .signal_us = DISTURBANCE},
	{.name = "jumped", .disturb = disturb_by_jump},
	{.name = "cancelled", .disturb = disturb_by_cancel},
	{.name = "polled", .polls = true},
	{.name = "crowded", .crowd = true},
	{.name = "forking", .forks = true},
	{.name = "replaced", .replaces = true},
};

static const struct how *how_find(const char *name)
{
	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++)
		if (!strcmp(hows[i].name, name))
			return &hows[i];
	device_die("there is no \"%s\"", name);
}

/* ---- the one that listens ---- */

static void answer_all(struct listener *l)
{
	unsigned messages = 0, answered = 0;

	answers_give(&l->pair, &messages, &answered);
	atomic_fetch_add(&l->messages, messages);
	atomic_fetch_add(&l->answered, answered);
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
	if (l->how->replaces)
		read_another_file(l->channel);
	for (unsigned i = 0; l->how->disturb && i < 3; i++)
		l->how->disturb(l->silent);
	l->wanted += burst;
	answers_ask(&l->pair, burst);
	while (atomic_load(&l->answered) < l->wanted)
		if (l->how->crowd)
			usleep(DISTURBANCE);
		else
			take_event(l);
}

static void listener_start(struct listener *l)
{
	pthread_t thread;

	for (unsigned i = 0; i < ANSWERS_RECEIVES; i++)
		answers_post_receive(&l->pair);
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
	for (unsigned i = 0; i < ANSWERS_ROUNDS; i++)
		listen_round(l, 1 + i % ANSWERS_BURST);
	atomic_store(&l->over, true);
	return atomic_load(&l->messages) != l->wanted;
}

static int listen_begin(void *user, struct ibv_comp_channel *channel)
{
	struct listener *l = user;

	l->channel = channel;
	l->silent = ibv_create_comp_channel(l->pair.port.ctx);
	if (!l->silent)
		device_die("no channel: %m");
	return listen_to_all(l);
}

int main(int argc, char **argv)
{
	struct listener l = {.lock = PTHREAD_MUTEX_INITIALIZER};

	if (argc != 5)
		device_die("usage: reader DEVICE listen|connect TCP-PORT HOW");
	l.how = how_find(argv[4]);
	return answers_main(&l.pair, argv, listen_begin, &l);
}
