// SPDX-License-Identifier: BSD-2-Clause
/* Calls into device code. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define CALLERS	       8u
#define STOPS	       4u
#define STOPS_APART_US 200000u
#define STOP_US	       1200000u
#define LAST_NS	       2000000u

static void arguments(void)
{
	struct flexio_process *p = host_process();
	uint64_t value;

	CHECK(RESULT(p, add, (uint64_t)2, (uint64_t)3) == 5);
	CHECK(RESULT(p, &add, (uint64_t)UINT64_MAX, (uint64_t)3) == 2);
	CHECK(RESULT(p, &add, 0x123456789abcdef0ul, 0x0edcba9876543210ul) == 0x2111111111111100ul);
	CHECK(RESULT(p, &nothing) == 17);
	CHECK(RESULT(p, &mixed, -3, 0xfffffffe, 200, (int64_t)-5, (void *)0x1234567890) == 1);
	CHECK(RESULT(p, &context) == 1);
	FAILS(flexio_process_call(p, &add, NULL, (uint64_t)2, (uint64_t)3));
	FAILS(flexio_process_call(p, NULL, &value));
	FAILS(flexio_process_call(NULL, &add, &value, (uint64_t)2, (uint64_t)3));
	FAILS(flexio_process_call(p, (flexio_func_t *)(uintptr_t)&value, &value));
	OK(flexio_process_destroy(p));
	FAILS(flexio_process_call(p, &add, &value, (uint64_t)2, (uint64_t)3));
}

static void many(void)
{
	struct flexio_process *p = host_process();
	size_t kept = 0;

	/* Each call finds what the one before has stored; after the first ones none keeps memory. */
	for (uint64_t i = 0; i < 100000; i++) {
		CHECK(RESULT(p, &count, (uint64_t)1) == 41 + i);
		if (i == 1000)
			kept = mallinfo2().uordblks;
	}
	CHECK_SAY(mallinfo2().uordblks < kept + 50000, "%zu bytes", mallinfo2().uordblks - kept);
	OK(flexio_process_destroy(p));
}

struct caller {
	pthread_t thread;
	struct flexio_process *p;
	flexio_uintptr_t word;
	flexio_status status;
	uint64_t value;
};

static void *caller_main(void *arg)
{
	struct caller *c = arg;

	c->status = flexio_process_call(c->p, c->word ? &await_word : &spin, &c->value, c->word);
	return NULL;
}

static void callers_start(struct caller *callers, struct flexio_process *p, flexio_uintptr_t word)
{
	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){.p = p, .word = word};
		CHECK(pthread_create(&callers[i].thread, NULL, caller_main, &callers[i]) == 0);
	}
}

static void callers_expect(struct caller *callers, flexio_status status)
{
	for (unsigned i = 0; i < CALLERS; i++) {
		CHECK(pthread_join(callers[i].thread, NULL) == 0);
		CHECK_SAY(callers[i].status == status, "%d", callers[i].status);
		CHECK(status != FLEXIO_STATUS_SUCCESS || callers[i].value == 7);
	}
}

static void *meet_main(void *arg)
{
	struct caller *c = arg;

	c->status = flexio_process_call(c->p, &meet, &c->value, c->word, (uint64_t)CALLERS);
	return NULL;
}

/* None returns before all are there at the same time. */
static void together(struct flexio_process *p, flexio_uintptr_t word)
{
	struct caller callers[CALLERS];

	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){.p = p, .word = word};
		CHECK(!pthread_create(&callers[i].thread, NULL, meet_main, &callers[i]));
	}
	callers_expect(callers, FLEXIO_STATUS_SUCCESS);
}

/* Calls see what the host stores while they run. */
static void parallel(void)
{
	struct flexio_process *p = host_process();
	struct caller callers[CALLERS];
	uint64_t zero = 0, one = 1;
	flexio_uintptr_t word;

	OK(flexio_copy_from_host(p, &zero, sizeof(zero), &word));
	callers_start(callers, p, word);
	CHECK(RESULT(p, &nothing) == 17);
	OK(flexio_host2dev_memcpy(p, &one, sizeof(one), word));
	callers_expect(callers, FLEXIO_STATUS_SUCCESS);
	OK(flexio_host2dev_memcpy(p, &zero, sizeof(zero), word));
	together(p, word);
	OK(flexio_process_destroy(p));
}

/* Device code that never returns; SOFTHCA_DPA_CALL_SECONDS=1. */
static void too_long(void)
{
	struct flexio_process *p = host_process();
	struct caller callers[CALLERS];

	callers_start(callers, p, 0);
	callers_expect(callers, FLEXIO_STATUS_TIMEOUT);
	CHECK(flexio_err_status_get(p) == FLEXIO_DEV_NO_ERROR);
	CHECK(RESULT(p, &nothing) == 17);
	OK(flexio_process_destroy(p));
}

/* Stops this program for longer than calls may take, again and again. */
static pid_t stopper_start(void)
{
	pid_t program = getpid(), stopper = fork();

	CHECK(stopper >= 0);
	if (stopper)
		return stopper;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned i = 0; i < STOPS; i++) {
		usleep(STOPS_APART_US);
		if (kill(program, SIGSTOP))
			_exit(1);
		usleep(STOP_US);
		if (kill(program, SIGCONT))
			_exit(1);
	}
	_exit(0);
}

static atomic_bool stopper_ended;

static void *late_main(void *arg)
{
	struct caller *c = arg;

	while (!stopper_ended) {
		c->status = flexio_process_call(c->p, &last, &c->value, (uint64_t)LAST_NS);
		CHECK_SAY(c->status == FLEXIO_STATUS_SUCCESS || c->status == FLEXIO_STATUS_TIMEOUT,
			  "%d", c->status);
	}
	return NULL;
}

/* The time in which a program stands still counts.  There are more calls than processors, so some are
 * late before their threads have begun with them; SOFTHCA_DPA_CALL_SECONDS=1. */
static void late(void)
{
	struct flexio_process *p = host_process();
	struct caller callers[CALLERS];
	pid_t stopper = stopper_start();
	int status;

	for (unsigned i = 0; i < CALLERS; i++) {
		callers[i] = (struct caller){.p = p};
		CHECK(!pthread_create(&callers[i].thread, NULL, late_main, &callers[i]));
	}
	CHECK(waitpid(stopper, &status, 0) == stopper && !status);
	stopper_ended = true;
	for (unsigned i = 0; i < CALLERS; i++)
		CHECK(!pthread_join(callers[i].thread, NULL));
	CHECK(flexio_err_status_get(p) == FLEXIO_DEV_NO_ERROR && RESULT(p, &nothing) == 17);
	OK(flexio_process_destroy(p));
}

static void *destroyer_main(void *arg)
{
	usleep(50000);
	OK(flexio_process_destroy(arg));
	return NULL;
}

/* The process goes while calls never return. */
static void destroyed(void)
{
	struct flexio_process *p = host_process();
	struct caller callers[CALLERS];
	pthread_t thread;

	callers_start(callers, p, 0);
	CHECK(pthread_create(&thread, NULL, destroyer_main, p) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	for (unsigned i = 0; i < CALLERS; i++) {
		CHECK(pthread_join(callers[i].thread, NULL) == 0);
		CHECK(callers[i].status != FLEXIO_STATUS_SUCCESS);
	}
}

static void streamed(void)
{
	flexio_msg_stream_attr_t attr = {.data_bsize = 2048, .level = FLEXIO_MSG_DEV_INFO};
	struct flexio_process *p = host_process();
	struct flexio_msg_stream *stream;
	pthread_t thread;
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	OK(flexio_msg_stream_create(p, &attr, out, &thread, &stream));
	CHECK(RESULT(p, &say, (uint64_t)1) == 0 && RESULT(p, &say, (uint64_t)2) == 0);
	OK(flexio_msg_stream_destroy(stream));
	fflush(out);
	CHECK_SAY(!strcmp(text, "said 1\nsaid 2\n"), "%s", text);
	OK(flexio_process_destroy(p));
	fclose(out);
	free(text);
}

/* Spins until it is killed, or whoever is to kill it. */
static void killed(void)
{
	struct caller callers[CALLERS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	callers_start(callers, host_process(), 0);
	usleep(20000);
	printf("spinning\n");
	fflush(stdout);
	pause();
}

const struct host_case call_cases[] = {
	{"arguments", arguments}, {"many", many},	    {"parallel", parallel},
	{"too_long", too_long},	  {"destroyed", destroyed}, {"streamed", streamed},
	{"killed", killed},	  {"late", late},	    {NULL, NULL},
};
