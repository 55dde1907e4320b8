// SPDX-License-Identifier: BSD-2-Clause
/* See hazard.h. */
#include "base/hazard.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/spin.h"

/* Records are made in blocks, and a block stays.  The first block is enough for most programs. */
#define BLOCK_RECORDS 256u

/* A reader that runs leaves its section within this many looks, mostly. */
#define LOOKS_BEFORE_SLEEP 64u
#define LOOK_PAUSE_NS	   50000u

#define ALL_OBJECTS SIZE_MAX

struct block {
	struct hazard_record record[BLOCK_RECORDS];
	_Atomic(unsigned) used; /* records from here on never had an owner */
	_Atomic(struct block *) next;
};

static struct block first_block;

_Thread_local struct hazard_record *hazard_self;

#ifdef TSAN_WATCHES
char hazard_tsan_token;
#endif

/* ---- records ---- */

static bool thread_has_ended(int32_t thread)
{
	return syscall(SYS_tgkill, getpid(), thread, 0) < 0 && errno == ESRCH;
}

/* Takes a record that is nobody's. */
static struct hazard_record *block_claim(struct block *b, int32_t thread)
{
	for (unsigned i = 0; i < BLOCK_RECORDS; i++) {
		struct hazard_record *r = &b->record[i];
		unsigned used = atomic_load(&b->used);
		int32_t nobody = 0;

		if (!atomic_compare_exchange_strong(&r->thread, &nobody, thread))
			continue;
		while (used <= i && !atomic_compare_exchange_weak(&b->used, &used, i + 1))
			;
		/* its last owner may have ended inside a section */
		atomic_fetch_and(&r->state, HAZARD_SECTION);
		return r;
	}
	return NULL;
}

/* Frees the records of threads that have ended. */
static void block_collect(struct block *b)
{
	for (unsigned i = 0; i < BLOCK_RECORDS; i++) {
		int32_t thread = atomic_load(&b->record[i].thread);

		if (thread && thread_has_ended(thread))
			(void)atomic_compare_exchange_strong(&b->record[i].thread, &thread, 0);
	}
}

/* The block after b, which is made if there is none. */
static struct block *block_next(struct block *b)
{
	struct block *next = atomic_load(&b->next), *none = NULL;

	if (next)
		return next;
	next = (struct block *)syscall(SYS_mmap, NULL, sizeof(*next), PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (next == MAP_FAILED) {
		log_error("no memory for the record of another thread");
		abort();
	}
	if (atomic_compare_exchange_strong(&b->next, &none, next))
		return next;
	syscall(SYS_munmap, next, sizeof(*next));
	return none;
}

/* May run in a signal handler, so it takes no lock. */
struct hazard_record *hazard_register(void)
{
	int32_t thread = (int32_t)syscall(SYS_gettid);
	struct block *b = &first_block;
	struct hazard_record *r;
	int error = errno;

	while (!(r = block_claim(b, thread))) {
		block_collect(b);
		r = block_claim(b, thread);
		if (r)
			break;
		b = block_next(b);
	}
	errno = error;
	hazard_self = r;
	return r;
}

void hazard_fork_child(void)
{
	for (struct block *b = &first_block; b; b = atomic_load(&b->next)) {
		for (unsigned i = 0; i < atomic_load(&b->used); i++) {
			struct hazard_record *r = &b->record[i];

			if (r != hazard_self) {
				atomic_store(&r->state, 0);
				atomic_store(&r->thread, 0);
			}
		}
	}
	if (hazard_self)
		atomic_store(&hazard_self->thread, (int32_t)syscall(SYS_gettid));
}

/* ---- what a section holds ---- */

void hazard_hold_elsewhere(struct hazard_record *r, uint64_t mark, unsigned at)
{
	for (unsigned i = 1; i < HAZARD_HELD; i++) {
		_Atomic(uint64_t) *place = &r->held[(at + i) % HAZARD_HELD];
		uint64_t old = atomic_load_explicit(place, memory_order_relaxed);

		if (old == mark)
			return;
		if ((uint16_t)old != (uint16_t)mark) {
			atomic_store_explicit(place, mark, memory_order_relaxed);
			return;
		}
	}
	atomic_store_explicit(&r->full, (uint16_t)mark, memory_order_relaxed);
}

/* The object of a mark: addresses have 48 bits. */
static uintptr_t mark_address(uint64_t mark)
{
	return (uintptr_t)(mark >> 16);
}

/* Does the section with this state hold anything of these bytes? */
static bool section_holds(const struct hazard_record *r, uint32_t state, uintptr_t object,
			  size_t bytes)
{
	if (bytes == ALL_OBJECTS ||
	    atomic_load_explicit(&r->full, memory_order_relaxed) == (uint16_t)state)
		return true;
	for (unsigned i = 0; i < HAZARD_HELD; i++) {
		uint64_t mark = atomic_load_explicit(&r->held[i], memory_order_relaxed);

		if ((uint16_t)mark == (uint16_t)state && mark_address(mark) - object < bytes)
			return true;
	}
	return false;
}

/* ---- waiting ---- */

/* False: the thread has ended inside its section. */
static bool pause_between_looks(const struct hazard_record *r, unsigned look)
{
	const struct timespec pause = {.tv_nsec = LOOK_PAUSE_NS};

	if (look < LOOKS_BEFORE_SLEEP) {
		cpu_relax();
		return true;
	}
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
	return !thread_has_ended(atomic_load(&r->thread));
}

/*
 * Waits for the section in which the thread is now.  The next one began after the caller had taken
 * the object out of the table.
 */
static void hazard_await(const struct hazard_record *r, uintptr_t object, size_t bytes)
{
	uint32_t first = atomic_load_explicit(&r->state, memory_order_acquire), state = first;

	for (unsigned look = 0; state >= HAZARD_DEPTH; look++) {
		if ((uint16_t)(state ^ first) || !section_holds(r, state, object, bytes) ||
		    !pause_between_looks(r, look))
			return;
		state = atomic_load_explicit(&r->state, memory_order_acquire);
	}
}

void hazard_wait(const void *object, size_t bytes)
{
	int error = errno;

	fence_heavy();
	for (const struct block *b = &first_block; b; b = atomic_load(&b->next))
		for (unsigned i = 0; i < atomic_load(&b->used); i++)
			hazard_await(&b->record[i], (uintptr_t)object, bytes);
	errno = error;
#ifdef TSAN_WATCHES
	__tsan_acquire(&hazard_tsan_token);
#endif
}

void hazard_wait_all(void)
{
	hazard_wait(NULL, ALL_OBJECTS);
}
