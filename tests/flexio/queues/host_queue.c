// SPDX-License-Identifier: BSD-2-Clause
/* Completion queues, fed by queue pairs and by empty completions. */
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

#define USER_INDEX 0x123456u
#define RESP_SEND  2u /* opcode of a completion */
/* Completions one by one, and how often their events are counted until both modes had the processor. */
#define STREAM_MS     60u
#define STREAM_GAP_US 200u
#define STREAM_TIMES  10u

static void complete_some(const struct bench *b, uint64_t n)
{
	call2(b->p, &complete, b->cqn, n);
}

/* ---- fed by messages ---- */

static void peer_case(void)
{
	struct receiver *r;
	struct peer *peer;
	struct bench b;

	bench_up(&b, QUEUE_ARMS);
	bench_queue(&b, 4);
	r = receiver_with_peer(b.ctx, b.cqn, USER_INDEX, &peer);
	for (uint32_t i = 0; i < 100; i++) {
		receiver_post(r, 1);
		peer_send(peer, 1, 8 + i);
		queue_await(&b, ends, i + 1);
		CHECK(queue_get(&b, taken) == i + 1 && queue_get(&b, activations) == i + 1);
		CHECK(queue_get(&b, byte_cnt) == 8 + i && queue_get(&b, wqe_counter) == i);
		CHECK(queue_get(&b, opcode) == RESP_SEND);
		CHECK(queue_get(&b, qpn) == receiver_number(r));
		CHECK(queue_get(&b, user_index) == USER_INDEX);
	}
	queue_stays(&b, activations, 100);
	CHECK(queue_get(&b, all_activations) == 100);
	/* as many at a time as there is room for */
	receiver_post(r, 200);
	for (unsigned i = 0; i < 200; i++) {
		peer_send(peer, 1, 64);
		if (i % 8 == 7)
			queue_await(&b, taken, 100 + i + 1);
	}
	queue_stays(&b, taken, 300);
	peer_free(peer);
	receiver_free(r);
	bench_down(&b);
}

/* The peer as a process of its own, with a pipe each way. */
struct other {
	pid_t pid;
	FILE *to, *from;
};

static void other_start(struct other *o)
{
	char *argv[] = {"host", "as_peer", NULL};
	posix_spawn_file_actions_t actions;
	int in[2], out[2];

	CHECK(!pipe(in) && !pipe(out));
	CHECK(!posix_spawn_file_actions_init(&actions));
	CHECK(!posix_spawn_file_actions_adddup2(&actions, in[0], 0) &&
	      !posix_spawn_file_actions_adddup2(&actions, out[1], 1));
	for (unsigned i = 0; i < 2; i++)
		CHECK(!posix_spawn_file_actions_addclose(&actions, in[i]) &&
		      !posix_spawn_file_actions_addclose(&actions, out[i]));
	CHECK(!posix_spawn(&o->pid, "/proc/self/exe", &actions, NULL, argv, environ));
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	o->to = fdopen(in[1], "w");
	o->from = fdopen(out[0], "r");
	CHECK(o->to && o->from);
}

static void other_process(void)
{
	struct receiver *r;
	struct bench b;
	struct other o;
	unsigned qpn;
	char line[32];
	int status;

	bench_up(&b, QUEUE_ARMS);
	bench_queue(&b, 3);
	other_start(&o);
	r = receiver_make(b.ctx, b.cqn, USER_INDEX);
	CHECK(fgets(line, sizeof(line), o.from) && sscanf(line, "%u", &qpn) == 1);
	receiver_connect(r, qpn, peer_lid(b.ctx));
	fprintf(o.to, "%u %u\n", receiver_number(r), peer_lid(b.ctx));
	for (uint64_t i = 1; i <= 60; i++) {
		receiver_post(r, 4);
		fprintf(o.to, "4 %u\n", (unsigned)(16 * i));
		fflush(o.to);
		CHECK(fgets(line, sizeof(line), o.from) && !strcmp(line, "sent\n"));
		queue_await(&b, taken, 4 * i);
		CHECK(queue_get(&b, byte_cnt) == 16 * i);
	}
	queue_stays(&b, taken, 240);
	fclose(o.to);
	CHECK(waitpid(o.pid, &status, 0) == o.pid && !status);
	fclose(o.from);
	receiver_free(r);
	bench_down(&b);
}

/* ---- arming ---- */

static void rearm(void)
{
	struct bench b;

	/* One comes between the last look and the bell. */
	bench_up(&b, QUEUE_ARMS | QUEUE_WAITS);
	bench_queue(&b, 4);
	complete_some(&b, 1);
	queue_await(&b, taken, 1);
	complete_some(&b, 1);
	queue_stays(&b, activations, 1);
	queue_set(&b, go, 1);
	queue_stays(&b, taken, 2);
	queue_stays(&b, activations, 2);
	bench_down(&b);

	/* Between the bell and the end. */
	bench_up(&b, QUEUE_ARMS | QUEUE_WAITS_ARMED);
	bench_queue(&b, 4);
	complete_some(&b, 1);
	queue_await(&b, served, 1);
	complete_some(&b, 1);
	queue_stays(&b, activations, 1);
	CHECK(queue_get(&b, taken) == 1);
	queue_set(&b, go, 1);
	queue_stays(&b, taken, 2);
	bench_down(&b);

	/* An old index is an event at once, one that is not there yet waits. */
	bench_up(&b, QUEUE_TAKES_NONE);
	bench_queue(&b, 4);
	complete_some(&b, 3);
	queue_stays(&b, activations, 1);
	call2(b.p, &arm, 2, b.cqn);
	queue_stays(&b, activations, 2);
	call2(b.p, &arm, 3, b.cqn);
	queue_stays(&b, activations, 2);
	/* the number comes second */
	call2(b.p, &arm, b.cqn, 2);
	queue_stays(&b, activations, 2);
	complete_some(&b, 1);
	queue_stays(&b, activations, 3);
	bench_down(&b);
}

static void arming(void)
{
	struct bench b;

	bench_up(&b, QUEUE_TAKES_NONE);
	bench_queue(&b, 4);
	complete_some(&b, 1);
	queue_await(&b, ends, 1);
	complete_some(&b, 1);
	queue_stays(&b, activations, 1);
	bench_down(&b);

	bench_up(&b, QUEUE_TAKES_NONE);
	b.attr.no_arm = true;
	bench_queue(&b, 4);
	complete_some(&b, 1);
	queue_stays(&b, activations, 0);
	call2(b.p, &arm, 0, b.cqn);
	queue_stays(&b, activations, 1);
	bench_down(&b);

	bench_up(&b, 0);
	b.attr.always_armed = 1;
	bench_queue(&b, 4);
	for (uint64_t i = 1; i <= 40; i++) {
		complete_some(&b, 1);
		queue_await(&b, ends, i);
	}
	queue_stays(&b, activations, 40);
	bench_down(&b);
}

/* ---- rings ---- */

static void passes(void)
{
	struct bench b;

	/* 150: big-endian, of 24 bits */
	bench_up(&b, 0);
	CHECK(call1(b.p, &record_of, 0x01020304) == 0x020304);
	bench_down(&b);
	for (unsigned log = 0; log <= 16; log += log < 4 ? 1 : 4) {
		uint64_t n = (3u << log) + 1;

		bench_up(&b, QUEUE_ARMS);
		bench_queue(&b, log);
		for (uint64_t i = 0; i < n;) {
			uint64_t some = 1u << log > 512 ? 512 : 1u << log;

			some = some > n - i ? n - i : some;
			complete_some(&b, some);
			i += some;
			queue_await(&b, taken, i);
		}
		CHECK(queue_get(&b, ci) == n);
		bench_down(&b);
	}
}

static void collapsed(void)
{
	uint64_t behind, before;
	struct bench b;

	/* All in the first entry; the owner bit is in the byte that is the last of its last word. */
	bench_up(&b, QUEUE_TAKES_NONE);
	b.attr.cc = true;
	b.attr.overrun_ignore = 1;
	b.attr.always_armed = 1;
	bench_queue(&b, 2);
	for (uint64_t i = 0; i < 12; i++) {
		complete_some(&b, 1);
		CHECK(call1(b.p, &peek, b.ring + 56) >> 56 == (i >> 2 & 1));
		CHECK(call1(b.p, &peek, b.ring + 64) == UINT64_MAX);
	}
	bench_down(&b);

	/* One that is over takes no more, and nothing behind it is touched. */
	for (unsigned ignore = 0; ignore < 2; ignore++) {
		bench_up(&b, QUEUE_TAKES_NONE);
		b.attr.overrun_ignore = (uint8_t)ignore;
		b.attr.always_armed = 1;
		bench_queue(&b, 2);
		behind = b.ring + 4 * 64 + 56;
		before = call1(b.p, &peek, behind);
		complete_some(&b, 4);
		complete_some(&b, 3);
		CHECK(call1(b.p, &peek, b.ring + 56) >> 56 == ignore);
		CHECK(call1(b.p, &peek, b.ring + 3 * 64 + 56) >> 56 == 0);
		CHECK(call1(b.p, &peek, behind) == before);
		/* the queue is in error: room that comes now is none */
		call2(b.p, &poke, b.record, 4u << 24);
		complete_some(&b, 1);
		CHECK(call1(b.p, &peek, b.ring + 56) >> 56 == ignore);
		bench_down(&b);
	}
}

static void not_dpa(void)
{
	const struct flexio_qmem host = {.memtype = FLEXIO_MEMTYPE_HOST, .humem_offset = 1024};
	uint8_t *memory = aligned_alloc(4096, 4096);
	struct mlx5dv_devx_umem *umem;
	struct bench b;

	bench_up(&b, 0);
	b.attr.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ;
	b.attr.thread = NULL;
	bench_queue(&b, 4);
	complete_some(&b, 5);
	CHECK(call1(b.p, &poll_queue, b.q) == 5);
	queue_stays(&b, activations, 0);
	OK(flexio_cq_destroy(b.cq));
	/* in the process's own context */
	OK(flexio_cq_create(b.p, b.ctx, &b.attr, &b.cq));
	bench_down(&b);

	/* 153: a ring of the host's */
	CHECK(memory);
	memset(memory, 0xff, 4096);
	bench_up(&b, 0);
	bench_queue(&b, 4);
	OK(flexio_cq_destroy(b.cq));
	umem = mlx5dv_devx_umem_reg(b.ctx, memory, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(umem);
	b.attr.cq_ring_qmem = host;
	b.attr.cq_ring_qmem.umem_id = umem->umem_id;
	OK(flexio_cq_create(b.p, NULL, &b.attr, &b.cq));
	b.cqn = flexio_cq_get_cq_num(b.cq);
	complete_some(&b, 1);
	CHECK(!(memory[1024 + 63] & 1) && memory[1023] == 0xff && memory[1024 + 64] == 0xff);
	queue_await(&b, activations, 1);
	OK(flexio_cq_destroy(b.cq));
	b.cq = NULL;
	CHECK(!mlx5dv_devx_umem_dereg(umem));
	bench_down(&b);
	free(memory);
}

static double seconds(void)
{
	struct timespec t;

	CHECK(!clock_gettime(CLOCK_MONOTONIC, &t));
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Events of completions that follow each other much faster than the period ends, in a mode that was set when the
 * queue was made or, by modify, later. */
static uint64_t stream_events(enum flexio_cq_period_mode mode, bool modify)
{
	uint16_t count, period, seen;
	uint64_t sent = 0, events;
	double end;
	struct bench b;

	bench_up(&b, QUEUE_ARMS);
	b.attr.cq_period = 4000;
	b.attr.cq_period_mode = modify ? FLEXIO_CQ_PERIOD_MODE_EVENT : mode;
	bench_queue(&b, 10);
	if (modify)
		OK(flexio_cq_modify_moderation(b.cq, 0, 4000, (uint16_t)mode));
	OK(flexio_cq_query_moderation(b.cq, &count, &period, &seen));
	CHECK(count == 0 && period == 4000 && seen == mode);
	for (end = seconds() + STREAM_MS / 1e3; seconds() < end; sent++) {
		complete_some(&b, 1);
		usleep(STREAM_GAP_US);
	}
	events = queue_get(&b, activations);
	queue_await(&b, taken, sent);
	bench_down(&b);
	return events;
}

/* The period counts from the first completion that waits, so that there is an event for each, or from the last
 * one, so that there is none before the stream pauses: as it does here where another program takes the processor. */
static void mode_seen(void)
{
	for (unsigned modify = 0; modify < 2; modify++) {
		uint64_t first, last;
		unsigned times = 0;

		do {
			first = stream_events(FLEXIO_CQ_PERIOD_MODE_EVENT, modify);
			last = stream_events(FLEXIO_CQ_PERIOD_MODE_CQE, modify);
			CHECK_SAY(times++ < STREAM_TIMES, "%llu events and %llu",
				  (unsigned long long)first, (unsigned long long)last);
		} while (first < 5 || last > first / 2);
	}
}

static void moderation(void)
{
	uint16_t count, period, mode;
	struct bench b;

	mode_seen();
	bench_up(&b, QUEUE_ARMS);
	b.attr.cq_max_count = 7;
	b.attr.cq_period = 4000;
	bench_queue(&b, 6);
	OK(flexio_cq_query_moderation(b.cq, &count, &period, &mode));
	CHECK(count == 7 && period == 4000 && mode == FLEXIO_CQ_PERIOD_MODE_EVENT);
	for (uint16_t m = 0; m < 2; m++) {
		OK(flexio_cq_modify_moderation(b.cq, (uint16_t)(5 + m), (uint16_t)(100 + m), m));
		OK(flexio_cq_query_moderation(b.cq, &count, &period, &mode));
		CHECK(count == 5 + m && period == 100 + m && mode == m);
	}
	FAILS(flexio_cq_modify_moderation(b.cq, 1, 4096, 0));
	FAILS(flexio_cq_modify_moderation(b.cq, 1, 1, 2));
	FAILS(flexio_cq_modify_moderation(NULL, 1, 1, 0));
	FAILS(flexio_cq_query_moderation(b.cq, NULL, &period, &mode));
	/* by count alone */
	OK(flexio_cq_modify_moderation(b.cq, 4, 0, 0));
	for (uint64_t i = 1; i <= 5; i++) {
		complete_some(&b, 3);
		queue_stays(&b, activations, i - 1);
		complete_some(&b, 1);
		queue_await(&b, ends, i);
		CHECK(queue_get(&b, taken) == 4 * i);
	}
	/* by time */
	OK(flexio_cq_modify_moderation(b.cq, 1000, 500, 0));
	complete_some(&b, 1);
	queue_await(&b, ends, 6);
	bench_down(&b);
}

/* ---- what cannot be ---- */

static void create_fails(struct bench *b, struct flexio_cq_attr attr)
{
	struct flexio_cq *cq = (void *)b;

	FAILS(flexio_cq_create(b->p, NULL, &attr, &cq));
	CHECK(!cq);
}

#define WITHOUT(field, value)                      \
	do {                                       \
		struct flexio_cq_attr a_ = b.attr; \
		a_.field = (value);                \
		create_fails(&b, a_);              \
	} while (0)

static void refused(void)
{
	struct flexio_heap_mem_info heap;
	struct flexio_cq *cq;
	struct bench b, other;
	flexio_uintptr_t end;

	bench_up(&b, 0);
	bench_queue(&b, 4);
	OK(flexio_process_mem_info_get(b.p, &heap));
	end = heap.base_addr + heap.size;
	WITHOUT(cqe_comp_type, FLEXIO_CQE_COMP_ENH + 1);
	WITHOUT(log_cq_depth, 23);
	WITHOUT(element_type, 1);
	WITHOUT(element_type, 3);
	WITHOUT(uar_id, 0x200000);
	WITHOUT(uar_id, UINT32_MAX);
	WITHOUT(cq_period, 4096);
	WITHOUT(cq_period_mode, 2);
	WITHOUT(cq_dbr_daddr, 0);
	WITHOUT(cq_dbr_daddr, heap.base_addr - 8);
	WITHOUT(cq_dbr_daddr, end - 4);
	WITHOUT(cq_dbr_daddr, b.record + 1);
	WITHOUT(cq_ring_qmem.daddr, 0);
	WITHOUT(cq_ring_qmem.daddr, end - 64);
	WITHOUT(cq_ring_qmem.daddr, heap.base_addr - 64);
	WITHOUT(cq_ring_qmem.daddr, UINT64_MAX - 63);
	WITHOUT(cq_ring_qmem.memtype, FLEXIO_MEMTYPE_HOST); /* of no umem */
	WITHOUT(cq_ring_qmem.memtype, 2);
	WITHOUT(thread, NULL);
	WITHOUT(thread, (struct flexio_thread *)b.eh);
	bench_up(&other, 0);
	WITHOUT(thread, flexio_event_handler_get_thread(other.eh));
	bench_down(&other);
	FAILS(flexio_cq_create(b.p, NULL, NULL, &cq));
	FAILS(flexio_cq_create(NULL, NULL, &b.attr, &cq));
	FAILS(flexio_cq_create(b.p, NULL, &b.attr, NULL));
	CHECK(flexio_cq_get_cq_num(NULL) == UINT32_MAX);
	FAILS(flexio_cq_destroy(NULL));
	FAILS(flexio_cq_destroy((struct flexio_cq *)&b));
	bench_down(&b);
	FAILS(flexio_cq_destroy(b.cq));
}

static void in_use(void)
{
	struct flexio_uar *uar;
	struct receiver *r;
	struct bench b;

	bench_up(&b, 0);
	OK(flexio_uar_create(b.p, &uar));
	b.attr.uar_id = flexio_uar_get_id(uar);
	bench_queue(&b, 4);
	r = receiver_make(b.ctx, b.cqn, 0);
	FAILS(flexio_event_handler_destroy(b.eh));
	FAILS(flexio_cq_destroy(b.cq));
	FAILS(flexio_uar_destroy(uar));
	receiver_free(r);
	/* bells of the process's own UAR do not reach it */
	complete_some(&b, 1);
	queue_stays(&b, activations, 0);
	OK(flexio_cq_destroy(b.cq));
	b.cq = NULL;
	OK(flexio_uar_destroy(uar));
	FAILS(flexio_uar_destroy(uar));
	bench_down(&b);
}

const struct host_case queue_cases[] = {
	{"peer", peer_case},  {"other_process", other_process},
	{"rearm", rearm},     {"arming", arming},
	{"passes", passes},   {"collapsed", collapsed},
	{"not_dpa", not_dpa}, {"moderation", moderation},
	{"refused", refused}, {"in_use", in_use},
	{NULL, NULL},
};
