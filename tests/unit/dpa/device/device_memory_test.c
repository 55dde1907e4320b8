// SPDX-License-Identifier: BSD-2-Clause
/*
 * The memory functions of the device library do what the host's do, and the checks let through what lies in the
 * region and ask at the door about all else: the whole range at once, and nothing before it is moved.
 */
#include <string.h>

#include "check.h"
#include "device_image.h"

#define ROUNDS 100000
#define ROOM   512u

static struct rng rng = {.state = 88172645463325252ull};

static void fill(uint8_t *memory, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		memory[i] = (uint8_t)rng_next(&rng);
}

/* Overlaps in both directions, and every length up to some vectors. */
static void moves_are_the_same(void)
{
	uint8_t *a = device_region;
	uint8_t b[ROOM];

	for (int i = 0; i < ROUNDS; i++) {
		size_t bytes = rng_below(&rng, rng_below(&rng, 2) ? 40 : 200);
		size_t from = rng_below(&rng, ROOM - bytes);
		size_t to = rng_below(&rng, ROOM - bytes);

		if (i % 64 == 0) {
			fill(a, ROOM);
			memcpy(b, a, ROOM);
		}
		CHECK(dev_memmove(a + to, a + from, bytes) == a + to);
		memmove(b + to, b + from, bytes);
		CHECK_SAY(!memcmp(a, b, ROOM), "%zu bytes from %zu to %zu", bytes, from, to);
	}
}

static void sets_are_the_same(void)
{
	uint8_t *a = device_region;
	uint8_t b[ROOM];

	fill(a, ROOM);
	memcpy(b, a, ROOM);
	for (int i = 0; i < ROUNDS; i++) {
		size_t bytes = rng_below(&rng, 200);
		size_t to = rng_below(&rng, ROOM - bytes);
		int value = (int)rng_next(&rng);

		CHECK(dev_memset(a + to, value, bytes) == a + to);
		memset(b + to, value, bytes);
		CHECK_SAY(!memcmp(a, b, ROOM), "%zu bytes at %zu", bytes, to);
	}
}

static int sign(int n)
{
	return (n > 0) - (n < 0);
}

static void compares_are_the_same(void)
{
	uint8_t *a = device_region;
	uint8_t *b = device_region + ROOM;

	for (int i = 0; i < ROUNDS; i++) {
		size_t bytes = rng_below(&rng, 80);

		fill(a, bytes);
		dev_memcpy(b, a, bytes);
		if (bytes && rng_below(&rng, 4))
			b[rng_below(&rng, bytes)] = (uint8_t)rng_next(&rng);
		CHECK(sign(dev_memcmp(a, b, bytes)) == sign(memcmp(a, b, bytes)));
		CHECK(!dev_bcmp(a, b, bytes) == !memcmp(a, b, bytes));
	}
}

/* ---- the checks ---- */

static void expect_refused(uint64_t addr, uint64_t bytes, bool write)
{
	CHECK_SAY(device_refused, "0x%lx, %lu bytes: nobody asked", addr - device_begin(), bytes);
	CHECK_SAY(device_refused_addr == addr && device_refused_bytes == bytes,
		  "asked for 0x%lx, %lu bytes", device_refused_addr - device_begin(),
		  device_refused_bytes);
	CHECK(device_refused_write == write);
}

struct callback {
	void (*call)(uintptr_t addr);
	unsigned int bytes;
	bool write;
};

/* A function of its own: what jumps out of the call would leave variables of the caller behind. */
static __attribute__((noinline)) void try_access(const struct callback *c, uint64_t addr)
{
	DEVICE_TRY(c->call(addr));
}

static __attribute__((noinline)) void try_range(void (*call)(uintptr_t addr, size_t bytes),
						uint64_t addr, uint64_t bytes)
{
	DEVICE_TRY(call(addr, bytes));
}

/* Those of the compiler with a size in the name, at the edges of the region and beyond. */
static void callbacks_check(void)
{
	static const struct callback callbacks[] = {
		{dev_load1, 1, false},	 {dev_load2, 2, false},	  {dev_load4, 4, false},
		{dev_load8, 8, false},	 {dev_load16, 16, false}, {dev_store1, 1, true},
		{dev_store2, 2, true},	 {dev_store4, 4, true},	  {dev_store8, 8, true},
		{dev_store16, 16, true},
	};

	for (size_t i = 0; i < sizeof(callbacks) / sizeof(callbacks[0]); i++) {
		const struct callback *c = &callbacks[i];
		const uint64_t begin = device_begin(), end = begin + DEVICE_REGION_BYTES;
		const uint64_t good[] = {begin, begin + 1, begin + DEVICE_REGION_BYTES / 2,
					 end - c->bytes};
		const uint64_t bad[] = {0,
					8,
					begin - 1,
					end - c->bytes + 1,
					end - 1 + (c->bytes == 1),
					end,
					end + (1ull << 40),
					UINT64_MAX,
					UINT64_MAX - 7};

		for (size_t k = 0; k < sizeof(good) / sizeof(good[0]); k++) {
			try_access(c, good[k]);
			CHECK_SAY(!device_refused, "%u bytes, place %zu", c->bytes, k);
		}
		for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
			try_access(c, bad[k]);
			expect_refused(bad[k], c->bytes, c->write);
		}
	}
}

static void ranges_check(void)
{
	const uint64_t begin = device_begin(), end = begin + DEVICE_REGION_BYTES;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t addr = begin - 100 + rng_below(&rng, DEVICE_REGION_BYTES + 200);
		uint64_t bytes = rng_below(&rng, 2) ? rng_below(&rng, 200)
						    : rng_next(&rng) >> rng_below(&rng, 64);
		bool inside = addr >= begin && addr <= end && bytes <= end - addr;

		try_range(dev_loadN, addr, bytes);
		if (inside || !bytes)
			CHECK_SAY(!device_refused, "0x%lx, %lu bytes", addr - begin, bytes);
		else
			expect_refused(addr, bytes, false);
		try_range(dev_storeN, addr, bytes);
		CHECK(device_refused == (!inside && bytes));
	}
}

/* memcpy and the others ask for their whole ranges, before the first byte. */
static void memory_functions_check(void)
{
	uint8_t *const region = device_region;
	uint8_t *const end = region + DEVICE_REGION_BYTES;

	fill(region, DEVICE_REGION_BYTES);
	DEVICE_TRY(dev_memcpy(region, end - 9, 10));
	expect_refused((uintptr_t)end - 9, 10, false);
	DEVICE_TRY(dev_memcpy(end - 9, region, 10));
	expect_refused((uintptr_t)end - 9, 10, true);
	DEVICE_TRY(dev_memmove(NULL, region, 1));
	expect_refused(0, 1, true);
	DEVICE_TRY(dev_memset(region - 1, 0, 2));
	expect_refused((uintptr_t)region - 1, 2, true);
	DEVICE_TRY(dev_memset(region, 0, SIZE_MAX));
	expect_refused((uintptr_t)region, SIZE_MAX, true);
	DEVICE_TRY((void)dev_memcmp(region, end, 1));
	expect_refused((uintptr_t)end, 1, false);
	DEVICE_TRY(dev_memcpy(NULL, NULL, 0));
	CHECK(!device_refused);
	DEVICE_TRY(dev_memset(end - 5, 7, 5));
	CHECK(!device_refused && end[-1] == 7);
}

/* What the runtime allows (a window) is accessed. */
static void windows_are_let_through(void)
{
	uint8_t window[100] = {0};

	device_window = (uintptr_t)window;
	device_window_bytes = sizeof(window);
	DEVICE_TRY(dev_memset(window, 3, sizeof(window)));
	CHECK(!device_refused && window[99] == 3);
	DEVICE_TRY(dev_memset(window, 3, sizeof(window) + 1));
	expect_refused((uintptr_t)window, sizeof(window) + 1, true);
	device_window_bytes = 0;
}

int main(void)
{
	device_image_init();
	moves_are_the_same();
	sets_are_the_same();
	compares_are_the_same();
	callbacks_check();
	ranges_check();
	memory_functions_check();
	windows_are_let_through();
	return 0;
}
