// SPDX-License-Identifier: BSD-2-Clause
/* Calls that run at the same time and meet in device memory; the argument is the case. */
#include <libflexio/flexio.h>

#include "check.h"
#include "threads.h"

#define THREADS 16u

extern struct flexio_app *threads_app;
extern flexio_func_t locked, lock_taken, counted, produce, consume;

static struct flexio_process *process;

#define OK(call) CHECK((call) == FLEXIO_STATUS_SUCCESS)

/* A call in a thread of its own. */
struct call {
	pthread_t thread;
	flexio_func_t *function;
	uint64_t args[4];
	uint64_t result;
};

static void *call_main(void *arg)
{
	struct call *c = arg;

	OK(flexio_process_call(process, c->function, &c->result, c->args[0], c->args[1], c->args[2],
			       c->args[3]));
	return NULL;
}

/* The sum of the results. */
static uint64_t calls_run(struct call *calls, unsigned count)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < count; i++)
		CHECK(pthread_create(&calls[i].thread, NULL, call_main, &calls[i]) == 0);
	for (unsigned i = 0; i < count; i++) {
		CHECK(pthread_join(calls[i].thread, NULL) == 0);
		sum += calls[i].result;
	}
	return sum;
}

static uint64_t call_one(flexio_func_t *function, uint64_t first, uint64_t second)
{
	struct call c = {.function = function, .args = {first, second}};

	return calls_run(&c, 1);
}

static flexio_uintptr_t cleared(size_t bytes)
{
	flexio_uintptr_t daddr;

	OK(flexio_buf_dev_alloc(process, bytes, &daddr));
	OK(flexio_buf_dev_memset(process, 0, bytes, daddr));
	return daddr;
}

/* The host cannot read device memory; one of the calls does. */
extern flexio_func_t load32, load64;

static uint32_t read32(flexio_uintptr_t base, size_t offset)
{
	return (uint32_t)call_one(load32, base + offset, 0);
}

static uint64_t read64(flexio_uintptr_t base, size_t offset)
{
	return call_one(load64, base + offset, 0);
}

static void locks(void)
{
	flexio_uintptr_t s = cleared(sizeof(struct shared));
	struct call calls[THREADS];

	CHECK(call_one(lock_taken, s, 0) == 2);
	for (unsigned i = 0; i < THREADS; i++)
		calls[i] = (struct call){.function = locked, .args = {s, 2000}};
	calls_run(calls, THREADS);
	CHECK(read64(s, offsetof(struct shared, first)) == THREADS * 2000);
	CHECK(read64(s, offsetof(struct shared, second)) == THREADS * 2000);
	CHECK(read32(s, offsetof(struct shared, torn)) == 0);
}

static void atomics(void)
{
	flexio_uintptr_t s = cleared(sizeof(struct shared));
	struct call calls[THREADS];
	uint64_t one = 1;

	OK(flexio_host2dev_memcpy(process, &one, sizeof(one), s + offsetof(struct shared, token)));
	for (unsigned i = 0; i < THREADS; i++)
		calls[i] = (struct call){.function = counted, .args = {s, 5000}};
	CHECK(calls_run(calls, THREADS) > 0);
	CHECK(read32(s, offsetof(struct shared, added32)) == THREADS * 5000);
	CHECK(read64(s, offsetof(struct shared, added64)) == THREADS * 15000);
	CHECK(read32(s, offsetof(struct shared, swapped32)) == THREADS * 5000);
	CHECK(read64(s, offsetof(struct shared, swapped64)) == THREADS * 5000);
	CHECK(read64(s, offsetof(struct shared, token)) == 1);
	CHECK(read32(s, offsetof(struct shared, torn)) == 0);
}

static void messages(void)
{
	flexio_uintptr_t s = cleared(sizeof(struct shared));
	struct call calls[2] = {{.function = consume, .args = {s, 300000}},
				{.function = produce, .args = {s, 300000}}};

	CHECK(calls_run(calls, 2) == 0);
}

static void begin(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	CHECK(list && list[0]);
	context = ibv_open_device(list[0]);
	CHECK(context);
	ibv_free_device_list(list);
	OK(flexio_process_create(context, threads_app, NULL, &process));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {{"locks", locks}, {"atomics", atomics}, {"messages", messages}};

	CHECK(argc == 2);
	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1])) {
			cases[i].run();
			OK(flexio_process_destroy(process));
			return 0;
		}
	CHECK_SAY(0, "no case %s", argv[1]);
}
