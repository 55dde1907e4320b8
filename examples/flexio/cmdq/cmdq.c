// SPDX-License-Identifier: BSD-2-Clause
/*
 * A command queue: functions of the DPA that run in the background, on several of its threads.
 *
 * The host cuts a piece of work into tasks, which lie in DPA memory, and adds them to a queue that
 * waits.  Then it lets the queue run, and does something else until the queue is empty.  A worker
 * takes up to a batch of tasks at a time before it lets others have its place.
 *
 *	make && softhca run -- ./cmdq
 *
 * It counts the primes below 100000, of which there are 9592; its end is 0 if it found so many.
 */
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <libflexio/flexio.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cmdq.h"

#define TASKS	 100u
#define NUMBERS	 100000u
#define PRIMES	 9592u
#define PATIENCE 60 /* seconds */
#define WORKERS	 4
#define BATCH	 8

extern struct flexio_app *cmdq_app;
extern flexio_func_t count_primes, sum_of_primes, ran_once;

static void check(flexio_status status, const char *what)
{
	if (status != FLEXIO_STATUS_SUCCESS) {
		fprintf(stderr, "%s: status %d\n", what, (int)status);
		exit(1);
	}
}

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

/* The tasks, in memory of the DPA. */
static flexio_uintptr_t make_tasks(struct flexio_process *process)
{
	struct task tasks[TASKS] = {{0}};
	flexio_uintptr_t address;

	for (unsigned int i = 0; i < TASKS; i++) {
		tasks[i].from = i * (NUMBERS / TASKS);
		tasks[i].to = (i + 1) * (NUMBERS / TASKS);
	}
	check(flexio_copy_from_host(process, tasks, sizeof(tasks), &address),
	      "flexio_copy_from_host");
	return address;
}

static uint64_t ask(struct flexio_process *process, flexio_func_t *function, flexio_uintptr_t tasks)
{
	uint64_t answer;

	check(flexio_process_call(process, function, &answer, tasks, (uint64_t)TASKS),
	      "flexio_process_call");
	return answer;
}

static void wait_until_empty(struct flexio_process *process, struct flexio_cmdq *queue)
{
	struct timespec nap = {.tv_nsec = 1000000};
	time_t end = time(NULL) + PATIENCE;

	while (!flexio_cmdq_is_empty(queue)) {
		if (flexio_err_status_get(process) != FLEXIO_DEV_NO_ERROR || time(NULL) > end) {
			fprintf(stderr, "the tasks do not end\n");
			exit(1);
		}
		nanosleep(&nap, NULL);
	}
}

int main(void)
{
	struct flexio_cmdq_attr attr = {
		.workers = WORKERS, .batch_size = BATCH, .state = FLEXIO_CMDQ_STATE_PENDING};
	struct ibv_context *context = open_first_device();
	uint64_t primes, once, early;
	struct flexio_process *process;
	struct flexio_cmdq *queue;
	flexio_uintptr_t tasks;

	check(flexio_process_create(context, cmdq_app, NULL, &process), "flexio_process_create");
	tasks = make_tasks(process);
	check(flexio_cmdq_create(process, &attr, &queue), "flexio_cmdq_create");
	for (unsigned int i = 0; i < TASKS; i++)
		check(flexio_cmdq_task_add(queue, count_primes, tasks + i * sizeof(struct task)),
		      "flexio_cmdq_task_add");
	early = ask(process, sum_of_primes, tasks);
	printf("%u tasks wait, %" PRIu64 " primes are found\n", TASKS, early);

	check(flexio_cmdq_state_running(queue), "flexio_cmdq_state_running");
	wait_until_empty(process, queue);
	primes = ask(process, sum_of_primes, tasks);
	once = ask(process, ran_once, tasks);
	printf("%d workers have run %" PRIu64 " tasks and found %" PRIu64 " primes\n", WORKERS,
	       once, primes);

	check(flexio_cmdq_destroy(queue), "flexio_cmdq_destroy");
	check(flexio_buf_dev_free(process, tasks), "flexio_buf_dev_free");
	check(flexio_process_destroy(process), "flexio_process_destroy");
	ibv_close_device(context);
	return early == 0 && once == TASKS && primes == PRIMES ? 0 : 1;
}
