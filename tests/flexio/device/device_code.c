// SPDX-License-Identifier: BSD-2-Clause
/* What the tests of streams and of the device library run on the DPA. */
#include <stdatomic.h>

#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_err.h>
#include <libflexio-dev/flexio_dev_tracer.h>
#include <libflexio-libc/stdio.h>
#include <libflexio-libc/string.h>

/* ---- messages ---- */

/* Lines with a writer and a number; what the last printed. */
__dpa_rpc__ uint64_t say(uint64_t stream, uint64_t level, uint64_t writer, uint64_t first,
			 uint64_t count)
{
	int length = 0;

	for (uint64_t i = first; i < first + count; i++)
		length = flexio_dev_msg((int)stream, (flexio_msg_dev_level)level, "%lu:%lu\n",
					writer, i);
	return (uint64_t)length;
}

__dpa_rpc__ uint64_t say_print(uint64_t number)
{
	return (uint64_t)flexio_dev_print("print %lu\n", number);
}

__dpa_rpc__ uint64_t say_broadcast(uint64_t level, uint64_t number)
{
	return (uint64_t)flexio_dev_msg_broadcast((flexio_msg_dev_level)level, "broadcast %lu\n",
						  number);
}

__dpa_rpc__ uint64_t say_puts(uint64_t unused)
{
	static char text[] = "puts: 100% as it stands %s\n";
	struct flexio_dev_thread_ctx *ctx;

	(void)unused;
	return flexio_dev_get_thread_ctx(&ctx) ? 0 : (uint64_t)flexio_dev_puts(ctx, text);
}

__dpa_rpc__ uint64_t say_formats(uint64_t unused)
{
	(void)unused;
	return (uint64_t)flexio_dev_print(
		"%d %u %ld %lu %lx %x %c %s %p %%|%5d|%-5d|%05d|%.3s|%*d\n", -1, 2u, -3l, 4ul,
		0x5abul, 0x6cdu, '7', "eight", (void *)0x9abc, 10, 11, 12, "thirteen", 6, 14);
}

__dpa_rpc__ uint64_t say_long(uint64_t bytes)
{
	static char text[4096];

	memset(text, 'l', sizeof(text));
	text[bytes < sizeof(text) ? bytes : sizeof(text) - 1] = '\0';
	return (uint64_t)flexio_dev_print("%s", text);
}

__dpa_rpc__ uint64_t say_libc(uint64_t number)
{
	return (uint64_t)printf("printf %lu\n", number);
}

/* ---- traces ---- */

__dpa_rpc__ uint64_t trace_all(uint64_t tracer, uint64_t level)
{
	uint8_t t = (uint8_t)tracer;
	flexio_msg_dev_level l = (flexio_msg_dev_level)level;

	flexio_dev_trace_0(t, l, 0);
	flexio_dev_trace_1(t, l, 1, 1);
	flexio_dev_trace_2(t, l, 2, 1, 2);
	flexio_dev_trace_3(t, l, 3, 1, 2, 3);
	flexio_dev_trace_4(t, l, 4, 1, 2, 3, 4);
	flexio_dev_trace_5(t, l, 5, 1, 2, 3, 4, 5);
	flexio_dev_trace_6(t, l, 6, 1, 2, 3, 4, 5, 6);
	return 0;
}

__dpa_rpc__ uint64_t trace_many(uint64_t tracer, uint64_t writer, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		flexio_dev_trace_2((uint8_t)tracer, FLEXIO_MSG_DEV_INFO, 7, writer, i);
	return 0;
}

__dpa_rpc__ uint64_t trace_wrong(uint64_t tracer)
{
	flexio_dev_trace_0((uint8_t)tracer, FLEXIO_MSG_DEV_INFO, 1000);
	flexio_dev_trace_0((uint8_t)tracer, FLEXIO_MSG_DEV_INFO, -1);
	return 0;
}

__dpa_rpc__ uint64_t trace_flush(uint64_t tracer)
{
	flexio_dev_tracer_flush((uint8_t)tracer);
	return 0;
}

/* ---- the runtime ---- */

static struct spinlock_s lock;
static volatile uint64_t locked_counter;
static _Atomic(uint64_t) atomic_counter;
static uint64_t initialised = 0x1122334455667788;
static uint64_t cleared[100];
static const char *const pointer_to_text = "constant";

__dpa_rpc__ uint64_t count_locked(uint64_t rounds)
{
	for (uint64_t i = 0; i < rounds; i++) {
		spin_lock(&lock);
		locked_counter = locked_counter + 1;
		spin_unlock(&lock);
	}
	return locked_counter;
}

__dpa_rpc__ uint64_t try_lock(uint64_t unused)
{
	uint64_t first, second;

	(void)unused;
	spin_init(&lock);
	first = spin_trylock(&lock);
	second = spin_trylock(&lock);
	spin_unlock(&lock);
	return first << 1 | second;
}

__dpa_rpc__ uint64_t count_atomic(uint64_t rounds)
{
	static uint32_t other;

	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t seen = atomic_load(&atomic_counter);

		while (!atomic_compare_exchange_weak(&atomic_counter, &seen, seen + 1))
			;
		__atomic_fetch_add(&other, 1, __ATOMIC_RELAXED);
	}
	return __atomic_load_n(&other, __ATOMIC_RELAXED) | atomic_load(&atomic_counter) << 32;
}

/* 0 if all variables have the values that a process begins with; then they are changed. */
__dpa_rpc__ uint64_t initial_values(uint64_t unused)
{
	uint64_t wrong = initialised != 0x1122334455667788;

	(void)unused;
	for (uint64_t i = 0; i < 100; i++)
		wrong += cleared[i] != 0;
	wrong += strcmp(pointer_to_text, "constant") != 0;
	initialised = 1;
	cleared[7] = 7;
	return wrong;
}

__dpa_rpc__ uint64_t clocks_grow(uint64_t rounds)
{
	uint64_t cycles = __dpa_thread_cycles(), time = __dpa_thread_time(),
		 done = __dpa_thread_inst_ret();

	for (uint64_t i = 0; i < rounds; i++)
		__dpa_compiler_barrier();
	return __dpa_thread_cycles() > cycles && __dpa_thread_time() > time &&
	       __dpa_thread_inst_ret() > done;
}

__dpa_rpc__ uint64_t fixed_point(uint64_t unused)
{
	(void)unused;
	return __dpa_fxp_rcp(0x20000) == 0x8000 && __dpa_fxp_pow2(0x30000) == 0x80000 &&
	       __dpa_fxp_log2(0x80000) == 0x30000;
}

/* Each fence in each shape that the manual has. */
__dpa_rpc__ uint64_t fences(uint64_t value)
{
	static uint64_t memory;

#define ALL_OPERATIONS(space)                         \
	__dpa_thread_fence(space, __DPA_R, __DPA_R);  \
	__dpa_thread_fence(space, __DPA_R, __DPA_W);  \
	__dpa_thread_fence(space, __DPA_R, __DPA_RW); \
	__dpa_thread_fence(space, __DPA_W, __DPA_R);  \
	__dpa_thread_fence(space, __DPA_W, __DPA_W);  \
	__dpa_thread_fence(space, __DPA_W, __DPA_RW); \
	__dpa_thread_fence(space, __DPA_RW, __DPA_R); \
	__dpa_thread_fence(space, __DPA_RW, __DPA_W); \
	__dpa_thread_fence(space, __DPA_RW, __DPA_RW)
	memory = value;
	ALL_OPERATIONS(__DPA_HEAP);
	ALL_OPERATIONS(__DPA_MEMORY);
	ALL_OPERATIONS(__DPA_MMIO);
	ALL_OPERATIONS(__DPA_SYSTEM);
	__dpa_thread_memory_fence(__DPA_W, __DPA_W);
	__dpa_thread_outbox_fence(__DPA_RW, __DPA_RW);
	__dpa_thread_window_fence(__DPA_R, __DPA_R);
	__dpa_thread_system_fence();
	__dpa_thread_window_read_inv();
	__dpa_thread_window_writeback();
	__dpa_thread_memory_writeback();
	return memory;
}

/* Message passing: one thread writes data and then a flag, the other reads the flag and then data. */
static uint64_t passed_data[2], passed_flag[2];

__dpa_rpc__ uint64_t pass_messages(uint64_t rounds)
{
	for (uint64_t i = 1; i <= rounds; i++) {
		*(volatile uint64_t *)&passed_data[0] = i;
		__dpa_thread_memory_fence(__DPA_W, __DPA_W);
		*(volatile uint64_t *)&passed_flag[0] = i;
		if (i % 64 == 0)
			__dpa_spin_wait(1000);
	}
	return 0;
}

/* How often data was older than the flag. */
__dpa_rpc__ uint64_t take_messages(uint64_t rounds)
{
	uint64_t flag, wrong = 0;

	do {
		flag = *(volatile uint64_t *)&passed_flag[0];
		__dpa_thread_memory_fence(__DPA_R, __DPA_R);
		wrong += *(volatile uint64_t *)&passed_data[0] < flag;
		__dpa_spin_wait((uint32_t)flag % 128);
	} while (flag < rounds);
	return wrong;
}

/* What the library's strings and memory functions give; 0 if all is right. */
__dpa_rpc__ uint64_t library(uint64_t unused)
{
	char text[64], other[64];
	uint64_t wrong = 0;

	(void)unused;
	wrong += snprintf(text, sizeof(text), "%s-%04d", "abc", 42) != 8 ||
		 strcmp(text, "abc-0042") != 0;
	wrong += strlen(text) != 8;
	memcpy(other, text, 9);
	memmove(other + 2, other, 9);
	wrong += memcmp(other, "ababc-0042", 11) != 0;
	memset(other, 'x', sizeof(other));
	wrong += other[0] != 'x' || other[63] != 'x';
	return wrong;
}

__dpa_rpc__ uint64_t read_errno(uint64_t unused)
{
	struct flexio_dev_thread_ctx *ctx;

	(void)unused;
	if (flexio_dev_get_thread_ctx(&ctx))
		return 1;
	flexio_dev_rst_errno(ctx);
	return flexio_dev_get_errno(ctx) | flexio_dev_get_and_rst_errno(ctx);
}

/* ---- counters of the ports ---- */

static uint32_t counter_values[40], counter_ids[40];

/* What the first port has received and sent. */
__dpa_rpc__ uint64_t port_bytes(uint64_t unused)
{
	(void)unused;
	counter_ids[0] = FLEXIO_DEV_NIC_COUNTER_PORT0_RX_BYTES;
	counter_ids[1] = FLEXIO_DEV_NIC_COUNTER_PORT0_TX_BYTES;
	counter_ids[2] = FLEXIO_DEV_NIC_COUNTER_PORT3_TX_BYTES;
	memset(counter_values, 0xff, sizeof(counter_values));
	flexio_dev_nic_counters_config(counter_values, counter_ids, 3);
	flexio_dev_nic_counters_sample();
	/* no port has that number, and what was not asked for is left alone */
	if (counter_values[2] || counter_values[3] != 0xffffffff)
		return UINT64_MAX;
	return counter_values[0] | (uint64_t)counter_values[1] << 32;
}

/* Each is an error of its own kind; none returns. */
__dpa_rpc__ uint64_t port_bytes_wrong(uint64_t kind)
{
	uint32_t on_stack[2] = {0};

	for (uint32_t i = 0; i < 40; i++)
		counter_ids[i] = FLEXIO_DEV_NIC_COUNTER_PORT0_RX_BYTES;
	switch (kind) {
	case 0:
		break;
	case 1:
		counter_ids[1] = 0x14;
		flexio_dev_nic_counters_config(counter_values, counter_ids, 2);
		break;
	case 2:
		flexio_dev_nic_counters_config(counter_values, counter_ids, 33);
		break;
	case 3:
		flexio_dev_nic_counters_config(on_stack, counter_ids, 2);
		break;
	case 4:
		flexio_dev_nic_counters_config(counter_values, NULL, 2);
		break;
	default:
		flexio_dev_nic_counters_config((uint32_t *)(uintptr_t)kind, counter_ids, 2);
	}
	flexio_dev_nic_counters_sample();
	return on_stack[0];
}
