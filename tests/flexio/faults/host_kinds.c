// SPDX-License-Identifier: BSD-2-Clause
/*
 * Kinds of failure, each in a process of its own, with a report of the kind's name in the current directory.
 * Whether one is seen that only checks see is for the test to know: the program says "KIND: seen" or "not seen".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

#define BYTES 4096u

static uint64_t longest_us;

static void kind_seen(const char *name, struct flexio_process *p, uint64_t begin_us,
		      enum flexio_err_status status)
{
	uint64_t value, us;

	CHECK(is_failed(p, PATIENT_MS));
	us = now_us() - begin_us;
	longest_us = us > longest_us ? us : longest_us;
	CHECK_SAY(flexio_err_status_get(p) == status, "%s", name);
	CHECK(flexio_process_call(p, &nothing, &value) == FLEXIO_STATUS_FATAL_ERR);
	OK(flexio_crash_data(p, name));
	printf("%s: seen\n", name);
}

static void kind_end(const char *name, struct flexio_process *p, flexio_status status,
		     uint64_t begin_us, enum flexio_err_status error)
{
	if (status == FLEXIO_STATUS_FATAL_ERR)
		kind_seen(name, p, begin_us, error);
	else
		printf("%s: %s\n", name, status == FLEXIO_STATUS_SUCCESS ? "not seen" : "other");
	OK(flexio_process_destroy(p));
}

static void kind(const char *name, struct flexio_process *p, flexio_func_t *f, uint64_t arg,
		 enum flexio_err_status error)
{
	uint64_t value, begin_us;
	flexio_status status;

	CHECK(call(p, &nothing, 0) == 17 && !is_failed(p, 0));
	begin_us = now_us();
	status = flexio_process_call(p, f, &value, arg);
	kind_end(name, p, status, begin_us, error);
}

/* Behind the heap is a page of nobody's, in the process's own range. */
static uint64_t guard_of(struct flexio_process *p)
{
	struct flexio_heap_mem_info info;

	OK(flexio_process_mem_info_get(p, &info));
	return info.base_addr + info.size;
}

static void addresses(void)
{
	static uint64_t word = 5;
	struct flexio_process *p;

	kind("null_load", host_process(), &load, 0, FLEXIO_DEV_FATAL_ERROR);
	kind("null_store", host_process(), &store, 0, FLEXIO_DEV_FATAL_ERROR);
	kind("wild_store", host_process(), &store, 0xdead0000dead0000, FLEXIO_DEV_FATAL_ERROR);
	kind("unmapped", host_process(), &load, 0x10000, FLEXIO_DEV_FATAL_ERROR);
	kind("library", host_process(), &fill, 8, FLEXIO_DEV_FATAL_ERROR);
	kind("nested", host_process(), &nested, 0, FLEXIO_DEV_FATAL_ERROR);
	p = host_process();
	kind("guard", p, &store, guard_of(p), FLEXIO_DEV_FATAL_ERROR);
	p = host_process();
	kind("code", p, &store, call(p, &code, 0), FLEXIO_DEV_FATAL_ERROR);
	kind("host_load", host_process(), &load, (uintptr_t)&word, FLEXIO_DEV_FATAL_ERROR);
	kind("host_store", host_process(), &store, (uintptr_t)&word, FLEXIO_DEV_FATAL_ERROR);
	kind("archive", host_process(), &archive, (uintptr_t)&word, FLEXIO_DEV_FATAL_ERROR);
	kind("other_archive", host_process(), &other_archive, (uintptr_t)&word,
	     FLEXIO_DEV_FATAL_ERROR);
}

static void instructions(void)
{
	struct flexio_process *p;
	flexio_uintptr_t heap;

	kind("overflow", host_process(), &overflow, 1, FLEXIO_DEV_FATAL_ERROR);
	kind("large_frame", host_process(), &large, 1, FLEXIO_DEV_FATAL_ERROR);
	kind("jump_null", host_process(), &jump, 0, FLEXIO_DEV_FATAL_ERROR);
	p = host_process();
	OK(flexio_buf_dev_alloc(p, 64, &heap));
	kind("jump_heap", p, &jump, heap, FLEXIO_DEV_FATAL_ERROR);
	/* This is no fault on the DPA's processor. */
	CHECK(call(host_process(), &divide, 0) == UINT64_MAX);
	kind("trap", host_process(), &trap, 0, FLEXIO_DEV_FATAL_ERROR);
	kind("breakpoint", host_process(), &breakpoint, 0, FLEXIO_DEV_FATAL_ERROR);
	kind("user_error", host_process(), &report, 200, FLEXIO_DEV_USER_ERROR);
	kind("illegal_error", host_process(), &report, 5, FLEXIO_DEV_FATAL_ERROR);
}

/* ---- windows ---- */

struct window {
	struct flexio_process *p;
	struct flexio_window *window;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *memory;
};

static void window_make(struct window *w)
{
	w->p = host_process();
	w->pd = ibv_alloc_pd(host_device());
	w->memory = aligned_alloc(BYTES, 2 * BYTES);
	CHECK(w->pd && w->memory);
	memset(w->memory, 3, 2 * BYTES);
	w->mr = ibv_reg_mr(w->pd, w->memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	CHECK(w->mr);
	OK(flexio_window_create(w->p, w->pd, &w->window));
}

static void window_free(struct window *w)
{
	if (w->mr)
		CHECK(!ibv_dereg_mr(w->mr));
	CHECK(!ibv_dealloc_pd(w->pd));
	free(w->memory);
}

/* A byte of it at that offset. */
static void window_kind(const char *name, uint32_t key_add, uint64_t offset)
{
	uint64_t value, begin_us = now_us();
	flexio_status status;
	struct window w;

	window_make(&w);
	status = flexio_process_call(w.p, &window_byte, &value,
				     (uint64_t)flexio_window_get_id(w.window),
				     (uint64_t)(w.mr->lkey + key_add), (uintptr_t)w.memory, offset);
	kind_end(name, w.p, status, begin_us, FLEXIO_DEV_FATAL_ERROR);
	window_free(&w);
}

struct gone {
	struct window w;
	flexio_uintptr_t words;
	flexio_status status;
};

static void *gone_main(void *arg)
{
	struct gone *g = arg;
	uint64_t value;

	g->status = flexio_process_call(g->w.p, &window_gone, &value,
					(uint64_t)flexio_window_get_id(g->w.window),
					(uint64_t)g->w.mr->lkey, (uintptr_t)g->w.memory, g->words);
	return NULL;
}

/* The key goes while device code has a pointer. */
static void window_expires(void)
{
	pthread_t thread;
	uint64_t begin_us;
	struct gone g;

	window_make(&g.w);
	g.words = words_make(g.w.p);
	CHECK(!pthread_create(&thread, NULL, gone_main, &g));
	word_await(g.w.p, g.words, 1);
	CHECK(!ibv_dereg_mr(g.w.mr));
	g.w.mr = NULL;
	begin_us = now_us();
	call(g.w.p, &poke, g.words + 8);
	CHECK(!pthread_join(thread, NULL));
	kind_end("gone", g.w.p, g.status, begin_us, FLEXIO_DEV_FATAL_ERROR);
	window_free(&g.w);
}

static void windows(void)
{
	window_kind("window_end", 0, BYTES);
	window_kind("window_key", 0x100000, 0);
	window_expires();
}

/* ---- blocks of a heap with redzones (SOFTHCA_DPA_REDZONES=1) ---- */

static flexio_uintptr_t block_make(struct flexio_process *p)
{
	flexio_uintptr_t at;

	OK(flexio_buf_dev_alloc(p, 64, &at)); /* allocates */
	return at;
}

static void block_free(struct flexio_process *p, flexio_uintptr_t at)
{
	OK(flexio_buf_dev_free(p, at)); /* frees */
}

/* The device copies it to the host, and what lies behind it. */
static void block_copied(void)
{
	uint64_t value, begin_us = now_us();
	flexio_status status;
	struct window w;

	window_make(&w);
	status = flexio_process_call(w.p, &window_copy, &value,
				     (uint64_t)flexio_window_get_id(w.window), (uint64_t)w.mr->lkey,
				     (uintptr_t)w.memory, block_make(w.p));
	kind_end("block_copied", w.p, status, begin_us, FLEXIO_DEV_FATAL_ERROR);
	window_free(&w);
}

static void blocks(void)
{
	struct flexio_process *p;
	flexio_uintptr_t at;

	p = host_process();
	kind("block_end", p, &store, block_make(p) + 64, FLEXIO_DEV_FATAL_ERROR);
	p = host_process();
	block_make(p);
	kind("block_front", p, &load, block_make(p) - 8, FLEXIO_DEV_FATAL_ERROR);
	p = host_process();
	kind("block_filled", p, &fill, block_make(p) + 1, FLEXIO_DEV_FATAL_ERROR);
	p = host_process();
	at = block_make(p);
	block_make(p);
	block_free(p, at);
	kind("block_freed", p, &load, at + 16, FLEXIO_DEV_FATAL_ERROR);
	block_copied();
}

static void kinds(void)
{
	addresses();
	instructions();
	windows();
	printf("error descriptor readable after %llu us at most\n", (unsigned long long)longest_us);
}

const struct host_case kind_cases[] = {
	{"kinds", kinds},
	{"blocks", blocks},
	{NULL, NULL},
};
