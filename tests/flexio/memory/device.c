// SPDX-License-Identifier: BSD-2-Clause
/* Device code with and without the fences that window memory needs.  Lines that a report has to name end with a
 * comment of the case's name. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <string.h>

#include "memory.h"

static struct shared *shared_of(const struct window *w)
{
	struct flexio_dev_thread_ctx *ctx;
	flexio_uintptr_t at;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_config(ctx, (uint16_t)w->id, (uint32_t)w->key) ||
	    flexio_dev_window_ptr_acquire(ctx, w->host, &at))
		return NULL;
	return (struct shared *)(uintptr_t)at;
}

#define WINDOW(arg) ((const struct window *)(uintptr_t)(arg))

/* ---- right programs ---- */

/* Answers what the host asks, as often as that is said. */
__dpa_rpc__ uint64_t answers(uint64_t arg)
{
	volatile struct shared *s = shared_of(WINDOW(arg));

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		do {
			__dpa_thread_window_read_inv();
		} while (s->question != i);
		s->data = 3 * i;
		__dpa_thread_window_writeback();
		s->answer = i;
		__dpa_thread_window_writeback();
	}
	return 0;
}

/* The same by the processor's own fence. */
__dpa_rpc__ uint64_t answers_by_assembly(uint64_t arg)
{
	volatile struct shared *s = shared_of(WINDOW(arg));

	for (uint64_t i = 1; i <= ROUNDS; i++) {
		do {
			__asm__ volatile("fence iorw, iorw" ::: "memory");
		} while (s->question != i);
		s->data = 3 * i;
		__asm__ volatile("fence o, o" ::: "memory");
		s->answer = i;
		__asm__ volatile("fence ow, ow" ::: "memory");
	}
	return 0;
}

/* Copies by functions need no fences.  The pointer is that of another address, to which the program adds: of 0, or
 * of one nearby if memory lies low. */
__dpa_rpc__ uint64_t copies(uint64_t arg)
{
	const struct window *w = WINDOW(arg);
	uint64_t from = w->host >> 46 ? 0 : w->host - 8;
	struct window other = {w->id, w->key, from, 0};
	volatile struct shared *s =
		(volatile struct shared *)((char *)shared_of(&other) + w->host - from);
	struct flexio_dev_thread_ctx *ctx;
	uint64_t word = 5;

	flexio_dev_get_thread_ctx(&ctx);
	s->data = 4;
	if (flexio_dev_window_copy_from_host(ctx, &word, w->host + offsetof(struct shared, data),
					     8) ||
	    word != 4)
		return 1;
	word = 6;
	if (flexio_dev_window_copy_to_host(ctx, w->host + offsetof(struct shared, data), &word,
					   8) ||
	    s->data != 6)
		return 2;
	return 0;
}

/* ---- stores that are not written back ---- */

__dpa_rpc__ uint64_t forgets(uint64_t arg)
{
	shared_of(WINDOW(arg))->data = 7; /* forgets */
	return 0;
}

__dpa_rpc__ uint64_t adds(uint64_t arg)
{
	volatile struct shared *s = shared_of(WINDOW(arg));

	s->data += 7; /* adds */
	return 0;
}

__dpa_rpc__ uint64_t fills(uint64_t arg)
{
	memset(shared_of(WINDOW(arg))->bytes, 9, BYTES); /* fills */
	return 0;
}

/* A fence of the process's memory is none of windows. */
__dpa_rpc__ uint64_t confuses(uint64_t arg)
{
	shared_of(WINDOW(arg))->data = 8; /* confuses */
	__dpa_thread_memory_writeback();
	return 0;
}

__dpa_rpc__ uint64_t interrupts(uint64_t arg)
{
	struct shared *s = shared_of(WINDOW(arg));
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	s->data = 10; /* interrupts */
	flexio_dev_msix_send(ctx, 0);
	__dpa_thread_window_writeback();
	return 0;
}

/* Says in memory of the process that it has stored, and waits until the host has looked. */
__dpa_rpc__ uint64_t hides(uint64_t arg)
{
	struct window *w = (struct window *)(uintptr_t)arg;
	volatile struct shared *s = shared_of(w);

	s->data = 11;
	__atomic_store_n(&w->step, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&w->step, __ATOMIC_ACQUIRE) != 2)
		;
	__dpa_thread_window_writeback();
	__atomic_store_n(&w->step, 3, __ATOMIC_RELEASE);
	while (__atomic_load_n(&w->step, __ATOMIC_ACQUIRE) != 4)
		;
	return 0;
}

__dpa_rpc__ uint64_t step(uint64_t arg, uint64_t to)
{
	struct window *w = (struct window *)(uintptr_t)arg;

	if (to)
		__atomic_store_n(&w->step, to, __ATOMIC_RELEASE);
	return __atomic_load_n(&w->step, __ATOMIC_ACQUIRE);
}

/* ---- loads of what is old ---- */

__dpa_rpc__ uint64_t polls(uint64_t arg)
{
	struct window *w = (struct window *)(uintptr_t)arg;
	volatile struct shared *s = shared_of(w);

	__atomic_store_n(&w->step, s->question + 1, __ATOMIC_RELEASE);
	while (s->question != 1) /* polls */
		;
	return 0;
}

/* Takes what the host has put there, and hands it on in memory of the process. */
__dpa_global__ void handles(uint64_t arg)
{
	struct window *w = (struct window *)(uintptr_t)arg;
	volatile struct shared *s = shared_of(w);

	__atomic_store_n(&w->step, s->question, __ATOMIC_RELEASE); /* handles */
	flexio_dev_thread_reschedule();
}

__dpa_rpc__ uint64_t activates(uint64_t id)
{
	flexio_dev_event_handler_activate((uint32_t)id);
	return 0;
}

/* ---- two windows of a thread ---- */

/* Stores by each of them, and adds what each has then. */
__dpa_rpc__ uint64_t parts(uint64_t arg)
{
	const struct window *w = WINDOW(arg);
	volatile struct shared *one = shared_of(w), *other;
	flexio_uintptr_t at;

	if (flexio_dev_window_config(FLEXIO_DEV_WINDOW_ENTITY_1, (uint16_t)w->id,
				     (uint32_t)w->other_key) ||
	    flexio_dev_window_ptr_acquire(FLEXIO_DEV_WINDOW_ENTITY_1, w->other_host, &at))
		return 0;
	other = (volatile struct shared *)(uintptr_t)at;
	one->data = 1;
	other->data = 20;
	__dpa_thread_window_writeback();
	return one->data + other->data;
}

/* ---- the host's address is none of the window's ---- */

__dpa_rpc__ uint64_t trusts(uint64_t arg)
{
	const struct window *w = WINDOW(arg);

	(void)shared_of(w);
	return ((volatile struct shared *)(uintptr_t)w->host)->data;
}
