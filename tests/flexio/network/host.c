// SPDX-License-Identifier: BSD-2-Clause
/* The host program of tests/flexio/network; the argument is the name of a case. */
#include "host.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#define PATIENT_S 60
#define CQE_BYTES 64u
#define CQE_WORDS 8u
#define OUTER	  1u

struct ibv_context *device_open(int link_layer)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *found = NULL;

	CHECK(list);
	for (int i = 0; list[i] && !found; i++) {
		struct ibv_context *ctx = ibv_open_device(list[i]);
		struct ibv_port_attr attr;

		CHECK(ctx && !ibv_query_port(ctx, 1, &attr));
		if (attr.link_layer == link_layer)
			found = ctx;
		else
			CHECK(!ibv_close_device(ctx));
	}
	ibv_free_device_list(list);
	CHECK(found);
	return found;
}

uint64_t call1(struct flexio_process *p, flexio_func_t *f, uint64_t a)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(p, f, &value, a));
	return value;
}

void word_await(struct flexio_process *p, uint64_t addr, uint64_t value)
{
	time_t end = time(NULL) + PATIENT_S;

	while (call1(p, &peek, addr) < value && time(NULL) < end)
		usleep(200);
	CHECK_SAY(call1(p, &peek, addr) == value, "%llu, not %llu",
		  (unsigned long long)call1(p, &peek, addr), (unsigned long long)value);
}

void bench_up_on(struct bench *b, int link_layer)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &reflect};
	uint32_t uar;

	memset(b, 0, sizeof(*b));
	b->ctx = device_open(link_layer);
	OK(flexio_process_create(b->ctx, network_app, NULL, &b->p));
	OK(flexio_event_handler_create(b->p, &attr, &b->eh));
	b->pd = flexio_process_get_pd(b->p);
	uar = flexio_uar_get_id(flexio_process_get_uar(b->p));
	b->rq_attr = (struct flexio_wq_attr){.log_wq_depth = LOG_DEPTH, .user_index = USER_INDEX};
	b->sq_attr = (struct flexio_wq_attr){
		.log_wq_depth = LOG_DEPTH, .uar_id = uar, .user_index = USER_INDEX + 1};
}

static uint64_t heap_of(struct bench *b, size_t bytes, int value)
{
	flexio_uintptr_t at;

	OK(flexio_buf_dev_alloc(b->p, bytes, &at));
	OK(flexio_buf_dev_memset(b->p, value, bytes, at));
	return at;
}

void ring_memory(struct bench *b, struct ring *r, bool activates)
{
	struct flexio_cq_attr attr = {
		.log_cq_depth = LOG_DEPTH,
		.element_type = activates ? FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD
					  : FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ,
		.uar_id = b->sq_attr.uar_id,
		.overrun_ignore = !activates,
	};
	struct flexio_mkey_attr key = {b->pd, 0, (size_t)DEPTH * SLOT_BYTES,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};

	memset(r, 0, sizeof(*r));
	r->cq_ring = heap_of(b, CQE_BYTES << LOG_DEPTH, 0xff);
	r->cq_record = heap_of(b, 8, 0);
	r->ring = heap_of(b, 64u << LOG_DEPTH, 0);
	r->record = heap_of(b, 8, 0);
	r->data = heap_of(b, (size_t)DEPTH * SLOT_BYTES, 0);
	if (activates)
		attr.thread = flexio_event_handler_get_thread(b->eh);
	attr.cq_ring_qmem.daddr = r->cq_ring;
	attr.cq_dbr_daddr = r->cq_record;
	OK(flexio_cq_create(b->p, b->other, &attr, &r->cq));
	r->cqn = flexio_cq_get_cq_num(r->cq);
	key.daddr = r->data;
	OK(flexio_device_mkey_create(b->p, &key, &r->key));
}

void ring_down(struct bench *b, struct ring *r)
{
	const uint64_t all[] = {r->cq_ring, r->cq_record, r->ring, r->record, r->data};

	if (r->rq)
		OK(flexio_rq_destroy(r->rq));
	if (r->sq)
		OK(flexio_sq_destroy(r->sq));
	OK(flexio_device_mkey_destroy(r->key));
	OK(flexio_cq_destroy(r->cq));
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		OK(flexio_buf_dev_free(b->p, all[i]));
}

void rq_up(struct bench *b, struct ring *r)
{
	struct mlx5_wqe_data_seg wqes[DEPTH];
	uint32_t record[2] = {htobe32(DEPTH), 0};

	for (unsigned i = 0; i < DEPTH; i++)
		mlx5dv_set_data_seg(&wqes[i], SLOT_BYTES, flexio_mkey_get_id(r->key),
				    r->data + i * SLOT_BYTES);
	OK(flexio_host2dev_memcpy(b->p, wqes, sizeof(wqes), r->ring));
	b->rq_attr.wq_ring_qmem.daddr = r->ring;
	b->rq_attr.wq_dbr_qmem.daddr = r->record;
	OK(flexio_rq_create(b->p, b->other, r->cqn, &b->rq_attr, &r->rq));
	OK(flexio_host2dev_memcpy(b->p, record, sizeof(record), r->record));
	r->number = flexio_rq_get_wq_num(r->rq);
	CHECK(r->number && r->number < 1u << 24 && flexio_rq_get_tir(r->rq));
}

void sq_up(struct bench *b, struct ring *r)
{
	b->sq_attr.wq_ring_qmem.daddr = r->ring;
	OK(flexio_sq_create(b->p, b->other, r->cqn, &b->sq_attr, &r->sq));
	r->number = flexio_sq_get_wq_num(r->sq);
	CHECK(r->number && r->number < 1u << 24);
}

void rule_up(struct bench *b, struct rule *rule, struct mlx5dv_devx_obj *tir)
{
	struct {
		struct mlx5dv_flow_match_parameters p;
		uint8_t bytes[64];
	} mask = {.p.match_sz = 64}, value = {.p.match_sz = 64};

	/* smac */
	memset(mask.bytes, 0xff, 6);
	memcpy(value.bytes, PEER_MAC, 6);
	rule->domain =
		mlx5dv_dr_domain_create(b->other ? b->other : b->ctx, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	CHECK(rule->domain);
	rule->table = mlx5dv_dr_table_create(rule->domain, 0);
	CHECK(rule->table);
	rule->matcher = mlx5dv_dr_matcher_create(rule->table, 0, OUTER, &mask.p);
	rule->action = mlx5dv_dr_action_create_dest_devx_tir(tir);
	CHECK(rule->matcher && rule->action);
	rule->rule = mlx5dv_dr_rule_create(rule->matcher, &value.p, 1, &rule->action);
	CHECK(rule->rule);
}

void rule_down(struct rule *rule)
{
	CHECK(!mlx5dv_dr_rule_destroy(rule->rule) && !mlx5dv_dr_action_destroy(rule->action) &&
	      !mlx5dv_dr_matcher_destroy(rule->matcher) && !mlx5dv_dr_table_destroy(rule->table) &&
	      !mlx5dv_dr_domain_destroy(rule->domain));
	memset(rule, 0, sizeof(*rule));
}

void reflector_make(struct bench *b)
{
	struct network n;

	ring_memory(b, &b->in, true);
	ring_memory(b, &b->out, false);
	rq_up(b, &b->in);
	sq_up(b, &b->out);
	n = (struct network){
		.cqn = b->in.cqn,
		.cq_ring = b->in.cq_ring,
		.cq_record = b->in.cq_record,
		.rq_ring = b->in.ring,
		.rq_record = b->in.record,
		.sqn = b->out.number,
		.sq_ring = b->out.ring,
		.sq_data = b->out.data,
		.key = flexio_mkey_get_id(b->out.key),
		.elsewhere = b->other ? 1 + b->across : 0,
		.device = b->device,
	};
	OK(flexio_copy_from_host(b->p, &n, sizeof(n), &b->n));
	rule_up(b, &b->rule, flexio_rq_get_tir(b->in.rq));
}

void reflector_up(struct bench *b)
{
	reflector_make(b);
	OK(flexio_event_handler_run(b->eh, b->n));
}

void bench_down(struct bench *b)
{
	if (b->rule.rule)
		rule_down(&b->rule);
	if (b->out.cq)
		ring_down(b, &b->out);
	if (b->in.cq)
		ring_down(b, &b->in);
	OK(flexio_event_handler_destroy(b->eh));
	OK(flexio_process_destroy(b->p));
	CHECK(!ibv_close_device(b->ctx));
}

bool cq_look(struct bench *b, struct ring *r, struct completion *out)
{
	uint64_t at = r->cq_ring + r->ci % DEPTH * CQE_BYTES, words[CQE_WORDS];
	const struct mlx5_cqe64 *cqe = (const void *)words;

	for (unsigned i = 0; i < CQE_WORDS; i++)
		words[i] = call1(b->p, &peek, at + 8u * (CQE_WORDS - 1 - i));
	for (unsigned i = 0; i < CQE_WORDS / 2; i++) {
		uint64_t w = words[i];

		words[i] = words[CQE_WORDS - 1 - i];
		words[CQE_WORDS - 1 - i] = w;
	}
	if ((cqe->op_own & 1) != (r->ci / DEPTH & 1))
		return false;
	r->ci++;
	*out = (struct completion){
		.opcode = cqe->op_own >> 4,
		.syndrome = ((const struct mlx5_err_cqe *)cqe)->syndrome,
		.counter = be16toh(cqe->wqe_counter),
		.bytes = be32toh(cqe->byte_cnt),
		.user_index = be32toh(cqe->srqn_uidx) & 0xffffff,
		.qpn = be32toh(cqe->sop_drop_qpn) & 0xffffff,
	};
	return true;
}

void cq_next(struct bench *b, struct ring *r, struct completion *out)
{
	time_t end = time(NULL) + PATIENT_S;
	bool found;

	while (!(found = cq_look(b, r, out)) && time(NULL) < end)
		usleep(200);
	CHECK(found);
}

void requests(struct bench *b, struct request *r, uint64_t count)
{
	flexio_uintptr_t at;

	r->count = count;
	OK(flexio_copy_from_host(b->p, r, sizeof(*r), &at));
	CHECK(!call1(b->p, &send_requests, at));
	r->pi += count;
	OK(flexio_buf_dev_free(b->p, at));
}

int main(int argc, char **argv)
{
	const struct host_case *const all[] = {frame_cases,	refused_cases, pair_cases,
					       flow_cases,	rule_cases,    outside_cases,
					       gone_cases,	scatter_cases, switch_cases,
					       processor_cases, counter_cases};

	CHECK(argc > 1);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		for (const struct host_case *c = all[i]; c->name; c++)
			if (!strcmp(c->name, argv[1])) {
				c->run();
				return 0;
			}
	CHECK_SAY(false, "no case %s", argv[1]);
}
