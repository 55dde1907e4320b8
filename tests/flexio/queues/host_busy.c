// SPDX-License-Identifier: BSD-2-Clause
/*
 * Everything at once, without end: what is killed at a random moment, what exits, forks, or runs another program
 * in the middle.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define WINDOW_BYTES 4096u

static struct bench b;
static struct flexio_cmdq *cmdq;
static struct flexio_window *window;
static struct ibv_mr *mr;
static uint8_t host_memory[WINDOW_BYTES];
static struct flexio_msg_stream *stream;
static atomic_ulong turns;
static atomic_bool over;
/* The program is becoming another one: what is refused now does not matter. */
static atomic_bool leaving;

/* ---- threads of the host, each of which has one kind of work ---- */

static void must(flexio_status status)
{
	if (status != FLEXIO_STATUS_SUCCESS && atomic_load(&leaving))
		pause();
	OK(status);
}

static void *calls_main(void *arg)
{
	uint64_t value;

	(void)arg;
	while (!atomic_load(&over)) {
		must(flexio_process_call(b.p, &say, &value, (uint64_t)atomic_fetch_add(&turns, 1)));
		must(flexio_process_call(b.p, &window_first, &value,
					 (uint64_t)flexio_window_get_id(window), (uint64_t)mr->lkey,
					 (uint64_t)(uintptr_t)host_memory));
	}
	return NULL;
}

static void *events_main(void *arg)
{
	uint64_t value;

	(void)arg;
	for (uint64_t n = 1; !atomic_load(&over); n++) {
		must(flexio_process_call(b.p, &complete, &value, (uint64_t)b.cqn, (uint64_t)1));
		do
			must(flexio_process_call(b.p, &peek, &value,
						 (uint64_t)(b.q + offsetof(struct queue, taken))));
		while (value < n && !atomic_load(&over));
	}
	return NULL;
}

static void *tasks_main(void *arg)
{
	(void)arg;
	while (!atomic_load(&over)) {
		must(flexio_cmdq_task_add(cmdq, &count_task, b.q + offsetof(struct queue, limit)));
		while (!flexio_cmdq_is_empty(cmdq) && !atomic_load(&over))
			usleep(50);
	}
	return NULL;
}

/* Processes come and go beside the one that stays. */
static void *processes_main(void *arg)
{
	struct flexio_process *p;
	flexio_uintptr_t at;
	uint64_t value;

	(void)arg;
	while (!atomic_load(&over)) {
		must(flexio_process_create(b.ctx, queues_app, NULL, &p));
		must(flexio_buf_dev_alloc(p, 64, &at));
		must(flexio_process_call(p, &poke, &value, (uint64_t)at, (uint64_t)5));
		must(flexio_process_destroy(p));
	}
	return NULL;
}

static void *(*const mains[])(void *) = {calls_main, calls_main, events_main, tasks_main,
					 processes_main};

#define MAINS (sizeof(mains) / sizeof(mains[0]))

static pthread_t threads[MAINS];

static void busy_up(void)
{
	struct flexio_cmdq_attr attr = {
		.workers = 2, .batch_size = 4, .state = FLEXIO_CMDQ_STATE_RUNNING};
	flexio_msg_stream_attr_t stream_attr = {.data_bsize = 2048, .level = FLEXIO_MSG_DEV_INFO};
	FILE *nowhere = fopen("/dev/null", "w");
	struct ibv_pd *pd;

	bench_up(&b, QUEUE_ARMS);
	bench_queue(&b, 4);
	pd = flexio_process_get_pd(b.p);
	mr = ibv_reg_mr(pd, host_memory, sizeof(host_memory), IBV_ACCESS_LOCAL_WRITE);
	CHECK(nowhere && mr);
	OK(flexio_window_create(b.p, pd, &window));
	OK(flexio_cmdq_create(b.p, &attr, &cmdq));
	OK(flexio_msg_stream_create(b.p, &stream_attr, nowhere, NULL, &stream));
	for (size_t i = 0; i < MAINS; i++)
		CHECK(!pthread_create(&threads[i], NULL, mains[i], NULL));
}

static void await_turns(unsigned long n)
{
	unsigned long end = atomic_load(&turns) + n;

	for (unsigned i = 0; i < 60000 && atomic_load(&turns) < end; i++)
		usleep(1000);
	CHECK(atomic_load(&turns) >= end);
}

/* A device and a stream of its own in each of these, before anything is up: any moment will do. */
static void busy(void)
{
	/* Not beyond whoever is to kill it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	printf("begun\n");
	fflush(stdout);
	busy_up();
	printf("busy\n");
	fflush(stdout);
	pause();
}

static void busy_ends(void)
{
	busy_up();
	await_turns(20);
	atomic_store(&over, true);
	for (size_t i = 0; i < MAINS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!ibv_dereg_mr(mr));
	bench_down(&b);
}

/* In the middle of everything. */
static void busy_exits(void)
{
	busy_up();
	await_turns(20);
	/* Its application goes first. */
	atomic_store(&leaving, true);
	exit(0);
}

static void busy_execs(void)
{
	busy_up();
	await_turns(20);
	atomic_store(&leaving, true);
	execl("/bin/true", "true", (char *)NULL);
	CHECK(false);
}

/* A child leaves by each of the ways; what it closes is its own. */
static void child_run(unsigned how)
{
	struct ibv_context *ctx;

	switch (how % 4) {
	case 0:
		_exit(0);
	case 1:
		(void)ibv_close_device(b.ctx);
		_exit(0);
	case 2:
		for (int fd = 3; fd < 256; fd++)
			close(fd);
		_exit(0);
	default:
		ctx = device_open(0);
		CHECK(!ibv_close_device(ctx));
		_exit(0);
	}
}

static void busy_forks(void)
{
	int status;

	busy_up();
	await_turns(20);
	for (unsigned i = 0; i < 12; i++) {
		pid_t pid = fork();

		CHECK(pid >= 0);
		if (!pid)
			child_run(i);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK_SAY(WIFEXITED(status) && !WEXITSTATUS(status), "child %u: %x", i, status);
		await_turns(5);
	}
	atomic_store(&over, true);
	for (size_t i = 0; i < MAINS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!ibv_dereg_mr(mr));
	bench_down(&b);
}

const struct host_case busy_cases[] = {
	{"busy", busy},
	{"busy_ends", busy_ends},
	{"busy_exits", busy_exits},
	{"busy_execs", busy_execs},
	{"busy_forks", busy_forks},
	{NULL, NULL},
};
