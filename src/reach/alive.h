/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A word by which peers see that a process is still the same.  It belongs to a robust mutex in
 * shared memory, which a thread of the process holds.  The kernel changes the word when the thread
 * ends, however it ends, and before another thread can get its number.  It does so at exec, too.
 *
 * Peers address that thread, and never the process's first one: at exec the first thread's number
 * stays and names the next program, while the others' are gone before the memory is.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/compiler.h"

struct alive {
	cacheline_aligned pthread_mutex_t held;
	uint64_t pid_namespace, time_namespace;
	uint64_t cookie_at; /* address of a number in the process's own memory */
	uint64_t cookie;    /* the number */
};

/* Says in which namespaces the process lives.  Call it before peers look. */
void alive_place(struct alive *a);
/* True if the process lives in our PID and time namespaces.  Elsewhere thread numbers mean other
 * threads, and processes began at other times, so nobody could wait for the end of an access. */
bool alive_is_near(const struct alive *a);
/* The calling thread, which is not the process's first, becomes the one that peers address.
 * Returns 0 or negative errno: then peers find nobody alive. */
int alive_begin(struct alive *a);
/* The same thread calls it before it ends. */
void alive_end(struct alive *a);

/* The word now.  It names the thread as long as it equals what alive_probe has returned. */
static inline const _Atomic(uint32_t) *alive_word(const struct alive *a)
{
	return (const _Atomic(uint32_t) *)(const void *)&a->held;
}

/* Thread numbers are smaller than this; the upper bits of the word say that its thread died, or
 * that somebody waits. */
#define ALIVE_MAX_TID (1u << 22)

/* The thread that the word names.  The word equals it until the process ends; 0: it has ended. */
static inline uint32_t alive_now(const struct alive *a)
{
	uint32_t tid = atomic_load_explicit(alive_word(a), memory_order_acquire);

	return likely(tid < ALIVE_MAX_TID) ? tid : 0;
}

/*
 * Asks whether the process of that number lives in our namespaces, has all the rights that we have,
 * and lets us access its memory.  Returns the thread to address, which the word equals until that
 * thread ends; 0: no.
 */
uint32_t alive_probe(const struct alive *a, pid_t pid);
