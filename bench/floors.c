/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two processes need to tell each other something without any device: half of a ping-pong, each
 * process on a processor of its own where there are two.
 *
 *	tcp	8 bytes over TCP on the loopback interface; both ask again and again
 *	udp_relayed
 *		8 bytes over UDP on the loopback interface, through two more processes, which sleep; the
 *		two ask again and again
 *	pipe	a byte through a pipe; both sleep
 *	pipe_poll, pipe_epoll
 *		the same; both sleep in poll, or in epoll_wait, and read then
 *	futex	a word in memory that both share; both sleep
 *	copy_64, copy_1024
 *		not that, but how fast the kernel copies so many KiB into the other (process_vm_writev)
 *	and the names of rings.h
 *
 * floors NAME...: prints "name value unit" lines.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rings.h"
#include "talk.h"
#include "verbs_device.h"

#define SAMPLE_NS 400000000u /* how long a ping-pong lasts, more or less */
#define WARM_UP	  200u
#define MESSAGE	  8u

/* One side's ends of what leads to the other. */
struct line {
	int in, out;
	_Atomic(uint32_t) *mine, *theirs; /* counts of what has been told */
	uint32_t told, heard;
	uint8_t *buffer;
	pid_t child;
};

struct floor {
	const char *name;
	size_t kib; /* of a copy; 0: a ping-pong */
	void (*open)(struct line lines[2]);
	void (*tell)(struct line *l);
	void (*hear)(struct line *l);
};

/* ---- TCP ---- */

static void tcp_open(struct line lines[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd[2];
	socklen_t length = sizeof(at);

	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&at, &length))
		device_die("listen: %m");
	fd[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd[0], (struct sockaddr *)&at, sizeof(at)))
		device_die("connect: %m");
	fd[1] = accept(listener, NULL, NULL);
	close(listener);
	for (int i = 0; i < 2; i++) {
		if (setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)))
			device_die("TCP_NODELAY: %m");
		lines[i].in = lines[i].out = fd[i];
	}
}

static void tcp_tell(struct line *l)
{
	if (send(l->out, &(char[MESSAGE]){0}, MESSAGE, MSG_NOSIGNAL) != MESSAGE)
		device_die("send: %m");
}

static void tcp_hear(struct line *l)
{
	char message[MESSAGE];
	ssize_t n;

	do
		n = recv(l->in, message, sizeof(message), MSG_DONTWAIT);
	while (n < 0 && errno == EAGAIN);
	if (n != MESSAGE)
		_exit(0);
}

/* ---- UDP, through two processes ---- */

#define UDP_CHAIN 4 /* one side, two relays, the other side */

static int udp_socket(struct sockaddr_in *at)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	socklen_t length = sizeof(*at);

	*at = (struct sockaddr_in){.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)at, sizeof(*at)) ||
	    getsockname(fd, (struct sockaddr *)at, &length))
		device_die("a socket of UDP: %m");
	return fd;
}

/* Passes on what comes from either neighbour, for as long as its parent lives. */
static _Noreturn void relay(int fd, const struct sockaddr_in *one, const struct sockaddr_in *other)
{
	char message[MESSAGE];
	struct sockaddr_in from;

	for (;;) {
		socklen_t length = sizeof(from);
		const struct sockaddr_in *to;

		if (recvfrom(fd, message, sizeof(message), 0, (struct sockaddr *)&from, &length) !=
		    MESSAGE)
			_exit(1);
		to = from.sin_port == one->sin_port ? other : one;
		if (sendto(fd, message, sizeof(message), 0, (const struct sockaddr *)to,
			   sizeof(*to)) != MESSAGE)
			_exit(1);
	}
}

static void udp_open(struct line lines[2])
{
	struct sockaddr_in at[UDP_CHAIN];
	pid_t parent = getpid();
	int fd[UDP_CHAIN];

	for (int i = 0; i < UDP_CHAIN; i++)
		fd[i] = udp_socket(&at[i]);
	for (int i = 1; i < UDP_CHAIN - 1; i++) {
		pid_t child = fork();

		if (child < 0)
			device_die("fork: %m");
		if (child)
			continue;
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(1);
		relay(fd[i], &at[i - 1], &at[i + 1]);
	}
	for (int i = 0; i < 2; i++) {
		const struct sockaddr_in *next = &at[i ? UDP_CHAIN - 2 : 1];

		lines[i].in = lines[i].out = fd[i ? UDP_CHAIN - 1 : 0];
		if (connect(lines[i].out, (const struct sockaddr *)next, sizeof(*next)))
			device_die("connect: %m");
	}
}

/* ---- a pipe ---- */

static void pipe_open(struct line lines[2])
{
	for (int i = 0; i < 2; i++) {
		int fd[2];

		if (pipe(fd))
			device_die("pipe: %m");
		lines[i].in = fd[0];
		lines[!i].out = fd[1];
	}
}

static void pipe_tell(struct line *l)
{
	if (write(l->out, &(char){0}, 1) != 1)
		device_die("write: %m");
}

static void pipe_hear(struct line *l)
{
	if (read(l->in, &(char){0}, 1) != 1)
		_exit(0);
}

static void pipe_hear_poll(struct line *l)
{
	struct pollfd one = {.fd = l->in, .events = POLLIN};

	if (poll(&one, 1, -1) != 1)
		_exit(0);
	pipe_hear(l);
}

static void pipe_hear_epoll(struct line *l)
{
	/* Each side is a process. */
	static int set = -1;
	struct epoll_event event = {.events = EPOLLIN};

	if (set < 0) {
		set = epoll_create1(EPOLL_CLOEXEC);
		if (set < 0 || epoll_ctl(set, EPOLL_CTL_ADD, l->in, &event))
			device_die("epoll: %m");
	}
	if (epoll_wait(set, &event, 1, -1) != 1)
		_exit(0);
	pipe_hear(l);
}

/* ---- a futex ---- */

static void futex_open(struct line lines[2])
{
	_Atomic(uint32_t) *words =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (words == MAP_FAILED)
		device_die("mmap: %m");
	for (int i = 0; i < 2; i++)
		lines[i] = (struct line){.mine = words + i * 64, .theirs = words + !i * 64};
}

static void futex_tell(struct line *l)
{
	atomic_store(l->theirs, ++l->told);
	syscall(SYS_futex, l->theirs, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void futex_hear(struct line *l)
{
	while (atomic_load(l->mine) == l->heard)
		syscall(SYS_futex, l->mine, FUTEX_WAIT, l->heard, NULL, NULL, 0);
	l->heard++;
}

static const struct floor floors[] = {
	{"tcp", 0, tcp_open, tcp_tell, tcp_hear},
	{"udp_relayed", 0, udp_open, tcp_tell, tcp_hear},
	{"pipe", 0, pipe_open, pipe_tell, pipe_hear},
	{"pipe_poll", 0, pipe_open, pipe_tell, pipe_hear_poll},
	{"pipe_epoll", 0, pipe_open, pipe_tell, pipe_hear_epoll},
	{"futex", 0, futex_open, futex_tell, futex_hear},
	{"copy_64", 64, NULL, NULL, NULL},
	{"copy_1024", 1024, NULL, NULL, NULL},
};

#define FLOORS (sizeof(floors) / sizeof(*floors))

/* ---- a copy ---- */

static void copy_open(struct line lines[2], size_t bytes)
{
	lines[0].buffer = mmap(NULL, 2 * bytes, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (lines[0].buffer == MAP_FAILED)
		device_die("mmap: %m");
}

/* ---- the two sides ---- */

static void copied(struct line *l, size_t bytes)
{
	/* The child has its buffers where this process has them. */
	struct iovec from = {l->buffer, bytes}, to = {l->buffer + bytes, bytes};

	if (process_vm_writev(l->child, &from, 1, &to, 1, 0) != (ssize_t)bytes)
		device_die("process_vm_writev: %m");
}

static _Noreturn void answer(const struct floor *f, struct line *l)
{
	while (f->kib)
		pause();
	for (;;) {
		f->hear(l);
		f->tell(l);
	}
}

static void once(const struct floor *f, struct line *l)
{
	if (f->kib) {
		copied(l, f->kib << 10);
		return;
	}
	f->tell(l);
	f->hear(l);
}

/* Nanoseconds that one takes. */
static double each_ns(const struct floor *f, struct line *l)
{
	uint64_t start, now;
	unsigned times = 0;

	for (unsigned i = 0; i < WARM_UP; i++)
		once(f, l);
	start = now = device_now_ns();
	for (; now - start < SAMPLE_NS; now = device_now_ns(), times++)
		once(f, l);
	return (double)(now - start) / times;
}

static void measure(const struct floor *f)
{
	struct line lines[2] = {0};
	double ns;

	if (f->kib)
		copy_open(lines, f->kib << 10);
	else
		f->open(lines);
	lines[0].child = talk_fork();
	if (!lines[0].child)
		answer(f, &lines[1]);
	ns = each_ns(f, &lines[0]);
	if (f->kib)
		printf("%s %.0f MiB/s\n", f->name, (double)(f->kib << 10) / ns * 1e9 / (1 << 20));
	else
		printf("%s %.3f us\n", f->name, ns / 2e3);
	fflush(stdout);
	talk_end(lines[0].child);
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const struct floor *f = floors;
		cpu_set_t all;

		while (f < floors + FLOORS && strcmp(f->name, argv[i]) != 0)
			f++;
		if (sched_getaffinity(0, sizeof(all), &all))
			device_die("sched_getaffinity: %m");
		if (f < floors + FLOORS) {
			measure(f);
		} else if (!rings_measure(argv[i])) {
			fprintf(stderr, "floors: nothing is called %s\n", argv[i]);
			return 2;
		}
		sched_setaffinity(0, sizeof(all), &all);
	}
	return 0;
}
