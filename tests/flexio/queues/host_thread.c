// SPDX-License-Identifier: BSD-2-Clause
/* How activations end and go on, and what goes on beside them. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cmd_dpa.h"
#include "prm/cmd.h"

/* ---- yields ---- */

static void yields(void)
{
	for (uint8_t continuable = 0; continuable < 2; continuable++) {
		struct flexio_event_handler_attr attr = {.host_stub_func = &handle,
							 .continuable = continuable};
		struct flexio_event_handler *eh;
		struct bench b;

		bench_up(&b, 0);
		OK(flexio_event_handler_create(b.p, &attr, &eh));
		b.attr.thread = flexio_event_handler_get_thread(eh);
		bench_queue(&b, 4);
		queue_set(&b, how, QUEUE_ARMS | QUEUE_YIELDS);
		OK(flexio_event_handler_run(eh, b.q));
		call2(b.p, &complete, b.cqn, 1);
		queue_await(&b, served, 1);
		if (continuable) {
			queue_stays(&b, ends, 0);
			CHECK(queue_get(&b, resumed) == 0);
			call2(b.p, &complete, b.cqn, 1);
		}
		queue_stays(&b, ends, 1);
		CHECK(queue_get(&b, resumed) == 1001 && queue_get(&b, activations) == 1);
		OK(flexio_cq_destroy(b.cq));
		OK(flexio_event_handler_destroy(eh));
		b.cq = NULL;
		bench_down(&b);
	}
}

/* ---- ends ---- */

struct end_bench {
	struct bench b;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct flexio_event_handler *eh;
	volatile uint64_t words[2];
};

static void end_bench_up(struct end_bench *e, enum ending_how how)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &end_it};
	struct ending ending = {.how = how, .host = (uintptr_t)e->words};
	struct flexio_window *window;
	flexio_uintptr_t arg;

	bench_up(&e->b, 0);
	memset((void *)e->words, 0, sizeof(e->words));
	e->pd = ibv_alloc_pd(e->b.ctx);
	CHECK(e->pd);
	e->mr = ibv_reg_mr(e->pd, (void *)e->words, sizeof(e->words), IBV_ACCESS_LOCAL_WRITE);
	CHECK(e->mr);
	OK(flexio_window_create(e->b.p, e->pd, &window));
	ending.window = flexio_window_get_id(window);
	ending.key = e->mr->lkey;
	OK(flexio_copy_from_host(e->b.p, &ending, sizeof(ending), &arg));
	OK(flexio_event_handler_create(e->b.p, &attr, &e->eh));
	e->b.attr.thread = flexio_event_handler_get_thread(e->eh);
	e->b.attr.always_armed = 1;
	e->b.attr.overrun_ignore = 1;
	bench_queue(&e->b, 4);
	OK(flexio_event_handler_run(e->eh, arg));
}

static void end_bench_down(struct end_bench *e)
{
	CHECK(flexio_err_status_get(e->b.p) == FLEXIO_DEV_NO_ERROR && e->words[1] == 0);
	OK(flexio_process_destroy(e->b.p));
	CHECK(!ibv_dereg_mr(e->mr) && !ibv_dealloc_pd(e->pd) && !ibv_close_device(e->b.ctx));
}

static void count_await(const struct end_bench *e, uint64_t value)
{
	for (unsigned i = 0; e->words[0] < value; i++) {
		CHECK(i < 600000);
		usleep(100);
	}
}

/* The function runs again, and what stands behind its end never does. */
static void ends(void)
{
	struct end_bench e;
	uint64_t value;

	end_bench_up(&e, ENDING_RESCHEDULES);
	for (uint64_t i = 1; i <= 20; i++) {
		call2(e.b.p, &complete, e.b.cqn, 1);
		count_await(&e, i);
	}
	end_bench_down(&e);

	end_bench_up(&e, ENDING_RETRIGGERS);
	call2(e.b.p, &complete, e.b.cqn, 1);
	count_await(&e, 5);
	call2(e.b.p, &complete, e.b.cqn, 1);
	count_await(&e, 6);
	end_bench_down(&e);

	end_bench_up(&e, ENDING_FINISHES);
	call2(e.b.p, &complete, e.b.cqn, 1);
	count_await(&e, 1);
	call2(e.b.p, &complete, e.b.cqn, 1);
	usleep(20000);
	CHECK(e.words[0] == 1);
	end_bench_down(&e);

	end_bench_up(&e, ENDING_FINISHES_ALL);
	/* It may end before this call has its answer. */
	(void)flexio_process_call(e.b.p, &complete, &value, (uint64_t)e.b.cqn, (uint64_t)1);
	count_await(&e, 1);
	/* calls fail once it has */
	for (unsigned i = 0;
	     flexio_process_call(e.b.p, &peek, &value, e.b.q) == FLEXIO_STATUS_SUCCESS; i++) {
		CHECK(i < 600000);
		usleep(100);
	}
	end_bench_down(&e);
}

/* ---- who is activated ---- */

static void one_thread(void)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &handle};
	struct flexio_event_handler *other;
	struct flexio_cq_attr unused = {0};
	struct bench b;
	uint64_t q;

	bench_up(&b, QUEUE_ARMS);
	bench_queue(&b, 4);
	OK(flexio_event_handler_create(b.p, &attr, &other));
	q = queue_make(b.p, 4, 0, &unused);
	OK(flexio_event_handler_run(other, q));
	for (uint64_t i = 1; i <= 10; i++) {
		call2(b.p, &complete, b.cqn, 1);
		queue_await(&b, ends, i);
	}
	word_stays(b.p, q + offsetof(struct queue, activations), 0);
	OK(flexio_event_handler_destroy(other));
	bench_down(&b);
}

/* A queue of another device, or of another context: ring and record on the heap, and a handler of the process. */
static void other_context(void)
{
	for (unsigned device = 0; device < 2; device++) {
		struct ibv_context *ctx = device_open(device);
		struct flexio_uar *uar;
		struct flexio_cq *cq;
		struct bench b;
		uint64_t id;

		bench_up(&b, 0);
		OK(flexio_uar_extend(flexio_process_get_uar(b.p), ctx, &uar));
		/* a region of the process's own context is none of the other's */
		FAILS(flexio_cq_create(b.p, ctx, &b.attr, &cq));
		b.attr.uar_id = flexio_uar_get_id(uar);
		b.attr.always_armed = 1;
		OK(flexio_cq_create(b.p, ctx, &b.attr, &cq));
		id = flexio_uar_get_extended_id(uar);
		for (uint64_t i = 1; i <= 40; i++) {
			CHECK(!call2(b.p, &complete_extended, flexio_cq_get_cq_num(cq), id));
			queue_await(&b, ends, i);
			CHECK(queue_get(&b, taken) == i);
		}
		/* the process's own region does not reach it */
		call2(b.p, &complete, flexio_cq_get_cq_num(cq), 1);
		queue_stays(&b, activations, 40);
		FAILS(flexio_event_handler_destroy(b.eh));
		if (device) {
			OK(flexio_cq_destroy(cq));
			bench_down(&b);
		} else {
			/* a process goes with all that it has, wherever that is */
			OK(flexio_process_destroy(b.p));
			FAILS(flexio_cq_destroy(cq));
			CHECK(!ibv_close_device(b.ctx));
		}
		CHECK(!ibv_close_device(ctx));
	}
}

/* ---- aliases, as libflexio makes them for such queues ---- */

static struct mlx5dv_devx_obj *alias_make(struct ibv_context *ctx, uint32_t number, bool thread)
{
	uint8_t in[DPA_ALIAS_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};

	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_GENERAL_OBJECT);
	prm_set(in, GENERAL_IN_TYPE, GENERAL_DPA_ALIAS);
	prm_set(in, DPA_ALIAS_NUMBER, number);
	prm_set(in, DPA_ALIAS_THREAD, thread);
	return mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
}

/* A queue of the program's own making, that libflexio does not know of. */
static struct mlx5dv_devx_obj *foreign_queue(struct ibv_context *ctx, const struct bench *b,
					     uint32_t page, uint32_t *cqn)
{
	uint8_t in[CREATE_CQ_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0}, *c = in + CREATE_CQ_CONTEXT;
	struct mlx5dv_devx_obj *cq;

	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_CQ);
	prm_set(in, CREATE_CQ_UMEM, flexio_process_get_dumem_id(b->p));
	prm_set(in, CREATE_CQ_OFFSET, b->attr.cq_ring_qmem.daddr);
	prm_set(c, CQC_DBR_UMEM, flexio_process_get_dumem_id(b->p));
	prm_set(c, CQC_DBR_ADDR, b->attr.cq_dbr_daddr);
	prm_set(c, CQC_LOG_SIZE, 4);
	prm_set(c, CQC_UAR_PAGE, page);
	prm_set(c, CQC_APU, 1);
	prm_set(c, CQC_ELEMENT, CQC_ELEMENT_THREAD);
	prm_set(c, CQC_EQN, flexio_event_handler_get_id(b->eh));
	prm_set(c, CQC_STATE, CQC_STATE_ALWAYS);
	cq = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	if (cq)
		*cqn = prm_get32(out, CMD_OUT_NUMBER);
	return cq;
}

/* What is made by their numbers goes on to work when what they stand for has gone, and harms nobody. */
static void aliases(void)
{
	struct ibv_context *ctx = device_open(0);
	struct mlx5dv_devx_uar *page = mlx5dv_devx_alloc_uar(ctx, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
	struct mlx5dv_devx_obj *alias[2], *cq;
	uint32_t process, thread, cqn;
	struct receiver *r;
	struct peer *peer;
	struct bench b;

	CHECK(page);
	bench_up(&b, 0);
	process = flexio_process_get_dumem_id(b.p) - DPA_UMEM;
	thread = flexio_event_handler_get_id(b.eh);
	CHECK(!alias_make(ctx, process + 1000, false) && !alias_make(ctx, thread + 1000, true));
	CHECK(!foreign_queue(ctx, &b, page->page_id, &cqn));
	alias[0] = alias_make(ctx, process, false);
	CHECK(alias[0] && !foreign_queue(ctx, &b, page->page_id, &cqn));
	alias[1] = alias_make(ctx, thread, true);
	cq = foreign_queue(ctx, &b, page->page_id, &cqn);
	CHECK(alias[1] && cq);
	/* a queue uses what it is made of */
	CHECK(mlx5dv_devx_obj_destroy(alias[0]) && mlx5dv_devx_obj_destroy(alias[1]));
	r = receiver_with_peer(ctx, cqn, 0, &peer);
	receiver_post(r, 20);
	for (uint64_t i = 1; i <= 10; i++) {
		peer_send(peer, 1, 64);
		queue_await(&b, taken, i);
	}
	OK(flexio_process_destroy(b.p));
	CHECK(!ibv_close_device(b.ctx));
	peer_send(peer, 10, 64);
	CHECK(!alias_make(ctx, process, false) && !alias_make(ctx, thread, true));
	receiver_free(r);
	peer_free(peer);
	CHECK(!mlx5dv_devx_obj_destroy(cq) && !mlx5dv_devx_obj_destroy(alias[0]) &&
	      !mlx5dv_devx_obj_destroy(alias[1]));
	mlx5dv_devx_free_uar(page);
	CHECK(!ibv_close_device(ctx));
}

/* ---- what goes on beside ---- */

struct sender {
	struct peer *peer;
	unsigned count;
	pthread_t thread;
};

static void *sender_main(void *arg)
{
	struct sender *s = arg;

	for (unsigned i = 0; i < s->count; i++)
		peer_send(s->peer, 1, 64);
	return NULL;
}

/* A handler that is in the middle of its work, and one that gets a message upon the other. */
static void beside(void)
{
	struct sender s = {.count = 200};
	struct receiver *r;
	struct bench b;

	bench_up(&b, QUEUE_ARMS | QUEUE_WAITS);
	bench_queue(&b, 8);
	r = receiver_with_peer(b.ctx, b.cqn, 0, &s.peer);
	receiver_post(r, s.count + 1);
	peer_send(s.peer, 1, 64);
	queue_await(&b, taken, 1);
	for (unsigned i = 0; i < 100; i++)
		CHECK(call1(b.p, &record_of, i) == i && queue_get(&b, ends) == 0);
	queue_set(&b, go, 1);
	CHECK(!pthread_create(&s.thread, NULL, sender_main, &s));
	for (unsigned i = 0; i < 2000; i++)
		CHECK(call1(b.p, &record_of, i) == i);
	CHECK(!pthread_join(s.thread, NULL));
	queue_stays(&b, taken, s.count + 1);
	peer_free(s.peer);
	receiver_free(r);
	bench_down(&b);
}

struct watcher {
	const struct bench *b;
	uint64_t count, stale;
	pthread_t thread;
};

static void *watcher_main(void *arg)
{
	struct watcher *w = arg;

	w->stale = call2(w->b->p, &watch, w->b->q, w->count);
	return NULL;
}

/* Each message has another length than what was in its place before. */
static void watched(void)
{
	struct watcher w = {.count = 3000, .stale = 1};
	struct receiver *r;
	struct peer *peer;
	struct bench b;

	bench_up(&b, QUEUE_TAKES_NONE);
	b.attr.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ;
	b.attr.thread = NULL;
	bench_queue(&b, 4);
	r = receiver_with_peer(b.ctx, b.cqn, 0, &peer);
	w.b = &b;
	CHECK(!pthread_create(&w.thread, NULL, watcher_main, &w));
	for (uint32_t i = 0; i < w.count; i++) {
		receiver_post(r, 1);
		peer_send(peer, 1, (uint32_t)WATCHED_BYTES(i));
		/* no further ahead than there is room for */
		if (i % 8 == 7)
			queue_await(&b, taken, i + 1);
	}
	CHECK(!pthread_join(w.thread, NULL));
	CHECK_SAY(!w.stale, "%llu entries", (unsigned long long)w.stale);
	peer_free(peer);
	receiver_free(r);
	bench_down(&b);
}

static void odd_bells_case(void)
{
	struct bench b;

	bench_up(&b, QUEUE_ARMS);
	bench_queue(&b, 4);
	for (uint64_t n = 0; n < 33; n++)
		CHECK(call1(b.p, &odd_bells, n == 32 ? b.cqn : 1ull << n) == 0);
	CHECK(flexio_err_status_get(b.p) == FLEXIO_DEV_NO_ERROR);
	queue_stays(&b, activations, 0);
	call2(b.p, &complete, b.cqn, 1);
	queue_stays(&b, taken, 1);
	bench_down(&b);
}

const struct host_case thread_cases[] = {
	{"yields", yields},
	{"ends", ends},
	{"one_thread", one_thread},
	{"other_context", other_context},
	{"aliases", aliases},
	{"beside", beside},
	{"watched", watched},
	{"odd_bells", odd_bells_case},
	{NULL, NULL},
};
