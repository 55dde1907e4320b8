// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/race.h. */
#include "dpa/race.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "dpa/process.h"

#define WORD_BYTES 8u
#define PAGE_BYTES 4096u
#define CELLS	   4u
#define BUCKETS	   4096u
/* Objects with names in so many bytes are in one bucket. */
#define OBJECT_BYTES 4u
/* Objects that a thread has loaded since its last fence: the last ones. */
#define LOADED 16u
/* Places whose function in the program is known. */
#define PLACES 4096u

/* An access to a word of memory. */
struct cell {
	uint32_t time;	/* of the thread; 0: there is no access */
	uint32_t place; /* in the image */
	uint16_t thread;
	uint8_t bytes; /* a bit for each */
	uint8_t flags;
	uint32_t reserved;
};

enum { CELL_WRITE = 1, CELL_ATOMIC = 2 };

struct clock {
	uint32_t time[DPA_THREADS];
};

struct object {
	struct object *next;
	uint64_t name;
	struct clock clock;
};

struct thread {
	struct clock now;
	struct clock fenced; /* as it was at the last release fence */
	bool has_fenced;
	uint64_t loaded[LOADED];
	uint32_t loads;
};

struct place {
	uint64_t pc, caller;
	uint32_t place;
};

struct dpa_race {
	struct dpa_process *process;
	uint64_t begin, bytes;
	struct cell *cells; /* CELLS for each word */
	pthread_mutex_t lock;
	struct thread *thread[DPA_THREADS];
	struct object *bucket[BUCKETS];
	uint64_t objects;
	struct place places[PLACES];
	uint32_t victim;
};

static uint64_t cells_bytes(uint64_t bytes)
{
	return bytes / WORD_BYTES * CELLS * sizeof(struct cell);
}

struct dpa_race *dpa_race_new(struct dpa_process *p, uint64_t begin, uint64_t bytes)
{
	struct dpa_race *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->cells = sparse_map(cells_bytes(bytes), PROT_READ | PROT_WRITE, -1, 0);
	if (!r->cells) {
		free(r);
		return NULL;
	}
	r->process = p;
	r->begin = begin;
	r->bytes = bytes;
	pthread_mutex_init(&r->lock, NULL);
	return r;
}

void dpa_race_free(struct dpa_race *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; i < BUCKETS; i++) {
		struct object *o;

		while ((o = r->bucket[i])) {
			r->bucket[i] = o->next;
			free(o);
		}
	}
	for (uint32_t i = 0; i < DPA_THREADS; i++)
		free(r->thread[i]);
	munmap(r->cells, cells_bytes(r->bytes));
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* Forgets the objects of that memory; the lock is held. */
static void objects_forget(struct dpa_race *r, uint64_t addr, uint64_t bytes)
{
	uint64_t last = (addr + bytes - 1) / OBJECT_BYTES;

	if (!r->objects || !bytes)
		return;
	last = min_u64(last, addr / OBJECT_BYTES + BUCKETS - 1);
	for (uint64_t i = addr / OBJECT_BYTES; i <= last; i++) {
		struct object **at = &r->bucket[i % BUCKETS], *o;

		while ((o = *at)) {
			if (o->name - addr >= bytes) {
				at = &o->next;
				continue;
			}
			*at = o->next;
			free(o);
			r->objects--;
		}
	}
}

void dpa_race_forget(struct dpa_race *r, uint64_t addr, uint64_t bytes)
{
	uint8_t *cells = (uint8_t *)r->cells;
	uint64_t first = cells_bytes(addr - r->begin);
	uint64_t last = cells_bytes(align_up(addr - r->begin + bytes, WORD_BYTES));
	uint64_t begin = min_u64(align_up(first, PAGE_BYTES), last);
	uint64_t end = last - begin < PAGE_BYTES ? begin : last & ~(uint64_t)(PAGE_BYTES - 1);

	pthread_mutex_lock(&r->lock);
	memset(cells + first, 0, begin - first);
	memset(cells + end, 0, last - end);
	/* Fresh pages have zeroes. */
	if (end > begin)
		(void)madvise(cells + begin, end - begin, MADV_DONTNEED);
	objects_forget(r, addr, bytes);
	pthread_mutex_unlock(&r->lock);
}

/* ---- clocks; the lock is held ---- */

/* NULL: there is no memory, and nothing is known of the thread. */
static struct thread *thread_of(struct dpa_race *r, uint32_t number)
{
	struct thread **at = &r->thread[number];

	if (!*at) {
		*at = calloc(1, sizeof(**at));
		if (*at)
			(*at)->now.time[number] = 1;
	}
	return *at;
}

static struct object *object_find(struct dpa_race *r, uint64_t name)
{
	struct object *o = r->bucket[name / OBJECT_BYTES % BUCKETS];

	while (o && o->name != name)
		o = o->next;
	return o;
}

static struct object *object_of(struct dpa_race *r, uint64_t name)
{
	struct object *o = object_find(r, name);

	if (o)
		return o;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->name = name;
	o->next = r->bucket[name / OBJECT_BYTES % BUCKETS];
	r->bucket[name / OBJECT_BYTES % BUCKETS] = o;
	r->objects++;
	return o;
}

static void clock_join(struct clock *clock, const struct clock *other)
{
	for (uint32_t i = 0; i < DPA_THREADS; i++)
		if (clock->time[i] < other->time[i])
			clock->time[i] = other->time[i];
}

static bool order_acquires(int order)
{
	return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE;
}

static bool order_releases(int order)
{
	return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

/*
 * A store that releases nothing shows what a fence in front of it has released.  What others have shown
 * there stays: the store itself comes a moment later, and a thread that has loaded what was there may
 * take it only then.  So a race may be missed, but none is made up.
 */
static void object_publish(struct dpa_race *r, struct thread *t, uint64_t name, int order)
{
	const struct clock *clock = order_releases(order) ? &t->now
				    : t->has_fenced	  ? &t->fenced
							  : NULL;
	struct object *o = clock ? object_of(r, name) : object_find(r, name);

	if (o && clock)
		clock_join(&o->clock, clock);
}

void dpa_race_publish(struct dpa_race *r, uint32_t thread, uint64_t object, int order)
{
	struct thread *t;

	pthread_mutex_lock(&r->lock);
	t = thread_of(r, thread);
	if (t)
		object_publish(r, t, object, order);
	if (t && order_releases(order))
		t->now.time[thread]++;
	pthread_mutex_unlock(&r->lock);
}

static void object_take(struct dpa_race *r, struct thread *t, uint64_t name)
{
	const struct object *o = object_find(r, name);

	if (o)
		clock_join(&t->now, &o->clock);
}

/* Notes for the next fence what has been loaded.  What finds no place there is taken at once, so that
 * a race may be missed, but none is made up. */
static void object_note(struct dpa_race *r, struct thread *t, uint64_t object)
{
	uint64_t *place = &t->loaded[t->loads % LOADED];

	for (uint32_t i = 0; i < LOADED && i < t->loads; i++)
		if (t->loaded[i] == object)
			return;
	if (t->loads >= LOADED)
		object_take(r, t, *place);
	*place = object;
	t->loads++;
}

void dpa_race_take(struct dpa_race *r, uint32_t thread, uint64_t object, int order)
{
	struct thread *t;

	pthread_mutex_lock(&r->lock);
	t = thread_of(r, thread);
	if (t && order_acquires(order))
		object_take(r, t, object);
	else if (t)
		object_note(r, t, object);
	pthread_mutex_unlock(&r->lock);
}

void dpa_race_begin(struct dpa_race *r, uint32_t thread)
{
	dpa_race_take(r, thread, DPA_RACE_HOST, __ATOMIC_ACQUIRE);
	dpa_race_take(r, thread, DPA_RACE_BELLS, __ATOMIC_ACQUIRE);
}

void dpa_race_fence(struct dpa_race *r, uint32_t thread, int order)
{
	struct thread *t;

	pthread_mutex_lock(&r->lock);
	t = thread_of(r, thread);
	if (t && order_acquires(order)) {
		object_take(r, t, DPA_RACE_BELLS);
		for (uint32_t i = 0; i < LOADED && i < t->loads; i++)
			object_take(r, t, t->loaded[i]);
		t->loads = 0;
	}
	if (t && order_releases(order)) {
		t->fenced = t->now;
		t->has_fenced = true;
		t->now.time[thread]++;
	}
	pthread_mutex_unlock(&r->lock);
}

/* ---- accesses ---- */

/* Returns the place in the image of what the program itself does there. */
static uint32_t place_find(struct dpa_race *r, const struct dpa_trail *trail)
{
	struct place *known = &r->places[(trail->pc[0] ^ trail->pc[1] >> 3) % PLACES];
	uint64_t pc;

	if (known->pc == trail->pc[0] && known->caller == trail->pc[1])
		return known->place;
	pc = dpa_trail_place(r->process, trail);
	*known = (struct place){trail->pc[0], trail->pc[1],
				pc ? (uint32_t)(pc - (uintptr_t)r->process->region) : 0};
	return known->place;
}

static const char *place_text(const struct dpa_race *r, uint32_t place, char text[DPA_TRAIL_TEXT])
{
	const struct dpa_trail trail = {{place ? (uintptr_t)r->process->region + place : 0}};

	return dpa_trail_text(r->process, &trail, text);
}

static const char *cell_kind(const struct cell *c)
{
	static const char *const kinds[] = {"a load", "a store", "an atomic load",
					    "an atomic store"};

	return kinds[c->flags & 3];
}

static void race_report(struct dpa_race *r, uint64_t word, const struct cell *now,
			const struct cell *before)
{
	uint32_t low = now->place < before->place ? now->place : before->place;
	uint32_t high = now->place < before->place ? before->place : now->place;
	char here[DPA_TRAIL_TEXT], there[DPA_TRAIL_TEXT];

	if (dpa_said(&r->process->said, (uint64_t)high << 32 | low))
		return;
	log_warn("DPA race: %s at 0x%llx %s, and %s of another thread %s: nothing orders them",
		 cell_kind(now),
		 (unsigned long long)(word + (unsigned)__builtin_ctz(now->bytes & before->bytes)),
		 place_text(r, now->place, here), cell_kind(before),
		 place_text(r, before->place, there));
}

static bool cells_conflict(const struct cell *now, const struct cell *before,
			   const struct thread *t)
{
	return before->time && before->thread != now->thread && before->bytes & now->bytes &&
	       (before->flags | now->flags) & CELL_WRITE &&
	       !(before->flags & now->flags & CELL_ATOMIC) &&
	       t->now.time[before->thread] < before->time;
}

/* Tells whether an access that conflicts with the old one would conflict with the new one, too. */
static bool cell_covers(const struct cell *now, const struct cell *before, const struct thread *t)
{
	bool known = before->thread == now->thread || t->now.time[before->thread] >= before->time;

	return known && !(before->bytes & ~now->bytes) &&
	       (now->flags & CELL_WRITE || !(before->flags & CELL_WRITE)) &&
	       (!(now->flags & CELL_ATOMIC) || before->flags & CELL_ATOMIC);
}

static void word_access(struct dpa_race *r, const struct thread *t, uint64_t word,
			const struct cell *now)
{
	struct cell *cells = r->cells + (word - r->begin) / WORD_BYTES * CELLS, *into = NULL;

	for (uint32_t i = 0; i < CELLS; i++) {
		if (cells_conflict(now, &cells[i], t))
			race_report(r, word, now, &cells[i]);
		if (!cells[i].time || cell_covers(now, &cells[i], t)) {
			/* The first one gets the access, and others are not needed any more. */
			if (into)
				cells[i] = (struct cell){0};
			else
				into = &cells[i];
		}
	}
	if (!into)
		into = &cells[r->victim++ % CELLS];
	*into = *now;
}

void dpa_race_access(struct dpa_race *r, uint32_t thread, const struct dpa_race_access *a,
		     const struct dpa_trail *trail)
{
	uint64_t addr = a->addr, left = a->bytes;
	struct thread *t;

	if (!range_inside(addr - r->begin, left, r->bytes))
		return;
	pthread_mutex_lock(&r->lock);
	t = thread_of(r, thread);
	while (t && left) {
		uint64_t first = addr % WORD_BYTES, n = min_u64(left, WORD_BYTES - first);
		const struct cell now = {
			.time = t->now.time[thread],
			.place = place_find(r, trail),
			.thread = (uint16_t)thread,
			.bytes = (uint8_t)(((1u << n) - 1) << first),
			.flags = (a->write ? CELL_WRITE : 0) | (a->atomic ? CELL_ATOMIC : 0),
		};

		word_access(r, t, addr - first, &now);
		addr += n;
		left -= n;
	}
	pthread_mutex_unlock(&r->lock);
}
