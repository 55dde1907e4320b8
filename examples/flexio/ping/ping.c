// SPDX-License-Identifier: BSD-2-Clause
/*
 * A packet processor: device code that answers ping.
 *
 * A handler on the DPA takes frames from a receive queue, and where one is an ARP request or an ICMP echo
 * request for its address, sends the answer from a send queue.  The host makes the queues and the rules
 * that lead frames to them, and has no part in it then.
 *
 *	make
 *	softhca fabric up --link-types eth,eth
 *	softhca fabric tie mlx5_0 tap=soft0
 *	ip addr add 192.0.2.1/24 dev soft0
 *	softhca run -- ./ping &
 *	ping 192.0.2.2
 *
 * As root, or in 'unshare -rn'.  "make check" does it with a file instead: softhca fabric tie mlx5_0
 * in=requests.pcap out=answers.pcap.
 *
 * ping [DEVICE [ADDRESS [ANSWERS]]]: ends after so many answers, or with SIGINT or SIGTERM.
 */
#include <arpa/inet.h>
#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ping.h"

#define CQE_BYTES    64u
#define WQE_BYTES    64u
#define MATCH_BYTES  64u
#define MATCH_OUTER  1u
#define MATCH_TO     8u /* the destination address, behind source address and type */
#define LOOK_EACH_US 10000u

extern struct flexio_app *ping_app;
extern flexio_func_t on_frame, read_counter;

static volatile sig_atomic_t ended;

static void on_signal(int sig)
{
	(void)sig;
	ended = 1;
}

static void check(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

#define CHECK_STATUS(call) check((call) == FLEXIO_STATUS_SUCCESS, #call)

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = NULL;

	for (int i = 0; list && list[i] && !context; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			context = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	if (!context) {
		fprintf(stderr, "there is no device %s: try softhca run -- ...\n", name);
		exit(1);
	}
	return context;
}

/* The objects, and what the device code is told of them. */
struct program {
	struct ibv_context *context;
	struct flexio_process *process;
	struct flexio_event_handler *handler;
	struct flexio_cq *receive_cq, *send_cq;
	struct flexio_rq *rq;
	struct flexio_sq *sq;
	struct flexio_mkey *receive_key, *send_key;
	struct mlx5dv_dr_domain *domain;
	struct mlx5dv_dr_table *table;
	struct mlx5dv_dr_matcher *matcher;
	struct mlx5dv_dr_action *action;
	struct mlx5dv_dr_rule *rules[2];
	struct responder responder;
	flexio_uintptr_t responder_at;
};

static flexio_uintptr_t device_memory(struct program *p, size_t bytes, int value)
{
	flexio_uintptr_t at;

	CHECK_STATUS(flexio_buf_dev_alloc(p->process, bytes, &at));
	CHECK_STATUS(flexio_buf_dev_memset(p->process, value, bytes, at));
	return at;
}

static struct flexio_mkey *device_key(struct program *p, flexio_uintptr_t at)
{
	struct flexio_mkey_attr attr = {
		.pd = flexio_process_get_pd(p->process),
		.daddr = at,
		.len = (size_t)ENTRIES * FRAME_BYTES,
		.access = IBV_ACCESS_LOCAL_WRITE,
	};
	struct flexio_mkey *key;

	CHECK_STATUS(flexio_device_mkey_create(p->process, &attr, &key));
	return key;
}

/* Its entries begin with the owner bit that says that they are not the reader's yet. */
static struct flexio_cq *make_cq(struct program *p, struct flexio_cq_attr *attr)
{
	struct flexio_cq *cq;

	attr->log_cq_depth = LOG_ENTRIES;
	attr->uar_id = flexio_uar_get_id(flexio_process_get_uar(p->process));
	attr->cq_ring_qmem.daddr = device_memory(p, CQE_BYTES * ENTRIES, 0xff);
	attr->cq_dbr_daddr = device_memory(p, 8, 0);
	CHECK_STATUS(flexio_cq_create(p->process, NULL, attr, &cq));
	return cq;
}

static void make_receive_queue(struct program *p)
{
	struct flexio_cq_attr cq = {
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD,
		.thread = flexio_event_handler_get_thread(p->handler),
	};
	struct flexio_wq_attr wq = {.log_wq_depth = LOG_ENTRIES};
	struct responder *r = &p->responder;
	struct mlx5_wqe_data_seg receives[ENTRIES];
	uint32_t record[2] = {htobe32(ENTRIES), 0};

	p->receive_cq = make_cq(p, &cq);
	r->receive_cq_ring = cq.cq_ring_qmem.daddr;
	r->receive_cq_record = cq.cq_dbr_daddr;
	r->receive_cqn = flexio_cq_get_cq_num(p->receive_cq);
	r->receive_data = device_memory(p, (size_t)ENTRIES * FRAME_BYTES, 0);
	p->receive_key = device_key(p, r->receive_data);
	for (unsigned int i = 0; i < ENTRIES; i++)
		mlx5dv_set_data_seg(&receives[i], FRAME_BYTES, flexio_mkey_get_id(p->receive_key),
				    r->receive_data + (uint64_t)i * FRAME_BYTES);
	wq.wq_ring_qmem.daddr = device_memory(p, sizeof(receives), 0);
	wq.wq_dbr_qmem.daddr = r->receive_record = device_memory(p, sizeof(record), 0);
	CHECK_STATUS(flexio_host2dev_memcpy(p->process, receives, sizeof(receives),
					    wq.wq_ring_qmem.daddr));
	CHECK_STATUS(flexio_rq_create(p->process, NULL, (uint32_t)r->receive_cqn, &wq, &p->rq));
	CHECK_STATUS(flexio_host2dev_memcpy(p->process, record, sizeof(record), r->receive_record));
}

static void make_send_queue(struct program *p)
{
	struct flexio_cq_attr cq = {
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ,
		.overrun_ignore = 1,
	};
	struct flexio_wq_attr wq = {
		.log_wq_depth = LOG_ENTRIES,
		.uar_id = flexio_uar_get_id(flexio_process_get_uar(p->process)),
	};
	struct responder *r = &p->responder;

	p->send_cq = make_cq(p, &cq);
	r->send_ring = wq.wq_ring_qmem.daddr = device_memory(p, WQE_BYTES * ENTRIES, 0);
	r->send_data = device_memory(p, (size_t)ENTRIES * FRAME_BYTES, 0);
	p->send_key = device_key(p, r->send_data);
	r->send_key = flexio_mkey_get_id(p->send_key);
	CHECK_STATUS(
		flexio_sq_create(p->process, NULL, flexio_cq_get_cq_num(p->send_cq), &wq, &p->sq));
	r->sqn = flexio_sq_get_wq_num(p->sq);
}

/* Frames to our address, and to all. */
static void make_rules(struct program *p)
{
	static const uint8_t to[2][6] = {OWN_MAC, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	struct {
		struct mlx5dv_flow_match_parameters parameters;
		uint8_t bytes[MATCH_BYTES];
	} mask = {.parameters.match_sz = MATCH_BYTES}, value = {.parameters.match_sz = MATCH_BYTES};

	memset(mask.bytes + MATCH_TO, 0xff, 6);
	p->domain = mlx5dv_dr_domain_create(p->context, MLX5DV_DR_DOMAIN_TYPE_NIC_RX);
	check(p->domain != NULL, "mlx5dv_dr_domain_create");
	p->table = mlx5dv_dr_table_create(p->domain, 0);
	check(p->table != NULL, "mlx5dv_dr_table_create");
	p->matcher = mlx5dv_dr_matcher_create(p->table, 0, MATCH_OUTER, &mask.parameters);
	check(p->matcher != NULL, "mlx5dv_dr_matcher_create");
	p->action = mlx5dv_dr_action_create_dest_devx_tir(flexio_rq_get_tir(p->rq));
	check(p->action != NULL, "mlx5dv_dr_action_create_dest_devx_tir");
	for (int i = 0; i < 2; i++) {
		memcpy(value.bytes + MATCH_TO, to[i], 6);
		p->rules[i] = mlx5dv_dr_rule_create(p->matcher, &value.parameters, 1, &p->action);
		check(p->rules[i] != NULL, "mlx5dv_dr_rule_create");
	}
}

static void begin(struct program *p, const char *device)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &on_frame};

	p->context = open_device(device);
	CHECK_STATUS(flexio_process_create(p->context, ping_app, NULL, &p->process));
	CHECK_STATUS(flexio_event_handler_create(p->process, &attr, &p->handler));
	make_receive_queue(p);
	make_send_queue(p);
	CHECK_STATUS(flexio_copy_from_host(p->process, &p->responder, sizeof(p->responder),
					   &p->responder_at));
	CHECK_STATUS(flexio_event_handler_run(p->handler, p->responder_at));
	/* Now frames may come. */
	make_rules(p);
}

static void end(struct program *p)
{
	for (int i = 0; i < 2; i++)
		mlx5dv_dr_rule_destroy(p->rules[i]);
	mlx5dv_dr_action_destroy(p->action);
	mlx5dv_dr_matcher_destroy(p->matcher);
	mlx5dv_dr_table_destroy(p->table);
	mlx5dv_dr_domain_destroy(p->domain);
	CHECK_STATUS(flexio_rq_destroy(p->rq));
	CHECK_STATUS(flexio_sq_destroy(p->sq));
	CHECK_STATUS(flexio_device_mkey_destroy(p->receive_key));
	CHECK_STATUS(flexio_device_mkey_destroy(p->send_key));
	CHECK_STATUS(flexio_cq_destroy(p->receive_cq));
	CHECK_STATUS(flexio_cq_destroy(p->send_cq));
	CHECK_STATUS(flexio_event_handler_destroy(p->handler));
	/* The memory goes with the process. */
	CHECK_STATUS(flexio_process_destroy(p->process));
	ibv_close_device(p->context);
}

static uint64_t counter(struct program *p, size_t at)
{
	uint64_t value;

	CHECK_STATUS(flexio_process_call(p->process, read_counter, &value,
					 (uint64_t)(p->responder_at + at)));
	return value;
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "mlx5_0";
	const char *address = argc > 2 ? argv[2] : "192.0.2.2";
	uint64_t wanted = argc > 3 ? strtoull(argv[3], NULL, 0) : UINT64_MAX, answers = 0;
	struct program p = {0};

	check(inet_pton(AF_INET, address, &p.responder.address) == 1, address);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	begin(&p, device);
	printf("answering for %s at %s\n", address, device);
	fflush(stdout);
	while (!ended && answers < wanted) {
		usleep(LOOK_EACH_US);
		answers = counter(&p, offsetof(struct responder, answers));
	}
	printf("%llu answers, %llu other frames, %llu errors\n",
	       (unsigned long long)counter(&p, offsetof(struct responder, answers)),
	       (unsigned long long)counter(&p, offsetof(struct responder, others)),
	       (unsigned long long)counter(&p, offsetof(struct responder, errors)));
	end(&p);
	return 0;
}
