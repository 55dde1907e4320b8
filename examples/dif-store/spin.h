/* SPDX-License-Identifier: BSD-2-Clause */
/* Time, and how long to look for completions before sleeping. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

struct spin {
	uint64_t since; /* 0: there was something to do just now */
};

static inline void spin_again(struct spin *s)
{
	s->since = 0;
}

/* Nothing was found; true once that has been so for limit_us. */
static inline bool spin_is_over(struct spin *s, unsigned limit_us)
{
	uint64_t now = now_ns();

	if (!s->since)
		s->since = now;
	return now - s->since > (uint64_t)limit_us * 1000;
}
