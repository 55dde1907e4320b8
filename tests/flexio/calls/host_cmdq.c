// SPDX-License-Identifier: BSD-2-Clause
/* Command queues. */
#include <pthread.h>
#include <unistd.h>

#include "host.h"

#define ADDERS 4u
#define TASKS  5000u

static struct flexio_cmdq *queue(struct flexio_process *p, int workers, int batch,
				 enum flexio_cmdq_state state)
{
	struct flexio_cmdq_attr attr = {workers, batch, state};
	struct flexio_cmdq *q;

	OK(flexio_cmdq_create(p, &attr, &q));
	return q;
}

static void await_empty(struct flexio_cmdq *q)
{
	for (unsigned i = 0; !flexio_cmdq_is_empty(q); i++) {
		CHECK(i < 60000);
		usleep(1000);
	}
}

/* Of four. */
static flexio_uintptr_t word_of(struct flexio_process *p)
{
	flexio_uintptr_t word;
	uint64_t zero[4] = {0};

	OK(flexio_copy_from_host(p, zero, sizeof(zero), &word));
	return word;
}

static void await_word_is(struct flexio_process *p, flexio_uintptr_t word, uint64_t value)
{
	for (unsigned i = 0; RESULT(p, &load, word) != value; i++) {
		CHECK(i < 60000);
		usleep(1000);
	}
}

static void cmdq_states(void)
{
	struct flexio_process *p = host_process();
	flexio_uintptr_t word = word_of(p);
	struct flexio_cmdq *q = queue(p, 2, 10, FLEXIO_CMDQ_STATE_PENDING);

	CHECK(flexio_cmdq_is_empty(q));
	for (unsigned i = 0; i < 1000; i++)
		OK(flexio_cmdq_task_add(q, &task, word));
	usleep(20000); /* in which none runs */
	CHECK(!flexio_cmdq_is_empty(q) && RESULT(p, &load, word) == 0);
	OK(flexio_cmdq_state_running(q));
	await_empty(q);
	CHECK(RESULT(p, &load, word) == 1000);
	OK(flexio_cmdq_state_running(q)); /* it is */
	OK(flexio_cmdq_task_add(q, &task, word));
	await_empty(q);
	CHECK(RESULT(p, &load, word) == 1001);
	word = word_of(p);
	OK(flexio_cmdq_task_add(q, &context_task, word));
	await_empty(q);
	CHECK(RESULT(p, &load, word) == 1);
	OK(flexio_cmdq_destroy(q));
	FAILS(flexio_cmdq_destroy(q));
	OK(flexio_process_destroy(p));
}

/* Not empty as long as the last one runs; as many run at a time as there are workers, and no more. */
static void cmdq_workers(void)
{
	struct flexio_process *p = host_process();
	flexio_uintptr_t word = word_of(p), lonely = word_of(p), all = word_of(p);
	struct flexio_cmdq *q = queue(p, 1, 8, FLEXIO_CMDQ_STATE_RUNNING);
	uint64_t one = 1, workers = 4;

	OK(flexio_cmdq_task_add(q, &held_task, word));
	await_word_is(p, word, 1);
	usleep(20000);
	CHECK(!flexio_cmdq_is_empty(q));
	OK(flexio_host2dev_memcpy(p, &one, sizeof(one), word + 8));
	await_empty(q);
	for (unsigned i = 0; i < 5000; i++)
		OK(flexio_cmdq_task_add(q, &lonely_task, lonely));
	await_empty(q);
	CHECK(RESULT(p, &load, lonely) == 5000 && RESULT(p, &load, lonely + 8) == 0);
	OK(flexio_cmdq_destroy(q));
	/* Each waits for all of the others. */
	q = queue(p, (int)workers, 100, FLEXIO_CMDQ_STATE_RUNNING);
	OK(flexio_host2dev_memcpy(p, &workers, sizeof(workers), all + 8));
	for (unsigned i = 0; i < workers; i++)
		OK(flexio_cmdq_task_add(q, &meet_task, all));
	await_empty(q);
	CHECK(RESULT(p, &load, all) == workers);
	OK(flexio_process_destroy(p));
}

/* Each worker has a number of its own, which it gets without a context too. */
static void cmdq_numbers(void)
{
	enum { WORKERS = 4 };
	struct flexio_process *p = host_process();
	struct flexio_cmdq *q = queue(p, WORKERS, 1, FLEXIO_CMDQ_STATE_RUNNING);
	uint64_t words[3 + WORKERS] = {0, WORKERS};
	flexio_uintptr_t at;

	OK(flexio_copy_from_host(p, words, sizeof(words), &at));
	for (unsigned i = 0; i < WORKERS; i++)
		OK(flexio_cmdq_task_add(q, &number_task, at));
	await_empty(q);
	for (unsigned i = 3; i < 3 + WORKERS; i++) {
		words[i] = RESULT(p, &load, at + 8 * i);
		CHECK(words[i] && words[i] < 4096);
		for (unsigned before = 3; before < i; before++)
			CHECK(words[before] != words[i]);
	}
	OK(flexio_process_destroy(p));
}

/* More of them than the DPA has units. */
static void cmdq_crowd(void)
{
	struct flexio_process *p = host_process();
	flexio_uintptr_t word = word_of(p);
	struct flexio_cmdq *q = queue(p, 512, 1, FLEXIO_CMDQ_STATE_PENDING);

	for (unsigned i = 0; i < 2000; i++)
		OK(flexio_cmdq_task_add(q, &task, word));
	OK(flexio_cmdq_state_running(q));
	await_empty(q);
	CHECK(RESULT(p, &load, word) == 2000);
	OK(flexio_process_destroy(p));
}

/* Each of 100,000 has a byte of its own, and adds one to it. */
static void cmdq_once(void)
{
	const uint64_t tasks = 100000;
	struct flexio_process *p = host_process();
	struct flexio_cmdq *q = queue(p, 4, 16, FLEXIO_CMDQ_STATE_RUNNING);
	flexio_uintptr_t bytes;

	OK(flexio_buf_dev_alloc(p, tasks, &bytes));
	OK(flexio_buf_dev_memset(p, 0, tasks, bytes));
	CHECK(RESULT(p, &not_one, bytes, tasks) == tasks);
	for (uint64_t i = 0; i < tasks; i++)
		OK(flexio_cmdq_task_add(q, &byte_task, bytes + i));
	await_empty(q);
	CHECK(RESULT(p, &not_one, bytes, tasks) == 0);
	OK(flexio_process_destroy(p));
}

struct adder {
	pthread_t thread;
	struct flexio_cmdq *q;
	flexio_uintptr_t word;
};

static void *adder_main(void *arg)
{
	struct adder *a = arg;

	for (unsigned i = 0; i < TASKS; i++)
		OK(flexio_cmdq_task_add(a->q, &task, a->word));
	return NULL;
}

/* Several threads add; each task runs once. */
static void cmdq_many(void)
{
	static const int shapes[][2] = {{1, 1}, {4, 1}, {4, 100}};
	struct flexio_process *p = host_process();
	struct adder adders[ADDERS];

	for (unsigned s = 0; s < 3; s++) {
		flexio_uintptr_t word = word_of(p);
		struct flexio_cmdq *q =
			queue(p, shapes[s][0], shapes[s][1], FLEXIO_CMDQ_STATE_RUNNING);

		for (unsigned i = 0; i < ADDERS; i++) {
			adders[i] = (struct adder){.q = q, .word = word};
			CHECK(!pthread_create(&adders[i].thread, NULL, adder_main, &adders[i]));
		}
		for (unsigned i = 0; i < ADDERS; i++)
			CHECK(!pthread_join(adders[i].thread, NULL));
		await_empty(q);
		CHECK(RESULT(p, &load, word) == ADDERS * TASKS);
		OK(flexio_cmdq_destroy(q));
	}
	OK(flexio_process_destroy(p));
}

/* With one worker, one after the other, in order: tasks wait for their turn. */
static void cmdq_order(void)
{
	struct flexio_process *p = host_process();
	struct flexio_cmdq *q = queue(p, 1, 4, FLEXIO_CMDQ_STATE_RUNNING);

	for (uint64_t i = 0; i < 1000; i++)
		OK(flexio_cmdq_task_add(q, &in_order, i));
	await_empty(q);
	CHECK(RESULT(p, &nothing) == 17);
	CHECK(flexio_err_status_get(p) == FLEXIO_DEV_NO_ERROR);
	OK(flexio_cmdq_destroy(q));
	OK(flexio_process_destroy(p));
}

/* Destroyed while its tasks wait, or never end; and with its process. */
static void cmdq_busy(void)
{
	struct flexio_process *p = host_process();
	struct flexio_cmdq *q = queue(p, 2, 1, FLEXIO_CMDQ_STATE_RUNNING);

	for (unsigned i = 0; i < 8; i++)
		OK(flexio_cmdq_task_add(q, &endless, i));
	CHECK(!flexio_cmdq_is_empty(q));
	OK(flexio_cmdq_destroy(q));
	CHECK(RESULT(p, &nothing) == 17);
	q = queue(p, 2, 1, FLEXIO_CMDQ_STATE_PENDING);
	OK(flexio_cmdq_task_add(q, &endless, 0));
	OK(flexio_cmdq_destroy(q));
	q = queue(p, 254, 1, FLEXIO_CMDQ_STATE_RUNNING);
	OK(flexio_cmdq_task_add(q, &endless, 0));
	OK(flexio_process_destroy(p));
	FAILS(flexio_cmdq_destroy(q));
}

static void cmdq_bad(void)
{
	struct flexio_process *p = host_process();
	struct flexio_cmdq_attr attr = {0, 1, FLEXIO_CMDQ_STATE_RUNNING};
	struct flexio_cmdq *q;
	uint64_t value;

	FAILS(flexio_cmdq_create(p, &attr, &q));
	CHECK(!q);
	attr.workers = 1025;
	FAILS(flexio_cmdq_create(p, &attr, &q));
	attr = (struct flexio_cmdq_attr){1, 0, FLEXIO_CMDQ_STATE_RUNNING};
	FAILS(flexio_cmdq_create(p, &attr, &q));
	attr = (struct flexio_cmdq_attr){1, 1, 2};
	FAILS(flexio_cmdq_create(p, &attr, &q));
	FAILS(flexio_cmdq_create(p, NULL, &q));
	FAILS(flexio_cmdq_create(NULL, &attr, &q));
	FAILS(flexio_cmdq_create(p, &attr, NULL));
	FAILS(flexio_cmdq_task_add(NULL, &task, 0));
	FAILS(flexio_cmdq_state_running(NULL));
	CHECK(!flexio_cmdq_is_empty(NULL));
	q = queue(p, 1, 1, FLEXIO_CMDQ_STATE_RUNNING);
	FAILS(flexio_cmdq_task_add(q, NULL, 0));
	FAILS(flexio_cmdq_task_add(q, (flexio_func_t *)(uintptr_t)&value, 0));
	FAILS(flexio_cmdq_task_add(q, &add, 0)); /* it has two arguments */
	OK(flexio_cmdq_task_add(q, &task, 0));	 /* a fault */
	for (unsigned i = 0; flexio_err_status_get(p) == FLEXIO_DEV_NO_ERROR; i++) {
		CHECK(i < 60000);
		usleep(1000);
	}
	CHECK(flexio_cmdq_task_add(q, &task, 0) == FLEXIO_STATUS_FATAL_ERR);
	OK(flexio_process_destroy(p));
}

const struct host_case cmdq_cases[] = {
	{"cmdq_states", cmdq_states}, {"cmdq_many", cmdq_many},
	{"cmdq_order", cmdq_order},   {"cmdq_busy", cmdq_busy},
	{"cmdq_bad", cmdq_bad},	      {"cmdq_workers", cmdq_workers},
	{"cmdq_once", cmdq_once},     {"cmdq_numbers", cmdq_numbers},
	{"cmdq_crowd", cmdq_crowd},   {NULL, NULL},
};
