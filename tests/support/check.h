/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole test framework: a test is a program; it ends with 0, with 1 after the first CHECK that
 * does not hold, or with 77 if it cannot run here, and says why.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* _exit: a failure in a forked child or in a thread must not run the parent's clean-up. */
#define CHECK(cond)                                                                               \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond); \
			_Exit(1);                                                                 \
		}                                                                                 \
	} while (0)

/* The same with what was found instead, as for printf. */
#define CHECK_SAY(cond, ...)                                                                      \
	do {                                                                                      \
		if (!(cond)) {                                                                    \
			fprintf(stderr, "%s:%d: does not hold: %s: ", __FILE__, __LINE__, #cond); \
			fprintf(stderr, __VA_ARGS__);                                             \
			fputc('\n', stderr);                                                      \
			_Exit(1);                                                                 \
		}                                                                                 \
	} while (0)

#define SKIP(...)                             \
	do {                                  \
		fprintf(stderr, "skipped: "); \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr);          \
		_Exit(77);                    \
	} while (0)

/*
 * So many repetitions, or a quarter of them beside a sanitizer, where each takes several times as long.  scripts/check quick and
 * --long run the tests without sanitizers as well.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CHECK_TIMES(n) ((n) / 4)
#else
#define CHECK_TIMES(n) (n)
#endif

/* Deterministic random numbers (xorshift64*): a failure can be repeated. */
struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *r)
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * 0x2545f4914f6cdd1dull;
}

static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
	return rng_next(r) % n;
}
