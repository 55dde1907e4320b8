/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data races of device code: two accesses of different threads to the same memory of the process, at
 * least one of them a store and one of them plain, that nothing orders.  Code that is compiled with
 * -fsanitize=thread tells of each access to variables and heap (not of its stack), of atomic and
 * volatile ones, and of fences.
 *
 * Each thread has a clock with an entry for each thread: what it knows of the others' progress.  A
 * clock is published at an object by a release and taken from there by an acquire.  Objects are the
 * addresses of atomic and volatile variables, execution units, whose handlers take turns, and two
 * for the world outside, so that what the host or the adapter may have ordered is not reported.
 * Ends of calls and fences of windows publish at the host's, and bells at that of the adapter.
 * Calls and activations take both, fences of memory what the adapter's has.
 *
 * Each 8 bytes of memory remember up to four accesses, with thread, time and place.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "dpa/trail.h"

struct dpa_process;
struct dpa_race;

/* Objects that have no address: what the host hears of, and what the adapter hears of. */
#define DPA_RACE_HOST  1u
#define DPA_RACE_BELLS 2u
#define DPA_RACE_UNIT  16u /* and the number of an execution unit */

/* Watches a part of the process's region.  NULL: there is no memory. */
struct dpa_race *dpa_race_new(struct dpa_process *p, uint64_t begin, uint64_t bytes) must_check;
void dpa_race_free(struct dpa_race *r);
/* The memory is given to somebody else. */
void dpa_race_forget(struct dpa_race *r, uint64_t addr, uint64_t bytes);

/* The numbers of threads are those of their stacks.  Orders are those of C: __ATOMIC_RELAXED to
 * __ATOMIC_SEQ_CST. */

struct dpa_race_access {
	uint64_t addr, bytes;
	bool write;
	bool atomic; /* or volatile */
};

void dpa_race_access(struct dpa_race *r, uint32_t thread, const struct dpa_race_access *a,
		     const struct dpa_trail *trail);
/* A store to an object.  What others have published there stays. */
void dpa_race_publish(struct dpa_race *r, uint32_t thread, uint64_t object, int order);
/* A load from an object. */
void dpa_race_take(struct dpa_race *r, uint32_t thread, uint64_t object, int order);
/* The thread begins with something because the host or the adapter said so. */
void dpa_race_begin(struct dpa_race *r, uint32_t thread);
void dpa_race_fence(struct dpa_race *r, uint32_t thread, int order);
