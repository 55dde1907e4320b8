// SPDX-License-Identifier: BSD-2-Clause
/* Event handlers, UARs and outboxes. */
#include <string.h>
#include <unistd.h>

#include "host.h"
#include "prm/cmd_cq_eq.h"

static struct flexio_event_handler *handler_of(struct flexio_process *p,
					       struct flexio_event_handler_attr attr)
{
	struct flexio_event_handler *eh;

	attr.host_stub_func = &handle;
	OK(flexio_event_handler_create(p, &attr, &eh));
	return eh;
}

static void handler_fails(struct flexio_process *p, struct flexio_event_handler_attr attr)
{
	struct flexio_event_handler *eh = (void *)p;

	FAILS(flexio_event_handler_create(p, &attr, &eh));
	CHECK(!eh);
}

static void handlers_bad(struct flexio_process *p)
{
	struct flexio_event_handler *eh;

	handler_fails(p, (struct flexio_event_handler_attr){0});
	handler_fails(p, (struct flexio_event_handler_attr){.host_stub_func = (flexio_func_t *)p});
	handler_fails(
		p, (struct flexio_event_handler_attr){.host_stub_func = &handle,
						      .affinity = {FLEXIO_AFFINITY_STRICT, 254}});
	handler_fails(p,
		      (struct flexio_event_handler_attr){.host_stub_func = &handle,
							 .affinity = {FLEXIO_AFFINITY_GROUP, 77}});
	handler_fails(p, (struct flexio_event_handler_attr){.host_stub_func = &handle,
							    .affinity = {7, 0}});
	FAILS(flexio_event_handler_create(p, NULL, &eh));
	FAILS(flexio_event_handler_create(NULL, NULL, &eh));
	FAILS(flexio_event_handler_run(NULL, 0));
	FAILS(flexio_event_handler_destroy(NULL));
	CHECK(flexio_event_handler_get_id(NULL) == UINT32_MAX);
	CHECK(flexio_event_handler_get_obj_id(NULL) == UINT32_MAX);
	CHECK(!flexio_event_handler_get_thread(NULL));
}

static void handlers(void)
{
	struct flexio_event_handler *eh[3];
	struct flexio_cq *cq[3];
	uint64_t q[3];
	struct bench b;

	bench_up(&b, 0);
	handlers_bad(b.p);
	for (unsigned i = 0; i < 3; i++) {
		struct flexio_event_handler_attr attr = {
			.continuable = i == 2,
			.thread_local_storage_daddr = i ? b.q + i : 0,
			.affinity = {i ? FLEXIO_AFFINITY_STRICT : FLEXIO_AFFINITY_NONE, 7},
		};

		eh[i] = handler_of(b.p, attr);
		b.attr.thread = flexio_event_handler_get_thread(eh[i]);
		CHECK(b.attr.thread);
		q[i] = queue_make(b.p, 4, QUEUE_TAKES_NONE, &b.attr);
		OK(flexio_cq_create(b.p, NULL, &b.attr, &cq[i]));
		/* An event that comes too early waits. */
		call2(b.p, &complete, flexio_cq_get_cq_num(cq[i]), 1);
		word_stays(b.p, q[i] + offsetof(struct queue, activations), 0);
	}
	for (unsigned i = 0; i < 3; i++) {
		uint32_t id = flexio_event_handler_get_id(eh[i]);

		OK(flexio_event_handler_run(eh[i], q[i]));
		word_stays(b.p, q[i] + offsetof(struct queue, activations), 1);
		CHECK(call1(b.p, &peek, q[i] + offsetof(struct queue, thread_id)) == id);
		CHECK(flexio_event_handler_get_obj_id(eh[i]) != UINT32_MAX);
		CHECK(call1(b.p, &peek, q[i] + offsetof(struct queue, local_storage)) ==
		      (i ? b.q + i : 0));
		FAILS(flexio_event_handler_run(eh[i], q[i]));
		OK(flexio_cq_destroy(cq[i]));
		OK(flexio_event_handler_destroy(eh[i]));
		FAILS(flexio_event_handler_destroy(eh[i]));
	}
	bench_down(&b);
}

/* SOFTHCA_DPA_GROUPS has a group 3 of two units, and no other. */
static void groups(void)
{
	struct flexio_event_handler_attr attr = {.affinity = {FLEXIO_AFFINITY_GROUP, 3}};
	struct flexio_event_handler *eh[4];
	struct flexio_cq *cq[4];
	struct bench b;
	uint64_t q[4];

	bench_up(&b, 0);
	attr.affinity.id = 4;
	attr.host_stub_func = &handle;
	handler_fails(b.p, attr);
	attr.affinity.id = 3;
	for (unsigned i = 0; i < 4; i++) {
		eh[i] = handler_of(b.p, attr);
		b.attr.thread = flexio_event_handler_get_thread(eh[i]);
		q[i] = queue_make(b.p, 4, i < 2 ? QUEUE_WAITS : 0, &b.attr);
		OK(flexio_event_handler_run(eh[i], q[i]));
		OK(flexio_cq_create(b.p, NULL, &b.attr, &cq[i]));
		call2(b.p, &complete, flexio_cq_get_cq_num(cq[i]), 1);
		if (i < 2)
			word_await(b.p, q[i] + offsetof(struct queue, activations), 1);
	}
	/* Both units are taken, until one is left. */
	word_stays(b.p, q[2] + offsetof(struct queue, activations), 0);
	word_stays(b.p, q[3] + offsetof(struct queue, activations), 0);
	for (unsigned i = 0; i < 2; i++)
		call2(b.p, &poke, q[i] + offsetof(struct queue, go), 1);
	for (unsigned i = 0; i < 4; i++) {
		word_await(b.p, q[i] + offsetof(struct queue, ends), 1);
		OK(flexio_cq_destroy(cq[i]));
		OK(flexio_event_handler_destroy(eh[i]));
	}
	bench_down(&b);
}

static void two_queues(void)
{
	struct flexio_cq *second;
	struct bench b;
	uint64_t q;

	bench_up(&b, QUEUE_ARMS);
	bench_queue(&b, 4);
	q = queue_make(b.p, 3, QUEUE_ARMS, &b.attr);
	OK(flexio_cq_create(b.p, NULL, &b.attr, &second));
	call2(b.p, &poke, q + offsetof(struct queue, cqn), flexio_cq_get_cq_num(second));
	queue_set(&b, other, q);
	for (uint64_t i = 1; i <= 20; i++) {
		call2(b.p, &complete, b.cqn, 1);
		call2(b.p, &complete, flexio_cq_get_cq_num(second), 2);
		queue_await(&b, taken, i);
		word_await(b.p, q + offsetof(struct queue, taken), 2 * i);
	}
	OK(flexio_cq_destroy(second));
	queue_set(&b, other, 0);
	bench_down(&b);

	bench_up(&b, QUEUE_ARMS | QUEUE_FINISHES);
	bench_queue(&b, 4);
	call2(b.p, &complete, b.cqn, 1);
	queue_await(&b, ends, 1);
	call2(b.p, &complete, b.cqn, 1);
	queue_stays(&b, activations, 1);
	bench_down(&b);

	bench_up(&b, QUEUE_RETRIGGERS);
	bench_queue(&b, 4);
	queue_set(&b, limit, 100);
	call2(b.p, &complete, b.cqn, 1);
	queue_stays(&b, ends, 100);
	bench_down(&b);
}

static void outboxes(void)
{
	struct flexio_outbox_attr attr = {0};
	struct flexio_outbox *outbox;
	struct flexio_uar *uar;
	struct bench b;
	uint64_t id;

	bench_up(&b, QUEUE_ARMS);
	bench_queue(&b, 4);
	OK(flexio_uar_create(b.p, &uar));
	CHECK(flexio_uar_get_id(uar) != UINT32_MAX &&
	      flexio_uar_get_id(uar) != flexio_uar_get_id(flexio_process_get_uar(b.p)));
	CHECK(flexio_uar_get_extended_id(uar) == UINT32_MAX);
	attr.uar = uar; /* is ignored */
	OK(flexio_outbox_create(b.p, &attr, &outbox));
	CHECK(flexio_outbox_get_uar(outbox) == flexio_process_get_uar(b.p));
	id = flexio_outbox_get_id(outbox);
	CHECK(id && id <= 0xffff);
	CHECK(!call3(b.p, &complete_by, b.cqn, id, 0) && !call3(b.p, &complete_by, b.cqn, id, 1));
	queue_stays(&b, taken, 2);
	/* One that is not there is refused, and the one before stays. */
	CHECK(call3(b.p, &complete_by, b.cqn, id + 1, 0) == 1);
	queue_stays(&b, taken, 3);
	OK(flexio_outbox_destroy(outbox));
	CHECK(call3(b.p, &complete_by, b.cqn, id, 0) == 1);
	attr.en_pcc = 1;
	FAILS(flexio_outbox_create(b.p, &attr, &outbox));
	FAILS(flexio_outbox_create(b.p, NULL, &outbox));
	FAILS(flexio_outbox_destroy(NULL));
	FAILS(flexio_uar_destroy(flexio_process_get_uar(b.p)));
	FAILS(flexio_uar_destroy(NULL));
	CHECK(flexio_uar_get_id(NULL) == UINT32_MAX && flexio_outbox_get_id(NULL) == UINT32_MAX);
	CHECK(!flexio_outbox_get_uar(NULL) && !flexio_process_get_uar(NULL));
	OK(flexio_uar_destroy(uar));
	bench_down(&b);
}

/* A queue of a device in a page of the host: ring, then record. */
struct host_queue {
	uint8_t *page;
	struct mlx5dv_devx_umem *umem;
	struct mlx5dv_devx_obj *cq;
	uint32_t cqn;
};

#define HOST_RECORD 2048u

static void host_queue_make(struct host_queue *h, struct ibv_context *ctx, uint32_t uar)
{
	uint8_t in[CREATE_CQ_IN_BYTES] = {0}, out[CMD_OUT_BYTES] = {0}, *c = in + CREATE_CQ_CONTEXT;
	uint32_t eqn;

	h->page = aligned_alloc(4096, 4096);
	CHECK(h->page && !mlx5dv_devx_query_eqn(ctx, 0, &eqn));
	memset(h->page, 0xff, HOST_RECORD);
	memset(h->page + HOST_RECORD, 0, 8);
	h->umem = mlx5dv_devx_umem_reg(ctx, h->page, 4096, IBV_ACCESS_LOCAL_WRITE);
	CHECK(h->umem);
	prm_set(in, CMD_IN_OPCODE, PRM_OP_CREATE_CQ);
	prm_set(in, CREATE_CQ_UMEM, h->umem->umem_id);
	prm_set(c, CQC_DBR_UMEM, h->umem->umem_id);
	prm_set(c, CQC_DBR_ADDR, HOST_RECORD);
	prm_set(c, CQC_LOG_SIZE, 2);
	prm_set(c, CQC_UAR_PAGE, uar);
	prm_set(c, CQC_EQN, eqn);
	h->cq = mlx5dv_devx_obj_create(ctx, in, sizeof(in), out, sizeof(out));
	CHECK(h->cq);
	h->cqn = prm_get32(out, CMD_OUT_NUMBER);
}

static void host_queue_free(struct host_queue *h)
{
	CHECK(!mlx5dv_devx_obj_destroy(h->cq) && !mlx5dv_devx_umem_dereg(h->umem));
	free(h->page);
}

/* A queue of another device, which the process rings. */
static void extended(void)
{
	struct ibv_context *second = device_open(1);
	struct flexio_uar *uar;
	struct host_queue h;
	struct bench b;

	bench_up(&b, 0);
	FAILS(flexio_uar_extend(NULL, second, &uar));
	FAILS(flexio_uar_extend(flexio_process_get_uar(b.p), NULL, &uar));
	OK(flexio_uar_extend(flexio_process_get_uar(b.p), second, &uar));
	CHECK(flexio_uar_get_extended_id(uar) != UINT32_MAX);
	host_queue_make(&h, second, flexio_uar_get_id(uar));
	/* The process's own UAR is another device's. */
	call2(b.p, &complete, h.cqn, 1);
	CHECK(h.page[63] == 0xff);
	CHECK(!call2(b.p, &complete_extended, h.cqn, flexio_uar_get_extended_id(uar)));
	CHECK(!h.page[63] && h.page[64] == 0xff);
	CHECK(call2(b.p, &complete_extended, h.cqn, 12345) == 1 && h.page[64 + 63] == 0xff);
	FAILS(flexio_uar_destroy(uar));
	host_queue_free(&h);
	OK(flexio_uar_destroy(uar));
	bench_down(&b);
	CHECK(!ibv_close_device(second));
}

static void left(void)
{
	for (unsigned i = 0; i < 20; i++) {
		struct flexio_outbox_attr attr = {0};
		struct flexio_outbox *outbox;
		struct flexio_uar *uar;
		struct bench b;

		bench_up(&b, i % 2 ? QUEUE_WAITS : QUEUE_RETRIGGERS);
		queue_set(&b, limit, UINT64_MAX);
		bench_queue(&b, 4);
		OK(flexio_uar_create(b.p, &uar));
		OK(flexio_outbox_create(b.p, &attr, &outbox));
		call2(b.p, &complete, b.cqn, 1);
		queue_await(&b, activations, 1);
		OK(flexio_process_destroy(b.p));
		FAILS(flexio_cq_destroy(b.cq));
		FAILS(flexio_event_handler_destroy(b.eh));
		FAILS(flexio_uar_destroy(uar));
		CHECK(!ibv_close_device(b.ctx));
	}
}

const struct host_case handler_cases[] = {
	{"handlers", handlers}, {"groups", groups},	{"two_queues", two_queues},
	{"outboxes", outboxes}, {"extended", extended}, {"left", left},
	{NULL, NULL},
};
