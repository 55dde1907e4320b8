// SPDX-License-Identifier: BSD-2-Clause
#include "dpa_activation.h"

#include <stdlib.h>

#include "dpa_calls.h"

struct activation {
	struct flexio_event_handler *handler;
	struct flexio_cq *cq;
	struct flexio_window *window;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct receiver *receiver;
	struct peer *sender;
	struct event_times times; /* by the handler, through the window */
};

static uint64_t activation_queue(struct activation *a, struct flexio_process *process)
{
	struct event_queue q = {.window = flexio_window_get_id(a->window),
				.mkey = a->mr->lkey,
				.host = (uintptr_t)&a->times};
	struct flexio_cq_attr attr = {
		.log_cq_depth = LOG_CQ,
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD,
		.thread = flexio_event_handler_get_thread(a->handler),
		.uar_id = flexio_uar_get_id(flexio_process_get_uar(process)),
	};
	flexio_uintptr_t at;

	attr.cq_ring_qmem.memtype = FLEXIO_MEMTYPE_DPA;
	OK(flexio_buf_dev_alloc(process, 64u << LOG_CQ, &attr.cq_ring_qmem.daddr));
	OK(flexio_buf_dev_memset(process, 0xff, 64u << LOG_CQ, attr.cq_ring_qmem.daddr));
	OK(flexio_buf_dev_alloc(process, 8, &attr.cq_dbr_daddr));
	OK(flexio_buf_dev_memset(process, 0, 8, attr.cq_dbr_daddr));
	OK(flexio_cq_create(process, NULL, &attr, &a->cq));
	q.ring = attr.cq_ring_qmem.daddr;
	q.cqn = flexio_cq_get_cq_num(a->cq);
	q.record = attr.cq_dbr_daddr;
	OK(flexio_copy_from_host(process, &q, sizeof(q), &at));
	return at;
}

struct activation *activation_up(struct ibv_context *ctx, struct flexio_process *process,
				 flexio_func_t *handler)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = handler};
	struct activation *a = calloc(1, sizeof(*a));

	CHECK(a);
	a->pd = ibv_alloc_pd(ctx);
	CHECK(a->pd);
	a->mr = ibv_reg_mr(a->pd, a, sizeof(*a), IBV_ACCESS_LOCAL_WRITE);
	CHECK(a->mr);
	OK(flexio_window_create(process, a->pd, &a->window));
	OK(flexio_event_handler_create(process, &attr, &a->handler));
	OK(flexio_event_handler_run(a->handler, activation_queue(a, process)));
	a->receiver = receiver_make(ctx, flexio_cq_get_cq_num(a->cq), 0);
	a->sender = peer_make(ctx);
	receiver_connect(a->receiver, peer_number(a->sender), peer_lid(ctx));
	peer_connect(a->sender, receiver_number(a->receiver), peer_lid(ctx));
	return a;
}

void activation_down(struct activation *a)
{
	peer_free(a->sender);
	receiver_free(a->receiver);
	OK(flexio_cq_destroy(a->cq));
	OK(flexio_event_handler_destroy(a->handler));
	OK(flexio_window_destroy(a->window));
	CHECK(!ibv_dereg_mr(a->mr) && !ibv_dealloc_pd(a->pd));
	free(a);
}

uint64_t activation_once(struct activation *a)
{
	receiver_post(a->receiver, 1);
	__atomic_store_n(&a->times.began_ns, 0, __ATOMIC_RELAXED);
	peer_send(a->sender, 1, 8);
	while (!__atomic_load_n(&a->times.began_ns, __ATOMIC_ACQUIRE))
		;
	CHECK(a->times.began_ns >= a->times.completed_ns);
	return a->times.began_ns - a->times.completed_ns;
}
