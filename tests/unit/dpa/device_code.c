// SPDX-License-Identifier: BSD-2-Clause
/*
 * Device code for the tests of the runtime, without the device library: linked as images are, by whatever
 * compiler builds the tests.
 */
#include <stdint.h>

#include "dpa/door.h"
#include "dpa_control.h"

#define visible __attribute__((visibility("default"), used))

visible struct dpa_image_info __dpa_image_info = {
	.magic = DPA_IMAGE_MAGIC,
	.version = DPA_DOOR_VERSION,
	.bytes = sizeof(struct dpa_image_info),
	.door_bytes = sizeof(struct dpa_door),
};

static const struct dpa_door *device_door(void)
{
	return (const struct dpa_door *)(uintptr_t)__dpa_image_info.door;
}

static uint64_t counter = 40;
/* A place that the loader relocates. */
static uint64_t *const counter_at = &counter;
static uint64_t *volatile counter_by = &counter;

typedef uint64_t two_args(uint64_t a, uint64_t b);

visible uint64_t unpack_two(void *args, void *function);
uint64_t unpack_two(void *args, void *function)
{
	const uint64_t *a = args;

	return ((two_args *)function)(a[0], a[1]);
}

visible uint64_t add(uint64_t a, uint64_t b);
uint64_t add(uint64_t a, uint64_t b)
{
	return a + b;
}

visible uint64_t count(uint64_t by);
uint64_t count(uint64_t by)
{
	*counter_by += by;
	return *counter_at;
}

visible uint64_t load(uint64_t addr);
uint64_t load(uint64_t addr)
{
	return *(volatile uint64_t *)(uintptr_t)addr;
}

visible uint64_t checked_load(uint64_t addr);
uint64_t checked_load(uint64_t addr)
{
	device_door()->check(addr, sizeof(uint64_t), 0);
	return *(volatile uint64_t *)(uintptr_t)addr;
}

visible uint64_t store(uint64_t addr);
uint64_t store(uint64_t addr)
{
	*(volatile uint64_t *)(uintptr_t)addr = 1;
	return 0;
}

visible uint64_t spin(uint64_t arg);
uint64_t spin(uint64_t arg)
{
	for (;;)
		__asm__ volatile("" : "+r"(arg));
}

visible uint64_t spin_in_runtime(uint64_t arg);
uint64_t spin_in_runtime(uint64_t arg)
{
	(void)arg;
	for (;;)
		device_door()->relax();
}

/* Until the word that lies there is not 0. */
visible uint64_t await_word(uint64_t addr);
uint64_t await_word(uint64_t addr)
{
	while (!*(volatile uint64_t *)(uintptr_t)addr)
		device_door()->relax();
	return 7;
}

visible uint64_t overflow(uint64_t depth);
uint64_t overflow(uint64_t depth)
{
	volatile char room[512];

	room[depth % sizeof(room)] = 1;
	return overflow(depth + 1) + (uint64_t)room[0];
}

/* Runs out of stack at the door, whose functions need some. */
visible uint64_t overflow_at_door(uint64_t depth);
uint64_t overflow_at_door(uint64_t depth)
{
	volatile char room[512];

	room[depth % sizeof(room)] = 1;
	return overflow_at_door(device_door()->time() + depth) + (uint64_t)room[0];
}

visible uint64_t jump(uint64_t addr);
uint64_t jump(uint64_t addr)
{
	return ((two_args *)(uintptr_t)addr)(0, 0);
}

visible uint64_t breakpoint(uint64_t arg);
uint64_t breakpoint(uint64_t arg)
{
#if defined(__x86_64__)
	__asm__ volatile("int3");
#elif defined(__aarch64__)
	__asm__ volatile("brk #0");
#endif
	return arg;
}

visible uint64_t trap(uint64_t arg);
uint64_t trap(uint64_t arg)
{
	(void)arg;
	__builtin_trap();
}

visible uint64_t error(uint64_t code);
uint64_t error(uint64_t code)
{
	device_door()->error((uint32_t)code);
	return 0;
}

visible uint64_t finish(uint64_t arg);
uint64_t finish(uint64_t arg)
{
	(void)arg;
	device_door()->end(DPA_END_PROCESS_FINISH);
	return 0;
}

visible uint64_t context(uint64_t arg);
uint64_t context(uint64_t arg)
{
	(void)arg;
	return (uintptr_t)device_door()->thread_ctx();
}

/* ---- event handlers ---- */

static void handle_tell(struct control *c)
{
	const struct flexio_dev_thread_ctx *ctx = device_door()->thread_ctx();
	uint64_t inside = __atomic_add_fetch(&c->inside, 1, __ATOMIC_SEQ_CST);

	if (inside > c->most_inside)
		c->most_inside = inside;
	if (c->beside && __atomic_load_n(&c->beside->inside, __ATOMIC_SEQ_CST))
		c->overlaps++;
	c->id = ctx->thread_id;
	c->local_storage = ctx->thread_local_storage;
	c->runs++;
}

static void handle_end(struct control *c, enum dpa_end how)
{
	__atomic_sub_fetch(&c->inside, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&c->ends, 1, __ATOMIC_SEQ_CST);
	device_door()->end(how);
}

static void handle_yield(struct control *c)
{
	volatile uint64_t local = 1000 + c->runs;

	/* Others may be inside meanwhile. */
	__atomic_sub_fetch(&c->inside, 1, __ATOMIC_SEQ_CST);
	device_door()->yield(0);
	__atomic_add_fetch(&c->inside, 1, __ATOMIC_SEQ_CST);
	c->after_yield = local;
}

visible void handle(struct control *c);
void handle(struct control *c)
{
	static uint64_t total;

	total++;
	handle_tell(c);
	if (c->mode == CONTROL_RETRIGGER && c->runs < c->limit)
		handle_end(c, DPA_END_RETRIGGER);
	if (c->mode == CONTROL_FINISH)
		handle_end(c, DPA_END_FINISH);
	if (c->mode == CONTROL_PROCESS_FINISH)
		handle_end(c, DPA_END_PROCESS_FINISH);
	if (c->mode == CONTROL_YIELD)
		handle_yield(c);
	while (c->mode == CONTROL_SPIN)
		;
	while (c->mode == CONTROL_HOLD && !c->go)
		;
	if (c->mode == CONTROL_FAULT)
		*(volatile uint64_t *)8 = total;
	if (c->mode == CONTROL_RETURN) {
		__atomic_sub_fetch(&c->inside, 1, __ATOMIC_SEQ_CST);
		__atomic_add_fetch(&c->ends, 1, __ATOMIC_SEQ_CST);
		return;
	}
	handle_end(c, DPA_END_RESCHEDULE);
}

/* ---- bells ---- */

visible uint64_t ring_outbox(uint64_t id);
uint64_t ring_outbox(uint64_t id)
{
	uint32_t ret = id ? device_door()->outbox_config((uint32_t)id) : 0;

	device_door()->cq_arm(11, 12);
	device_door()->msix_send(13);
	device_door()->sq_ring(0xfffe, 14);
	return ret;
}

visible uint64_t ring_region(uint64_t number);
uint64_t ring_region(uint64_t number)
{
	uint32_t ret = device_door()->outbox_uar((uint32_t)number);

	device_door()->cq_arm(11, 12);
	return ret;
}

/* Without a start no linker is content. */
visible void _start(void);
void _start(void)
{
}
