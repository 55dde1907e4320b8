/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RDMA WRITE and READ to another process, in the shapes that programs have, and beside each figure
 * what the kernel's own copy between processes (process_vm_writev, process_vm_readv) costs in the
 * same exchange.
 *
 * onesided DEVICE SHAPE MEMORY
 *   SHAPE   single    one thread in each process
 *           sleeper   a second thread in each process, which sleeps
 *           pairs     two queue pairs, each with a thread of its own in each process
 *   MEMORY  private   anonymous memory of the program
 *           stack     the same, of the main thread's stack
 *           shared    a memfd that the program has mapped
 *           moved     anonymous memory, registered before there are other threads: with
 *                     --memory=mapped it becomes shared
 *
 * Prints "name value unit" lines.  A latency is half of a ping-pong for WRITE (either side polls
 * its memory) and from post to completion for READ.  Floors begin with "floor_": a system call and
 * the other side's poll of its memory, nothing else; for an atomic while the target polls its memory, for which
 * there is no call, a thread of the target's that is woken and adds.  Whatever a side does while it waits is
 * the same for both.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "talk.h"
#include "verbs_device.h"
#include "woken.h"

#define TRIPS	    20000u
#define ADDS	    10000u
#define BURSTS	    4000u
#define BLOCKS	    8000u
#define LIST	    16u
#define BLOCK_BYTES 65536u
#define SMALL	    8u
#define MAX_LANES   2u
#define LANE_BYTES  (2u * BLOCK_BYTES)
/* Words of a lane's memory that the two sides poll; the rest takes blocks. */
#define WORD_AT	 0u
#define BLOCK_AT BLOCK_BYTES

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* Rounds of a poll before the processor is given away, where more threads poll than there are
 * processors. */
#define POLLS 100u

/* What the two processes must know of each other. */
struct hello {
	struct device_address address[MAX_LANES];
	uint64_t memory;
	uint32_t rkey;
	pid_t pid;
};

struct side {
	struct device_port port;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *memory;
	struct hello peer;
	unsigned lanes;
	bool first;   /* begins each exchange, and prints */
	bool crowded; /* more threads poll than there are processors */
	int fd;
	struct woken_words *woken; /* of each lane */
};

/* One thread's part: a queue pair, a piece of memory at either side. */
struct lane {
	struct side *side;
	unsigned number;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *local;
	uint64_t remote;
	uint64_t token; /* the next value to send, or to wait for */
	double result;
	uint64_t began_ns, ended_ns;
};

/* ---- waiting and talking ---- */

static void meet(const struct side *s)
{
	talk_put(s->fd, &(char){0}, 1);
	talk_get(s->fd, &(char){0}, 1);
}

static _Atomic(uint64_t) *word(const struct lane *l)
{
	return (_Atomic(uint64_t) *)(void *)(l->local + WORD_AT);
}

/* On a crowded machine, a thread that only polls takes the processor from the one that would send:
 * the figures would say how the scheduler's slices happened to lie. */
static void await_word(const struct lane *l, uint64_t value)
{
	for (unsigned i = 1; atomic_load_explicit(word(l), memory_order_acquire) != value; i++)
		if (l->side->crowded && i % POLLS == 0)
			sched_yield();
}

/* ---- through the device ---- */

static void reap(const struct lane *l)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(l->cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status != IBV_WC_SUCCESS)
		device_die("completion: %s", n < 0 ? "none" : ibv_wc_status_str(wc.status));
}

static void post(const struct lane *l, enum ibv_wr_opcode opcode, const void *from, uint64_t to,
		 uint32_t bytes, unsigned count)
{
	struct ibv_sge sge = {(uintptr_t)from, bytes, l->side->mr->lkey};
	struct ibv_send_wr wr[LIST], *bad;

	for (unsigned i = 0; i < count; i++)
		wr[i] = (struct ibv_send_wr){
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = opcode,
			.send_flags = i + 1 < count ? 0 : IBV_SEND_SIGNALED,
			.wr.rdma = {to + (uint64_t)i * bytes, l->side->peer.rkey},
		};
	if (ibv_post_send(l->qp, wr, &bad))
		device_die("ibv_post_send: %m");
}

static void device_write(const struct lane *l, const void *from, uint64_t to, uint32_t bytes,
			 unsigned count)
{
	post(l, IBV_WR_RDMA_WRITE, from, to, bytes, count);
	reap(l);
}

static void device_read(const struct lane *l, void *to, uint64_t from, uint32_t bytes)
{
	post(l, IBV_WR_RDMA_READ, to, from, bytes, 1);
	reap(l);
}

static void device_add(const struct lane *l, void *to, uint64_t at)
{
	struct ibv_sge sge = {(uintptr_t)to, SMALL, l->side->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
				 .send_flags = IBV_SEND_SIGNALED,
				 .wr.atomic = {.remote_addr = at,
					       .rkey = l->side->peer.rkey,
					       .compare_add = 1}},
			   *bad;

	if (ibv_post_send(l->qp, &wr, &bad))
		device_die("ibv_post_send: %m");
	reap(l);
}

/* ---- through the kernel alone ---- */

static void kernel_write(const struct lane *l, const void *from, uint64_t to, uint32_t bytes,
			 unsigned count)
{
	struct iovec local[LIST], remote[LIST];

	for (unsigned i = 0; i < count; i++) {
		local[i] = (struct iovec){(void *)(uintptr_t)from, bytes};
		remote[i] = (struct iovec){(void *)(uintptr_t)(to + (uint64_t)i * bytes), bytes};
	}
	if (process_vm_writev(l->side->peer.pid, local, count, remote, count, 0) !=
	    (ssize_t)bytes * count)
		device_die("process_vm_writev: %m");
}

static void kernel_read(const struct lane *l, void *to, uint64_t from, uint32_t bytes)
{
	struct iovec local = {to, bytes}, remote = {(void *)(uintptr_t)from, bytes};

	if (process_vm_readv(l->side->peer.pid, &local, 1, &remote, 1, 0) != (ssize_t)bytes)
		device_die("process_vm_readv: %m");
}

static void kernel_read_word(const struct lane *l, void *to, uint64_t at)
{
	kernel_read(l, to, at, SMALL);
}

/* A thread of the target's is woken, and adds. */
static void thread_add(const struct lane *l, void *to, uint64_t at)
{
	(void)to, (void)at;
	woken_ask(&l->side->woken[l->number]);
}

struct mover {
	void (*write)(const struct lane *l, const void *from, uint64_t to, uint32_t bytes,
		      unsigned count);
	void (*read)(const struct lane *l, void *to, uint64_t from, uint32_t bytes);
	/* Adds 1; the kernel has nothing like it, and reads. */
	void (*add)(const struct lane *l, void *to, uint64_t at);
};

static const struct mover by_device = {device_write, device_read, device_add},
			  by_kernel = {kernel_write, kernel_read, kernel_read_word},
			  by_thread = {kernel_write, kernel_read, thread_add};

/* ---- what is measured; each returns its figure ---- */

static double us_each(uint64_t start, unsigned times)
{
	return (double)(device_now_ns() - start) / 1e3 / times;
}

static void ping(struct lane *l, const struct mover *m)
{
	uint64_t *out = (uint64_t *)(void *)(l->local + 64);

	*out = l->token;
	m->write(l, out, l->remote + WORD_AT, SMALL, 1);
}

static double write_latency(struct lane *l, const struct mover *m)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; i < TRIPS; i++) {
		l->token++;
		if (l->side->first)
			ping(l, m);
		await_word(l, l->token);
		if (!l->side->first)
			ping(l, m);
	}
	return us_each(start, 2 * TRIPS);
}

static double read_latency(struct lane *l, const struct mover *m)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; l->side->first && i < TRIPS; i++)
		m->read(l, l->local + 128, l->remote + 128, SMALL);
	return us_each(start, TRIPS);
}

/* Where the other side adds. */
#define ADD_AT 192u

/* The target waits for the end meanwhile, and asks its completion queue or only its memory. */
static double add_latency(struct lane *l, const struct mover *m, bool asks)
{
	uint64_t start = device_now_ns();
	struct woken woken;
	struct ibv_wc wc;
	double us;

	l->token++;
	if (!l->side->first) {
		if (m == &by_thread)
			woken_begin(&woken, &l->side->woken[l->number],
				    (_Atomic(uint64_t) *)(void *)(l->local + ADD_AT));
		while (asks && atomic_load(word(l)) != l->token)
			if (ibv_poll_cq(l->cq, 1, &wc))
				device_die("a completion that nobody asked for");
		await_word(l, l->token);
		if (m == &by_thread)
			woken_end(&woken);
		return 0;
	}
	for (unsigned i = 0; i < ADDS; i++)
		m->add(l, l->local + 128, l->remote + ADD_AT);
	us = us_each(start, ADDS);
	ping(l, m);
	return us;
}

static double atomic_latency(struct lane *l, const struct mover *m)
{
	return add_latency(l, m, true);
}

static double atomic_word_latency(struct lane *l, const struct mover *m)
{
	return add_latency(l, m, false);
}

static double list_rate(struct lane *l, const struct mover *m)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; l->side->first && i < BURSTS; i++)
		m->write(l, l->local + 128, l->remote + 1024, SMALL, LIST);
	return LIST / us_each(start, BURSTS);
}

static double single_rate(struct lane *l, const struct mover *m)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; l->side->first && i < TRIPS; i++)
		m->write(l, l->local + 128, l->remote + 1024, SMALL, 1);
	return 1 / us_each(start, TRIPS);
}

static double block_rate(struct lane *l, const struct mover *m)
{
	uint64_t start = device_now_ns();

	for (unsigned i = 0; l->side->first && i < BLOCKS; i++)
		m->write(l, l->local + BLOCK_AT, l->remote + BLOCK_AT, BLOCK_BYTES, 1);
	return BLOCK_BYTES / us_each(start, BLOCKS);
}

static const struct measure {
	const char *name, *unit;
	double (*run)(struct lane *l, const struct mover *m);
	bool sum; /* the lanes' figures add up; otherwise their mean is meant */
	const struct mover *floor;
} measures[] = {
	{"write_lat", "us", write_latency, false, &by_kernel},
	{"read_lat", "us", read_latency, false, &by_kernel},
	{"list", "Mmsg/s", list_rate, true, &by_kernel},
	{"single", "Mmsg/s", single_rate, true, &by_kernel},
	{"block", "MB/s", block_rate, true, &by_kernel},
	{"atomic_lat", "us", atomic_latency, false, &by_kernel},
	{"atomic_word_lat", "us", atomic_word_latency, false, &by_thread},
};

#define MEASURES (sizeof(measures) / sizeof(*measures))

/* ---- set-up ---- */

static uint8_t *memory_of(const char *kind, size_t bytes)
{
	bool shared = !strcmp(kind, "shared");
	int fd = shared ? memfd_create("buffer", MFD_CLOEXEC) : -1;
	uint8_t *p;

	if (shared && (fd < 0 || ftruncate(fd, (off_t)bytes)))
		device_die("memfd: %m");
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (p == MAP_FAILED)
		device_die("mmap: %m");
	memset(p, 0, bytes);
	return p;
}

static void lane_open(struct lane *l, struct side *s, unsigned number)
{
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 2 * LIST,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	*l = (struct lane){.side = s, .number = number};
	l->cq = ibv_create_cq(s->port.ctx, (int)(4 * LIST), NULL, NULL, 0);
	init.send_cq = init.recv_cq = l->cq;
	l->qp = l->cq ? ibv_create_qp(s->pd, &init) : NULL;
	if (!l->qp)
		device_die("queue pair: %m");
	device_qp_init(l->qp, &device_default_connection);
	l->local = s->memory + (size_t)number * LANE_BYTES;
}

/* s->memory: the program's, if it does not come from memory_of. */
static void side_open(struct side *s, struct lane *lanes, const char *device, const char *memory)
{
	size_t bytes = (size_t)s->lanes * LANE_BYTES;
	struct hello mine = {.pid = getpid()};

	device_port_open(&s->port, device, -1);
	if (!s->memory)
		s->memory = memory_of(memory, bytes);
	s->pd = ibv_alloc_pd(s->port.ctx);
	s->mr = s->pd ? ibv_reg_mr(s->pd, s->memory, bytes, ACCESS) : NULL;
	if (!s->mr)
		device_die("ibv_reg_mr: %m");
	mine.memory = (uintptr_t)s->memory;
	mine.rkey = s->mr->rkey;
	for (unsigned i = 0; i < s->lanes; i++) {
		lane_open(&lanes[i], s, i);
		mine.address[i] = device_address(&s->port, lanes[i].qp, 0);
	}
	talk_put(s->fd, &mine, sizeof(mine));
	talk_get(s->fd, &s->peer, sizeof(s->peer));
	for (unsigned i = 0; i < s->lanes; i++) {
		device_qp_connect(&s->port, lanes[i].qp, &device_default_connection,
				  &s->peer.address[i], 0);
		lanes[i].remote = s->peer.memory + (size_t)i * LANE_BYTES;
	}
	meet(s);
}

/* ---- running ---- */

struct turn {
	struct lane *lane;
	const struct measure *measure;
	const struct mover *mover;
	pthread_barrier_t *start;
};

static void *turn_run(void *arg)
{
	const struct turn *t = arg;

	pthread_barrier_wait(t->start);
	t->lane->began_ns = device_now_ns();
	t->lane->result = t->measure->run(t->lane, t->mover);
	t->lane->ended_ns = device_now_ns();
	return NULL;
}

/*
 * Lanes that share a processor run in turns, in slices that may be longer than what is measured: a
 * rate is that of the time they had together, a latency without the turns of the others.
 */
static double turns_figure(const struct side *s, const struct lane *lanes, const struct measure *m)
{
	uint64_t began = lanes[0].began_ns, ended = lanes[0].ended_ns;
	double each = 0, sum = 0, weighted = 0;

	for (unsigned i = 0; i < s->lanes; i++) {
		double took = (double)(lanes[i].ended_ns - lanes[i].began_ns);

		began = lanes[i].began_ns < began ? lanes[i].began_ns : began;
		ended = lanes[i].ended_ns > ended ? lanes[i].ended_ns : ended;
		each += took;
		sum += lanes[i].result;
		weighted += lanes[i].result * took;
	}
	if (m->sum)
		return weighted / (double)(ended - began);
	return sum / s->lanes * (s->crowded ? (double)(ended - began) / each : 1);
}

/* All lanes at once; one lane runs in the main thread. */
static double turns_run(struct side *s, struct lane *lanes, const struct measure *m,
			const struct mover *mover)
{
	pthread_barrier_t start;
	struct turn turn[MAX_LANES] = {{lanes, m, mover, &start}};
	pthread_t thread[MAX_LANES];

	pthread_barrier_init(&start, NULL, s->lanes);
	for (unsigned i = 1; i < s->lanes; i++) {
		turn[i] = (struct turn){&lanes[i], m, mover, &start};
		if (pthread_create(&thread[i], NULL, turn_run, &turn[i]))
			device_die("pthread_create");
	}
	turn_run(&turn[0]);
	for (unsigned i = 1; i < s->lanes; i++)
		pthread_join(thread[i], NULL);
	pthread_barrier_destroy(&start);
	return turns_figure(s, lanes, m);
}

static void *sleeper(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* Each process on processors of its own, one per lane where there are so many; returns whether
 * there are. */
static bool pin(unsigned number, unsigned lanes)
{
	cpu_set_t all, own;
	unsigned seen = 0, each = lanes, count;

	if (sched_getaffinity(0, sizeof(all), &all))
		return false;
	count = (unsigned)CPU_COUNT(&all);
	if (count < 2)
		return false;
	if (count < 2 * lanes)
		each = 1;
	CPU_ZERO(&own);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && seen++ / each == number)
			CPU_SET(cpu, &own);
	return !sched_setaffinity(0, sizeof(own), &own) && each == lanes;
}

static void side_run(struct side *s, const char *device, const char *shape, const char *memory)
{
	_Alignas(4096) uint8_t stack[MAX_LANES * LANE_BYTES] = {0};
	struct lane lanes[MAX_LANES];
	pthread_t thread;

	bool sleeps = !strcmp(shape, "sleeper"), late = !strcmp(memory, "moved");

	s->lanes = strcmp(shape, "pairs") ? 1 : MAX_LANES;
	s->memory = strcmp(memory, "stack") ? NULL : stack;
	s->crowded = !pin(!s->first, s->lanes);
	if (sleeps && !late && pthread_create(&thread, NULL, sleeper, NULL))
		device_die("pthread_create");
	side_open(s, lanes, device, memory);
	if (sleeps && late && pthread_create(&thread, NULL, sleeper, NULL))
		device_die("pthread_create");
	for (unsigned i = 0; i < MEASURES; i++)
		for (int floor = 0; floor < 2; floor++) {
			double figure;

			meet(s);
			figure = turns_run(s, lanes, &measures[i],
					   floor ? measures[i].floor : &by_device);
			if (s->first)
				printf("%s%s %.4f %s\n", floor ? "floor_" : "", measures[i].name,
				       figure, measures[i].unit);
		}
	meet(s);
}

int main(int argc, char **argv)
{
	struct side s = {0};
	int fd[2], status = 0;
	pid_t child;

	if (argc != 4) {
		fputs("Usage: onesided DEVICE single|sleeper|pairs private|shared|moved|stack\n",
		      stderr);
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		device_die("socketpair: %m");
	s.woken = woken_map(MAX_LANES);
	child = fork();
	if (child < 0)
		device_die("fork: %m");
	s.first = child;
	s.fd = fd[!child];
	close(fd[!!child]);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* The kernel's copy needs it where ptrace is restricted. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	side_run(&s, argv[1], argv[2], argv[3]);
	if (child && waitpid(child, &status, 0) != child)
		device_die("waitpid: %m");
	return status ? 1 : 0;
}
