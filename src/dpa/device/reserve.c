// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reservations of inline assembly: lr and sc, which dpacc translates into loads and compare-and-swaps
 * with these functions around them.
 *
 * A compare-and-swap would succeed too if the value had changed meanwhile and changed back, and a
 * list whose nodes are used again would break.  So a table has a version for each address, which each
 * sc that stores counts up, and one with an older version fails.  An entry serves many addresses,
 * which costs a loop one more round now and then.
 *
 * While an entry's version is odd, a thread is between the two halves of sc, and others wait for it.
 * One that was stopped there is not waited for longer than a second.
 */
#include "dpa/device/image.h"

#include <dpaintrin.h>
#include <libflexio-dev/flexio_dev.h>

#define ENTRIES 64u
#define WAIT_NS 1000000000u

static uint64_t versions[ENTRIES];

static uint64_t *version_of(uint64_t addr)
{
	return &versions[addr / 8 % ENTRIES];
}

/* Returns the entry's version, once no thread is between the halves of sc. */
static uint64_t version_even(uint64_t *entry)
{
	uint64_t version, end = 0;

	for (uint32_t looks = 0; (version = __atomic_load_n(entry, __ATOMIC_ACQUIRE)) % 2;) {
		__dpa_spin_wait(looks++);
		if (!end)
			end = image_door()->time() + WAIT_NS;
		else if (image_door()->time() > end)
			__atomic_compare_exchange_n(entry, &version, version + 1, 0,
						    __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	}
	return version;
}

void __dpa_reserve(uint64_t addr, uint64_t bytes);
void __dpa_reserve(uint64_t addr, uint64_t bytes)
{
	struct dpa_reservation *own = image_door()->reservation();

	/* As on the DPA, which has no reservations of what lies across words. */
	if (addr % bytes)
		__builtin_trap();
	own->addr = addr;
	own->bytes = bytes;
	own->version = version_even(version_of(addr));
}

void __dpa_reserved(uint64_t value);
void __dpa_reserved(uint64_t value)
{
	image_door()->reservation()->value = value;
}

/* Returns whether the reservation still holds.  Then __dpa_reservation_end has to follow. */
uint64_t __dpa_reservation_take(uint64_t addr, uint64_t bytes);
uint64_t __dpa_reservation_take(uint64_t addr, uint64_t bytes)
{
	struct dpa_reservation *own = image_door()->reservation();
	uint64_t version = own->version;

	if (own->addr != addr || own->bytes != bytes) {
		own->addr = 0;
		return 0;
	}
	if (__atomic_compare_exchange_n(version_of(addr), &version, version + 1, 0,
					__ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return 1;
	own->addr = 0;
	return 0;
}

uint64_t __dpa_reservation_value(void);
uint64_t __dpa_reservation_value(void)
{
	return image_door()->reservation()->value;
}

void __dpa_reservation_end(uint64_t stored);
void __dpa_reservation_end(uint64_t stored)
{
	struct dpa_reservation *own = image_door()->reservation();

	uint64_t version = own->version + 1;

	__atomic_compare_exchange_n(version_of(own->addr), &version,
				    own->version + (stored ? 2 : 0), 0, __ATOMIC_RELEASE,
				    __ATOMIC_RELAXED);
	own->addr = 0;
}
