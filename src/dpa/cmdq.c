// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/cmdq.h. */
#include "dpa/cmdq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dpa/process.h"

#define ROOM_AT_FIRST 256u
#define TASKS_MAX     (1u << 24)

struct cmdq_task {
	uint64_t function, arg;
};

struct cmdq_worker {
	struct dpa_cmdq *queue;
	struct dpa_thread *thread;
	_Atomic(bool) idle; /* it is idle, and nobody has told it yet that there is a task */
};

struct dpa_cmdq {
	struct dpa_process *process;
	uint32_t batch, nworkers;
	/* Guards the fields below; no thread holds it in a run. */
	pthread_mutex_t lock;
	bool running;
	struct cmdq_task *tasks; /* a ring */
	uint32_t room, first, waiting;
	uint32_t unfinished; /* tasks that wait, and those that run */
	uint32_t nidle;
	struct cmdq_worker worker[];
};

/* ---- workers ---- */

/* Takes the next task; false: there is none to take. */
static bool task_take(struct dpa_cmdq *q, struct cmdq_task *task)
{
	if (!q->running || !q->waiting)
		return false;
	*task = q->tasks[q->first];
	q->first = (q->first + 1) % q->room;
	q->waiting--;
	return true;
}

static void task_run(struct dpa_cmdq *q, struct dpa_thread *t, const struct cmdq_task *task)
{
	t->entry = task->function;
	dpa_process_after(t, dpa_thread_run(t, task->function, task->arg, 0, false));
	pthread_mutex_lock(&q->lock);
	q->unfinished--;
	pthread_mutex_unlock(&q->lock);
}

/* Runs one batch; false: there was nothing to run. */
static bool worker_batch(struct cmdq_worker *w)
{
	struct dpa_cmdq *q = w->queue;
	bool some = false;

	for (uint32_t i = 0; i < q->batch; i++) {
		struct cmdq_task task;
		bool took;

		pthread_mutex_lock(&q->lock);
		took = task_take(q, &task);
		if (took != !w->idle) {
			w->idle = !took;
			q->nidle = took ? q->nidle - 1 : q->nidle + 1;
		}
		pthread_mutex_unlock(&q->lock);
		if (!took || atomic_load(&w->thread->end))
			return some;
		task_run(q, w->thread, &task);
		some = true;
	}
	return some;
}

/* A worker that is idle no more has been told. */
static bool worker_wait_is_over(const void *arg)
{
	const struct cmdq_worker *w = arg;

	return !atomic_load(&w->idle) || atomic_load(&w->thread->end);
}

static void *worker_main(struct dpa_thread *t)
{
	struct cmdq_worker *w = t->user;

	/* The thread that makes this one sets w before it gives the lock back. */
	pthread_mutex_lock(&w->queue->lock);
	pthread_mutex_unlock(&w->queue->lock);
	while (!atomic_load(&t->end))
		if (!worker_batch(w))
			dpa_thread_await(t, worker_wait_is_over, w);
	return NULL;
}

/* Wakes workers for as many tasks as are new.  The lock is held. */
static void workers_wake(struct dpa_cmdq *q, uint32_t tasks)
{
	for (uint32_t i = 0; tasks && q->nidle && i < q->nworkers; i++)
		if (q->worker[i].idle) {
			q->worker[i].idle = false;
			q->nidle--;
			tasks--;
			dpa_thread_wake(q->worker[i].thread);
		}
}

/* ---- queues ---- */

static int worker_start(struct dpa_cmdq *q, struct cmdq_worker *w)
{
	int ret;

	w->queue = q;
	pthread_mutex_lock(&q->lock);
	pthread_mutex_lock(&q->process->lock);
	ret = dpa_process_thread(q->process, dpa_thread_number(), worker_main, w, &w->thread);
	pthread_mutex_unlock(&q->process->lock);
	q->nworkers += ret == 0;
	pthread_mutex_unlock(&q->lock);
	return ret;
}

int dpa_cmdq_create(struct dpa_process *p, const struct dpa_cmdq_attr *attr, struct dpa_cmdq **out)
{
	struct dpa_cmdq *q;
	int ret = 0;

	if (!attr->workers || attr->workers > DPA_CMDQ_WORKERS || !attr->batch)
		return -EINVAL;
	q = calloc(1, sizeof(*q) + attr->workers * sizeof(q->worker[0]));
	if (!q)
		return -ENOMEM;
	q->process = p;
	q->batch = attr->batch;
	q->running = attr->running;
	q->room = ROOM_AT_FIRST;
	pthread_mutex_init(&q->lock, NULL);
	q->tasks = calloc(q->room, sizeof(*q->tasks));
	if (!q->tasks)
		ret = -ENOMEM;
	for (uint32_t i = 0; !ret && i < attr->workers; i++)
		ret = worker_start(q, &q->worker[i]);
	if (ret) {
		dpa_cmdq_destroy(q);
		return ret;
	}
	*out = q;
	return 0;
}

void dpa_cmdq_destroy(struct dpa_cmdq *q)
{
	for (uint32_t i = 0; i < q->nworkers; i++)
		dpa_process_thread_end(q->process, q->worker[i].thread);
	pthread_mutex_destroy(&q->lock);
	free(q->tasks);
	free(q);
}

/* Unrolls the ring into one of twice its size. */
static int room_grow(struct dpa_cmdq *q)
{
	struct cmdq_task *grown;
	uint32_t head = q->room - q->first;

	if (q->room >= TASKS_MAX)
		return -ENOMEM;
	grown = malloc(2ull * q->room * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memcpy(grown, q->tasks + q->first, head * sizeof(*grown));
	memcpy(grown + head, q->tasks, q->first * sizeof(*grown));
	free(q->tasks);
	q->tasks = grown;
	q->first = 0;
	q->room *= 2;
	return 0;
}

int dpa_cmdq_add(struct dpa_cmdq *q, uint64_t function, uint64_t arg)
{
	int ret = 0;

	if (dpa_process_state(q->process) != DPA_RUNNING)
		return -ESHUTDOWN;
	pthread_mutex_lock(&q->lock);
	if (q->waiting == q->room)
		ret = room_grow(q);
	if (!ret) {
		q->tasks[(q->first + q->waiting) % q->room] = (struct cmdq_task){function, arg};
		q->waiting++;
		q->unfinished++;
		if (q->running)
			workers_wake(q, 1);
	}
	pthread_mutex_unlock(&q->lock);
	return ret;
}

int dpa_cmdq_start(struct dpa_cmdq *q)
{
	if (dpa_process_state(q->process) != DPA_RUNNING)
		return -ESHUTDOWN;
	pthread_mutex_lock(&q->lock);
	q->running = true;
	workers_wake(q, q->waiting);
	pthread_mutex_unlock(&q->lock);
	return 0;
}

bool dpa_cmdq_is_empty(struct dpa_cmdq *q)
{
	bool is_empty;

	pthread_mutex_lock(&q->lock);
	is_empty = !q->unfinished;
	pthread_mutex_unlock(&q->lock);
	return is_empty;
}
