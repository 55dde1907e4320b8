// SPDX-License-Identifier: BSD-2-Clause
#include "lanes.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "talk.h"

#define ACCESS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

double lanes_us_each(uint64_t start, unsigned times)
{
	return (double)(device_now_ns() - start) / 1e3 / times;
}

static void meet(const struct lanes_side *s)
{
	talk_put(s->fd, &(char){0}, 1);
	talk_get(s->fd, &(char){0}, 1);
}

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

static void lane_open(struct lane *l, struct lanes_side *s, unsigned number,
		      const struct ibv_qp_cap *cap)
{
	struct ibv_qp_init_attr init = {.cap = *cap, .qp_type = IBV_QPT_RC};

	*l = (struct lane){.side = s, .number = number};
	l->cq = ibv_create_cq(s->port.ctx, (int)(cap->max_send_wr + cap->max_recv_wr), NULL, NULL,
			      0);
	init.send_cq = init.recv_cq = l->cq;
	l->qp = l->cq ? ibv_create_qp(s->pd, &init) : NULL;
	if (!l->qp)
		device_die("queue pair: %m");
	device_qp_init(l->qp, &device_default_connection);
	l->local = s->memory + (size_t)number * LANES_BYTES;
}

/* s->memory: the program's, if it does not come from memory_of. */
static void side_open(struct lanes_side *s, struct lane *lanes, const struct lanes_program *program,
		      const char *device, const char *memory)
{
	size_t bytes = (size_t)s->lanes * LANES_BYTES;
	struct lanes_hello mine = {.pid = getpid()};

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
		lane_open(&lanes[i], s, i, &program->cap);
		mine.address[i] = device_address(&s->port, lanes[i].qp, 0);
	}
	talk_put(s->fd, &mine, sizeof(mine));
	talk_get(s->fd, &s->peer, sizeof(s->peer));
	for (unsigned i = 0; i < s->lanes; i++) {
		device_qp_connect(&s->port, lanes[i].qp, &device_default_connection,
				  &s->peer.address[i], 0);
		lanes[i].remote = s->peer.memory + (size_t)i * LANES_BYTES;
		if (program->begin)
			program->begin(&lanes[i]);
	}
	meet(s);
}

/* ---- running ---- */

struct turn {
	struct lane *lane;
	const struct lanes_measure *measure;
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
static double turns_figure(const struct lanes_side *s, const struct lane *lanes,
			   const struct lanes_measure *m)
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
static double turns_run(struct lanes_side *s, struct lane *lanes, const struct lanes_measure *m,
			const struct mover *mover)
{
	pthread_barrier_t start;
	struct turn turn[LANES_MOST] = {{lanes, m, mover, &start}};
	pthread_t thread[LANES_MOST];

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

static void side_measure(struct lanes_side *s, struct lane *lanes, const struct lanes_measure *m,
			 const struct mover *mover, const char *prefix)
{
	double figure;

	meet(s);
	figure = turns_run(s, lanes, m, mover);
	if (s->first)
		printf("%s%s %.4f %s\n", prefix, m->name, figure, m->unit);
}

static void side_run(struct lanes_side *s, const struct lanes_program *program, const char *device,
		     const char *shape, const char *memory)
{
	_Alignas(4096) uint8_t stack[LANES_MOST * LANES_BYTES] = {0};
	struct lane lanes[LANES_MOST];
	pthread_t thread;

	s->lanes = strcmp(shape, "pairs") ? 1 : LANES_MOST;
	s->memory = strcmp(memory, "stack") ? NULL : stack;
	s->crowded = !pin(!s->first, s->lanes);
	if (!strcmp(shape, "sleeper") && pthread_create(&thread, NULL, sleeper, NULL))
		device_die("pthread_create");
	side_open(s, lanes, program, device, memory);
	for (const struct lanes_measure *m = program->measures;
	     m < program->measures + program->count; m++) {
		side_measure(s, lanes, m, program->mover, "");
		if (m->floor)
			side_measure(s, lanes, m, m->floor, "floor_");
	}
	meet(s);
}

int lanes_main(int argc, char **argv, const struct lanes_program *program)
{
	struct lanes_side s = {0};
	int fd[2], status = 0;
	pid_t child;

	if (argc != 4) {
		fprintf(stderr, "Usage: %s DEVICE single|sleeper|pairs private|shared|stack\n",
			program->name);
		return 2;
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		device_die("socketpair: %m");
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
	side_run(&s, program, argv[1], argv[2], argv[3]);
	if (child && waitpid(child, &status, 0) != child)
		device_die("waitpid: %m");
	return status ? 1 : 0;
}
