// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/userfault.h"

#include <pthread.h>
#include <stdatomic.h>

#include "driver/runtime/mapping.h"

/* The most notes.  If there were more, the last one covers all others, and we look up more than was
 * registered. */
#define NOTES 32u

struct note {
	uint64_t start, end;
};

/* Held only while the list is in use: functions that allocate memory may come here, by mremap. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct note notes[NOTES];
static _Atomic(unsigned) nnotes;

static void note_extend(struct note *n, uint64_t start, uint64_t end)
{
	n->start = start < n->start ? start : n->start;
	n->end = end > n->end ? end : n->end;
}

static bool note_overlaps(const struct note *n, uint64_t start, uint64_t end)
{
	return start < n->end && n->start < end;
}

static void note_add(uint64_t start, uint64_t end)
{
	unsigned n = atomic_load(&nnotes);

	for (unsigned i = 0; i < n; i++) {
		if (start > notes[i].end || notes[i].start > end)
			continue;
		note_extend(&notes[i], start, end);
		return;
	}
	if (n == NOTES) {
		note_extend(&notes[n - 1], start, end);
		return;
	}
	notes[n] = (struct note){start, end};
	atomic_store(&nnotes, n + 1);
}

/* Finds a note that overlaps the range; false: there is none. */
static bool note_find(uint64_t start, uint64_t end, struct note *out)
{
	unsigned n = atomic_load(&nnotes);

	for (unsigned i = 0; i < n; i++)
		if (note_overlaps(&notes[i], start, end)) {
			*out = notes[i];
			return true;
		}
	return false;
}

/* Drops the note, unless it has grown meanwhile. */
static void note_drop(const struct note *gone)
{
	unsigned n = atomic_load(&nnotes);

	for (unsigned i = 0; i < n; i++)
		if (notes[i].start == gone->start && notes[i].end == gone->end) {
			notes[i] = notes[n - 1];
			atomic_store(&nnotes, n - 1);
			return;
		}
}

void userfault_note(uint64_t addr, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	note_add(addr, range_end(addr, bytes));
	pthread_mutex_unlock(&lock);
}

void userfault_moved(uint64_t from, uint64_t bytes, uint64_t to)
{
	struct note n;

	if (!atomic_load_explicit(&nnotes, memory_order_relaxed))
		return;
	pthread_mutex_lock(&lock);
	if (note_find(from, range_end(from, bytes), &n))
		note_add(to, range_end(to, bytes));
	pthread_mutex_unlock(&lock);
}

bool userfault_serves(uint64_t addr, uint64_t bytes)
{
	uint64_t end = range_end(addr, bytes);
	struct note n;
	bool found;

	if (likely(!atomic_load_explicit(&nnotes, memory_order_acquire)))
		return false;
	for (;;) {
		pthread_mutex_lock(&lock);
		found = note_find(addr, end, &n);
		pthread_mutex_unlock(&lock);
		if (!found || mappings_served(addr, end))
			return found;
		if (mappings_served(n.start, n.end))
			return false;
		/* The program no longer serves any of it, and may use the addresses for
		 * anything. */
		pthread_mutex_lock(&lock);
		note_drop(&n);
		pthread_mutex_unlock(&lock);
	}
}

void userfault_fork_lock(void)
{
	pthread_mutex_lock(&lock);
}

void userfault_fork_unlock(void)
{
	pthread_mutex_unlock(&lock);
}
