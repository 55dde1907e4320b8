// SPDX-License-Identifier: BSD-2-Clause
/*
 * Device code in this process: it is called, it fails in each way that there is, it is stopped, and the test goes
 * on.  The argument is the image.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "dpa/crash.h"
#include "dpa/dpa.h"
#include "dpa_fixture.h"

static const char *image_path;
static _Atomic(unsigned) failures;

static void on_failed(void *user)
{
	(void)user;
	atomic_fetch_add(&failures, 1);
}

static struct dpa_process *process_make(void)
{
	struct dpa_process_attr attr = {.failed = on_failed};
	struct dpa_process *p;

	attr.elf = fixture_read(image_path, &attr.elf_bytes);
	CHECK(dpa_process_create(&attr, &p) == 0);
	atomic_store(&failures, 0);
	return p;
}

static void process_drop(struct dpa_process *p)
{
	dpa_process_end(p);
	CHECK(dpa_process_state(p) == DPA_ENDED);
	dpa_process_put(p);
}

static enum dpa_call_end call_one(struct dpa_process *p, const char *name, uint64_t arg,
				  uint64_t *value)
{
	const struct dpa_call call = {
		.function = dpa_process_function(p, name),
		.args = &arg,
		.bytes = sizeof(arg),
	};

	CHECK(call.function);
	return dpa_call(p, &call, value);
}

static uint64_t call_done(struct dpa_process *p, const char *name, uint64_t arg)
{
	uint64_t value;

	CHECK(call_one(p, name, arg, &value) == DPA_CALL_DONE);
	return value;
}

static void test_calls(void)
{
	struct dpa_process *p = process_make(), *other = process_make();
	const uint64_t args[] = {2, 3};
	const struct dpa_call sum = {
		.function = dpa_process_function(p, "add"),
		.unpack = dpa_process_function(p, "unpack_two"),
		.args = args,
		.bytes = sizeof(args),
	};
	uint64_t value;

	CHECK(!dpa_process_function(p, "no such function"));
	CHECK(dpa_call(p, &sum, &value) == DPA_CALL_DONE && value == 5);
	/* Each process has its own variables. */
	CHECK(call_done(p, "count", 2) == 42 && call_done(p, "count", 1) == 43);
	CHECK(call_done(other, "count", 5) == 45);
	process_drop(other);
	CHECK(call_done(p, "count", 0) == 43);
	process_drop(p);
}

static void test_memory(void)
{
	struct dpa_process *p = process_make();
	struct dpa_heap_info info;
	uint64_t addr = dpa_memory_alloc(p, 100, 0), word = 99;

	CHECK(addr && addr % 64 == 0);
	dpa_memory_info(p, &info);
	CHECK(info.base && info.bytes && info.requested == 100 && info.allocated >= 100);
	CHECK(dpa_memory_part(p, addr, 100) && !dpa_memory_part(p, info.base, info.bytes + 1) &&
	      !dpa_memory_part(p, info.base - 1, 2));
	memcpy(dpa_memory_part(p, addr, 8), &word, 8);
	CHECK(call_done(p, "load", addr) == 99 && call_done(p, "checked_load", addr) == 99);
	CHECK(dpa_memory_free(p, addr, 0) && !dpa_memory_free(p, addr, 0));
	CHECK(!dpa_memory_alloc(p, info.bytes + 1, 0));
	process_drop(p);
}

/* Only what has run out of its stack is an overflow of it. */
static void test_stack_overflow(void)
{
	const struct {
		const char *function;
		bool stack;
	} cases[] = {{"load", false}, {"overflow", true}, {"overflow_at_door", true}};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct dpa_process *p = process_make();
		struct dpa_frame frames[4];
		struct dpa_crash crash;
		uint64_t value;

		CHECK(call_one(p, cases[i].function, 0, &value) == DPA_CALL_DEAD);
		CHECK(dpa_crash_read(p, &crash, frames, array_size(frames)) && crash.fault);
		CHECK_SAY(crash.stack == cases[i].stack, "%s", cases[i].function);
		process_drop(p);
	}
}

/* Each ends its process, and nothing else. */
static void test_failures(void)
{
	static uint64_t host_word = 5;
	const struct {
		const char *function;
		uint64_t arg;
		uint32_t code;
	} cases[] = {
		{"load", 0, SIGSEGV},
		{"load", 0xdead0000dead0000ull, SIGSEGV},
		{"store", 0, SIGSEGV},
		{"jump", 0, SIGSEGV},
		{"jump", 0xdead0000dead0000ull, SIGSEGV},
		{"overflow", 0, SIGSEGV},
		{"overflow_at_door", 0, SIGSEGV},
		{"trap", 0, SIGILL},
		{"breakpoint", 0, SIGTRAP},
		{"checked_load", (uintptr_t)&host_word, SIGSEGV},
		{"error", 200, 200},
		{"error", 0x42, 0x42},
		{"error", 5, 0x42},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct dpa_process *p = process_make();
		uint64_t value;

		CHECK(call_done(p, "count", 0) == 40);
		CHECK_SAY(call_one(p, cases[i].function, cases[i].arg, &value) == DPA_CALL_DEAD,
			  "%s", cases[i].function);
		CHECK(dpa_process_state(p) == DPA_FATAL);
		CHECK_SAY(dpa_process_code(p) == cases[i].code, "%s: %u", cases[i].function,
			  dpa_process_code(p));
		CHECK(atomic_load(&failures) == 1);
		CHECK(call_one(p, "count", 0, &value) == DPA_CALL_DEAD);
		process_drop(p);
	}
	CHECK(host_word == 5);
}

static void test_finish(void)
{
	struct dpa_process *p = process_make();
	uint64_t value;

	CHECK(call_one(p, "finish", 0, &value) == DPA_CALL_DEAD);
	CHECK(dpa_process_state(p) == DPA_FINISHED && dpa_process_code(p) == DPA_CODE_FINISHED);
	CHECK(atomic_load(&failures) == 0);
	process_drop(p);
}

struct caller {
	pthread_t thread;
	struct dpa_process *p;
	const char *function;
	uint64_t arg;
	enum dpa_call_end end;
	uint64_t value;
};

static void *caller_main(void *arg)
{
	struct caller *c = arg;

	c->end = call_one(c->p, c->function, c->arg, &c->value);
	dpa_process_put(c->p);
	return NULL;
}

static void caller_start(struct caller *c, struct dpa_process *p, const char *function,
			 uint64_t arg)
{
	*c = (struct caller){.p = p, .function = function, .arg = arg};
	dpa_process_hold(p);
	CHECK(pthread_create(&c->thread, NULL, caller_main, c) == 0);
}

/* Endless calls, and a process that goes: by itself, by a fault elsewhere, or destroyed. */
static void test_endless(const char *how)
{
	struct dpa_process *p = process_make();
	struct caller callers[6];
	uint64_t value;

	for (size_t i = 0; i < array_size(callers); i++)
		caller_start(&callers[i], p, i % 2 ? "spin" : "spin_in_runtime", i);
	usleep(20000);
	if (how)
		CHECK(call_one(p, how, 0, &value) == DPA_CALL_DEAD);
	else
		dpa_process_end(p);
	for (size_t i = 0; i < array_size(callers); i++) {
		CHECK(pthread_join(callers[i].thread, NULL) == 0);
		CHECK(callers[i].end == DPA_CALL_DEAD);
	}
	process_drop(p);
}

/* All are in the device at the same time, or none would come back. */
static void test_parallel(void)
{
	struct dpa_process *p = process_make();
	struct caller callers[8];
	uint64_t word = dpa_memory_alloc(p, 8, 0);

	for (size_t i = 0; i < array_size(callers); i++)
		caller_start(&callers[i], p, "await_word", word);
	CHECK(call_done(p, "store", word) == 0);
	for (size_t i = 0; i < array_size(callers); i++) {
		CHECK(pthread_join(callers[i].thread, NULL) == 0);
		CHECK(callers[i].end == DPA_CALL_DONE && callers[i].value == 7);
	}
	process_drop(p);
}

static void test_refused(void)
{
	struct dpa_process_attr attr = {.failed = on_failed};
	struct dpa_process *p;

	attr.elf = calloc(1, 4096);
	attr.elf_bytes = 4096;
	CHECK(dpa_process_create(&attr, &p) == -EINVAL);
	free(attr.elf);
}

static void on_signal(int signum, siginfo_t *info, void *ucontext)
{
	if (!dpa_signal(signum, info, ucontext))
		_exit(3);
}

int main(int argc, char **argv)
{
	struct sigaction act = {.sa_sigaction = on_signal,
				.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};

	CHECK(argc == 2);
	image_path = argv[1];
	for (size_t i = 0; i < array_size(signals); i++)
		CHECK(sigaction(signals[i], &act, NULL) == 0);
	test_calls();
	test_memory();
	test_stack_overflow();
	test_failures();
	test_finish();
	test_endless(NULL);
	test_endless("load");
	test_endless("finish");
	test_parallel();
	test_refused();
	for (unsigned i = 0; i < 50; i++)
		process_drop(process_make());
	return 0;
}
