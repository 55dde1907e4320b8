// SPDX-License-Identifier: BSD-2-Clause
/*
 * waiter DEVICE listen|connect TCP-PORT HOW: the listener waits for a completion channel and a plain pipe, into which a thread
 * of its writes now and then, and answers each message.  Whatever a wait says is there must be there, what comes must be
 * told, and a wait that is over in time must not be over early.  HOW is the call by which it waits:
 *
 *	poll         with and without a time
 *	ppoll        the same; signals are held back but for the call
 *	select       and pselect, the same
 *	epoll        and -edge (EPOLLET), -once (EPOLLONESHOT), -dup (by another number of the set), -nested (a
 *	             set in a set)
 *	epoll_pwait  and epoll_pwait2, as ppoll
 *	crowded      by poll, and a second thread waits for the same in epoll
 *	beside       by epoll, on two processors; a second thread polls a queue of its own for a while, computes,
 *	             sleeps, and so on
 *	jumped       by poll; a handler leaves waits by siglongjmp
 *	cancelled    by epoll; threads are cancelled that wait in poll and in epoll, and at the very moment
 *	             when a wait ends
 *	forking      by epoll; another thread makes processes, which wait for the same set
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "answers.h"

#define DISTURBANCE 300 /* us */
#define SHORT_MS    3
#define PHASE_US    5000
/* In each round. */
#define CANCELS_AT_END 20u

enum { CHANNEL = 1, TICKS = 2 }; /* what is there, as a set */

struct listener;

struct how {
	const char *name;
	/* What is there; 0: the time is over, or a signal came. */
	int (*wait)(struct listener *l, int ms);
	uint32_t flags; /* of members of the set */
	bool masked, precise, twice, nested, crowd, jumps, cancels, forks, polls;
};

struct listener {
	struct pair pair;
	struct ibv_comp_channel *channel, *silent;
	const struct how *how;
	int ticks[2], set, other_set;
	int byte[2]; /* of cancelled_at_end */
	pthread_mutex_t lock;
	unsigned messages, answered, wanted, ticked, told;
	_Atomic(unsigned) written;
	_Atomic(bool) over;
};

static volatile sig_atomic_t waiting, handled;
static sigjmp_buf out_of_wait;
static sigset_t open_mask;

/* ---- ways to wait ---- */

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000;
}

/*
 * Of any such call.  The end of a child is a signal without a handler, for which the kernel ends a wait of epoll if the
 * thread that made the child holds signals back at the time, as fork does for a moment.
 */
static int wait_ended(const struct how *how, int n, int ms, uint64_t began,
		      sig_atomic_t handled_before)
{
	if (n < 0 && errno == EINTR && how->forks)
		return 0;
	if (n < 0 && (errno != EINTR || handled == handled_before))
		device_die("a wait: %m, after %d signals", (int)(handled - handled_before));
	if (!n && ms >= 0 && now_us() - began < (uint64_t)ms * 1000)
		device_die("a wait of %d ms took %u us", ms, (unsigned)(now_us() - began));
	if (!n && ms < 0)
		device_die("a wait without an end was over");
	return n > 0;
}

static int by_poll(struct listener *l, int ms)
{
	struct pollfd fds[] = {{.fd = l->channel->fd, .events = POLLIN},
			       {.fd = -1, .revents = POLLIN},
			       {.fd = l->ticks[0], .events = POLLIN}};
	struct timespec time = {0, ms * 1000000};
	sig_atomic_t before = handled;
	uint64_t began = now_us();
	int n, there;

	waiting = 1;
	n = l->how->masked ? ppoll(fds, 3, ms < 0 ? NULL : &time, &open_mask) : poll(fds, 3, ms);
	waiting = 0;
	if (!wait_ended(l->how, n, ms, began, before))
		return 0;
	there = (fds[0].revents ? CHANNEL : 0) | (fds[2].revents ? TICKS : 0);
	if (n != !!(there & CHANNEL) + !!(there & TICKS) || (fds[0].revents & ~POLLIN) ||
	    fds[1].revents || (fds[2].revents & ~POLLIN))
		device_die("poll returned %d with %x, %x, %x", n, fds[0].revents, fds[1].revents,
			   fds[2].revents);
	return there;
}

static void of_time(const char *call, struct timeval left, int ms, uint64_t began)
{
	uint64_t total = (uint64_t)left.tv_sec * 1000000u + (uint64_t)left.tv_usec;

	/* Linux says what is left. */
	if (total > (uint64_t)ms * 1000 || total + (now_us() - began) + 1 < (uint64_t)ms * 1000)
		device_die("%s of %d ms left %u us after %u", call, ms, (unsigned)total,
			   (unsigned)(now_us() - began));
}

static int by_select(struct listener *l, int ms)
{
	struct timeval time = {0, ms * 1000};
	struct timespec same = {0, ms * 1000000};
	int fds = (l->channel->fd > l->ticks[0] ? l->channel->fd : l->ticks[0]) + 1, n, there;
	sig_atomic_t before = handled;
	uint64_t began = now_us();
	fd_set r, w;

	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_SET(l->channel->fd, &r);
	FD_SET(l->ticks[0], &r);
	FD_SET(fds + 3, &r); /* behind the last */
	waiting = 1;
	n = l->how->masked ? pselect(fds, &r, &w, NULL, ms < 0 ? NULL : &same, &open_mask)
			   : select(fds, &r, &w, NULL, ms < 0 ? NULL : &time);
	waiting = 0;
	if (ms >= 0 && !l->how->masked)
		of_time("select", time, ms, began);
	if (n >= 0 && FD_ISSET(l->channel->fd, &r) + FD_ISSET(l->ticks[0], &r) != n)
		device_die("select returned %d", n);
	there = (FD_ISSET(l->channel->fd, &r) ? CHANNEL : 0) |
		(FD_ISSET(l->ticks[0], &r) ? TICKS : 0);
	return wait_ended(l->how, n, ms, began, before) ? there : 0;
}

static int by_epoll(struct listener *l, int ms)
{
	int set = l->how->twice ? l->other_set : l->set, n, there = 0;
	struct timespec time = {0, ms * 1000000};
	struct epoll_event events[3];
	sig_atomic_t before = handled;
	uint64_t began = now_us();

	if (l->how->nested) {
		struct epoll_event one;

		n = epoll_wait(l->other_set, &one, 1, ms);
		if (!wait_ended(l->how, n, ms, began, before))
			return 0;
		ms = 0;
	}
	waiting = 1;
	if (l->how->precise)
		n = epoll_pwait2(set, events, 3, ms < 0 ? NULL : &time, &open_mask);
	else
		n = l->how->masked ? epoll_pwait(set, events, 3, ms, &open_mask)
				   : epoll_wait(set, events, 3, ms);
	waiting = 0;
	if (!wait_ended(l->how, n, ms, began, before)) {
		if (l->how->nested)
			device_die("a set is ready, and nothing in it");
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (events[i].events != EPOLLIN ||
		    (events[i].data.u64 != CHANNEL && events[i].data.u64 != TICKS))
			device_die("epoll_wait told of %#x, %#llx", events[i].events,
				   (unsigned long long)events[i].data.u64);
		there |= (int)events[i].data.u64;
	}
	return there;
}

static const struct how hows[] = {
	{.name = "poll", .wait = by_poll},
	{.name = "ppoll", .wait = by_poll, .masked = true},
	{.name = "select", .wait = by_select},
	{.name = "pselect", .wait = by_select, .masked = true},
	{.name = "epoll", .wait = by_epoll},
	{.name = "epoll-edge", .wait = by_epoll, .flags = EPOLLET},
	{.name = "epoll-once", .wait = by_epoll, .flags = EPOLLONESHOT},
	{.name = "epoll_pwait", .wait = by_epoll, .masked = true},
	{.name = "epoll_pwait2", .wait = by_epoll, .masked = true, .precise = true},
	{.name = "epoll-dup", .wait = by_epoll, .twice = true},
	{.name = "epoll-nested", .wait = by_epoll, .nested = true},
	{.name = "crowded", .wait = by_poll, .crowd = true},
	{.name = "beside", .wait = by_epoll, .polls = true},
	{.name = "jumped", .wait = by_poll, .jumps = true},
	{.name = "cancelled", .wait = by_epoll, .cancels = true},
	{.name = "forking", .wait = by_epoll, .forks = true},
};

static const struct how *how_find(const char *name)
{
	for (size_t i = 0; i < sizeof(hows) / sizeof(hows[0]); i++)
		if (!strcmp(hows[i].name, name))
			return &hows[i];
	device_die("there is no \"%s\"", name);
}

/* ---- what happens to waits ---- */

static void handler_counts(int signum)
{
	(void)signum;
	handled++;
}

/* The mask holds it back but for the call. */
static void handler_of_mask(int signum)
{
	(void)signum;
	if (!waiting)
		_exit(17);
	handled++;
}

static void handler_jumps(int signum)
{
	(void)signum;
	siglongjmp(out_of_wait, 1);
}

static void handler_set(void (*handler)(int))
{
	struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};

	if (sigaction(SIGALRM, &act, NULL))
		device_die("sigaction: %m");
}

static void timer_set(int first_us, int next_us)
{
	struct itimerval t = {.it_interval.tv_usec = next_us, .it_value.tv_usec = first_us};

	if (setitimer(ITIMER_REAL, &t, NULL))
		device_die("setitimer: %m");
}

static void wait_in_vain(int fd, bool in_set)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};
	struct epoll_event event;
	int n = in_set ? epoll_wait(fd, &event, 1, -1) : poll(&one, 1, -1);

	device_die("a wait returned %d: there is nothing", n);
}

static void disturb_by_jump(struct listener *l)
{
	handler_set(handler_jumps);
	if (!sigsetjmp(out_of_wait, 1)) {
		timer_set(DISTURBANCE, 0);
		wait_in_vain(l->silent->fd, false);
	}
	handler_set(handler_counts);
}

static int set_of(int fd)
{
	struct epoll_event event = {.events = EPOLLIN};
	int set = epoll_create1(EPOLL_CLOEXEC);

	if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, fd, &event))
		device_die("epoll: %m");
	return set;
}

static void *cancelled_in_poll(void *arg)
{
	wait_in_vain(((struct listener *)arg)->silent->fd, false);
	return NULL;
}

static void *cancelled_in_epoll(void *arg)
{
	wait_in_vain(((struct listener *)arg)->other_set, true);
	return NULL;
}

static void disturb_by_cancel(struct listener *l, void *(*body)(void *))
{
	pthread_t thread;
	void *result;

	if (pthread_create(&thread, NULL, body, l))
		device_die("a thread: %m");
	usleep(DISTURBANCE);
	if (pthread_cancel(thread) || pthread_join(thread, &result) || result != PTHREAD_CANCELED)
		device_die("a thread was not cancelled");
}

/* Its wait ends because the pipe becomes readable, just before the thread is cancelled. */
static void *cancelled_at_end(void *arg)
{
	const struct listener *l = arg;
	struct pollfd fds[] = {{.fd = l->silent->fd, .events = POLLIN},
			       {.fd = l->byte[0], .events = POLLIN}};

	if (poll(fds, 2, -1) != 1)
		device_die("a wait for a pipe: %m");
	for (;;)
		pause();
	return NULL;
}

static void disturb_by_cancel_at_end(struct listener *l)
{
	pthread_t thread;
	void *result;
	char byte = 0;

	if (pthread_create(&thread, NULL, cancelled_at_end, l))
		device_die("a thread: %m");
	usleep(DISTURBANCE);
	if (write(l->byte[1], &byte, 1) != 1 || pthread_cancel(thread) ||
	    pthread_join(thread, &result) || result != PTHREAD_CANCELED ||
	    read(l->byte[0], &byte, 1) != 1)
		device_die("a thread was not cancelled at the end of its wait");
}

/* ---- the one that listens ---- */

static void member(struct listener *l, int op, int fd, uint64_t name)
{
	struct epoll_event event = {.events = EPOLLIN | l->how->flags, .data.u64 = name};

	if (epoll_ctl(l->set, op, fd, &event))
		device_die("epoll_ctl: %m");
}

/* Edges tell once of all that is there. */
static void take_ticks(struct listener *l)
{
	char bytes[64];
	ssize_t n;
	bool any = false;

	while ((n = read(l->ticks[0], bytes, sizeof(bytes))) > 0) {
		l->ticked += (unsigned)n;
		any = true;
	}
	if (!any && !l->how->crowd && !l->how->forks)
		device_die("there was no tick");
}

static void take_events(struct listener *l)
{
	bool any = false;
	struct ibv_cq *cq;
	void *context;

	while (!ibv_get_cq_event(l->channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0))
			device_die("ibv_req_notify_cq: %m");
		answers_give(&l->pair, &l->messages, &l->answered);
		any = true;
	}
	if (errno != EAGAIN)
		device_die("ibv_get_cq_event: %m");
	if (!any && !l->how->crowd)
		device_die("there was no event");
}

static void listen_once(struct listener *l, int (*wait)(struct listener *l, int ms))
{
	int there = wait(l, l->told++ % 2 && !l->how->masked ? -1 : SHORT_MS);

	pthread_mutex_lock(&l->lock);
	if (there & TICKS)
		take_ticks(l);
	if (there & CHANNEL)
		take_events(l);
	if (l->how->flags & EPOLLONESHOT && there & TICKS)
		member(l, EPOLL_CTL_MOD, l->ticks[0], TICKS);
	if (l->how->flags & EPOLLONESHOT && there & CHANNEL)
		member(l, EPOLL_CTL_MOD, l->channel->fd, CHANNEL);
	pthread_mutex_unlock(&l->lock);
}

static void *ticks_main(void *arg)
{
	struct listener *l = arg;

	while (!atomic_load(&l->over)) {
		if (write(l->ticks[1], &(char){0}, 1) != 1)
			device_die("write: %m");
		atomic_fetch_add(&l->written, 1);
		usleep(2000);
	}
	return NULL;
}

static void *crowd_main(void *arg)
{
	struct listener *l = arg;

	for (;;)
		listen_once(l, by_epoll);
	return NULL;
}

static void polls_for_a_while(struct ibv_cq *cq, bool asks)
{
	for (uint64_t began = now_us(); now_us() - began < PHASE_US;)
		if (asks && ibv_poll_cq(cq, 1, &(struct ibv_wc){0}))
			device_die("a completion of nothing");
}

static void *polls_main(void *arg)
{
	struct listener *l = arg;
	struct ibv_cq *cq = ibv_create_cq(l->pair.port.ctx, 1, NULL, NULL, 0);

	if (!cq)
		device_die("ibv_create_cq: %m");
	while (!atomic_load(&l->over)) {
		polls_for_a_while(cq, true);
		polls_for_a_while(cq, false);
		usleep(PHASE_US);
	}
	return NULL;
}

/* The device relies on threads that wait for a processor where those are few. */
static void keep_to_two_processors(void)
{
	cpu_set_t all, own;

	if (sched_getaffinity(0, sizeof(all), &all))
		device_die("sched_getaffinity: %m");
	CPU_ZERO(&own);
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&own) < 2; cpu++)
		if (CPU_ISSET(cpu, &all))
			CPU_SET(cpu, &own);
	if (sched_setaffinity(0, sizeof(own), &own))
		device_die("sched_setaffinity: %m");
}

/* A child of fork has the set, and no channel. */
static void *fork_main(void *arg)
{
	struct listener *l = arg;

	while (!atomic_load(&l->over)) {
		pid_t pid = fork();
		int status = 0;

		if (!pid) {
			struct epoll_event events[3];
			int n = epoll_wait(l->set, events, 3, 1);

			for (int i = 0; i < n; i++)
				if (events[i].data.u64 != CHANNEL && events[i].data.u64 != TICKS)
					_exit(1);
			_exit(n < 0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			device_die("a process: %m, %#x", status);
		usleep(DISTURBANCE);
	}
	return NULL;
}

static void thread_start(struct listener *l, void *(*body)(void *))
{
	sigset_t alarm, before;
	pthread_t thread;

	/* The signal is for the one that listens. */
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, &before);
	if (pthread_create(&thread, NULL, body, l))
		device_die("a thread: %m");
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void listener_sets(struct listener *l)
{
	if (pipe2(l->ticks, O_NONBLOCK) || pipe(l->byte) ||
	    fcntl(l->channel->fd, F_SETFL, O_NONBLOCK))
		device_die("pipe: %m");
	l->set = epoll_create1(EPOLL_CLOEXEC);
	if (l->set < 0)
		device_die("epoll: %m");
	member(l, EPOLL_CTL_ADD, l->channel->fd, CHANNEL);
	member(l, EPOLL_CTL_ADD, l->ticks[0], TICKS);
	l->other_set = l->how->twice	? dup(l->set)
		       : l->how->nested ? set_of(l->set)
					: set_of(l->silent->fd);
	if (l->other_set < 0)
		device_die("dup: %m");
}

static void listener_signals(const struct how *how)
{
	sigset_t alarm;

	pthread_sigmask(SIG_SETMASK, NULL, &open_mask);
	if (!how->masked)
		return;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm, NULL);
	handler_set(handler_of_mask);
	timer_set(DISTURBANCE, DISTURBANCE * 5);
}

static void listener_start(struct listener *l)
{
	listener_sets(l);
	for (unsigned i = 0; i < ANSWERS_RECEIVES; i++)
		answers_post_receive(&l->pair);
	if (ibv_req_notify_cq(l->pair.cq, 0))
		device_die("ibv_req_notify_cq: %m");
	listener_signals(l->how);
	thread_start(l, ticks_main);
	if (l->how->crowd)
		thread_start(l, crowd_main);
	if (l->how->forks)
		thread_start(l, fork_main);
	if (l->how->polls)
		thread_start(l, polls_main);
}

static unsigned answered(struct listener *l)
{
	unsigned n;

	pthread_mutex_lock(&l->lock);
	n = l->answered;
	pthread_mutex_unlock(&l->lock);
	return n;
}

static void listen_round(struct listener *l, unsigned burst)
{
	if (l->how->jumps)
		disturb_by_jump(l);
	if (l->how->cancels) {
		disturb_by_cancel(l, cancelled_in_poll);
		disturb_by_cancel(l, cancelled_in_epoll);
		for (unsigned i = 0; i < CANCELS_AT_END; i++)
			disturb_by_cancel_at_end(l);
	}
	l->wanted += burst;
	answers_ask(&l->pair, burst);
	while (answered(l) < l->wanted)
		listen_once(l, l->how->wait);
}

static int listen_to_all(struct listener *l)
{
	listener_start(l);
	for (unsigned i = 0; i < ANSWERS_ROUNDS; i++)
		listen_round(l, 1 + i % ANSWERS_BURST);
	atomic_store(&l->over, true);
	timer_set(0, 0);
	pthread_mutex_lock(&l->lock);
	usleep(10000);
	if (poll(&(struct pollfd){.fd = l->ticks[0], .events = POLLIN}, 1, 0))
		take_ticks(l);
	if (l->messages != l->wanted || l->answered != l->wanted ||
	    l->ticked != atomic_load(&l->written))
		device_die("%u messages and %u answers of %u, %u ticks of %u", l->messages,
			   l->answered, l->wanted, l->ticked, atomic_load(&l->written));
	if (l->how->masked && !handled)
		device_die("no wait let a signal in");
	return 0;
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
		device_die("usage: waiter DEVICE listen|connect TCP-PORT HOW");
	l.how = how_find(argv[4]);
	if (l.how->polls)
		keep_to_two_processors();
	return answers_main(&l.pair, argv, listen_begin, &l);
}
