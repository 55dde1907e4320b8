// SPDX-License-Identifier: BSD-2-Clause
/* Windows to memory of the host, and keys of memory of the DPA. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "host.h"

#define BYTES 4096u

struct setting {
	struct flexio_process *p;
	struct flexio_window *window;
	struct ibv_pd *pd;
	struct ibv_mr *mr, *read_only;
	uint8_t *memory; /* two regions, one after the other */
	uint64_t id;
};

static struct setting setting_make(void)
{
	struct setting s = {.p = host_process()};

	s.pd = ibv_alloc_pd(host_device());
	s.memory = aligned_alloc(4096, 3 * BYTES);
	CHECK(s.pd && s.memory);
	memset(s.memory, 3, 3 * BYTES);
	s.mr = ibv_reg_mr(s.pd, s.memory, BYTES, IBV_ACCESS_LOCAL_WRITE);
	s.read_only = ibv_reg_mr(s.pd, s.memory + BYTES, BYTES, 0);
	CHECK(s.mr && s.read_only);
	OK(flexio_window_create(s.p, s.pd, &s.window));
	s.id = flexio_window_get_id(s.window);
	CHECK(s.id <= UINT16_MAX);
	return s;
}

static void setting_end(struct setting *s)
{
	OK(flexio_process_destroy(s->p));
	CHECK(!ibv_dereg_mr(s->mr) && !ibv_dereg_mr(s->read_only) && !ibv_dealloc_pd(s->pd));
	free(s->memory);
}

#define KEY(mr)	   ((uint64_t)(mr)->lkey)
#define HOST(addr) ((uint64_t)(uintptr_t)(addr))

static void windows(void)
{
	struct setting s = setting_make();
	struct flexio_process *p = s.p;
	flexio_uintptr_t block;
	uint64_t word = 0;

	CHECK(RESULT(p, &window_sum, s.id, KEY(s.mr), HOST(s.memory), (uint64_t)BYTES) ==
	      3 * BYTES);
	CHECK(RESULT(p, &window_store, s.id, KEY(s.mr), HOST(s.memory) + 8, 0x1122334455667788) ==
	      0);
	memcpy(&word, s.memory + 8, 8);
	CHECK(word == 0x1122334455667788 && s.memory[16] == 3 && s.memory[7] == 3);
	/* What the host stores is there for the next. */
	memset(s.memory, 1, BYTES);
	CHECK(RESULT(p, &window_sum, s.id, KEY(s.mr), HOST(s.memory), (uint64_t)BYTES) == BYTES);
	CHECK(RESULT(p, &window_sum, s.id, KEY(s.read_only), HOST(s.memory) + BYTES,
		     (uint64_t)BYTES) == 3 * BYTES);
	CHECK(RESULT(p, &window_linear, s.id, KEY(s.mr)) == 1);
	/* One window, two keys after each other. */
	CHECK(RESULT(p, &window_keys, s.id, KEY(s.mr), KEY(s.read_only), HOST(s.memory)) == 1 + 3);
	OK(flexio_buf_dev_alloc(p, BYTES, &block));
	OK(flexio_buf_dev_memset(p, 9, BYTES, block));
	CHECK(RESULT(p, &window_out, s.id, KEY(s.mr), HOST(s.memory) + 100, block, (uint64_t)50) ==
	      0);
	CHECK(s.memory[99] == 1 && s.memory[100] == 9 && s.memory[149] == 9 && s.memory[150] == 1);
	CHECK(RESULT(p, &window_in, s.id, KEY(s.mr), HOST(s.memory), block, (uint64_t)100) == 0);
	CHECK(RESULT(p, &sum, block, (uint64_t)BYTES) == 100 + 9 * (BYTES - 100));
	/* Copies that the key does not allow fail, and do nothing. */
	CHECK(RESULT(p, &window_out, s.id, KEY(s.read_only), HOST(s.memory) + BYTES, block,
		     (uint64_t)1) == 1);
	CHECK(RESULT(p, &window_out, s.id, KEY(s.mr), HOST(s.memory) + BYTES - 1, block,
		     (uint64_t)2) == 1);
	CHECK(s.memory[BYTES] == 3 && s.memory[BYTES - 1] == 1);
	/* No such window, no such key. */
	CHECK(RESULT(p, &window_out, (uint64_t)999, KEY(s.mr), HOST(s.memory), block,
		     (uint64_t)1) == 2);
	CHECK(RESULT(p, &window_out, s.id, (uint64_t)1, HOST(s.memory), block, (uint64_t)1) == 2);
	OK(flexio_window_destroy(s.window));
	FAILS(flexio_window_destroy(s.window));
	CHECK(RESULT(p, &window_out, s.id, KEY(s.mr), HOST(s.memory), block, (uint64_t)1) == 2);
	CHECK(flexio_window_get_id(NULL) == UINT32_MAX);
	FAILS(flexio_window_create(p, NULL, &s.window));
	FAILS(flexio_window_create(NULL, s.pd, &s.window));
	FAILS(flexio_window_create(p, s.pd, NULL));
	setting_end(&s);
}

/* Each is a fault of the device, and the host goes on. */
static void window_faults(void)
{
	for (unsigned i = 0; i < 4; i++) {
		struct setting s = setting_make();
		uint64_t value, at = HOST(s.memory);
		flexio_status status = FLEXIO_STATUS_SUCCESS;

		switch (i) {
		case 0: /* a byte behind the end */
			status = flexio_process_call(s.p, &window_sum, &value, s.id, KEY(s.mr), at,
						     (uint64_t)BYTES + 1);
			break;
		case 1: /* in front of the beginning */
			status = flexio_process_call(s.p, &window_sum, &value, s.id,
						     KEY(s.read_only), at + BYTES - 1, (uint64_t)2);
			break;
		case 2: /* it may only be read */
			status = flexio_process_call(s.p, &window_store, &value, s.id,
						     KEY(s.read_only), at + BYTES, (uint64_t)1);
			break;
		case 3: /* the pointer of another's window, without one */
			status = flexio_process_call(s.p, &load, &value, at);
			break;
		}
		CHECK_SAY(status == FLEXIO_STATUS_FATAL_ERR, "%u: %d", i, status);
		CHECK(flexio_err_status_get(s.p) == FLEXIO_DEV_FATAL_ERROR);
		CHECK(s.memory[BYTES] == 3);
		setting_end(&s);
	}
}

struct user {
	struct setting *s;
	flexio_uintptr_t words;
	flexio_status status;
};

static void *user_main(void *arg)
{
	struct user *u = arg;
	uint64_t value;

	u->status = flexio_process_call(u->s->p, &window_wait, &value, u->s->id, KEY(u->s->mr),
					HOST(u->s->memory), u->words);
	return NULL;
}

static void *answer_main(void *arg)
{
	struct user *u = arg;
	uint64_t value;

	u->status = flexio_process_call(u->s->p, &window_answer, &value, u->s->id, KEY(u->s->mr),
					HOST(u->s->memory));
	return NULL;
}

/* The window goes while a thread has it. */
static void window_gone(void)
{
	struct setting s = setting_make();
	struct user u = {.s = &s};
	uint64_t words[2] = {0, 0}, one = 1;
	pthread_t thread;

	OK(flexio_copy_from_host(s.p, words, sizeof(words), &u.words));
	CHECK(!pthread_create(&thread, NULL, user_main, &u));
	CHECK(RESULT(s.p, &await_word, u.words) == 7); /* it has used the window */
	OK(flexio_window_destroy(s.window));
	OK(flexio_host2dev_memcpy(s.p, &one, sizeof(one), u.words + 8));
	CHECK(!pthread_join(thread, NULL));
	CHECK(u.status == FLEXIO_STATUS_FATAL_ERR);
	setting_end(&s);
}

struct meeting {
	struct flexio_process *p;
	flexio_uintptr_t words;
	uint64_t id, key, haddr, value;
	flexio_status status;
	pthread_t thread;
};

static void *meeting_main(void *arg)
{
	struct meeting *m = arg;

	m->status = flexio_process_call(m->p, &window_meet, &m->value, m->id, m->key, m->haddr,
					m->words);
	return NULL;
}

/* Two threads have windows of different domains, set at the same time: each reaches what its own has. */
static void window_two(void)
{
	struct setting s = setting_make();
	struct ibv_pd *pd = ibv_alloc_pd(host_device());
	struct ibv_mr *mr = ibv_reg_mr(pd, s.memory + 2 * BYTES, BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct flexio_window *window;
	struct meeting two[2];
	uint64_t words[2] = {0};
	flexio_uintptr_t at;

	CHECK(pd && mr);
	OK(flexio_window_create(s.p, pd, &window));
	OK(flexio_copy_from_host(s.p, words, sizeof(words), &at));
	two[0] = (struct meeting){s.p, at, s.id, KEY(s.mr), HOST(s.memory), 0, 0, 0};
	two[1] = (struct meeting){
		s.p, at, flexio_window_get_id(window), KEY(mr), HOST(s.memory + 2 * BYTES), 0,
		0,   0};
	CHECK(two[0].id != two[1].id);
	s.memory[0] = 10;
	s.memory[2 * BYTES] = 20;
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&two[i].thread, NULL, meeting_main, &two[i]));
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_join(two[i].thread, NULL));
	CHECK(two[0].status == FLEXIO_STATUS_SUCCESS && two[1].status == FLEXIO_STATUS_SUCCESS);
	CHECK(two[0].value == 20 && two[1].value == 40);
	CHECK(s.memory[1] == 10 && s.memory[2 * BYTES + 1] == 20);
	/* A key of the other's domain is none for a window. */
	CHECK(RESULT(s.p, &window_out, s.id, KEY(mr), two[1].haddr, at, (uint64_t)1) == 2);
	CHECK(RESULT(s.p, &window_out, two[1].id, KEY(s.mr), two[0].haddr, at, (uint64_t)1) == 2);
	OK(flexio_window_destroy(window));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	setting_end(&s);
}

/* While device code runs: it sees what the host stores, and the host what it answers. */
static void window_live(void)
{
	struct setting s = setting_make();
	volatile uint64_t *words = (volatile uint64_t *)(void *)s.memory;
	struct user u = {.s = &s};
	pthread_t thread;

	memset(s.memory, 0, BYTES);
	CHECK(!pthread_create(&thread, NULL, answer_main, &u));
	for (uint64_t i = 1; i <= 200; i++) {
		words[0] = i;
		for (unsigned wait = 0; words[1] != 2 * i; wait++) {
			CHECK(wait < 600000);
			usleep(100);
		}
	}
	words[0] = UINT64_MAX;
	CHECK(!pthread_join(thread, NULL));
	CHECK(u.status == FLEXIO_STATUS_SUCCESS);
	setting_end(&s);
}

static void mkeys(void)
{
	struct setting s = setting_make();
	struct flexio_mkey_attr attr = {s.pd, 0, 1000,
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE};
	struct flexio_heap_mem_info info;
	struct flexio_mkey *key, *other;

	OK(flexio_buf_dev_alloc(s.p, 1000, &attr.daddr));
	OK(flexio_buf_dev_memset(s.p, 2, 1000, attr.daddr));
	OK(flexio_device_mkey_create(s.p, &attr, &key));
	CHECK(flexio_mkey_get_id(key) != UINT32_MAX && flexio_mkey_get_id(NULL) == UINT32_MAX);
	/* It is a key as others are. */
	CHECK(RESULT(s.p, &window_sum, s.id, (uint64_t)flexio_mkey_get_id(key), attr.daddr,
		     (uint64_t)1000) == 2000);
	OK(flexio_device_mkey_create(s.p, &attr, &other));
	CHECK(flexio_mkey_get_id(key) != flexio_mkey_get_id(other));
	OK(flexio_device_mkey_destroy(key));
	FAILS(flexio_device_mkey_destroy(key));
	CHECK(flexio_mkey_get_id(key) == UINT32_MAX);
	OK(flexio_device_mkey_destroy(NULL));
	/* A card knows the heap, not its buffers; the log does. */
	attr.len = 1001;
	OK(flexio_device_mkey_create(s.p, &attr, &key));
	OK(flexio_device_mkey_destroy(key));
	attr.len = 1000;
	attr.daddr += 1;
	OK(flexio_device_mkey_create(s.p, &attr, &key));
	OK(flexio_device_mkey_destroy(key));
	attr.daddr -= 1;
	attr.len = 0;
	FAILS(flexio_device_mkey_create(s.p, &attr, &key));
	CHECK(!key);
	OK(flexio_process_mem_info_get(s.p, &info));
	attr.len = info.size + 1;
	FAILS(flexio_device_mkey_create(s.p, &attr, &key));
	CHECK(!key);
	attr.len = 1000;
	attr.access = 1 << 30;
	FAILS(flexio_device_mkey_create(s.p, &attr, &key));
	attr.access = 0;
	attr.pd = NULL;
	FAILS(flexio_device_mkey_create(s.p, &attr, &key));
	FAILS(flexio_device_mkey_create(s.p, NULL, &key));
	FAILS(flexio_device_mkey_create(NULL, &attr, &key));
	OK(flexio_device_mkey_destroy(other));
	setting_end(&s);
}

const struct host_case window_cases[] = {
	{"windows", windows},
	{"window_faults", window_faults},
	{"window_gone", window_gone},
	{"window_two", window_two},
	{"window_live", window_live},
	{"mkeys", mkeys},
	{NULL, NULL},
};
