// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters that two processes change by atomic requests while the program that they belong to changes
 * them by instructions of its own: no change is lost, and no value is given twice.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "side.h"

#define INITIATORS 2u
#define WINDOW	   32u
#define BURST	   32u
#define PATIENCE   100000u
#define LIMIT_S	   300u

/* In one line of memory, with words around them that nobody may change. */
struct counters {
	uint64_t before;
	_Atomic(uint64_t) added, between, swapped;
	uint64_t behind;
};

/* What an initiator is told, and what it says when it has done all. */
struct target {
	struct device_address address;
	uint64_t addr;
	uint32_t rkey;
};

struct result {
	uint64_t swaps; /* that took place */
};

struct initiator {
	struct memory_side side;
	struct target target;
	struct ibv_mr *mr;
	uint64_t original[WINDOW]; /* where answers go */
};

/* A list of equal requests; their answers stand in 'original'. */
static void initiator_do(struct initiator *i, enum ibv_wr_opcode opcode, unsigned n,
			 const struct ibv_send_wr *how)
{
	struct ibv_sge sge[WINDOW];
	struct ibv_send_wr wr[WINDOW];
	struct ibv_wc wc;

	for (unsigned k = 0; k < n; k++) {
		sge[k] = (struct ibv_sge){(uintptr_t)&i->original[k], sizeof(i->original[k]),
					  i->mr->lkey};
		wr[k] = *how;
		wr[k].opcode = opcode;
		wr[k].sg_list = &sge[k];
		wr[k].num_sge = 1;
		wr[k].next = k + 1 < n ? &wr[k + 1] : NULL;
		wr[k].send_flags = k + 1 < n ? 0 : IBV_SEND_SIGNALED;
		wr[k].wr.atomic.rkey = i->target.rkey;
	}
	side_post(&i->side, wr);
	wc = side_next_wc(&i->side);
	if (wc.status != IBV_WC_SUCCESS)
		device_die("an atomic request: %s", ibv_wc_status_str(wc.status));
}

/* Each sees larger values than before. */
static void initiator_adds(struct initiator *i, unsigned rounds)
{
	const struct ibv_send_wr how = {
		.wr.atomic = {.remote_addr = i->target.addr + offsetof(struct counters, added),
			      .compare_add = 1},
	};
	uint64_t last = 0;

	for (unsigned n = 0; n < rounds; n++) {
		initiator_do(i, IBV_WR_ATOMIC_FETCH_AND_ADD, WINDOW, &how);
		for (unsigned k = 0; k < WINDOW; k++) {
			if ((n || k) && i->original[k] <= last)
				device_die("a counter was %lu, and then %lu", (unsigned long)last,
					   (unsigned long)i->original[k]);
			last = i->original[k];
		}
	}
}

/* Where the device is fast it would be done before the program's own thread gets to run. */
static void initiator_await_others(struct initiator *i)
{
	const struct ibv_send_wr how = {
		.wr.atomic = {.remote_addr = i->target.addr + offsetof(struct counters, swapped),
			      .compare_add = UINT64_MAX, /* never so many */
			      .swap = UINT64_MAX},
	};

	do
		initiator_do(i, IBV_WR_ATOMIC_CMP_AND_SWP, 1, &how);
	while (!i->original[0]);
}

static uint64_t initiator_swaps(struct initiator *i, unsigned rounds)
{
	uint64_t guess = 0, swaps = 0;

	initiator_await_others(i);
	for (unsigned n = 0; n < rounds; n++) {
		const struct ibv_send_wr how = {
			.wr.atomic = {.remote_addr =
					      i->target.addr + offsetof(struct counters, swapped),
				      .compare_add = guess,
				      .swap = guess + 1},
		};

		initiator_do(i, IBV_WR_ATOMIC_CMP_AND_SWP, 1, &how);
		swaps += i->original[0] == guess;
		guess = i->original[0] + (i->original[0] == guess);
	}
	return swaps;
}

_Noreturn static void initiator_run(int sock, const char *device, unsigned rounds)
{
	struct initiator i = {.side = {.sock = sock}};
	struct device_address own;
	struct result result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(LIMIT_S);
	side_open(&i.side, device);
	i.mr = ibv_reg_mr(i.side.pd, i.original, sizeof(i.original), IBV_ACCESS_LOCAL_WRITE);
	if (!i.mr)
		device_die("ibv_reg_mr: %m");
	own = side_renew(&i.side, &device_default_connection);
	side_tell(&i.side, &own, sizeof(own));
	side_hear(&i.side, &i.target, sizeof(i.target));
	side_connect(&i.side, &device_default_connection, &i.target.address);
	initiator_adds(&i, rounds);
	result.swaps = initiator_swaps(&i, rounds);
	side_tell(&i.side, &result, sizeof(result));
	exit(0);
}

static struct counters *counters_map(const char *kind)
{
	bool shared = !strcmp(kind, "shared");
	int fd = shared ? memfd_create("counters", MFD_CLOEXEC) : -1;
	void *at;

	if (shared && (fd < 0 || ftruncate(fd, 4096)))
		device_die("memfd: %m");
	at = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		  shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (at == MAP_FAILED)
		device_die("mmap: %m");
	return at;
}

/* The swaps that an initiator has made.  Until it says so we serve it. */
static uint64_t await_result(struct memory_side *s)
{
	struct result r;
	struct ibv_wc wc;
	ssize_t n;

	do {
		if (ibv_poll_cq(s->cq, 1, &wc) > 0)
			device_die("a completion that nobody asked for");
		n = recv(s->sock, &r, sizeof(r), MSG_DONTWAIT);
	} while (n < 0);
	if (n != sizeof(r))
		device_die("an initiator has gone");
	return r.swaps;
}

/* What the program itself has added to the two. */
struct ours {
	struct counters *counters;
	uint64_t added, swapped, seen;
	unsigned idle;
	_Atomic(bool) end;
	pthread_t thread;
};

/* Swaps of others take place only if nobody swaps all the time: so each of ours waits for another's,
 * if that comes. */
static void swap_ours(struct counters *c, struct ours *o)
{
	uint64_t was = atomic_load(&c->swapped);

	if (was == o->seen && ++o->idle % PATIENCE)
		return;
	if (atomic_compare_exchange_strong(&c->swapped, &was, was + 1)) {
		o->swapped++;
		o->seen = was + 1;
	}
}

/* Beside the thread that serves the others. */
static void *count_ours(void *arg)
{
	struct ours *o = arg;

	while (!atomic_load(&o->end)) {
		for (unsigned n = 0; n < BURST; n++) {
			(void)atomic_fetch_add(&o->counters->added, 1);
			swap_ours(o->counters, o);
		}
		o->added += BURST;
	}
	return arg;
}

static void host_connect(struct memory_side *s, const struct counters *c, const struct ibv_mr *mr)
{
	struct target t = {.addr = (uintptr_t)c, .rkey = mr->rkey};
	struct device_address other;

	t.address = side_renew(s, &device_default_connection);
	side_hear(s, &other, sizeof(other));
	side_connect(s, &device_default_connection, &other);
	side_tell(s, &t, sizeof(t));
}

static void host_check(const struct counters *c, uint64_t added, uint64_t swapped)
{
	if (c->added != added || c->swapped != swapped)
		device_die("the counters are %lu and %lu where %lu and %lu should be",
			   (unsigned long)c->added, (unsigned long)c->swapped, (unsigned long)added,
			   (unsigned long)swapped);
	if (c->before || c->between || c->behind)
		device_die("a word beside the counters has changed");
}

static void host_run(struct memory_side *sides, const char *device, const char *kind,
		     unsigned rounds)
{
	struct ours ours = {.counters = counters_map(kind)};
	struct counters *c = ours.counters;
	uint64_t swaps = 0;
	struct ibv_mr *mr;

	side_open(&sides[0], device);
	mr = ibv_reg_mr(sides[0].pd, c, sizeof(*c), SIDE_ACCESS);
	if (!mr)
		device_die("ibv_reg_mr: %m");
	for (unsigned n = 0; n < INITIATORS; n++) {
		int sock = sides[n].sock;

		sides[n] = sides[0];
		sides[n].sock = sock;
		if (n)
			sides[n].qp = NULL;
	}
	for (unsigned n = 0; n < INITIATORS; n++)
		host_connect(&sides[n], c, mr);
	if (pthread_create(&ours.thread, NULL, count_ours, &ours))
		device_die("pthread_create: %m");
	for (unsigned n = 0; n < INITIATORS; n++)
		swaps += await_result(&sides[n]);
	atomic_store(&ours.end, true);
	pthread_join(ours.thread, NULL);
	host_check(c, ours.added + (uint64_t)INITIATORS * WINDOW * rounds, ours.swapped + swaps);
	if (!swaps || !ours.swapped)
		device_die("nobody else swapped");
	printf("%lu additions of ours among %u, %lu swaps among %lu\n", (unsigned long)ours.added,
	       INITIATORS * WINDOW * rounds, (unsigned long)ours.swapped, (unsigned long)swaps);
}

int main(int argc, char **argv)
{
	struct memory_side sides[INITIATORS];
	unsigned rounds;

	if (argc != 4)
		device_die("usage: sums DEVICE private|shared ROUNDS");
	rounds = (unsigned)atoi(argv[3]);
	alarm(LIMIT_S);
	for (unsigned n = 0; n < INITIATORS; n++) {
		int pair[2];
		pid_t pid;

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
			device_die("socketpair: %m");
		pid = fork();
		if (pid < 0)
			device_die("fork: %m");
		if (!pid) {
			close(pair[0]);
			initiator_run(pair[1], argv[1], rounds);
		}
		close(pair[1]);
		sides[n] = (struct memory_side){.sock = pair[0]};
	}
	host_run(sides, argv[1], argv[2], rounds);
	for (unsigned n = 0; n < INITIATORS; n++) {
		int status;

		if (wait(&status) < 0 || status)
			device_die("an initiator ends with status 0x%x", status);
	}
	return 0;
}
