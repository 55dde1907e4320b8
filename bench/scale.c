/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does it get slower when a process holds many objects?  The latency of an 8-byte WRITE with idle
 * connected queue pairs and registered memory and, in turn with it, in a process that has none; the
 * time to make each, in four quarters, which are alike if nothing is searched; the memory of a
 * queue pair.
 *
 * scale DEVICE QPS MRS [SECONDS]: prints "name value unit" lines.  With SECONDS it measures no
 * latency but sleeps with all the objects open, and prints the CPU time that the process took.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

#define DEPTH	 16u
#define BYTES	 8u
#define SAMPLE	 1000u
#define TURNS	 31u
#define QUARTERS 4u
#define REGION	 4096u
#define SPREAD	 1024u /* regions of memory that the registrations go round */
#define LIMIT	 10000000u

struct crowd {
	unsigned qps;
	unsigned mrs;
	struct ibv_qp **qp;
	struct ibv_mr **mr;
	uint8_t *memory;
};

static unsigned number(const char *text, unsigned limit)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*end || end == text || value > limit)
		device_die("not a number up to %u: %s", limit, text);
	return (unsigned)value;
}

static double latency(const struct pair *p)
{
	static uint64_t ns[SAMPLE];

	pair_latency(p, ns, SAMPLE);
	return (double)ns[SAMPLE / 2];
}

/* ---- the process that has nothing else ---- */

struct lone {
	pid_t pid;
	int ask, answer;
};

static void lone_serve(const char *device, int asked, int answer)
{
	struct pair p;
	char turn;

	pair_open(&p, device, DEPTH, BYTES);
	while (read(asked, &turn, 1) == 1) {
		double ns = latency(&p);

		if (write(answer, &ns, sizeof(ns)) != sizeof(ns))
			device_die("write: %m");
	}
	pair_close(&p);
	exit(0);
}

/* Before this process has a device. */
static void lone_start(struct lone *l, const char *device)
{
	int ask[2], answer[2];

	if (pipe(ask) || pipe(answer) || (l->pid = fork()) < 0)
		device_die("set-up: %m");
	if (!l->pid) {
		close(ask[1]);
		lone_serve(device, ask[0], answer[1]);
	}
	close(ask[0]);
	close(answer[1]);
	l->ask = ask[1];
	l->answer = answer[0];
}

static double lone_latency(const struct lone *l)
{
	double ns;

	if (write(l->ask, "", 1) != 1 || read(l->answer, &ns, sizeof(ns)) != sizeof(ns))
		device_die("the process beside this one has gone");
	return ns;
}

static void lone_end(const struct lone *l)
{
	int status;

	close(l->ask);
	if (waitpid(l->pid, &status, 0) != l->pid || status)
		device_die("the process beside this one ended with status 0x%x", status);
}

/* ---- the crowd ---- */

static double resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages;

	if (!file || fscanf(file, "%*s %lu", &pages) != 1)
		device_die("/proc/self/statm: %m");
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void make_qps(struct crowd *c, struct pair *p, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i += 2) {
		c->qp[i] = pair_qp_create(p, DEPTH);
		c->qp[i + 1] = pair_qp_create(p, DEPTH);
		pair_qp_connect(p, &c->qp[i]);
	}
}

static void make_mrs(struct crowd *c, struct pair *p, unsigned from, unsigned to)
{
	for (unsigned i = from; i < to; i++) {
		c->mr[i] = ibv_reg_mr(p->pd, c->memory + (size_t)(i % SPREAD) * REGION, REGION,
				      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
		if (!c->mr[i])
			device_die("ibv_reg_mr, number %u: %m", i);
	}
}

static void in_quarters(struct crowd *c, struct pair *p, unsigned n, const char *name,
			void (*make)(struct crowd *, struct pair *, unsigned, unsigned))
{
	unsigned quarter = n / QUARTERS;

	for (unsigned q = 0; q < QUARTERS && quarter; q++) {
		uint64_t start = device_now_ns();

		make(c, p, q * quarter, (q + 1) * quarter);
		printf("%s_%u %.3f us\n", name, q + 1,
		       (double)(device_now_ns() - start) / 1e3 / quarter);
	}
}

static void crowd_open(struct crowd *c, struct pair *p)
{
	double before;

	c->qp = calloc(c->qps + 1, sizeof(*c->qp));
	c->mr = calloc(c->mrs + 1, sizeof(*c->mr));
	c->memory = mmap(NULL, (size_t)SPREAD * REGION, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (!c->qp || !c->mr || c->memory == MAP_FAILED)
		device_die("set-up: %m");
	before = resident_bytes();
	in_quarters(c, p, c->qps, "qp", make_qps);
	if (c->qps)
		printf("qp_memory %.2f KiB\n", (resident_bytes() - before) / 1024 / c->qps);
	before = resident_bytes();
	in_quarters(c, p, c->mrs, "mr", make_mrs);
	if (c->mrs)
		printf("mr_memory %.2f KiB\n", (resident_bytes() - before) / 1024 / c->mrs);
}

static void crowd_close(struct crowd *c)
{
	for (unsigned i = 0; i < c->qps; i++) {
		if (ibv_destroy_qp(c->qp[i]))
			device_die("ibv_destroy_qp, number %u: %m", i);
	}
	for (unsigned i = 0; i < c->mrs; i++) {
		if (ibv_dereg_mr(c->mr[i]))
			device_die("ibv_dereg_mr, number %u: %m", i);
	}
	munmap(c->memory, (size_t)SPREAD * REGION);
	free(c->qp);
	free(c->mr);
}

static double cpu_seconds(void)
{
	struct rusage use;

	getrusage(RUSAGE_SELF, &use);
	return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
	       (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

/* "settled" tells bench/run when to look at the daemon's clock. */
static void sleep_idle(const struct pair *p, unsigned seconds)
{
	double start;

	latency(p); /* idle after work, not idle from the beginning */
	sleep(1);   /* the device may spin for a moment after the last request */
	puts("settled 1 -");
	fflush(stdout);
	start = cpu_seconds();
	sleep(seconds);
	printf("idle_cpu %.4f %%\n", (cpu_seconds() - start) * 100 / seconds);
}

struct turn {
	double with, without;
};

static int by_ratio(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	double left = x->with * y->without, right = y->with * x->without;

	return (left > right) - (left < right);
}

/* One beside the other, so that whatever happens to the machine meanwhile meets both; the turn
 * whose ratio is in the middle. */
static void compare(const struct pair *p, const struct lone *l)
{
	struct turn turns[TURNS];
	const struct turn *middle = &turns[TURNS / 2];

	for (unsigned i = 0; i < TURNS; i++)
		turns[i] = (struct turn){.with = latency(p), .without = lone_latency(l)};
	qsort(turns, TURNS, sizeof(turns[0]), by_ratio);
	printf("latency_with %.0f ns\nlatency_without %.0f ns\n", middle->with, middle->without);
}

int main(int argc, char **argv)
{
	struct crowd c = {0};
	struct lone l = {0};
	struct pair p;

	if (argc < 4 || argc > 5) {
		fputs("Usage: scale DEVICE QPS MRS [SECONDS]\n", stderr);
		return 2;
	}
	/* Whole quarters of whole couples. */
	c.qps = number(argv[2], LIMIT) / (2 * QUARTERS) * (2 * QUARTERS);
	c.mrs = number(argv[3], LIMIT) / QUARTERS * QUARTERS;
	if (argc == 4)
		lone_start(&l, argv[1]);
	pair_open(&p, argv[1], DEPTH, BYTES);
	crowd_open(&c, &p);
	if (argc == 5) {
		sleep_idle(&p, number(argv[4], 3600) ?: 1);
	} else {
		compare(&p, &l);
		lone_end(&l);
	}
	crowd_close(&c);
	pair_close(&p);
	return 0;
}
