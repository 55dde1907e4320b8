/* SPDX-License-Identifier: BSD-2-Clause */
/* Monotonic time in nanoseconds, and in ticks of a device's clock. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

#define CLOCK_NS_KHZ 1000000u /* of a clock that counts nanoseconds */

/* How long the calling thread has had a processor. */
static inline uint64_t clock_thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A time in the ticks of a clock of that frequency. */
static inline uint64_t clock_ticks(uint64_t ns, uint32_t khz)
{
	if (!khz || khz == CLOCK_NS_KHZ)
		return ns;
	return ns / CLOCK_NS_KHZ * khz + ns % CLOCK_NS_KHZ * khz / CLOCK_NS_KHZ;
}

static inline uint64_t clock_realtime_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}
