/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that are the same for the same seed on every machine: both sides of a test draw
 * the same plan from them.  (splitmix64, Steele, Lea and Flood 2014)
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rnd {
	uint64_t state;
};

static inline uint64_t rnd_next(struct rnd *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* 0 .. n - 1; n must not be 0.  The bias of the remainder does not matter here. */
static inline uint64_t rnd_below(struct rnd *r, uint64_t n)
{
	return rnd_next(r) % n;
}

static inline bool rnd_percent(struct rnd *r, unsigned percent)
{
	return rnd_below(r, 100) < percent;
}
