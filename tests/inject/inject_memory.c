/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that allocate.  What has been allocated is remembered until it is freed.
 */
#include "injector.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include "inject.h"

/* libc's own, for those that run before symbols can be looked up. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);
void __libc_free(void *p);

#define LIVE_MAX (1u << 16)

static struct {
	void *at;
	const void *caller;
} live[LIVE_MAX];
static size_t nlive;
static _Atomic(pid_t) live_owner;

/* The process that holds it, 0: none.  A forked child takes over what a thread of its parent
 * held. */
static void live_lock(void)
{
	pid_t self = getpid(), owner = 0;

	while (!atomic_compare_exchange_weak(&live_owner, &owner, self)) {
		if (owner == self) {
			sched_yield();
			owner = 0;
		}
	}
}

static void live_unlock(void)
{
	atomic_store(&live_owner, 0);
}

static size_t live_slot(const void *at)
{
	size_t i = ((uintptr_t)at >> 4) * 0x9e3779b97f4a7c15ull >> 48;

	while (live[i].at && live[i].at != at)
		i = (i + 1) % LIVE_MAX;
	return i;
}

static void *live_add(void *at, const void *caller)
{
	if (!at || !injector_is_theirs(caller))
		return at;
	live_lock();
	if (nlive < LIVE_MAX / 2) {
		size_t i = live_slot(at);

		live[i].at = at;
		live[i].caller = caller;
		nlive++;
	}
	live_unlock();
	return at;
}

/* Linear probing: what stands behind moves up. */
static void live_remove(const void *at)
{
	size_t i, next;

	if (!at || !injector_is_on())
		return;
	live_lock();
	i = live_slot(at);
	if (!live[i].at)
		goto out;
	nlive--;
	live[i].at = NULL;
	for (next = (i + 1) % LIVE_MAX; live[next].at; next = (next + 1) % LIVE_MAX) {
		void *moved = live[next].at;
		const void *caller = live[next].caller;
		size_t to;

		live[next].at = NULL;
		to = live_slot(moved);
		live[to].at = moved;
		live[to].caller = caller;
	}
out:
	live_unlock();
}

exported size_t inject_live(void)
{
	return nlive;
}

exported void inject_live_print(void)
{
	for (size_t i = 0; i < LIVE_MAX; i++)
		if (live[i].at)
			fprintf(stderr, "not freed: %p, allocated at +0x%zx\n", live[i].at,
				(size_t)((uintptr_t)live[i].caller - injector_base()));
}

exported void *malloc(size_t bytes)
{
	if (injector_fails(CALLER, "malloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return live_add(__libc_malloc(bytes), CALLER);
}

exported void *calloc(size_t n, size_t bytes)
{
	if (injector_fails(CALLER, "calloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return live_add(__libc_calloc(n, bytes), CALLER);
}

exported void *realloc(void *p, size_t bytes)
{
	void *at;

	if (injector_fails(CALLER, "realloc")) {
		errno = ENOMEM;
		return NULL;
	}
	/* Before: another thread may get these addresses. */
	live_remove(p);
	at = __libc_realloc(p, bytes);
	return live_add(at ? at : p, CALLER) ? at : NULL;
}

exported void *reallocarray(void *p, size_t n, size_t bytes)
{
	void *at;

	if (injector_fails(CALLER, "reallocarray") || __builtin_mul_overflow(n, bytes, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	live_remove(p);
	at = __libc_realloc(p, bytes);
	return live_add(at ? at : p, CALLER) ? at : NULL;
}

exported void *aligned_alloc(size_t align, size_t bytes)
{
	if (injector_fails(CALLER, "aligned_alloc")) {
		errno = ENOMEM;
		return NULL;
	}
	return live_add(__libc_memalign(align, bytes), CALLER);
}

exported void free(void *p)
{
	live_remove(p);
	__libc_free(p);
}
