// SPDX-License-Identifier: BSD-2-Clause
/*
 * Doorbells by bare stores.  Nothing of libibverbs runs between the store to a ring and the
 * completion in memory, so whatever notices the store is the device itself:
 *
 *   program   ring, record, register --store--> device --> completion in memory
 *
 * with the device awake and asleep, with queue pairs of their own register and with ones that
 * overwrite each other's values, and while pages of registers move, vanish, and are forked.
 *
 * Prints a line "PASS|FAIL <tab> name <tab> reason" for each case; the reason of a good one is its
 * figures.
 */
#include "direct.h"

#include <endian.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE	    4096u
#define HOT_ROUNDS  10000u
#define RING_ROUNDS 5000u /* so many batches of requests come round the index of 16 bits */
#define NAP_ROUNDS  100u

static const char *device_name;
static int gid_index = -1;
static char story[256];

__attribute__((format(printf, 2, 3))) static bool say_row(bool good, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(story, sizeof(story), format, args);
	va_end(args);
	return good;
}

/* ---- latencies ---- */

static bool say_latency(uint64_t *ns, unsigned n)
{
	unsigned middle = n / 2, late = n * 99 / 100;

	device_sort(ns, n);
	return say_row(true, "p50 %.2f us, p99 %.2f us", (double)ns[middle] / 1e3,
		       (double)ns[late] / 1e3);
}

/* One write on the pair, posted and awaited. */
static bool write_once(struct direct_field *f, unsigned pair, uint64_t value)
{
	f->memory[2 * pair] = value;
	direct_write(&f->pairs[pair].sq, direct_source(f, pair), direct_target(f, pair));
	direct_ring(&f->pairs[pair].sq);
	if (!direct_wait(&f->sends, DIRECT_LIMIT_NS))
		return say_row(false, "write %lu: no completion", value);
	if (f->memory[2 * pair + 1] != value)
		return say_row(false, "write %lu: %lu arrived", value, f->memory[2 * pair + 1]);
	return true;
}

static unsigned hot_rounds = HOT_ROUNDS;

static bool write_latency(struct direct_field *f, unsigned rounds, void (*pause)(void))
{
	uint64_t *ns = calloc(rounds, sizeof(*ns));
	bool good = ns != NULL;

	for (unsigned i = 0; good && i < rounds; i++) {
		uint64_t start;

		if (pause)
			pause();
		start = device_now_ns();
		good = write_once(f, 0, i + 1);
		ns[i] = device_now_ns() - start;
	}
	good = good && say_latency(ns, rounds);
	free(ns);
	return good;
}

static bool device_hot(struct direct_field *f)
{
	return write_latency(f, hot_rounds, NULL);
}

static bool device_asleep(struct direct_field *f)
{
	return write_latency(f, NAP_ROUNDS, direct_nap);
}

static void busy_for(uint64_t ns)
{
	uint64_t until = device_now_ns() + ns;

	while (device_now_ns() < until)
		;
}

/* The device sleeps because the program has other things to do. */
static void work_loop(void)
{
	busy_for(DIRECT_NAP_MS * 1000000ull);
}

static bool asleep_beside_work(struct direct_field *f)
{
	return write_latency(f, NAP_ROUNDS, work_loop);
}

/* As long as the device lingers after its last work, and a little less and more. */
static void short_pause(void)
{
	static unsigned turn;

	busy_for(turn++ % 80 * 1000);
}

static bool device_dozing(struct direct_field *f)
{
	return write_latency(f, hot_rounds / 4, short_pause);
}

static bool post_rate(struct direct_field *f)
{
	const unsigned batch = DIRECT_DEPTH / 2;
	uint64_t start = device_now_ns();
	struct direct_sq *sq = &f->pairs[0].sq;

	for (unsigned i = 0; i < hot_rounds; i++) {
		for (unsigned n = 0; n < batch; n++)
			direct_write(sq, direct_source(f, 0), direct_target(f, 0));
		direct_ring(sq);
		for (unsigned n = 0; n < batch; n++)
			if (!direct_wait(&f->sends, DIRECT_LIMIT_NS))
				return say_row(false, "batch %u: no completion", i);
	}
	return say_row(true, "%.2f Mmsg/s with %u to a doorbell",
		       (double)hot_rounds * batch * 1e3 / (double)(device_now_ns() - start), batch);
}

/* A device executes what the register says; the index comes round while the record stays. */
static bool record_unwritten(struct direct_field *f)
{
	const unsigned batch = DIRECT_DEPTH / 2;
	struct direct_sq *sq = &f->pairs[0].sq;

	for (unsigned i = 0; i < RING_ROUNDS + NAP_ROUNDS; i++) {
		if (i >= RING_ROUNDS)
			direct_nap();
		for (unsigned n = 0; n < batch; n++)
			direct_write(sq, direct_source(f, 0), direct_target(f, 0));
		direct_ring_register(sq);
		for (unsigned n = 0; n < batch; n++)
			if (!direct_wait(&f->sends, DIRECT_LIMIT_NS))
				return say_row(false, "batch %u: no completion", i);
	}
	if (*(volatile __be32 *)sq->record)
		return say_row(false, "the record is not 0");
	return say_row(true, "%u requests", sq->next);
}

/* ---- registers that are shared ---- */

/* The first two pairs whose senders have the same register. */
static bool find_sharers(const struct direct_field *f, unsigned *x, unsigned *y)
{
	for (*y = 1; *y < f->npairs; ++*y)
		for (*x = 0; *x < *y; ++*x)
			if (f->pairs[*x].sq.reg == f->pairs[*y].sq.reg)
				return true;
	return say_row(false, "no register is shared by two of %u queue pairs", 2 * f->npairs);
}

/* X, Y, Y: the second store for Y falls on that for X. */
static bool register_overwritten(struct direct_field *f, unsigned rounds, void (*pause)(void))
{
	unsigned x = 0, y = 0;

	if (!find_sharers(f, &x, &y))
		return false;
	for (unsigned i = 0; i < rounds; i++) {
		const unsigned order[] = {x, y, y};

		if (pause)
			pause();
		for (unsigned n = 0; n < 3; n++) {
			struct direct_pair *p = &f->pairs[order[n]];

			direct_write(&p->sq, direct_source(f, order[n]),
				     direct_target(f, order[n]));
			direct_ring(&p->sq);
		}
		for (unsigned n = 0; n < 3; n++)
			if (!direct_wait(&f->sends, DIRECT_LIMIT_NS))
				return say_row(false, "round %u: completion %u of 3 is missing", i,
					       n);
	}
	return say_row(true, "%u rounds", rounds);
}

static bool overwritten_hot(struct direct_field *f)
{
	return register_overwritten(f, hot_rounds, NULL);
}

static bool overwritten_asleep(struct direct_field *f)
{
	return register_overwritten(f, NAP_ROUNDS, direct_nap);
}

static bool all_at_once(struct direct_field *f)
{
	for (unsigned round = 0; round < hot_rounds / 20; round++) {
		if (round % 50 == 0)
			direct_nap();
		for (unsigned i = 0; i < f->npairs; i++) {
			direct_write(&f->pairs[i].sq, direct_source(f, i), direct_target(f, i));
			direct_ring(&f->pairs[i].sq);
		}
		for (unsigned i = 0; i < f->npairs; i++)
			if (!direct_wait(&f->sends, DIRECT_LIMIT_NS))
				return say_row(false, "round %u: completion %u is missing", round,
					       i);
	}
	return say_row(true, "%u queue pairs", f->npairs);
}

/* ---- the rest of the queues ---- */

static bool send_and_receive(struct direct_field *f)
{
	struct direct_pair *p = &f->pairs[0];
	struct direct_slice to = direct_target(f, 0);

	to.key = f->mr->lkey;
	for (uint64_t i = 1; i <= hot_rounds / 4; i++) {
		f->memory[0] = i;
		direct_post_recv(&p->to_rq, to);
		direct_send(&p->sq, direct_source(f, 0));
		direct_ring(&p->sq);
		if (!direct_wait(&f->receives, DIRECT_LIMIT_NS) ||
		    !direct_wait(&f->sends, DIRECT_LIMIT_NS))
			return say_row(false, "message %lu: no completion", i);
		if (f->memory[1] != i)
			return say_row(false, "message %lu: %lu arrived", i, f->memory[1]);
	}
	return say_row(true, "%u messages", hot_rounds / 4);
}

static bool event_comes(struct direct_field *f)
{
	struct pollfd fd = {.fd = f->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, DIRECT_LIMIT_NS / 1000000) != 1 ||
	    ibv_get_cq_event(f->channel, &cq, &context))
		return false;
	ibv_ack_cq_events(cq, 1);
	direct_armed_again(&f->receives);
	return true;
}

static void send_one(struct direct_field *f)
{
	struct direct_pair *p = &f->pairs[0];
	struct direct_slice to = direct_target(f, 0);

	to.key = f->mr->lkey;
	direct_post_recv(&p->to_rq, to);
	direct_send(&p->sq, direct_source(f, 0));
	direct_ring(&p->sq);
}

static bool event_of_the_next(struct direct_field *f)
{
	for (unsigned i = 0; i < NAP_ROUNDS; i++) {
		direct_arm(&f->receives);
		direct_nap();
		send_one(f);
		if (!event_comes(f))
			return say_row(false, "round %u: no event", i);
		if (!direct_wait(&f->receives, DIRECT_LIMIT_NS) ||
		    !direct_wait(&f->sends, DIRECT_LIMIT_NS))
			return say_row(false, "round %u: no completion", i);
	}
	return say_row(true, "%u events", NAP_ROUNDS);
}

/* The completion is there already: the store alone makes the event. */
static bool event_of_what_is_there(struct direct_field *f)
{
	for (unsigned i = 0; i < NAP_ROUNDS; i++) {
		send_one(f);
		if (!direct_wait(&f->sends, DIRECT_LIMIT_NS))
			return say_row(false, "round %u: no completion", i);
		if (i % 2)
			direct_nap();
		direct_arm(&f->receives);
		if (!event_comes(f))
			return say_row(false, "round %u: no event", i);
		if (!direct_wait(&f->receives, DIRECT_LIMIT_NS))
			return say_row(false, "round %u: no receive", i);
	}
	return say_row(true, "%u events", NAP_ROUNDS);
}

/* ---- pages that move and vanish ---- */

static uint8_t *page_of(const struct direct_reg *reg)
{
	return reg->at - (uintptr_t)reg->at % PAGE;
}

static bool page_moved(struct direct_field *f)
{
	struct direct_reg *reg = f->pairs[0].sq.reg;
	uint8_t *old = page_of(reg);
	void *place = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *now;
	bool good;

	if (place == MAP_FAILED)
		device_die("mmap: %m");
	direct_nap();
	now = mremap(old, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place);
	if (now != place)
		device_die("mremap: %m");
	reg->at += now - old;
	good = device_asleep(f);
	/* libmlx5 unmaps what it has mapped. */
	if (mremap(now, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, old) != old)
		device_die("mremap: %m");
	reg->at += old - now;
	return good && device_asleep(f);
}

static bool page_forked(struct direct_field *f)
{
	for (unsigned i = 0; i < 20; i++) {
		pid_t child;
		int status;

		direct_nap();
		child = fork();
		if (child < 0)
			device_die("fork: %m");
		if (!child) {
			const struct direct_sq *sq = &f->pairs[0].sq;

			/* The pages are its parent's, and what it stores is a doorbell like any. */
			*(volatile uint64_t *)(void *)sq->reg->at = htobe64(
				(uint64_t)((sq->next - 1) & 0xffff) << 40 | sq->qpn << 8 | 1);
			munmap(page_of(f->pairs[0].sq.reg), PAGE);
			_exit(0);
		}
		if (!write_once(f, 0, i + 1))
			return false;
		if (waitpid(child, &status, 0) != child || status)
			return say_row(false, "the child ended with status 0x%x", status);
	}
	return say_row(true, "20 children");
}

struct ringer {
	uint8_t *page;
	uint64_t value;
	_Atomic(bool) stop;
};

static void *ring_on_and_on(void *arg)
{
	struct ringer *r = arg;

	while (!atomic_load(&r->stop)) {
		*(volatile uint64_t *)(void *)(r->page + 0x800) = r->value;
		*(volatile uint64_t *)(void *)(r->page + 0x20) = r->value;
		direct_nap();
	}
	return NULL;
}

/* A thread that has a mapping of its own goes on storing after the device was closed. */
static bool closed_meanwhile(struct direct_field *unused)
{
	(void)unused;
	for (unsigned i = 0; i < 10; i++) {
		struct mlx5dv_qp dv = {.comp_mask = MLX5DV_QP_MASK_UAR_MMAP_OFFSET};
		struct ringer r = {0};
		struct direct_field f;
		struct mlx5dv_obj obj = {.qp = {.out = &dv}};
		pthread_t thread;

		direct_open(&f, device_name, gid_index, 2);
		obj.qp.in = f.pairs[0].from;
		if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP))
			device_die("mlx5dv_init_obj: %m");
		r.page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, f.port.ctx->cmd_fd,
			      (off_t)dv.uar_mmap_offset);
		if (r.page == MAP_FAILED)
			device_die("mmap: %m");
		/* a request before the first one, so that there is nothing to execute */
		r.value = htobe64((uint64_t)(0xffff00 | MLX5_OPCODE_NOP) << 32 |
				  f.pairs[0].sq.qpn << 8 | 1);
		if (pthread_create(&thread, NULL, ring_on_and_on, &r))
			device_die("pthread_create: %m");
		for (unsigned n = 0; n < 10; n++) {
			direct_nap();
			if (!write_once(&f, 0, n + 1))
				return false;
		}
		direct_close(&f);
		direct_nap();
		direct_nap();
		atomic_store(&r.stop, true);
		pthread_join(thread, NULL);
		munmap(r.page, PAGE);
	}
	return say_row(true, "10 devices");
}

/* ---- two processes ---- */

/* What one tells the other. */
struct card {
	struct device_address address;
	struct direct_slice target;
};

static void exchange_cards(int fd, const struct card *mine, struct card *theirs)
{
	if (write(fd, mine, sizeof(*mine)) != sizeof(*mine) ||
	    read(fd, theirs, sizeof(*theirs)) != sizeof(*theirs))
		device_die("exchange: %m");
}

static bool see_word(const uint64_t *word, uint64_t value)
{
	uint64_t limit = device_now_ns() + DIRECT_LIMIT_NS;

	for (unsigned round = 1; *(const volatile uint64_t *)word != value; round++) {
		if (round % 1024)
			continue;
		sched_yield();
		if (device_now_ns() > limit)
			return say_row(false, "%lu did not arrive", value);
	}
	return true;
}

/* Writes to and fro; whoever polls its memory does not drive the device either. */
static bool to_and_fro(struct direct_field *f, bool begins, const struct card *peer,
		       unsigned rounds, void (*pause)(void))
{
	uint64_t *ns = calloc(rounds, sizeof(*ns));
	bool good = ns != NULL;

	for (unsigned i = 0; good && i < rounds; i++) {
		uint64_t start;

		if (pause && begins)
			pause();
		start = device_now_ns();
		if (!begins)
			good = see_word(&f->memory[1], i + 1);
		f->memory[0] = i + 1;
		direct_write(&f->pairs[0].sq, direct_source(f, 0), peer->target);
		direct_ring(&f->pairs[0].sq);
		if (good && begins)
			good = see_word(&f->memory[1], i + 1);
		ns[i] = (device_now_ns() - start) / 2;
		good = good && direct_wait(&f->sends, DIRECT_LIMIT_NS);
	}
	good = good && say_latency(ns, rounds);
	free(ns);
	return good;
}

static bool run_process(int fd, bool begins, unsigned rounds, void (*pause)(void))
{
	struct direct_field f;
	struct card mine, theirs;
	bool good;

	direct_open(&f, device_name, gid_index, 0);
	direct_add_single(&f);
	mine.address = device_address(&f.port, f.pairs[0].from, 0);
	mine.target = direct_target(&f, 0);
	exchange_cards(fd, &mine, &theirs);
	direct_connect(&f, f.pairs[0].from, &theirs.address);
	exchange_cards(fd, &mine, &theirs);
	good = to_and_fro(&f, begins, &theirs, rounds, pause);
	exchange_cards(fd, &mine, &theirs);
	direct_close(&f);
	return good;
}

static bool two_processes(unsigned rounds, void (*pause)(void))
{
	bool good;
	pid_t child;
	int fds[2], status;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds))
		device_die("socketpair: %m");
	fflush(stdout);
	child = fork();
	if (child < 0)
		device_die("fork: %m");
	if (!child) {
		good = run_process(fds[1], false, rounds, pause);
		if (!good)
			fprintf(stderr, "the other process: %s\n", story);
		_exit(!good);
	}
	close(fds[1]);
	good = run_process(fds[0], true, rounds, pause);
	close(fds[0]);
	if (waitpid(child, &status, 0) != child || status)
		return good && say_row(false, "the other process ended with status 0x%x", status);
	return good;
}

static bool two_hot(struct direct_field *unused)
{
	(void)unused;
	return two_processes(hot_rounds, NULL);
}

static bool two_asleep(struct direct_field *unused)
{
	(void)unused;
	return two_processes(NAP_ROUNDS, direct_nap);
}

/* ---- all of it ---- */

static const struct {
	const char *name;
	bool (*run)(struct direct_field *f);
	unsigned pairs; /* 0: opens what it needs itself */
	bool announced; /* only if the library knows that the queues were taken */
} cases[] = {
	{"one queue pair, device awake", device_hot, 1, false},
	{"one queue pair, device asleep", device_asleep, 1, false},
	{"one queue pair, device asleep, program busy", asleep_beside_work, 1, false},
	{"one queue pair, device about to sleep", device_dozing, 1, false},
	{"one queue pair, requests copied, alternate stack", direct_copies, 1, false},
	{"one queue pair, rate", post_rate, 1, false},
	{"one queue pair, record not written", record_unwritten, 1, false},
	{"overwritten values, device awake", overwritten_hot, DIRECT_PAIRS_MAX, false},
	{"overwritten values, device asleep", overwritten_asleep, DIRECT_PAIRS_MAX, false},
	{"all queue pairs at once", all_at_once, DIRECT_PAIRS_MAX, false},
	{"send and receive", send_and_receive, 1, false},
	{"event of the next completion", event_of_the_next, 1, true},
	{"event of a completion that is there", event_of_what_is_there, 1, true},
	{"page moved", page_moved, 1, false},
	{"forks", page_forked, 1, false},
	{"device closed under a ringing thread", closed_meanwhile, 0, false},
	{"two processes, devices awake", two_hot, 0, false},
	{"two processes, devices asleep", two_asleep, 0, false},
};

static bool run_all(const char *how, bool announced)
{
	bool good = true;

	direct_announce(announced);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct direct_field f;
		bool passed;

		if (cases[i].announced && !announced)
			continue;
		say_row(true, "-");
		if (cases[i].pairs)
			direct_open(&f, device_name, gid_index, cases[i].pairs);
		passed = cases[i].run(&f);
		/* What is still under way in a failed case would get in the way of cleaning up. */
		if (cases[i].pairs && passed)
			direct_close(&f);
		printf("%s\t%s%s\t%s\n", passed ? "PASS" : "FAIL", cases[i].name, how, story);
		fflush(stdout);
		good &= passed;
	}
	return good;
}

int main(int argc, char **argv)
{
	bool good;
	int c;

	while ((c = getopt(argc, argv, "d:g:s")) >= 0) {
		switch (c) {
		case 'd':
			device_name = optarg;
			break;
		case 'g':
			gid_index = atoi(optarg);
			break;
		case 's':
			hot_rounds = HOT_ROUNDS / 10;
			break;
		default:
			fprintf(stderr, "usage: direct [-d DEVICE] [-g GID-INDEX] [-s]\n");
			return 2;
		}
	}
	good = run_all("", true);
	good &= run_all(", unannounced", false);
	return good ? 0 : 1;
}
