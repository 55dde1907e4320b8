/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes for tests of the ways: the test itself is the target, its child reaches into it.
 * What they share stands in one mapping.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "check.h"
#include "reach/way.h"

#define WAY_PAIR_BYTES (1u << 20)

struct way_pair {
	struct access_table table;
	struct alive alive;
	pid_t pid;		   /* of who holds it */
	_Atomic(uint32_t) allowed; /* the "key" */
	_Atomic(uint32_t) end;
	_Atomic(uint64_t) done, refused;
	_Atomic(uint32_t) step; /* of the test */
	/* What both map; the target's own memory is at 'memory' in the target. */
	cacheline_aligned uint8_t shared[WAY_PAIR_BYTES];
	uint8_t *memory;
};

/* The shared part, with 'memory' allocated. */
struct way_pair *way_pair_new(void);
/* A thread of the target holds the alive word until way_pair_let_go, and lives as long as the
 * process. */
void way_pair_hold(struct way_pair *p);
void way_pair_let_go(struct way_pair *p);
/* Runs fn in a child process, which ends with what fn returns. */
pid_t way_pair_fork(struct way_pair *p, int (*fn)(struct way_pair *p));
/* Waits for its end: true if it ended with 0. */
bool way_pair_join(pid_t child);
/* Waits until the word has a value, for a minute at most. */
void way_pair_await(_Atomic(uint32_t) *word, uint32_t value);
/* Waits until something has been counted so often. */
void way_pair_await_more(_Atomic(uint64_t) *count, uint64_t than);
/* Stops a child, wherever it is; SIGCONT lets it go on. */
void way_pair_stop(pid_t child);

/* Waits for one more access of the child's, then for a random moment, and stops it if that is
 * asked. */
void way_pair_interrupt(struct way_pair *p, pid_t child, struct rng *rng, bool stop);

typedef enum way_verdict way_fn(struct way_access *a);

/* One access with a claim of its own, whatever the "key" says. */
enum way_verdict way_pair_move(struct way_pair *p, way_fn *way, uint32_t tid, bool read,
			       const struct run *local, uint32_t nlocal, const struct run *remote,
			       uint32_t requests, uint32_t *done);
