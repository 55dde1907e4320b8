// SPDX-License-Identifier: BSD-2-Clause
/*
 * Receive scaling: frames spread over queues, each with a handler of its own on the DPA.
 *
 * A TIR hashes addresses and ports of each frame (Toeplitz) and chooses one of four receive queues by a table,
 * so that frames of one flow come to one handler, in their order.  Handlers send them back with the
 * addresses of Ethernet exchanged.  libflexio makes a TIR for one queue only; one over a table is made by
 * DEVX commands, of the queues' numbers.
 *
 *	make check
 *
 * makes a file with frames of 64 flows, ties the port to it (softhca fabric tie mlx5_0 in=flows.pcap
 * out=back.pcap), and compares what each handler has got.
 *
 * spread [DEVICE [FRAMES]]: ends after so many frames, or with SIGINT or SIGTERM.  Its end is 0 if no flow came to
 * two handlers.
 */
#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spread.h"
#include "table.h"

#define CQE_BYTES    64u
#define WQE_BYTES    64u
#define LOOK_EACH_US 10000u

extern struct flexio_app *spread_app;
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

/* A queue in either direction, and who serves them. */
struct serving {
	struct flexio_process *process;
	struct flexio_event_handler *handler;
	struct flexio_cq *receive_cq, *send_cq;
	struct flexio_rq *rq;
	struct flexio_sq *sq;
	struct flexio_mkey *receive_key, *send_key;
	struct lane lane;
	flexio_uintptr_t lane_at;
};

static flexio_uintptr_t device_memory(struct flexio_process *process, size_t bytes, int value)
{
	flexio_uintptr_t at;

	CHECK_STATUS(flexio_buf_dev_alloc(process, bytes, &at));
	CHECK_STATUS(flexio_buf_dev_memset(process, value, bytes, at));
	return at;
}

static struct flexio_mkey *device_key(struct flexio_process *process, flexio_uintptr_t at)
{
	struct flexio_mkey_attr attr = {
		.pd = flexio_process_get_pd(process),
		.daddr = at,
		.len = (size_t)ENTRIES * FRAME_BYTES,
		.access = IBV_ACCESS_LOCAL_WRITE,
	};
	struct flexio_mkey *key;

	CHECK_STATUS(flexio_device_mkey_create(process, &attr, &key));
	return key;
}

/* Its entries begin with the owner bit that says that they are not the reader's yet. */
static struct flexio_cq *make_cq(struct flexio_process *process, struct flexio_cq_attr *attr)
{
	struct flexio_cq *cq;

	attr->log_cq_depth = LOG_ENTRIES;
	attr->uar_id = flexio_uar_get_id(flexio_process_get_uar(process));
	attr->cq_ring_qmem.daddr = device_memory(process, CQE_BYTES * ENTRIES, 0xff);
	attr->cq_dbr_daddr = device_memory(process, 8, 0);
	CHECK_STATUS(flexio_cq_create(process, NULL, attr, &cq));
	return cq;
}

static void make_receive_queue(struct serving *s)
{
	struct flexio_cq_attr cq = {
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD,
		.thread = flexio_event_handler_get_thread(s->handler),
	};
	struct flexio_wq_attr wq = {.log_wq_depth = LOG_ENTRIES};
	struct lane *l = &s->lane;
	struct mlx5_wqe_data_seg receives[ENTRIES];
	uint32_t record[2] = {htobe32(ENTRIES), 0};

	s->receive_cq = make_cq(s->process, &cq);
	l->receive_cq_ring = cq.cq_ring_qmem.daddr;
	l->receive_cq_record = cq.cq_dbr_daddr;
	l->receive_cqn = flexio_cq_get_cq_num(s->receive_cq);
	l->receive_data = device_memory(s->process, (size_t)ENTRIES * FRAME_BYTES, 0);
	s->receive_key = device_key(s->process, l->receive_data);
	for (unsigned int i = 0; i < ENTRIES; i++)
		mlx5dv_set_data_seg(&receives[i], FRAME_BYTES, flexio_mkey_get_id(s->receive_key),
				    l->receive_data + (uint64_t)i * FRAME_BYTES);
	wq.wq_ring_qmem.daddr = device_memory(s->process, sizeof(receives), 0);
	wq.wq_dbr_qmem.daddr = l->receive_record = device_memory(s->process, sizeof(record), 0);
	CHECK_STATUS(flexio_host2dev_memcpy(s->process, receives, sizeof(receives),
					    wq.wq_ring_qmem.daddr));
	CHECK_STATUS(flexio_rq_create(s->process, NULL, (uint32_t)l->receive_cqn, &wq, &s->rq));
	CHECK_STATUS(flexio_host2dev_memcpy(s->process, record, sizeof(record), l->receive_record));
}

static void make_send_queue(struct serving *s)
{
	struct flexio_cq_attr cq = {.element_type = FLEXIO_CQ_ELEMENT_TYPE_NON_DPA_CQ};
	struct flexio_wq_attr wq = {
		.log_wq_depth = LOG_ENTRIES,
		.uar_id = flexio_uar_get_id(flexio_process_get_uar(s->process)),
	};
	struct lane *l = &s->lane;

	s->send_cq = make_cq(s->process, &cq);
	l->send_cq_ring = cq.cq_ring_qmem.daddr;
	l->send_cq_record = cq.cq_dbr_daddr;
	l->send_ring = wq.wq_ring_qmem.daddr = device_memory(s->process, WQE_BYTES * ENTRIES, 0);
	l->send_data = device_memory(s->process, (size_t)ENTRIES * FRAME_BYTES, 0);
	s->send_key = device_key(s->process, l->send_data);
	l->send_key = flexio_mkey_get_id(s->send_key);
	CHECK_STATUS(
		flexio_sq_create(s->process, NULL, flexio_cq_get_cq_num(s->send_cq), &wq, &s->sq));
	l->sqn = flexio_sq_get_wq_num(s->sq);
}

static void serving_begin(struct serving *s, struct flexio_process *process)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &on_frame};

	s->process = process;
	CHECK_STATUS(flexio_event_handler_create(process, &attr, &s->handler));
	make_receive_queue(s);
	make_send_queue(s);
	CHECK_STATUS(flexio_copy_from_host(process, &s->lane, sizeof(s->lane), &s->lane_at));
	CHECK_STATUS(flexio_event_handler_run(s->handler, s->lane_at));
}

static void serving_end(struct serving *s)
{
	CHECK_STATUS(flexio_rq_destroy(s->rq));
	CHECK_STATUS(flexio_sq_destroy(s->sq));
	CHECK_STATUS(flexio_device_mkey_destroy(s->receive_key));
	CHECK_STATUS(flexio_device_mkey_destroy(s->send_key));
	CHECK_STATUS(flexio_cq_destroy(s->receive_cq));
	CHECK_STATUS(flexio_cq_destroy(s->send_cq));
	CHECK_STATUS(flexio_event_handler_destroy(s->handler));
}

static uint64_t counter(const struct serving *s, size_t at)
{
	uint64_t value;

	CHECK_STATUS(
		flexio_process_call(s->process, read_counter, &value, (uint64_t)(s->lane_at + at)));
	return value;
}

static uint64_t all_frames(const struct serving *s)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < QUEUES; i++)
		sum += counter(&s[i], offsetof(struct lane, frames));
	return sum;
}

/* 0: no flow came to two of them. */
static int report(const struct serving *s)
{
	uint64_t seen = 0, twice = 0;

	for (unsigned int i = 0; i < QUEUES; i++) {
		uint64_t flows = counter(&s[i], offsetof(struct lane, flows));

		printf("handler %u: %llu frames of %d flows, %llu errors\n", i,
		       (unsigned long long)counter(&s[i], offsetof(struct lane, frames)),
		       __builtin_popcountll(flows),
		       (unsigned long long)counter(&s[i], offsetof(struct lane, errors)));
		twice |= seen & flows;
		seen |= flows;
	}
	printf("%d flows, each at one handler: %s\n", __builtin_popcountll(seen),
	       twice ? "wrong" : "right");
	return twice != 0;
}

int main(int argc, char **argv)
{
	const char *device = argc > 1 ? argv[1] : "mlx5_0";
	uint64_t wanted = argc > 2 ? strtoull(argv[2], NULL, 0) : UINT64_MAX;
	static struct serving servings[QUEUES];
	struct ibv_context *context = open_device(device);
	struct flexio_process *process;
	struct spread_table table;
	uint32_t queues[QUEUES];
	int status;

	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	CHECK_STATUS(flexio_process_create(context, spread_app, NULL, &process));
	for (unsigned int i = 0; i < QUEUES; i++) {
		serving_begin(&servings[i], process);
		queues[i] = flexio_rq_get_wq_num(servings[i].rq);
	}
	/* Now frames may come. */
	check(spread_table_make(&table, context, queues, QUEUES), "the table of queues");
	printf("%u handlers wait at %s\n", QUEUES, device);
	fflush(stdout);
	while (!ended && all_frames(servings) < wanted)
		usleep(LOOK_EACH_US);
	status = report(servings);
	spread_table_destroy(&table);
	for (unsigned int i = 0; i < QUEUES; i++)
		serving_end(&servings[i]);
	/* The memory goes with the process. */
	CHECK_STATUS(flexio_process_destroy(process));
	ibv_close_device(context);
	return status;
}
