// SPDX-License-Identifier: BSD-2-Clause
/*
 * More handlers spin than there are processors: the others are activated, calls return, and what spins can be
 * destroyed.  Prints how long it took; judged is only that it comes.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <libflexio/flexio.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "crowd.h"

#define PROCESSORS 2
#define PATIENT_S  60
#define TIMES	   3u
#define CQE_BYTES  64u
#define LOG_CQ	   4u

extern struct flexio_app *crowd_app;
extern flexio_func_t spin, count, ring, least;

#define OK(call) CHECK((call) == FLEXIO_STATUS_SUCCESS)

static struct flexio_process *process;
static struct flexio_event_handler *handlers[CROWD];
static struct flexio_cq *queues[CROWD];
static flexio_uintptr_t crowd;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t call(flexio_func_t *function, uint64_t first, uint64_t end)
{
	uint64_t result;

	OK(flexio_process_call(process, function, &result, (uint64_t)crowd, first, end));
	return result;
}

/* Threads inherit both: few processors, and what else runs on this machine goes first. */
static void stay_small(void)
{
	cpu_set_t have, few;

	CHECK(!sched_getaffinity(0, sizeof(have), &have));
	CPU_ZERO(&few);
	for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&few) < PROCESSORS; cpu++)
		if (CPU_ISSET(cpu, &have))
			CPU_SET(cpu, &few);
	CHECK(!sched_setaffinity(0, sizeof(few), &few));
	(void)!nice(19);
}

/* Each completion is an event; nobody looks at them. */
static void queue_make(unsigned i)
{
	struct flexio_cq_attr attr = {
		.log_cq_depth = LOG_CQ,
		.element_type = FLEXIO_CQ_ELEMENT_TYPE_DPA_THREAD,
		.thread = flexio_event_handler_get_thread(handlers[i]),
		.uar_id = flexio_uar_get_id(flexio_process_get_uar(process)),
		.always_armed = 1,
		.overrun_ignore = 1,
		.cc = 1,
	};
	uint64_t number;

	attr.cq_ring_qmem.memtype = FLEXIO_MEMTYPE_DPA;
	OK(flexio_buf_dev_alloc(process, CQE_BYTES << LOG_CQ, &attr.cq_ring_qmem.daddr));
	OK(flexio_buf_dev_memset(process, 0xff, CQE_BYTES << LOG_CQ, attr.cq_ring_qmem.daddr));
	OK(flexio_buf_dev_alloc(process, 8, &attr.cq_dbr_daddr));
	OK(flexio_buf_dev_memset(process, 0, 8, attr.cq_dbr_daddr));
	OK(flexio_cq_create(process, NULL, &attr, &queues[i]));
	number = flexio_cq_get_cq_num(queues[i]);
	OK(flexio_host2dev_memcpy(process, &number, sizeof(number),
				  crowd + offsetof(struct crowd, cqn) + i * sizeof(number)));
}

static void crowd_make(void)
{
	OK(flexio_buf_dev_alloc(process, sizeof(struct crowd), &crowd));
	OK(flexio_buf_dev_memset(process, 0, sizeof(struct crowd), crowd));
	for (unsigned i = 0; i < CROWD; i++) {
		struct flexio_event_handler_attr attr = {.host_stub_func =
								 i < SPINNERS ? &spin : &count};

		OK(flexio_event_handler_create(process, &attr, &handlers[i]));
		OK(flexio_event_handler_run(handlers[i],
					    crowd + offsetof(struct crowd, activations) +
						    i * sizeof(uint64_t)));
		queue_make(i);
	}
}

static void all_await(uint64_t first, uint64_t end, uint64_t times)
{
	time_t last = time(NULL) + PATIENT_S;

	while (call(&least, first, end) < times && time(NULL) < last)
		usleep(1000);
	CHECK_SAY(call(&least, first, end) >= times, "%llu of %llu times",
		  (unsigned long long)call(&least, first, end), (unsigned long long)times);
}

static void one_destroy(unsigned i)
{
	double begin = now_s();

	OK(flexio_cq_destroy(queues[i]));
	OK(flexio_event_handler_destroy(handlers[i]));
	printf("one that spins is destroyed after %.3f s\n", now_s() - begin);
}

static void others_activate(void)
{
	for (unsigned i = 1; i <= TIMES; i++) {
		double begin = now_s();

		call(&ring, SPINNERS, CROWD);
		all_await(SPINNERS, CROWD, i);
		printf("%u that do not spin are activated within %.3f s\n", CROWD - SPINNERS,
		       now_s() - begin);
	}
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;
	double begin;

	stay_small();
	CHECK(list && list[0]);
	context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	OK(flexio_process_create(context, crowd_app, NULL, &process));
	crowd_make();
	begin = now_s();
	call(&ring, 0, SPINNERS);
	all_await(0, SPINNERS, 1);
	printf("%u spin after %.3f s\n", SPINNERS, now_s() - begin);
	others_activate();
	begin = now_s();
	(void)call(&least, 0, CROWD);
	printf("a call takes %.3f s\n", now_s() - begin);
	one_destroy(0);
	begin = now_s();
	OK(flexio_process_destroy(process));
	printf("all are destroyed after %.3f s\n", now_s() - begin);
	CHECK(!ibv_close_device(context));
	return 0;
}
