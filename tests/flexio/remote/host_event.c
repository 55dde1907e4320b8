// SPDX-License-Identifier: BSD-2-Clause
/* Events that requests ask for, and events of queues that fail. */
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "prm/cmd_cq_eq.h"
#include "prm/cmd_qp.h"
#include "prm/eqe.h"

#define AT	   4096u
#define PATIENT_S  60
#define PATIENT_MS 60000
#define MOMENT_US  20000
#define FRAME	   60u

/* An event queue of the host's, read as a driver reads it. */
struct events {
	struct mlx5dv_devx_uar *uar;
	struct mlx5dv_devx_eq *eq;
	uint32_t number, ci;
};

#define LOG_EVENTS 6u

static void events_up(struct events *v, struct ibv_context *ctx, uint64_t types)
{
	uint8_t in[CREATE_EQ_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0};

	*v = (struct events){.uar = mlx5dv_devx_alloc_uar(ctx, MLX5DV_UAR_ALLOC_TYPE_NC)};
	CHECK(v->uar);
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_EQ);
	prm_set(in + CREATE_EQ_CONTEXT, EQC_LOG_SIZE, LOG_EVENTS);
	prm_set(in + CREATE_EQ_CONTEXT, EQC_UAR_PAGE, v->uar->page_id);
	prm_set(in + CREATE_EQ_EVENTS, PRM_FIELD(0, 64), types);
	v->eq = mlx5dv_devx_create_eq(ctx, in, sizeof(in), out, sizeof(out));
	CHECK(v->eq);
	v->number = prm_get32(out, CREATE_EQ_OUT_EQN);
}

static void events_down(struct events *v)
{
	CHECK(!mlx5dv_devx_destroy_eq(v->eq));
	mlx5dv_devx_free_uar(v->uar);
}

/* The next entry, or NULL.  There are fewer of them than the queue has room for. */
static const uint8_t *events_next(struct events *v)
{
	const uint8_t *eqe = (const uint8_t *)v->eq->vaddr + (size_t)v->ci * EQE_BYTES;

	CHECK(v->ci < 1u << LOG_EVENTS);
	if (__atomic_load_n(eqe + EQE_BYTES - 1, __ATOMIC_ACQUIRE) & 1)
		return NULL;
	v->ci++;
	return eqe;
}

static const uint8_t *events_await(struct events *v)
{
	time_t end = time(NULL) + PATIENT_S;
	const uint8_t *eqe;

	while (!(eqe = events_next(v))) {
		CHECK(time(NULL) < end);
		usleep(100);
	}
	return eqe;
}

/* ---- completions with an event ---- */

/* Who hears of the send queue's completions: a thread, or an event queue.  Nobody arms. */
struct hearer {
	struct flexio_event_handler *handler;
	uint64_t count; /* of the handler's activations */
	struct events events;
	uint64_t heard;
};

static void hearer_up(struct hearer *h, struct end *e, bool thread)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &woken};
	struct flexio_cq_attr cq = {.no_arm = true};

	memset(h, 0, sizeof(*h));
	OK(flexio_cq_destroy(e->sent.cq));
	if (thread) {
		h->count = end_heap(e, 8, 0);
		OK(flexio_event_handler_create(e->p, &attr, &h->handler));
		OK(flexio_event_handler_run(h->handler, h->count));
		cq.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD;
		cq.thread = flexio_event_handler_get_thread(h->handler);
	} else {
		events_up(&h->events, e->ctx, 0);
		cq.element_type = FLEXIO_CQ_ELEMENT_TYPE_EXT_EQ;
		cq.emulated_eqn = h->events.number;
	}
	line_up_as(e, &e->sent, cq);
	e->made.sq_cqn = flexio_cq_get_cq_num(e->sent.cq);
}

/* So many more events have come. */
static void hearer_hears(struct hearer *h, struct end *e, unsigned n)
{
	time_t end = time(NULL) + PATIENT_S;

	h->heard += n;
	if (!h->handler) {
		while (n--) {
			const uint8_t *eqe = events_await(&h->events);

			CHECK(prm_get(eqe, EQE_TYPE) == EQE_COMP);
			CHECK(prm_get(eqe, EQE_COMP_CQN) == flexio_cq_get_cq_num(e->sent.cq));
		}
		usleep(MOMENT_US);
		CHECK(!events_next(&h->events));
		return;
	}
	while (end_call(e, &peek, h->count, 0, 0) < h->heard) {
		CHECK(time(NULL) < end);
		usleep(100);
	}
	usleep(MOMENT_US);
	CHECK(end_call(e, &peek, h->count, 0, 0) == h->heard);
}

/* 3 gives an event with its completion, and no other mode does.  What fails or is flushed with it does, too. */
static void modes_tell(struct hearer *h, struct end *e, enum post_kind kind)
{
	for (unsigned round = 0; round < 2; round++)
		for (e->post.ce = 0; e->post.ce < 4; e->post.ce++) {
			end_post(e, kind);
			if (e->post.ce >= 2)
				CHECK(end_take(e, &e->sent) == DONE_REQUEST);
			hearer_hears(h, e, e->post.ce == 3);
		}
	e->post.ce = 3;
	e->post.key ^= 0x1000;
	end_fails(e, kind, SYNDROME_PROTECTION);
	hearer_hears(h, e, 1);
	end_fails(e, kind, SYNDROME_FLUSHED);
	hearer_hears(h, e, 1);
	e->post.ce = 2;
	end_fails(e, kind, SYNDROME_FLUSHED);
	hearer_hears(h, e, 0);
}

/* The queue that told it has gone. */
static void hearer_down(struct hearer *h)
{
	if (h->handler)
		OK(flexio_event_handler_destroy(h->handler));
	else
		events_down(&h->events);
}

/* Another one stands in its place, which the process may outlive. */
static void sent_replace(struct end *e)
{
	OK(flexio_cq_destroy(e->sent.cq));
	line_up(e, &e->sent);
}

static void completion_events(void)
{
	for (unsigned thread = 0; thread < 2; thread++) {
		struct hearer h;
		struct end e;

		end_open(&e, false, FLEXIO_QPC_ST_RC);
		hearer_up(&h, &e, thread);
		own_join(&e);
		e.post.bytes = 64;
		e.post.rkey = e.key;
		e.post.remote = e.data + AT;
		modes_tell(&h, &e, POST_WRITE);
		OK(flexio_qp_destroy(e.qp));
		e.qp = NULL;
		sent_replace(&e);
		hearer_down(&h);
		end_close(&e);
	}
}

static void frame_events(void)
{
	for (unsigned thread = 0; thread < 2; thread++) {
		struct flexio_sq *sq;
		struct hearer h;
		struct end e;

		end_open(&e, true, 0);
		hearer_up(&h, &e, thread);
		sq = frames_open(&e, &e.sent, false);
		e.post.bytes = FRAME;
		modes_tell(&h, &e, POST_FRAME);
		OK(flexio_sq_destroy(sq));
		sent_replace(&e);
		hearer_down(&h);
		end_close(&e);
	}
}

/* The first of several frames cannot be sent; those behind it are flushed, and with 1 in silence. */
static void frame_errors(void)
{
	for (unsigned ce = 0; ce < 4; ce++) {
		struct flexio_sq *sq;
		struct end e;

		end_open(&e, true, 0);
		sq = frames_open(&e, &e.sent, false);
		e.post.bytes = FRAME;
		e.post.ce = ce;
		e.post.key ^= 0x1000;
		for (unsigned i = 0; i < 4; i++) {
			e.post.silent = i < 3;
			end_post(&e, POST_FRAME);
		}
		CHECK(end_take(&e, &e.sent) == DONE_REQUEST_ERROR);
		CHECK(e.last.syndrome == SYNDROME_PROTECTION);
		for (unsigned i = 0; i < 3 && ce != 1; i++) {
			CHECK(end_take(&e, &e.sent) == DONE_REQUEST_ERROR);
			CHECK(e.last.syndrome == SYNDROME_FLUSHED);
		}
		CHECK(end_quiet(&e, &e.sent));
		OK(flexio_sq_destroy(sq));
		end_close(&e);
	}
}

/* ---- queues that fail ---- */

static const uint16_t failures[] = {EQE_WQ_CATAS_ERROR, EQE_WQ_INVAL_REQ_ERROR, EQE_WQ_ACCESS_ERROR,
				    EQE_SRQ_LAST_WQE};

/* Where events of failing queues go: to a channel that is subscribed to the queue, and to an event queue that
 * takes those types of all. */
struct watcher {
	struct mlx5dv_devx_event_channel *channel;
	struct events events;
};

static void watcher_up(struct watcher *w, struct ibv_context *ctx)
{
	uint64_t types = 0;

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
		types |= 1ull << failures[i];
	w->channel = mlx5dv_devx_create_event_channel(ctx, 0);
	CHECK(w->channel);
	events_up(&w->events, ctx, types);
}

/* The number is the cookie. */
static void watcher_watches(struct watcher *w, struct mlx5dv_devx_obj *queue, uint32_t number)
{
	uint16_t types[sizeof(failures) / sizeof(failures[0])];

	memcpy(types, failures, sizeof(types));
	CHECK(!mlx5dv_devx_subscribe_devx_event(w->channel, queue, sizeof(types), types, number));
}

/* Nothing has come that has not been taken. */
static void watcher_quiet(struct watcher *w)
{
	struct pollfd p = {.fd = w->channel->fd, .events = POLLIN};

	CHECK(poll(&p, 1, MOMENT_US / 1000) == 0);
	CHECK(!events_next(&w->events));
}

/* One event of that type, kind and number comes at both, and no other. */
static void watcher_sees(struct watcher *w, enum eqe_type type, enum eqe_queue kind,
			 uint32_t number)
{
	struct pollfd p = {.fd = w->channel->fd, .events = POLLIN};
	struct {
		struct mlx5dv_devx_async_event_hdr hdr;
		uint8_t eqe[EQE_BYTES];
	} event;
	const uint8_t *eqe[2] = {event.eqe};

	CHECK(poll(&p, 1, PATIENT_MS) == 1);
	CHECK(mlx5dv_devx_get_event(w->channel, &event.hdr, sizeof(event)) == sizeof(event));
	CHECK(event.hdr.cookie == number);
	eqe[1] = events_await(&w->events);
	for (unsigned i = 0; i < 2; i++)
		CHECK_SAY(prm_get(eqe[i], EQE_TYPE) == type && prm_get(eqe[i], EQE_QUEUE) == kind &&
				  prm_get(eqe[i], EQE_QUEUE_NR) == number,
			  "%u: type 0x%x, queue 0x%x of kind %u", i,
			  (unsigned)prm_get(eqe[i], EQE_TYPE),
			  (unsigned)prm_get(eqe[i], EQE_QUEUE_NR),
			  (unsigned)prm_get(eqe[i], EQE_QUEUE));
	watcher_quiet(w);
}

static void watcher_down(struct watcher *w)
{
	events_down(&w->events);
	mlx5dv_devx_destroy_event_channel(w->channel);
}

/* More completions than the queue has room for, and nobody takes one. */
static void overrun(struct end *e, enum post_kind kind)
{
	for (unsigned i = 0; i <= DEPTH; i++)
		end_post(e, kind);
}

/* A request that fails by itself has a completion that says so, and no event; a queue pair that cannot
 * complete has one. */
static void pair_overruns(void)
{
	struct watcher w;
	struct end e;

	own_up(&e);
	watcher_up(&w, e.ctx);
	watcher_watches(&w, created_by(PRM_OP_CREATE_QP), e.qpn);
	overrun(&e, POST_NOP);
	watcher_sees(&w, EQE_WQ_CATAS_ERROR, EQE_QUEUE_QP, e.qpn);
	CHECK(flexio_qp_state_get(e.qp) == FLEXIO_QP_STATE_ERR);
	watcher_down(&w);
	end_close(&e);

	own_up(&e);
	watcher_up(&w, e.ctx);
	watcher_watches(&w, created_by(PRM_OP_CREATE_QP), e.qpn);
	e.post.opcode = 0x3f;
	end_fails(&e, POST_NOP, SYNDROME_QP_OPERATION);
	watcher_quiet(&w);
	watcher_down(&w);
	end_close(&e);
}

/* What a peer does to our queue pair, by the rights that it has, and how the event names it. */
static void pair_refuses(unsigned rights, uint32_t key, enum eqe_type type, int status)
{
	struct flexio_qp_attr attr;
	struct watcher w;
	struct peer p;
	struct end e;

	end_open(&e, false, FLEXIO_QPC_ST_RC);
	end_make(&e);
	peer_up(&p, false, "rc", NULL);
	attr = end_attr(&e, &p);
	attr.qp_access_mask = (int)rights;
	end_move(&e, &attr, FLEXIO_QP_STATE_RST, FLEXIO_QP_STATE_RTS);
	peer_meet(&p, &e, &attr, 4);
	watcher_up(&w, e.ctx);
	watcher_watches(&w, created_by(PRM_OP_CREATE_QP), e.qpn);
	peer_do(&p, "post %d 0 8 %llu %u", (int)IBV_WR_RDMA_WRITE, (unsigned long long)e.data,
		e.key ^ key);
	CHECK(peer_wait(&p).status == status);
	watcher_sees(&w, type, EQE_QUEUE_QP, e.qpn);
	CHECK(flexio_qp_state_get(e.qp) == FLEXIO_QP_STATE_ERR);
	watcher_down(&w);
	peer_down(&p);
	end_close(&e);
}

static void failed_pairs(void)
{
	pair_overruns();
	pair_refuses(RIGHTS, 0x1000, EQE_WQ_ACCESS_ERROR, IBV_WC_REM_ACCESS_ERR);
	pair_refuses(0, 0, EQE_WQ_INVAL_REQ_ERROR, IBV_WC_REM_INV_REQ_ERR);
}

/* The same of a send queue. */
static void failed_queue(void)
{
	for (unsigned overruns = 0; overruns < 2; overruns++) {
		struct flexio_sq *sq;
		struct watcher w;
		struct end e;

		end_open(&e, true, 0);
		sq = frames_open(&e, &e.sent, false);
		watcher_up(&w, e.ctx);
		watcher_watches(&w, created_by(PRM_OP_CREATE_SQ), e.qpn);
		e.post.bytes = FRAME;
		if (overruns) {
			overrun(&e, POST_FRAME);
			watcher_sees(&w, EQE_WQ_CATAS_ERROR, EQE_QUEUE_SQ, e.qpn);
		} else {
			e.post.opcode = 0x3f;
			end_fails(&e, POST_FRAME, SYNDROME_QP_OPERATION);
			watcher_quiet(&w);
		}
		watcher_down(&w);
		OK(flexio_sq_destroy(sq));
		end_close(&e);
	}
}

const struct host_case event_cases[] = {
	{"completion_events", completion_events}, {"frame_events", frame_events},
	{"frame_errors", frame_errors},		  {"failed_pairs", failed_pairs},
	{"failed_queue", failed_queue},		  {NULL, NULL},
};
