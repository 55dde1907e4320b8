// SPDX-License-Identifier: BSD-2-Clause
/* Device code that fails. The line of each failure has the name of its kind. */
#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>
#include <libflexio-dev/flexio_dev_err.h>
#include <libflexio-dev/flexio_dev_queue_access.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WORD(addr) (*(volatile uint64_t *)(uintptr_t)(addr))

__dpa_rpc__ uint64_t nothing(void)
{
	return 17;
}

/* Memory that may not be written. */
__dpa_rpc__ uint64_t code(void)
{
	return (uintptr_t)&nothing;
}

/* ---- kinds: the argument is an address that the host has chosen ---- */

__dpa_rpc__ uint64_t load(uint64_t addr)
{
	return WORD(addr); /* load */
}

__dpa_rpc__ uint64_t store(uint64_t addr)
{
	WORD(addr) = addr; /* store */
	return 0;
}

/* A function of the device library does it. */
__dpa_rpc__ uint64_t fill(uint64_t addr)
{
	memset((void *)(uintptr_t)addr, 1, 64); /* fill */
	return 0;
}

/* In archives: of the image's mode, and of the other one. */
uint64_t archived(uint64_t addr);
uint64_t archived_other(uint64_t addr);

__dpa_rpc__ uint64_t archive(uint64_t addr)
{
	return archived(addr) + 1;
}

__dpa_rpc__ uint64_t other_archive(uint64_t addr)
{
	return archived_other(addr) + 1;
}

static __attribute__((noinline)) uint64_t inner(uint64_t addr, uint64_t depth)
{
	uint64_t sum = depth + 3;

	sum += WORD(addr); /* inner */
	return sum;
}

__dpa_rpc__ uint64_t nested(uint64_t addr)
{
	return inner(addr, 5) + 1; /* nested */
}

__dpa_rpc__ uint64_t overflow(uint64_t depth)
{
	volatile char room[256];

	room[depth % sizeof(room)] = 1;
	return overflow(depth + 1) + (uint64_t)room[0]; /* overflow */
}

/* More than there is, in one frame. */
__dpa_rpc__ uint64_t large(uint64_t at)
{ /* large */
	volatile char room[512 << 10];

	room[at] = 1;
	return (uint64_t)room[at];
}

__dpa_rpc__ uint64_t jump(uint64_t addr)
{
	return ((uint64_t(*)(void))(uintptr_t)addr)() + 1; /* jump */
}

__dpa_rpc__ uint64_t divide(uint64_t by)
{
	return 17 / *(volatile uint64_t *)&by; /* divide */
}

__dpa_rpc__ uint64_t trap(uint64_t unused)
{
	(void)unused;
	__builtin_trap(); /* trap */
}

/* With a debugger it stops here, and goes on. */
__dpa_rpc__ uint64_t breakpoint(uint64_t arg)
{
	__builtin_debugtrap(); /* breakpoint */
	return arg + 1;
}

__dpa_rpc__ uint64_t report(uint64_t code)
{
	flexio_dev_error((uint8_t)code); /* report */
}

static volatile uint64_t never;

static void begin(uint64_t words)
{
	__atomic_fetch_add((uint64_t *)(uintptr_t)words, 1, __ATOMIC_SEQ_CST);
}

__dpa_rpc__ uint64_t spin(uint64_t words)
{
	begin(words);
	while (!never) /* spin */
		;
	return 0;
}

static __attribute__((noinline)) uint64_t stuck_inner(uint64_t words)
{
	while (!never) /* stuck inner */
		;
	return words;
}

__dpa_rpc__ uint64_t stuck(uint64_t words)
{
	return stuck_inner(words) + 1; /* stuck */
}

/* A lock that it has already. */
__dpa_rpc__ uint64_t locked(uint64_t unused)
{
	static struct spinlock_s lock;

	spin_init(&lock);
	spin_lock(&lock);
	spin_lock(&lock); /* locked */
	return unused;
}

/* Mostly on the other side of the door. */
__dpa_rpc__ uint64_t ask(uint64_t words)
{
	uint64_t sum = 0;

	begin(words);
	while (!never)
		sum += __dpa_thread_time(); /* ask */
	return sum;
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

__dpa_rpc__ uint64_t window_byte(uint64_t id, uint64_t key, uint64_t haddr, uint64_t offset)
{
	return ((volatile uint8_t *)window_at(id, key, haddr))[offset]; /* window */
}

/* Copies more than the block in the heap has. */
__dpa_rpc__ uint64_t window_copy(uint64_t id, uint64_t key, uint64_t haddr, uint64_t block)
{
	const void *from = (const void *)(uintptr_t)block;
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	if (flexio_dev_window_config(ctx, (uint16_t)id, (uint32_t)key))
		return 1;
	return flexio_dev_window_copy_to_host(ctx, haddr, from, 65); /* window copy */
}

/* The words are in the heap: it says that it has the window, waits for the host, and uses it. */
__dpa_rpc__ uint64_t window_gone(uint64_t id, uint64_t key, uint64_t haddr, uint64_t words)
{
	volatile uint8_t *at = window_at(id, key, haddr);

	WORD(words) = at[0] + 1u;
	while (!WORD(words + 8))
		;
	return at[0]; /* gone */
}

/* ---- several at once ---- */

/* Says that it is there, waits until all are, and fails. */
__dpa_rpc__ uint64_t meet(uint64_t words, uint64_t count)
{
	__atomic_fetch_add((uint64_t *)(uintptr_t)words, 1, __ATOMIC_SEQ_CST);
	while (WORD(words) < count)
		;
	return WORD(0); /* meet */
}

__dpa_rpc__ uint64_t peek(uint64_t addr)
{
	return WORD(addr);
}

__dpa_rpc__ uint64_t poke(uint64_t addr)
{
	WORD(addr) = 1;
	return 0;
}

/* ---- handlers ---- */

/* A completion that says nothing, which activates the handler of the queue. */
__dpa_rpc__ uint64_t complete(uint64_t cqn)
{
	struct flexio_dev_thread_ctx *ctx;

	flexio_dev_get_thread_ctx(&ctx);
	flexio_dev_msix_send(ctx, (uint32_t)cqn);
	return 0;
}

static __attribute__((noinline)) void handler_fails(uint64_t addr)
{
	WORD(addr) = 1; /* handler */
}

/* The argument is an address to store to. */
__dpa_global__ void handle(uint64_t addr)
{
	handler_fails(addr);
	flexio_dev_thread_reschedule();
}

/* ---- error handlers ---- */

__dpa_global__ void endless(uint64_t code)
{
	(void)code;
	for (;;)
		;
}

__dpa_global__ void failing(uint64_t code)
{
	WORD(code - code) = code; /* failing */
}

/* Writes over the stack that it gets, as far as it can. */
__dpa_global__ void writing(uint64_t code)
{
	volatile uint64_t words[4096];

	for (uint64_t i = 0; i < 4096; i++)
		words[i] = code;
	if (words[code % 4096] != code)
		flexio_dev_error(200);
}
