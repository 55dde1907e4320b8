// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rings in memory of the host, which host and device code work at together, without a call for each entry.
 *
 * The host registers them and makes a window; device code, called once on a thread of its own, looks at the ring
 * of requests, by loads and stores through the window, and writes answers into the other one.
 *
 *	make && softhca run -- ./ring
 *
 * Its end is 0 if all answers are right and came in order.
 */
#include <infiniband/verbs.h>
#include <libflexio/flexio.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "ring.h"

#define REQUESTS 100000u

extern struct flexio_app *ring_app;
extern flexio_func_t serve;

static struct rings rings;

static void check(int good, const char *what)
{
	if (!good) {
		fprintf(stderr, "%s failed\n", what);
		exit(1);
	}
}

#define CHECK_STATUS(call) check((call) == FLEXIO_STATUS_SUCCESS, #call)

static struct ibv_context *open_first_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (list)
		ibv_free_device_list(list);
	if (!context) {
		fprintf(stderr, "there is no device: try softhca run -- ...\n");
		exit(1);
	}
	return context;
}

/* ---- the call that lasts as long as there are requests ---- */

struct call {
	struct flexio_process *process;
	flexio_uintptr_t work;
	uint64_t answered;
	flexio_status status;
};

static void *call_run(void *arg)
{
	struct call *c = arg;

	c->status = flexio_process_call(c->process, serve, &c->answered, (uint64_t)c->work);
	if (c->status != FLEXIO_STATUS_SUCCESS || c->answered == WORK_FAILED)
		check(0, "the device code");
	return NULL;
}

/* ---- the host's ends of the rings ---- */

/* 0: there is no room. */
static int put_request(uint64_t put, uint64_t request)
{
	struct ring *r = &rings.requests;

	if (put - __atomic_load_n(&r->read, __ATOMIC_ACQUIRE) == RING_ENTRIES)
		return 0;
	r->entry[put % RING_ENTRIES] = request;
	__atomic_store_n(&r->written, put + 1, __ATOMIC_RELEASE);
	return 1;
}

/* 0: there is none. */
static int take_answer(uint64_t taken, uint64_t *answer)
{
	struct ring *r = &rings.answers;

	if (__atomic_load_n(&r->written, __ATOMIC_ACQUIRE) == taken)
		return 0;
	*answer = r->entry[taken % RING_ENTRIES];
	__atomic_store_n(&r->read, taken + 1, __ATOMIC_RELEASE);
	return 1;
}

static uint64_t steps_to_one(uint64_t n)
{
	uint64_t steps = 0;

	while (n > 1) {
		n = n & 1 ? 3 * n + 1 : n / 2;
		steps++;
	}
	return steps;
}

/* As many wrong answers. */
static uint64_t converse(void)
{
	uint64_t put = 0, taken = 0, wrong = 0, answer;

	while (taken < REQUESTS) {
		int busy = 0;

		if (put <= REQUESTS && put_request(put, put < REQUESTS ? put + 1 : STOP)) {
			put++;
			busy = 1;
		}
		if (take_answer(taken, &answer)) {
			wrong += answer != steps_to_one(taken + 1);
			taken++;
			busy = 1;
		}
		if (!busy)
			sched_yield();
	}
	while (put <= REQUESTS)
		put += (uint64_t)put_request(put, STOP);
	return wrong;
}

int main(void)
{
	struct ibv_context *context = open_first_device();
	struct ibv_pd *pd = ibv_alloc_pd(context);
	struct ibv_mr *mr =
		pd ? ibv_reg_mr(pd, &rings, sizeof(rings), IBV_ACCESS_LOCAL_WRITE) : NULL;
	struct work work = {.rings = (uintptr_t)&rings};
	struct flexio_window *window;
	struct call call = {0};
	pthread_t thread;
	uint64_t wrong;

	check(mr != NULL, "ibv_reg_mr");
	CHECK_STATUS(flexio_process_create(context, ring_app, NULL, &call.process));
	CHECK_STATUS(flexio_window_create(call.process, pd, &window));
	work.key = mr->lkey;
	work.window = flexio_window_get_id(window);
	CHECK_STATUS(flexio_copy_from_host(call.process, &work, sizeof(work), &call.work));
	check(!pthread_create(&thread, NULL, call_run, &call), "pthread_create");
	wrong = converse();
	pthread_join(thread, NULL);
	printf("%llu answers by rings of %u: %s\n", (unsigned long long)call.answered, RING_ENTRIES,
	       wrong || call.answered != REQUESTS ? "wrong" : "right");
	CHECK_STATUS(flexio_window_destroy(window));
	CHECK_STATUS(flexio_process_destroy(call.process));
	if (ibv_dereg_mr(mr) || ibv_dealloc_pd(pd) || ibv_close_device(context))
		return 1;
	return wrong || call.answered != REQUESTS;
}
