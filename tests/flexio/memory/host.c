// SPDX-License-Identifier: BSD-2-Clause
/* The host program of tests/flexio/memory; the argument is the name of a case. */
#include <infiniband/mlx5dv.h>
#include <libflexio/flexio.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "memory.h"

extern struct flexio_app *memory_app;
extern flexio_func_t answers, answers_by_assembly, copies, forgets, adds, fills, confuses,
	interrupts, hides, step, polls, handles, activates, trusts, parts;

#define OK(call)    CHECK((call) == FLEXIO_STATUS_SUCCESS)
#define PAGE	    4096u
#define LOW_ADDRESS 0x10000000ul

struct bench {
	struct ibv_context *ctx;
	struct flexio_process *p;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct flexio_window *window;
	struct shared *shared;
	flexio_uintptr_t arg;
	/* a call in a thread of its own */
	pthread_t thread;
	flexio_func_t *f;
};

static void bench_up(struct bench *b, bool low)
{
	struct mlx5dv_context_attr attr = {.flags = MLX5DV_CONTEXT_FLAGS_DEVX};
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct window w = {0};

	CHECK(list && list[0]);
	b->ctx = mlx5dv_open_device(list[0], &attr);
	CHECK(b->ctx);
	ibv_free_device_list(list);
	OK(flexio_process_create(b->ctx, memory_app, NULL, &b->p));
	b->pd = ibv_alloc_pd(b->ctx);
	b->shared = mmap(low ? (void *)LOW_ADDRESS : NULL, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | (low ? MAP_FIXED_NOREPLACE : 0), -1, 0);
	CHECK(b->pd && b->shared != MAP_FAILED);
	b->mr = ibv_reg_mr(b->pd, b->shared, PAGE, IBV_ACCESS_LOCAL_WRITE);
	CHECK(b->mr);
	OK(flexio_window_create(b->p, b->pd, &b->window));
	w.id = flexio_window_get_id(b->window);
	w.key = b->mr->lkey;
	w.host = (uintptr_t)b->shared;
	OK(flexio_copy_from_host(b->p, &w, sizeof(w), &b->arg));
}

static void bench_down(struct bench *b)
{
	OK(flexio_window_destroy(b->window));
	OK(flexio_process_destroy(b->p));
	CHECK(!ibv_dereg_mr(b->mr) && !ibv_dealloc_pd(b->pd) && !ibv_close_device(b->ctx));
}

static uint64_t call(struct bench *b, flexio_func_t *f)
{
	uint64_t value = UINT64_MAX;

	OK(flexio_process_call(b->p, f, &value, b->arg));
	return value;
}

static void *call_main(void *arg)
{
	struct bench *b = arg;

	CHECK(!call(b, b->f));
	return NULL;
}

static void call_begin(struct bench *b, flexio_func_t *f)
{
	b->f = f;
	CHECK(!pthread_create(&b->thread, NULL, call_main, b));
}

static void call_end(struct bench *b)
{
	CHECK(!pthread_join(b->thread, NULL));
}

static uint64_t get(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void put(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static uint64_t step_to(struct bench *b, uint64_t to)
{
	uint64_t value;

	OK(flexio_process_call(b->p, &step, &value, b->arg, to));
	return value;
}

/* ---- cases ---- */

static void asks(struct bench *b, flexio_func_t *f)
{
	call_begin(b, f);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		put(&b->shared->question, i);
		while (get(&b->shared->answer) != i)
			sched_yield();
		CHECK(get(&b->shared->data) == 3 * i);
	}
	call_end(b);
}

static void right(struct bench *b)
{
	asks(b, &answers);
	put(&b->shared->question, 0);
	put(&b->shared->answer, 0);
	asks(b, &answers_by_assembly);
	CHECK(!call(b, &copies) && get(&b->shared->data) == 6);
}

static void forgotten(struct bench *b)
{
	CHECK(!call(b, &forgets) && get(&b->shared->data) == 7);
	CHECK(!call(b, &adds) && get(&b->shared->data) == 14);
	CHECK(!call(b, &fills) && b->shared->bytes[BYTES - 1] == 9);
	CHECK(!call(b, &confuses) && get(&b->shared->data) == 8);
	CHECK(!call(b, &interrupts) && get(&b->shared->data) == 10);
	/* Nothing is said twice. */
	CHECK(!call(b, &forgets));
}

/* Whether the host sees a store that has not been written back. */
static void hidden(struct bench *b)
{
	call_begin(b, &hides);
	while (step_to(b, 0) != 1)
		usleep(100);
	printf("in front of the fence: %llu\n", (unsigned long long)get(&b->shared->data));
	step_to(b, 2);
	while (step_to(b, 0) != 3)
		usleep(100);
	CHECK(get(&b->shared->data) == 11);
	step_to(b, 4);
	call_end(b);
}

static void polled(struct bench *b)
{
	call_begin(b, &polls);
	while (step_to(b, 0) != 1)
		usleep(100);
	put(&b->shared->question, 1);
	call_end(b);
}

static void handled(struct bench *b)
{
	struct flexio_event_handler_attr attr = {.host_stub_func = &handles};
	struct flexio_event_handler *eh;
	uint64_t value;

	OK(flexio_event_handler_create(b->p, &attr, &eh));
	OK(flexio_event_handler_run(eh, b->arg));
	for (uint64_t i = 1; i <= 2; i++) {
		put(&b->shared->question, i);
		OK(flexio_process_call(b->p, &activates, &value,
				       (uint64_t)flexio_event_handler_get_id(eh)));
		while (step_to(b, 0) != i)
			usleep(100);
	}
	OK(flexio_event_handler_destroy(eh));
}

static void trusted(struct bench *b)
{
	uint64_t value;
	flexio_status status = flexio_process_call(b->p, &trusts, &value, b->arg);

	printf("the host's address: %s\n",
	       status == FLEXIO_STATUS_FATAL_ERR ? "a fault" : "no fault");
}

/* The memory of the two windows is as far apart as distances can be: 8 GiB times each power of two. */
static void apart(struct bench *b)
{
	for (unsigned log = 33; log < 44; log++) {
		size_t bytes = ((size_t)1 << log) + PAGE;
		uint8_t *room = mmap(NULL, bytes, PROT_NONE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		struct shared *s[] = {(void *)room, (void *)(room + bytes - PAGE)};
		struct ibv_mr *mr[2];

		CHECK(room != MAP_FAILED);
		for (int i = 0; i < 2; i++) {
			CHECK(!mprotect(s[i], PAGE, PROT_READ | PROT_WRITE));
			mr[i] = ibv_reg_mr(b->pd, s[i], PAGE, IBV_ACCESS_LOCAL_WRITE);
			CHECK(mr[i]);
		}
		for (int i = 0; i < 2; i++) {
			struct window w = {.id = flexio_window_get_id(b->window),
					   .key = mr[i]->lkey,
					   .host = (uintptr_t)s[i],
					   .other_key = mr[!i]->lkey,
					   .other_host = (uintptr_t)s[!i]};

			OK(flexio_host2dev_memcpy(b->p, &w, sizeof(w), b->arg));
			CHECK(call(b, &parts) == 21);
			CHECK(s[i]->data == 1 && s[!i]->data == 20);
		}
		CHECK(!ibv_dereg_mr(mr[0]) && !ibv_dereg_mr(mr[1]) && !munmap(room, bytes));
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(struct bench *b);
		bool low;
	} cases[] = {{"right", right, false},	      {"right_low", right, true},
		     {"forgotten", forgotten, false}, {"hidden", hidden, false},
		     {"polled", polled, false},	      {"handled", handled, false},
		     {"trusted", trusted, false},     {"apart", apart, false}};
	struct bench b = {0};

	CHECK(argc > 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[1]) != 0)
			continue;
		bench_up(&b, cases[i].low);
		cases[i].run(&b);
		bench_down(&b);
		return 0;
	}
	CHECK(!"a case of that name");
	return 1;
}
