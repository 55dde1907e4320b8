// SPDX-License-Identifier: BSD-2-Clause
/*
 * What many short lives, and many registrations, use up: nothing.
 *
 *	budget DEVICE lives COUNT	processes that open the device, exchange data and end
 *	budget DEVICE regions COUNT	registrations of what a peer then writes to
 *	budget DEVICE objects COUNT	queue pairs, windows, CQs and connections
 *	budget DEVICE held COUNT	regions, queue pairs, windows and CQs that exist all at once
 *
 * A process that lives on has as many descriptors, mappings and pages of shared memory afterwards
 * as it had after the first of them.  The fabric's slots are apart: processes get them in turn, and
 * a page of theirs is there from its first use on, so they grow until each was used once.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

enum { OLD = 0x11 };

#define LIMIT_S	     500
#define FIRST_LIVES  40u /* what is made once, as the heap's arenas, is there by then */
#define FIRST_ROUNDS 3u
#define REGION_BYTES (4ul << 20) /* two of them are more than SPARE_BYTES */
#define MIB	     1048576ul
#define SLOTS	     1024u /* of a fabric */

/* What one more of may be there by chance: a mapping that the kernel has split, a page that is
 * shared. */
#define SPARE_MAPPINGS 12ul
#define SPARE_BYTES    (4ul * MIB)
#define SPARE_SLOTS    (64ul << 10)

#define SETTLE_US      2000000u
#define SETTLE_STEP_US 20000u

struct holdings {
	unsigned long descriptors, mappings, threads;
	uint64_t slots, shared; /* shared: without the slots */
};

static unsigned long count_entries(const char *directory)
{
	DIR *d = opendir(directory);
	unsigned long n = 0;

	if (!d)
		device_die("%s: %m", directory);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static unsigned long count_lines(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned long n = 0;

	if (!f)
		device_die("%s: %m", path);
	for (int c; (c = getc(f)) != EOF;)
		n += c == '\n';
	fclose(f);
	return n;
}

/* How much of the slots is in memory here. */
static uint64_t slot_bytes(void)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long kib, sum = 0;
	bool ours = false;
	char line[512];

	if (!f)
		device_die("/proc/self/smaps: %m");
	while (fgets(line, sizeof(line), f)) {
		if (strchr("0123456789abcdef", line[0]))
			ours = strstr(line, "/memfd:softhca-slots");
		else if (ours && sscanf(line, "Rss: %lu", &kib) == 1)
			sum += kib;
	}
	fclose(f);
	host_want(sum, "no mapping of the slots");
	return sum << 10;
}

static struct holdings holdings_now(void)
{
	struct holdings h = {
		.descriptors = count_entries("/proc/self/fd"),
		.mappings = count_lines("/proc/self/maps"),
		.threads = count_entries("/proc/self/task"),
		.slots = slot_bytes(),
	};

	h.shared = host_shared_bytes() - h.slots;
	return h;
}

/* Holdings now, or once what the engine still gives back has gone, but within SETTLE_US: it hears of a
 * peer's end when it has a processor. */
static struct holdings holdings_settled(const struct holdings *before)
{
	struct holdings now = holdings_now();

	for (unsigned us = 0; us < SETTLE_US && (now.descriptors > before->descriptors ||
						 now.threads > before->threads);
	     us += SETTLE_STEP_US) {
		usleep(SETTLE_STEP_US);
		now = holdings_now();
	}
	return now;
}

static void want_no_more(const struct holdings *before)
{
	struct holdings now = holdings_settled(before);

	printf("descriptors %lu, then %lu; mappings %lu, then %lu; threads %lu, then %lu; "
	       "shared MiB %lu, then %lu\n",
	       before->descriptors, now.descriptors, before->mappings, now.mappings,
	       before->threads, now.threads, (unsigned long)(before->shared / MIB),
	       (unsigned long)(now.shared / MIB));
	host_want(now.descriptors <= before->descriptors, "more descriptors");
	host_want(now.threads <= before->threads, "more threads");
	host_want(now.mappings <= before->mappings + SPARE_MAPPINGS, "more mappings");
	host_want(now.shared <= before->shared + SPARE_BYTES, "more shared memory");
}

/* ---- lives ---- */

static void one_life(struct host *h, unsigned number)
{
	uint8_t *at;
	struct ibv_mr *mr;

	/* The peer is the short life; how it ends differs. */
	peer_start_anew(&h->peer, &h->side, h->device);
	peer_connect(&h->peer);
	at = host_map(HOST_PAGE * 4, OLD);
	mr = host_reg(h, at, HOST_PAGE * 4);
	host_exchange(h, at, mr, HOST_PAGE * 4, (int)(number & 0x7f));
	if (number % 3 == 0)
		host_messages_in(h, at, mr, HOST_PAGE * 4);
	host_dereg(mr);
	munmap(at, HOST_PAGE * 4);
	if (number % 4 == 3)
		peer_kill(&h->peer);
	else
		peer_end(&h->peer);
}

static void many_lives(struct host *h, unsigned count)
{
	struct holdings before = {0};
	uint64_t slots = 0;

	for (unsigned i = 0; i < count; i++) {
		one_life(h, i);
		if (i + 1 == FIRST_LIVES)
			before = holdings_now();
		if (i + 1 == SLOTS + FIRST_LIVES)
			slots = slot_bytes();
	}
	want_no_more(&before);
	if (slots) {
		printf("slots: %lu KiB, then %lu\n", (unsigned long)slots >> 10,
		       (unsigned long)slot_bytes() >> 10);
		host_want(slot_bytes() <= slots + SPARE_SLOTS, "the slots grow when all were used");
	}
}

/* ---- regions ---- */

static void one_region(struct host *h, unsigned number)
{
	uint8_t *at = host_map(REGION_BYTES, OLD);
	struct ibv_mr *mr = host_reg(h, at, REGION_BYTES);
	size_t last = REGION_BYTES - HOST_BYTES;

	host_exchange(h, at, mr, HOST_BYTES, (int)(number & 0x7f));
	host_exchange(h, at + last, mr, HOST_BYTES, (int)(number & 0x7f));
	host_dereg(mr);
	munmap(at, REGION_BYTES);
}

static void many_regions(struct host *h, unsigned count)
{
	struct holdings before = {0};

	peer_connect(&h->peer);
	for (unsigned i = 0; i < count; i++) {
		one_region(h, i);
		if (i + 1 == FIRST_ROUNDS)
			before = holdings_now();
	}
	want_no_more(&before);
}

/* ---- objects ---- */

static void one_object(struct host *h, void *at, const struct ibv_mr *mr)
{
	struct ibv_cq *cq = ibv_create_cq(h->side.port.ctx, 1000, NULL, NULL, 0);
	struct ibv_mw *mw = ibv_alloc_mw(h->side.pd, IBV_MW_TYPE_1);
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 100, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(h->side.pd, &attr);

	host_want(cq && mw && srq, "no CQ, window or SRQ: %m");
	peer_connect(&h->peer);
	host_exchange(h, at, mr, HOST_PAGE, OLD);
	host_messages_in(h, at, mr, HOST_PAGE);
	host_want(!ibv_destroy_srq(srq) && !ibv_dealloc_mw(mw) && !ibv_destroy_cq(cq),
		  "something cannot be destroyed: %m");
}

static void many_objects(struct host *h, unsigned count)
{
	uint8_t *at = host_map(HOST_PAGE, OLD);
	struct ibv_mr *mr = host_reg(h, at, HOST_PAGE);
	struct holdings before = {0};

	for (unsigned i = 0; i < count; i++) {
		one_object(h, at, mr);
		if (i + 1 == FIRST_ROUNDS)
			before = holdings_now();
	}
	want_no_more(&before);
	host_dereg(mr);
}

/* ---- many at once ---- */

/* What each may take in the libraries. */
#define HELD_MAPPINGS 1ul

static void hold_alive(struct host *h, uint8_t *at)
{
	struct ibv_cq *cq = ibv_create_cq(h->side.port.ctx, 16, NULL, NULL, 0);
	struct ibv_mw *mw = ibv_alloc_mw(h->side.pd, IBV_MW_TYPE_1);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	host_want(cq && mw && ibv_create_qp(h->side.pd, &attr), "no CQ, window or queue pair: %m");
	host_exchange(h, at, host_reg(h, at, HOST_PAGE), HOST_PAGE, OLD);
}

/* They go with the process. */
static void objects_held(struct host *h, unsigned count)
{
	uint8_t *at = host_map((size_t)count * HOST_PAGE, OLD);
	struct holdings before = {0};

	peer_connect(&h->peer);
	for (unsigned i = 0; i < count; i++) {
		hold_alive(h, at + (size_t)i * HOST_PAGE);
		if (i + 1 == FIRST_ROUNDS)
			before = holdings_now();
	}
	before.mappings += (count - FIRST_ROUNDS) * HELD_MAPPINGS;
	want_no_more(&before);
}

static void run_case(struct host *h, const char *what, unsigned count)
{
	if (!strcmp(what, "lives"))
		many_lives(h, count);
	else if (!strcmp(what, "regions"))
		many_regions(h, count);
	else if (!strcmp(what, "objects"))
		many_objects(h, count);
	else if (!strcmp(what, "held"))
		objects_held(h, count);
	else
		device_die("'%s' is no budget", what);
}

int main(int argc, char **argv)
{
	struct host h = {0};
	unsigned count;
	bool alone;

	peer_program(argc, argv);
	if (argc != 4)
		device_die("usage: budget DEVICE lives|regions|objects|held COUNT");
	alarm(LIMIT_S);
	count = (unsigned)atoi(argv[3]);
	host_want(count > FIRST_LIVES, "count to more than %u", FIRST_LIVES);
	h.device = argv[1];
	alone = !strcmp(argv[2], "lives");
	if (!alone)
		peer_start(&h.peer, &h.side, h.device);
	side_open(&h.side, h.device);
	run_case(&h, argv[2], count);
	if (!alone)
		peer_end(&h.peer);
	if (strcmp(argv[2], "held") != 0)
		side_close(&h.side);
	return 0;
}
