// SPDX-License-Identifier: BSD-2-Clause
/*
 * Device code of two threads that share memory, rightly or not.  Both of a case are in it at the same time: they meet
 * by relaxed atomics, which order nothing.  Lines that a report has to name end with a comment.
 */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <string.h>

#include "race.h"

static struct {
	uint64_t meets, counter, count, data;
	volatile uint64_t flag;
	uint64_t ready;
	struct spinlock_s lock;
	uint8_t from[BYTES], to[BYTES];
} shared;

static void meet(void)
{
	uint64_t turn = __atomic_add_fetch(&shared.meets, 1, __ATOMIC_RELAXED);

	while (__atomic_load_n(&shared.meets, __ATOMIC_RELAXED) < (turn + 1) / 2 * 2)
		;
}

static void await_flag(void)
{
	while (!shared.flag)
		;
}

static void counts(void)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		*(volatile uint64_t *)&shared.meets;
}

/* ---- cases of two calls: who is 0 or 1 ---- */

/* The compiler would make one store of two. */
static __attribute__((noinline)) void count_there(void)
{
	shared.counter += 2; /* counts there */
}

static void plain_counter(uint64_t who)
{
	if (who)
		shared.counter += 1; /* counts here */
	else
		count_there();
}

static void atomic_counter(uint64_t who)
{
	__atomic_fetch_add(&shared.count, who, __ATOMIC_RELAXED);
}

static void half_atomic(uint64_t who)
{
	if (who)
		__atomic_store_n(&shared.count, 3, __ATOMIC_SEQ_CST); /* atomic */
	else
		shared.count = 4; /* and not */
}

static void locked(uint64_t who)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		spin_lock(&shared.lock);
		shared.counter += who;
		spin_unlock(&shared.lock);
	}
}

static void handed_over(uint64_t who)
{
	if (who) {
		shared.data = 5;
		__atomic_store_n(&shared.ready, 1, __ATOMIC_RELEASE);
		return;
	}
	while (!__atomic_load_n(&shared.ready, __ATOMIC_ACQUIRE))
		;
	shared.data++;
}

static void relaxed(uint64_t who)
{
	if (who) {
		shared.data = 5; /* hands over */
		__atomic_store_n(&shared.ready, 1, __ATOMIC_RELAXED);
		return;
	}
	while (!__atomic_load_n(&shared.ready, __ATOMIC_ACQUIRE))
		;
	shared.data++; /* takes */
}

/* As NVIDIA's programs do it: fences and a volatile flag.  The taker also resets the flag and polls
 * something else before its fence. */
static void fenced(uint64_t who)
{
	if (who) {
		shared.data = 6;
		__dpa_thread_memory_writeback();
		shared.flag = 1;
		return;
	}
	await_flag();
	shared.flag = 0;
	counts();
	__dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
	shared.data++;
}

/* A fence of windows orders no memory of the process. */
static void window_fenced(uint64_t who)
{
	if (who) {
		shared.data = 6; /* wrong fence */
		__dpa_thread_window_writeback();
		shared.flag = 1;
		return;
	}
	await_flag();
	__dpa_thread_fence(__DPA_MEMORY, __DPA_R, __DPA_R);
	shared.data++; /* right fence */
}

static void copied(uint64_t who)
{
	if (who)
		memcpy(shared.to, shared.from, BYTES); /* copies */
	else
		shared.to[BYTES - 1] = 7; /* into the copy */
}

/* Bytes of one word are memory of their own. */
static void neighbours(uint64_t who)
{
	for (unsigned i = 0; i < ROUNDS; i++)
		((volatile uint8_t *)shared.to)[who] = 1;
	shared.to[who + 2] = 1;
}

__dpa_rpc__ uint64_t two(uint64_t which, uint64_t who)
{
	static void (*const cases[])(uint64_t who) = {
		[PLAIN] = plain_counter,   [ATOMIC] = atomic_counter, [HALF] = half_atomic,
		[LOCKED] = locked,	   [HANDED] = handed_over,    [RELAXED] = relaxed,
		[FENCED] = fenced,	   [WINDOW] = window_fenced,  [COPIED] = copied,
		[NEIGHBOURS] = neighbours,
	};

	meet();
	counts();
	cases[which](who);
	counts();
	meet();
	return 0;
}

/* ---- a handler ---- */

__dpa_global__ void handles(uint64_t arg)
{
	(void)arg;
	shared.data++;
	__atomic_store_n(&shared.ready, 1, __ATOMIC_RELEASE);
	flexio_dev_thread_reschedule();
}

/* Stores, and activates the handler, which takes it from there. */
__dpa_rpc__ uint64_t activates(uint64_t id)
{
	shared.data = 8;
	flexio_dev_event_handler_activate((uint32_t)id);
	while (!__atomic_load_n(&shared.ready, __ATOMIC_RELAXED))
		;
	return 0;
}

/* The same, and stores once more when the handler may be at it. */
__dpa_rpc__ uint64_t activates_early(uint64_t id)
{
	flexio_dev_event_handler_activate((uint32_t)id);
	while (!__atomic_load_n(&shared.ready, __ATOMIC_RELAXED))
		;
	shared.data = 9; /* too late */
	return 0;
}
