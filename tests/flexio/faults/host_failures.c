// SPDX-License-Identifier: BSD-2-Clause
/* Processes that fail in bad moments: error handlers that do not end, several threads, handlers. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define MEETING 8u
#define CROWD	24u

/* Others go on, whatever has become of this one, and it can be destroyed. */
static void destroyed(struct flexio_process *p, struct flexio_process *other)
{
	CHECK(call(other, &nothing, 0) == 17 && !is_failed(other, 0));
	OK(flexio_process_destroy(p));
	CHECK(call(other, &nothing, 0) == 17);
	OK(flexio_process_destroy(other));
}

static void fails_at_once(struct flexio_process *p, flexio_func_t *f, uint64_t a)
{
	uint64_t value;

	CHECK(flexio_process_call(p, f, &value, a) == FLEXIO_STATUS_FATAL_ERR);
	CHECK(is_failed(p, PATIENT_MS));
}

/* Its report is there while it runs, and it ends with its process. */
static void endless_handler(void)
{
	struct flexio_process *p = host_process(), *other = host_process();
	struct failing_call c = {.p = p, .f = &nested, .destroyed = true};

	OK(flexio_process_error_handler_set(p, &endless));
	failing_call_start(&c);
	CHECK(is_failed(p, PATIENT_MS));
	OK(flexio_crash_data(p, "endless"));
	core_write(p, "endless");
	destroyed(p, other);
	failing_call_end(&c);
}

/* With SOFTHCA_DPA_CALL_SECONDS=1: nobody else is there to end it. */
static void endless_alone(void)
{
	struct flexio_process *p = host_process();

	OK(flexio_process_error_handler_set(p, &endless));
	fails_at_once(p, &load, 0);
	OK(flexio_crash_data(p, "alone"));
	destroyed(p, host_process());
}

/* With SOFTHCA_DPA_CALL_SECONDS=1: the process goes on, and the report has the calls that were stopped. */
static void late_calls(void)
{
	struct flexio_process *p = host_process();
	flexio_uintptr_t words = words_make(p);
	uint64_t value;

	CHECK(flexio_process_call(p, &stuck, &value, words) == FLEXIO_STATUS_TIMEOUT);
	CHECK(call(p, &nothing, 0) == 17);
	OK(flexio_crash_data(p, "late"));
	CHECK(flexio_process_call(p, &locked, &value, words) == FLEXIO_STATUS_TIMEOUT);
	CHECK(flexio_process_call(p, &ask, &value, words) == FLEXIO_STATUS_TIMEOUT);
	fails_at_once(p, &load, 0);
	OK(flexio_crash_data(p, "late_and_failed"));
	destroyed(p, host_process());
}

/* Only the last ones are remembered. */
static void many_late_calls(void)
{
	struct flexio_process *p = host_process();
	uint64_t value;

	for (unsigned i = 0; i < 10; i++)
		CHECK(flexio_process_call(p, &stuck, &value, (uint64_t)0) == FLEXIO_STATUS_TIMEOUT);
	OK(flexio_crash_data(p, "many_late"));
	destroyed(p, host_process());
}

/* The report is that of the first failure. */
static void handler_fails(void)
{
	struct flexio_process *p = host_process();

	OK(flexio_process_error_handler_set(p, &failing));
	fails_at_once(p, &nested, 0);
	CHECK(flexio_err_status_get(p) == FLEXIO_DEV_FATAL_ERROR);
	OK(flexio_crash_data(p, "failing"));
	destroyed(p, host_process());
}

/* Nor does what it leaves on its stack change the report. */
static void handler_writes(void)
{
	struct flexio_process *p = host_process();

	OK(flexio_process_error_handler_set(p, &writing));
	fails_at_once(p, &nested, 0);
	OK(flexio_crash_data(p, "writing"));
	destroyed(p, host_process());
}

static void several(void)
{
	struct flexio_process *p = host_process(), *other = host_process();
	struct failing_call c[MEETING];
	flexio_uintptr_t words = words_make(p);

	for (unsigned i = 0; i < MEETING; i++) {
		c[i] = (struct failing_call){.p = p, .f = &meet, .a = words, .b = MEETING};
		failing_call_start(&c[i]);
	}
	for (unsigned i = 0; i < MEETING; i++)
		failing_call_end(&c[i]);
	CHECK(is_failed(p, PATIENT_MS));
	OK(flexio_crash_data(p, "several"));
	destroyed(p, other);
}

/* In a handler, while calls run. */
static void in_handler(void)
{
	struct flexio_process *p = host_process(), *other = host_process();
	flexio_uintptr_t words = words_make(p);
	struct failing_call c[] = {{.p = p, .f = &spin, .a = words},
				   {.p = p, .f = &ask, .a = words}};
	struct handler h;
	uint64_t begin_us;

	handler_make(&h, p, 0);
	for (unsigned i = 0; i < 2; i++)
		failing_call_start(&c[i]);
	word_await(p, words, 2);
	begin_us = now_us();
	handler_activate(&h);
	CHECK(is_failed(p, PATIENT_MS));
	printf("error descriptor readable %llu us after the completion\n",
	       (unsigned long long)(now_us() - begin_us));
	for (unsigned i = 0; i < 2; i++)
		failing_call_end(&c[i]);
	OK(flexio_crash_data(p, "in_handler"));
	core_write(p, "in_handler");
	destroyed(p, other);
}

/* While many threads keep the processors busy. */
static void in_crowd(void)
{
	struct flexio_process *p = host_process();
	flexio_uintptr_t words = words_make(p);
	struct failing_call c[CROWD], victim = {.p = p, .f = &load};
	uint64_t begin_us;

	for (unsigned i = 0; i < CROWD; i++) {
		c[i] = (struct failing_call){.p = p, .f = &spin, .a = words};
		failing_call_start(&c[i]);
	}
	word_await(p, words, CROWD);
	begin_us = now_us();
	failing_call_start(&victim);
	CHECK(is_failed(p, PATIENT_MS));
	printf("error descriptor readable after %llu us beside %u busy threads\n",
	       (unsigned long long)(now_us() - begin_us), CROWD);
	failing_call_end(&victim);
	for (unsigned i = 0; i < CROWD; i++)
		failing_call_end(&c[i]);
	destroyed(p, host_process());
}

/* The descriptor is asked for when all is over. */
static void late(void)
{
	struct flexio_process *p, *whole;
	uint64_t value;

	OK(flexio_process_create(host_device(), faults_app, NULL, &p));
	OK(flexio_process_create(host_device(), faults_app, NULL, &whole));
	CHECK(flexio_process_call(p, &load, &value, (uint64_t)0) == FLEXIO_STATUS_FATAL_ERR);
	CHECK(is_failed(p, PATIENT_MS) && !is_failed(whole, 0));
	destroyed(p, whole);
}

/* For debuggers and checkers: a call, a handler's activation, and a fault. */
static void all_three(void)
{
	struct flexio_process *p = host_process();
	flexio_uintptr_t words = words_make(p);
	struct handler h;

	handler_make(&h, p, words);
	handler_activate(&h);
	word_await(p, words, 1);
	fails_at_once(p, &nested, 0);
	OK(flexio_crash_data(p, "all"));
	core_write(p, "all");
	destroyed(p, host_process());
}

/* Under a debugger, which takes the trap. */
static void breakpoint_goes_on(void)
{
	struct flexio_process *p = host_process();

	CHECK(call(p, &breakpoint, 16) == 17);
	destroyed(p, host_process());
}

static volatile sig_atomic_t traps;

static void on_trap(int signum)
{
	CHECK(signum == SIGTRAP);
	traps++;
}

static void trap_of_host(void)
{
#if defined(__x86_64__)
	__asm__ volatile("int3");
#else
	raise(SIGTRAP);
#endif
}

/* Beside a DPA process, in code of the host: the program's handler runs, and without one the program ends. */
static void own_breakpoint(void)
{
	struct flexio_process *p = host_process();
	struct sigaction act = {.sa_handler = on_trap}, old;
	int status;
	pid_t child;

	CHECK(!sigaction(SIGTRAP, &act, &old) && old.sa_handler == SIG_DFL);
	trap_of_host();
	CHECK(traps == 1);
	CHECK(!sigaction(SIGTRAP, &old, &act) && act.sa_handler == on_trap);
	child = fork();
	CHECK(child >= 0);
	if (!child) {
		trap_of_host();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTRAP);
	destroyed(p, host_process());
}

/* Until the process is killed, or whoever is to kill it. */
static void waits(void)
{
	struct flexio_process *p = host_process();
	struct failing_call c = {.p = p, .f = &spin, .a = words_make(p)};

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	failing_call_start(&c);
	word_await(p, c.a, 1);
	puts("spinning");
	fflush(stdout);
	failing_call_end(&c);
}

const struct host_case failure_cases[] = {
	{"endless_handler", endless_handler},
	{"endless_alone", endless_alone},
	{"late_calls", late_calls},
	{"many_late_calls", many_late_calls},
	{"handler_fails", handler_fails},
	{"handler_writes", handler_writes},
	{"several", several},
	{"in_handler", in_handler},
	{"in_crowd", in_crowd},
	{"late", late},
	{"all_three", all_three},
	{"breakpoint_goes_on", breakpoint_goes_on},
	{"own_breakpoint", own_breakpoint},
	{"waits", waits},
	{NULL, NULL},
};
