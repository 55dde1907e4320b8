// SPDX-License-Identifier: BSD-2-Clause
/* Device code of tests/flexio/calls. */
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_err.h>
#include <libflexio-libc/string.h>
#include <dpaintrin.h>
#include <stddef.h>
#include <stdint.h>

static uint64_t counter = 40;
static uint64_t zeroes[4];
static const char words[] = "constant";
/* The host reads them in the application's file. */
__attribute__((used)) const uint64_t symbol_numbers[3] = {11, 22, 33};
__attribute__((used)) static uint64_t symbol_zeros[2];

__dpa_rpc__ uint64_t add(uint64_t a, uint64_t b)
{
	return a + b;
}

__dpa_rpc__ uint64_t nothing(void)
{
	return 17;
}

__dpa_rpc__ uint64_t mixed(int a, uint32_t b, uint8_t c, int64_t d, void *e)
{
	return a == -3 && b == 0xfffffffe && c == 200 && d == -5 && (uintptr_t)e == 0x1234567890;
}

__dpa_rpc__ uint64_t count(uint64_t by)
{
	counter += by;
	return counter + zeroes[by % 4] + (words[0] != 'c');
}

/* The addresses of its variable, and of its code. */
__dpa_rpc__ uint64_t count_at(void)
{
	return (uintptr_t)&counter;
}

__dpa_rpc__ uint64_t count_code(void)
{
	return (uintptr_t)&count;
}

/* A function with the longest name, a variable and a function that no other file sees. */
#define F32			       ffffffffffffffffffffffffffffffff
#define JOIN8_(a, b, c, d, e, f, g, h) a##b##c##d##e##f##g##h
#define JOIN8(a, b, c, d, e, f, g, h)  JOIN8_(a, b, c, d, e, f, g, h)
uint64_t visible = 255;

__attribute__((noinline)) static uint64_t hidden(uint64_t a)
{
	return a + visible;
}

__dpa_rpc__ uint64_t JOIN8(F32, F32, F32, F32, F32, F32, F32, F32)(uint64_t a)
{
	return hidden(a);
}

/* The sum of all bytes. */
__dpa_rpc__ uint64_t sum(uint64_t addr, uint64_t bytes)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)addr;
	uint64_t n = 0;

	for (uint64_t i = 0; i < bytes; i++)
		n += at[i];
	return n;
}

/* A number that depends on each byte and its place. */
__dpa_rpc__ uint64_t digest(uint64_t addr, uint64_t bytes)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)addr;
	uint64_t n = 0;

	for (uint64_t i = 0; i < bytes; i++)
		n = n * 31 + at[i];
	return n;
}

/* Comes back when so many have come. */
__dpa_rpc__ uint64_t meet(uint64_t addr, uint64_t all)
{
	uint64_t *count = (uint64_t *)(uintptr_t)addr;

	__atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(count, __ATOMIC_SEQ_CST) < all)
		;
	return 7;
}

__dpa_rpc__ uint64_t copy(uint64_t to, uint64_t from, uint64_t bytes)
{
	memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
	return 0;
}

__dpa_rpc__ uint64_t await_word(uint64_t addr)
{
	while (!*(volatile uint64_t *)(uintptr_t)addr)
		;
	return 7;
}

__dpa_rpc__ uint64_t say(uint64_t n)
{
	flexio_dev_print("said %lu\n", n);
	return 0;
}

__dpa_rpc__ uint64_t context(void)
{
	struct flexio_dev_thread_ctx *ctx = NULL;
	uint64_t errors;

	if (flexio_dev_get_thread_ctx(&ctx) || !ctx)
		return 0;
	errors = flexio_dev_get_errno(ctx);
	flexio_dev_rst_errno(ctx);
	return errors + flexio_dev_get_and_rst_errno(ctx) + 1;
}

__dpa_rpc__ uint64_t load(uint64_t addr)
{
	return *(volatile uint64_t *)(uintptr_t)addr;
}

__dpa_rpc__ uint64_t store(uint64_t addr, uint64_t value)
{
	*(volatile uint64_t *)(uintptr_t)addr = value;
	return 0;
}

static __attribute__((noinline)) uint64_t inner(uint64_t addr)
{
	return *(volatile uint64_t *)(uintptr_t)addr + 1; /* the fault */
}

__dpa_rpc__ uint64_t nested(uint64_t addr)
{
	return inner(addr) + 1; /* the call */
}

__dpa_rpc__ uint64_t overflow(uint64_t depth)
{
	volatile char room[256];

	room[depth % sizeof(room)] = 1;
	return overflow(depth + 1) + (uint64_t)room[0];
}

__dpa_rpc__ uint64_t jump(uint64_t addr)
{
	return ((uint64_t(*)(void))(uintptr_t)addr)();
}

static uint64_t stack_used(volatile uint8_t *room, uint64_t bytes)
{
	room[0] = 7;
	return room[0] + bytes;
}

/* One frame of so many KiB, of which only the far end is used. */
__dpa_rpc__ uint64_t frame(uint64_t kib)
{
	uint8_t room[kib << 10];

	return stack_used(room, kib);
}

static uint64_t twice(uint64_t n)
{
	return 2 * n;
}

static uint64_t thrice(uint64_t n)
{
	return 3 * n;
}

/* Calls by pointers that are right, with a switch beside them. */
__dpa_rpc__ uint64_t pointers(uint64_t n)
{
	uint64_t (*volatile calls[])(uint64_t) = {twice, thrice};

	switch (n % 8) {
	case 0:
		return calls[0](n) + 1;
	case 1:
		return calls[1](n) + 20;
	case 2:
		return calls[0](n) + 300;
	case 3:
		return calls[1](n) + 4000;
	case 4:
		return calls[0](n) + 50000;
	default:
		return calls[n % 2](n);
	}
}

/* Takes so many nanoseconds. */
__dpa_rpc__ uint64_t last(uint64_t ns)
{
	uint64_t begin = __dpa_thread_time();

	while (__dpa_thread_time() - begin < ns)
		;
	return 17;
}

__dpa_rpc__ uint64_t spin(void)
{
	for (;;)
		;
}

__dpa_rpc__ uint64_t fail(uint64_t code)
{
	flexio_dev_error((uint8_t)code);
}

__dpa_rpc__ uint64_t finish(void)
{
	flexio_dev_process_finish();
}

__dpa_rpc__ uint64_t leave(void)
{
	flexio_dev_thread_reschedule();
}

/* It is told by the host where to leave a word, see mark. */
static uint64_t mark_addr;

__dpa_rpc__ uint64_t mark(uint64_t addr)
{
	mark_addr = addr;
	return 0;
}

__dpa_global__ void on_error(uint64_t code)
{
	flexio_dev_print("error handler %lu\n", code);
	(void)mark_addr;
}

/* Ends the process with an error unless each number comes after the one before it. */
__dpa_global__ void in_order(uint64_t number)
{
	static uint64_t next;

	if (number != next++)
		flexio_dev_error(129);
}

__dpa_global__ void endless(uint64_t arg)
{
	(void)arg;
	for (;;)
		;
}

__dpa_global__ void task(uint64_t addr)
{
	__atomic_fetch_add((uint64_t *)(uintptr_t)addr, 1, __ATOMIC_SEQ_CST);
}

/* The same as a task: the second word says how many. */
__dpa_global__ void meet_task(uint64_t addr)
{
	(void)meet(addr, ((const uint64_t *)(uintptr_t)addr)[1]);
}

/* Puts its number behind the third word, where those stand that came before, and waits until as many
 * have come as the second word says. */
__dpa_global__ void number_task(uint64_t addr)
{
	uint64_t *words = (uint64_t *)(uintptr_t)addr;
	uint64_t place = __atomic_fetch_add(&words[2], 1, __ATOMIC_SEQ_CST);
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_get_thread_id(NULL) == flexio_dev_get_thread_id(ctx) &&
	    !flexio_dev_get_thread_local_storage(NULL) && !flexio_dev_get_and_rst_errno(NULL))
		words[3 + place] = flexio_dev_get_thread_id(NULL);
	(void)meet(addr, words[1]);
}

/* Counts in the first word, and in the second how often it found another one at it. */
__dpa_global__ void lonely_task(uint64_t addr)
{
	uint64_t *words = (uint64_t *)(uintptr_t)addr;

	if (__atomic_fetch_add(&words[2], 1, __ATOMIC_SEQ_CST))
		__atomic_fetch_add(&words[1], 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(&words[0], 1, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&words[2], 1, __ATOMIC_SEQ_CST);
}

/* Says that it runs, and waits for the second word. */
__dpa_global__ void held_task(uint64_t addr)
{
	volatile uint64_t *words = (volatile uint64_t *)(uintptr_t)addr;

	words[0] = 1;
	while (!words[1])
		;
}

__dpa_global__ void byte_task(uint64_t addr)
{
	__atomic_fetch_add((uint8_t *)(uintptr_t)addr, 1, __ATOMIC_SEQ_CST);
}

/* Tasks have contexts as all threads have: 1 if so. */
__dpa_global__ void context_task(uint64_t addr)
{
	struct flexio_dev_thread_ctx *ctx = NULL;

	*(uint64_t *)(uintptr_t)addr = !flexio_dev_get_thread_ctx(&ctx) && ctx ? 1 : 2;
}

/* How many of the bytes are not 1. */
__dpa_rpc__ uint64_t not_one(uint64_t addr, uint64_t bytes)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)addr;
	uint64_t n = 0;

	for (uint64_t i = 0; i < bytes; i++)
		n += at[i] != 1;
	return n;
}

/* ---- windows ---- */

static uint8_t *window_at(uint64_t id, uint64_t key, uint64_t haddr)
{
	struct flexio_dev_thread_ctx *ctx;
	flexio_uintptr_t at;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_config(ctx, (uint16_t)id, (uint32_t)key) ||
	    flexio_dev_window_ptr_acquire(ctx, haddr, &at))
		return NULL;
	return (uint8_t *)(uintptr_t)at;
}

__dpa_rpc__ uint64_t window_sum(uint64_t id, uint64_t key, uint64_t haddr, uint64_t bytes)
{
	const uint8_t *at = window_at(id, key, haddr);
	uint64_t n = 0;

	for (uint64_t i = 0; i < bytes; i++)
		n += at[i];
	return n;
}

__dpa_rpc__ uint64_t window_store(uint64_t id, uint64_t key, uint64_t haddr, uint64_t value)
{
	*(volatile uint64_t *)(void *)window_at(id, key, haddr) = value;
	return 0;
}

__dpa_rpc__ uint64_t window_linear(uint64_t id, uint64_t key)
{
	return window_at(id, key, 5000) - window_at(id, key, 0) == 5000 &&
	       window_at(id, key, 0x7f0000000000) - window_at(id, key, 0) == 0x7f0000000000;
}

/* A byte of the first region and, with the other key, one of the second. */
__dpa_rpc__ uint64_t window_keys(uint64_t id, uint64_t key, uint64_t second, uint64_t haddr)
{
	const uint8_t *at = window_at(id, key, haddr);
	struct flexio_dev_thread_ctx *ctx;
	uint64_t n = at[4000];

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_mkey_config(ctx, (uint32_t)second))
		return 0;
	return n + at[5000];
}

__dpa_rpc__ uint64_t window_out(uint64_t id, uint64_t key, uint64_t haddr, uint64_t daddr,
				uint64_t bytes)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_config(ctx, (uint16_t)id, (uint32_t)key))
		return 2;
	return flexio_dev_window_copy_to_host(ctx, haddr, (const void *)(uintptr_t)daddr,
					      (uint32_t)bytes);
}

__dpa_rpc__ uint64_t window_in(uint64_t id, uint64_t key, uint64_t haddr, uint64_t daddr,
			       uint64_t bytes)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_config(ctx, (uint16_t)id, (uint32_t)key))
		return 2;
	return flexio_dev_window_copy_from_host(ctx, (void *)(uintptr_t)daddr, haddr,
						(uint32_t)bytes);
}

/* Uses the window, says so in the first word, waits for the second, and uses it again. */
__dpa_rpc__ uint64_t window_wait(uint64_t id, uint64_t key, uint64_t haddr, uint64_t words)
{
	volatile uint8_t *at = window_at(id, key, haddr);
	volatile uint64_t *word = (volatile uint64_t *)(uintptr_t)words;
	uint64_t n = at[0];

	word[0] = 1;
	while (!word[1])
		;
	return n + at[0];
}

/* Two threads meet while each has its own window, and both use theirs before either goes. */
__dpa_rpc__ uint64_t window_meet(uint64_t id, uint64_t key, uint64_t haddr, uint64_t words)
{
	volatile uint8_t *at = window_at(id, key, haddr);
	uint64_t n;

	if (!at)
		return 0;
	(void)meet(words, 2);
	n = at[0];
	at[1] = (uint8_t)n;
	(void)meet(words + 8, 2);
	return n + at[1];
}

/* Answers each number that the host stores in the first word with its double in the second, until ~0 comes. */
__dpa_rpc__ uint64_t window_answer(uint64_t id, uint64_t key, uint64_t haddr)
{
	volatile uint64_t *at = (volatile uint64_t *)(void *)window_at(id, key, haddr);
	uint64_t last = 0, asked;

	do {
		__dpa_thread_window_read_inv();
		asked = at[0];
		if (asked != last)
			at[1] = 2 * asked;
		last = asked;
		__dpa_thread_window_writeback();
	} while (asked != UINT64_MAX);
	return 17;
}
