/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A word by which peers see that a process is still the one that it was: a robust mutex in shared
 * memory, held by a thread of the process.  The kernel changes the word when the thread ends,
 * however it ends, and before its number can be another's.  It does so at exec, too.
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
	uint64_t cookie_at; /* of a word in the process's own memory ... */
	uint64_t cookie;    /* ... which says this */
};

/* Says where the process lives, before peers look. */
void alive_place(struct alive *a);
/* Does it live in our PID and time namespaces?  Elsewhere thread numbers mean other threads, and
 * processes began at other times, so nobody could wait for the end of an access. */
bool alive_is_near(const struct alive *a);
/* The process's thread that peers are to address, which is not its first.  0 or negative errno:
 * peers find nobody alive. */
int alive_begin(struct alive *a);
/* The same thread, before it ends. */
void alive_end(struct alive *a);

/* The word now; it names the thread if alive_probe has returned it. */
static inline const _Atomic(uint32_t) *alive_word(const struct alive *a)
{
	return (const _Atomic(uint32_t) *)(const void *)&a->held;
}

/* Thread numbers have fewer bits; the rest of the word says that its thread died, or who waits. */
#define ALIVE_MAX_TID (1u << 22)

/* The thread that the word names, which it equals until the process ends; 0: it has ended. */
static inline uint32_t alive_now(const struct alive *a)
{
	uint32_t tid = atomic_load_explicit(alive_word(a), memory_order_acquire);

	return likely(tid < ALIVE_MAX_TID) ? tid : 0;
}

/*
 * Asks whether the process of that number lives in our namespaces, has no fewer rights than we, and
 * we may access its memory.
 * The thread of it to address, which the word equals until it ends; 0: no.
 */
uint32_t alive_probe(const struct alive *a, pid_t pid);
