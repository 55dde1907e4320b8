// SPDX-License-Identifier: BSD-2-Clause
/*
 * Queues whose rings lie in memory of the host, and whose frames a handler on the DPA processes.
 *
 * A receive queue, a send queue and their completion queues have rings, and the receive queue its doorbell record,
 * in one area of the host's (FLEXIO_MEMTYPE_HOST, by a umem).  The host puts the first requests into the ring by
 * itself.  Each frame comes back to the port's own queue, where the handler counts its trips by a window and sends it
 * again.  The host sees rings, frames and counters in its memory and makes no call for that.
 *
 *	make && softhca run -- ./hostrings
 *
 * Its end is 0 if all frames have made all trips.
 */
#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostrings.h"

#define MATCH_BYTES  64u
#define MATCH_OUTER  1u
#define MATCH_TO     8u /* the destination address, behind source address and type */
#define PAGE_BYTES   4096u
#define PATIENCE_S   60u
#define LOOK_EACH_US 1000u

extern struct flexio_app *hostrings_app;
extern flexio_func_t on_frame, start;

static const uint8_t own_mac[6] = OWN_MAC;

static void check(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

#define CHECK_STATUS(call) check((call) == FLEXIO_STATUS_SUCCESS, #call)

static struct ibv_context *open_ethernet_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++) {
		struct ibv_port_attr port;

		context = ibv_open_device(list[i]);
		if (context && !ibv_query_port(context, 1, &port) &&
		    port.link_layer == IBV_LINK_LAYER_ETHERNET)
			break;
		if (context)
			ibv_close_device(context);
		context = NULL;
	}
	if (list)
		ibv_free_device_list(list);
	if (!context) {
		fprintf(stderr, "there is no Ethernet device: try softhca run -- ...\n");
		exit(1);
	}
	return context;
}

struct program {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct mlx5dv_devx_umem *umem;
	struct area *area;
	struct flexio_process *process;
	struct flexio_window *window;
	struct flexio_event_handler *handler;
	struct flexio_cq *receive_cq, *send_cq;
	struct flexio_rq *rq;
	struct flexio_sq *sq;
	struct mlx5dv_dr_domain *domain;
	struct mlx5dv_dr_table *table;
	struct mlx5dv_dr_matcher *matcher;
	struct mlx5dv_dr_action *action;
	struct mlx5dv_dr_rule *rule;
	struct work work;
};

/* ---- memory ---- */

/* The umem is for rings and records; the key is for frames and for the window. */
static void make_area(struct program *p)
{
	size_t bytes = (sizeof(*p->area) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;

	p->area = aligned_alloc(PAGE_BYTES, bytes);
	check(p->area != NULL, "aligned_alloc");
	memset(p->area, 0, bytes);
	/* Entries begin with the owner bit that says that they are not the reader's yet. */
	memset(p->area->receive_cq, 0xff, sizeof(p->area->receive_cq));
	memset(p->area->send_cq, 0xff, sizeof(p->area->send_cq));
	p->umem = mlx5dv_devx_umem_reg(p->context, p->area, bytes, IBV_ACCESS_LOCAL_WRITE);
	check(p->umem != NULL, "mlx5dv_devx_umem_reg");
	p->pd = ibv_alloc_pd(p->context);
	p->mr = p->pd ? ibv_reg_mr(p->pd, p->area, bytes, IBV_ACCESS_LOCAL_WRITE) : NULL;
	check(p->mr != NULL, "ibv_reg_mr");
	CHECK_STATUS(flexio_window_create(p->process, p->pd, &p->window));
	p->work.area = (uintptr_t)p->area;
	p->work.key = p->mr->lkey;
	p->work.window = flexio_window_get_id(p->window);
}

/* That part of the area, as queues name it. */
static struct flexio_qmem host_memory(const struct program *p, size_t offset)
{
	return (struct flexio_qmem){
		.memtype = FLEXIO_MEMTYPE_HOST,
		.umem_id = p->umem->umem_id,
		.humem_offset = offset,
	};
}

/* ---- queues ---- */

static struct flexio_cq *make_cq(struct program *p, struct flexio_cq_attr *attr, size_t offset)
{
	uint32_t record[2] = {0};
	struct flexio_cq *cq;

	attr->log_cq_depth = LOG_ENTRIES;
	attr->uar_id = flexio_uar_get_id(flexio_process_get_uar(p->process));
	attr->cq_ring_qmem = host_memory(p, offset);
	CHECK_STATUS(
		flexio_copy_from_host(p->process, record, sizeof(record), &attr->cq_dbr_daddr));
	CHECK_STATUS(flexio_cq_create(p->process, NULL, attr, &cq));
	return cq;
}

static void make_receive_queue(struct program *p)
{
	struct flexio_cq_attr cq = {
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD,
		.thread = flexio_event_handler_get_thread(p->handler),
	};
	struct flexio_wq_attr wq = {
		.log_wq_depth = LOG_ENTRIES,
		.pd = p->pd,
		.wq_ring_qmem = host_memory(p, offsetof(struct area, receives)),
		.wq_dbr_qmem = host_memory(p, offsetof(struct area, receive_record)),
	};

	p->receive_cq = make_cq(p, &cq, offsetof(struct area, receive_cq));
	p->work.cqn = flexio_cq_get_cq_num(p->receive_cq);
	p->work.cq_record = cq.cq_dbr_daddr;
	CHECK_STATUS(flexio_rq_create(p->process, NULL, (uint32_t)p->work.cqn, &wq, &p->rq));
	for (unsigned int i = 0; i < ENTRIES; i++)
		mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)p->area->receives[i], FRAME_BYTES,
				    p->mr->lkey, (uintptr_t)&p->area->received[i]);
	__atomic_store_n(&p->area->receive_record[0], htobe32(ENTRIES), __ATOMIC_RELEASE);
}

static void make_send_queue(struct program *p)
{
	struct flexio_cq_attr cq = {
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ,
		.overrun_ignore = 1,
	};
	struct flexio_wq_attr wq = {
		.log_wq_depth = LOG_ENTRIES,
		.pd = p->pd,
		.uar_id = flexio_uar_get_id(flexio_process_get_uar(p->process)),
		.wq_ring_qmem = host_memory(p, offsetof(struct area, requests)),
	};

	p->send_cq = make_cq(p, &cq, offsetof(struct area, send_cq));
	CHECK_STATUS(
		flexio_sq_create(p->process, NULL, flexio_cq_get_cq_num(p->send_cq), &wq, &p->sq));
	p->work.sqn = flexio_sq_get_wq_num(p->sq);
}

/* Frames to our address. */
static void make_rule(struct program *p)
{
	struct {
		struct mlx5dv_flow_match_parameters parameters;
		uint8_t bytes[MATCH_BYTES];
	} mask = {.parameters.match_sz = MATCH_BYTES}, value = {.parameters.match_sz = MATCH_BYTES};

	memset(mask.bytes + MATCH_TO, 0xff, 6);
	memcpy(value.bytes + MATCH_TO, own_mac, 6);
	p->domain = mlx5dv_dr_domain_create(p->context, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	check(p->domain != NULL, "mlx5dv_dr_domain_create");
	p->table = mlx5dv_dr_table_create(p->domain, 0);
	check(p->table != NULL, "mlx5dv_dr_table_create");
	p->matcher = mlx5dv_dr_matcher_create(p->table, 0, MATCH_OUTER, &mask.parameters);
	check(p->matcher != NULL, "mlx5dv_dr_matcher_create");
	p->action = mlx5dv_dr_action_create_dest_devx_tir(flexio_rq_get_tir(p->rq));
	check(p->action != NULL, "mlx5dv_dr_action_create_dest_devx_tir");
	p->rule = mlx5dv_dr_rule_create(p->matcher, &value.parameters, 1, &p->action);
	check(p->rule != NULL, "mlx5dv_dr_rule_create");
}

/* The host's own requests, in the ring that device code goes on with. */
static void put_requests(struct program *p)
{
	for (unsigned int i = 0; i < FRAMES; i++) {
		struct frame *f = &p->area->sent[i];
		struct mlx5_wqe_ctrl_seg *ctrl = (struct mlx5_wqe_ctrl_seg *)p->area->requests[i];

		memcpy(f->to, own_mac, 6);
		memcpy(f->from, own_mac, 6);
		f->type[0] = ETHERTYPE >> 8;
		f->type[1] = ETHERTYPE & 0xff;
		f->number = (uint8_t)i;
		f->trips = 1;
		mlx5dv_set_ctrl_seg(ctrl, (uint16_t)i, MLX5_OPCODE_SEND, 0, (uint32_t)p->work.sqn,
				    0, 3, 0, 0);
		/* the Ethernet segment says nothing */
		mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)ctrl + 2, FRAME_BYTES, p->mr->lkey,
				    (uintptr_t)f);
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* ---- the program ---- */

static void begin(struct program *p, flexio_uintptr_t *work)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &on_frame};

	p->context = open_ethernet_device();
	CHECK_STATUS(flexio_process_create(p->context, hostrings_app, NULL, &p->process));
	CHECK_STATUS(flexio_event_handler_create(p->process, &attr, &p->handler));
	make_area(p);
	make_receive_queue(p);
	make_send_queue(p);
	put_requests(p);
	CHECK_STATUS(flexio_copy_from_host(p->process, &p->work, sizeof(p->work), work));
	CHECK_STATUS(flexio_event_handler_run(p->handler, *work));
	make_rule(p);
}

static void end(struct program *p)
{
	mlx5dv_dr_rule_destroy(p->rule);
	mlx5dv_dr_action_destroy(p->action);
	mlx5dv_dr_matcher_destroy(p->matcher);
	mlx5dv_dr_table_destroy(p->table);
	mlx5dv_dr_domain_destroy(p->domain);
	CHECK_STATUS(flexio_rq_destroy(p->rq));
	CHECK_STATUS(flexio_sq_destroy(p->sq));
	CHECK_STATUS(flexio_cq_destroy(p->receive_cq));
	CHECK_STATUS(flexio_cq_destroy(p->send_cq));
	CHECK_STATUS(flexio_event_handler_destroy(p->handler));
	CHECK_STATUS(flexio_window_destroy(p->window));
	CHECK_STATUS(flexio_process_destroy(p->process));
	/* The umem goes when no queue lies in it any more. */
	check(!mlx5dv_devx_umem_dereg(p->umem) && !ibv_dereg_mr(p->mr) && !ibv_dealloc_pd(p->pd) &&
		      !ibv_close_device(p->context),
	      "the end");
	free(p->area);
}

/* Each frame lies where it came last, with all of its trips. */
static int frames_are_right(const struct area *a)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < ENTRIES; i++)
		if (a->received[i].trips == TRIPS)
			found |= 1u << a->received[i].number;
	return found == (1u << FRAMES) - 1 && a->arrivals == (uint64_t)FRAMES * TRIPS && !a->errors;
}

int main(void)
{
	struct program p = {0};
	flexio_uintptr_t work;
	uint64_t status = 1;
	int right;

	begin(&p, &work);
	CHECK_STATUS(flexio_process_call(p.process, &start, &status, (uint64_t)work));
	check(!status, "the first bell");
	for (unsigned int i = 0; i < PATIENCE_S * 1000000 / LOOK_EACH_US; i++) {
		if (__atomic_load_n(&p.area->finished, __ATOMIC_ACQUIRE) == FRAMES)
			break;
		usleep(LOOK_EACH_US);
	}
	right = frames_are_right(p.area);
	printf("%u frames made %u trips each by rings in memory of the host: %s\n", FRAMES, TRIPS,
	       right ? "right" : "wrong");
	end(&p);
	return !right;
}
