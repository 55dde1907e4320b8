// SPDX-License-Identifier: BSD-2-Clause
/* See dpa/weak.h. */
#include "dpa/weak.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/log.h"
#include "dpa/process.h"
#include "usermem/usermem.h"

#define LINE_BYTES 64u
#define PAGE_BYTES 4096u
#define PAGE_LINES (PAGE_BYTES / LINE_BYTES)
#define BUCKETS	   256u
/* A cache with more pages is emptied when it is invalidated. */
#define PAGES_MAX  1024u
#define PATIENT_NS 1000000000ull

/*
 * Programs and their libraries lie in the upper half of the addresses, or at the very beginning.  A
 * distance leads from there into the middle, and apart from those of other windows: as far as there
 * is room, because memory of the host that is just as far apart would have its copies in one place.
 */
#define UPPER_HALF    (1ull << 46)
#define DISTANCE      (1ull << 45)
#define DISTANCE_STEP (1ull << 33)
#define CACHES_LOG    11u
#define CACHES	      (1u << CACHES_LOG)

_Static_assert(DPA_WINDOW_SLOTS *CACHES *DISTANCE_STEP <= DISTANCE, "distances end in the middle");

struct line {
	struct line *next_touched; /* a line of the list that ends with itself; NULL: in no list */
	struct page *page;
	uint64_t generation; /* of the cache when the line was read; 0: it has not been read */
	uint64_t activation; /* likewise */
	uint64_t dirty;	     /* a bit for each byte that a store was for */
	uint64_t dirty_ns, old_ns;
	struct dpa_trail loaded, stored;
	uint8_t read[LINE_BYTES]; /* what memory held when the line was read */
};

struct page {
	struct page *next;
	uint64_t copy, distance;
	struct line line[PAGE_LINES];
};

struct dpa_weak {
	struct dpa_process *process;
	uint32_t number;
	uint64_t distance[DPA_WINDOW_SLOTS];
	uint64_t generation, activation;
	uint64_t looked_ns;
	uint32_t pages;
	struct line *touched; /* accessed since the last write-back */
	struct page *bucket[BUCKETS];
};

bool dpa_weak_wanted(void)
{
	const char *text = getenv("SOFTHCA_DPA_MEMORY");

	if (!text || !*text || !strcmp(text, "coherent"))
		return false;
	if (strcmp(text, "weak") != 0)
		log_warn("SOFTHCA_DPA_MEMORY is coherent or weak, not: %s", text);
	return !strcmp(text, "weak");
}

/* A bit for each number that a cache has; the copies of two caches with one number could meet. */
static _Atomic(uint64_t) numbers[CACHES / 64];

/* Returns a number that no cache has, or CACHES. */
static uint32_t number_take(void)
{
	for (uint32_t i = 0; i < CACHES / 64; i++) {
		uint64_t taken = atomic_load(&numbers[i]);

		while (~taken) {
			uint32_t bit = (uint32_t)__builtin_ctzll(~taken);

			if (atomic_compare_exchange_weak(&numbers[i], &taken,
							 taken | UINT64_C(1) << bit))
				return i * 64 + bit;
		}
	}
	return CACHES;
}

static void number_give(uint32_t number)
{
	atomic_fetch_and(&numbers[number / 64], ~(UINT64_C(1) << number % 64));
}

/*
 * Returns how far the copies of a window lie from the host's memory.  Its number has the bits of the
 * cache's number in reverse, and the window's at the top: with up to 2^n caches at a time, and caches
 * have low numbers then, all windows are 2^(44 - n) bytes apart.
 */
static uint64_t distance_of(uint32_t number, uint32_t window)
{
	uint64_t place = window;

	for (uint32_t i = 0; i < CACHES_LOG; i++)
		place = place << 1 | (number >> i & 1);
	return DISTANCE + place * DISTANCE_STEP;
}

struct dpa_weak *dpa_weak_new(struct dpa_process *p)
{
	struct dpa_weak *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->number = number_take();
	if (w->number == CACHES) {
		log_warn("DPA memory: more than %u threads with a memory of their own (weak)",
			 CACHES);
		free(w);
		return NULL;
	}
	w->process = p;
	for (uint32_t i = 0; i < DPA_WINDOW_SLOTS; i++)
		w->distance[i] = distance_of(w->number, i);
	w->generation = 1;
	return w;
}

/* ---- addresses ---- */

uint64_t dpa_weak_distance(const struct dpa_weak *w, uint32_t window, uint64_t host)
{
	uint64_t distance = w->distance[window];

	/* A program that asks for address 0 adds one of the upper half. */
	return host && host < UPPER_HALF ? distance : -distance;
}

uint64_t dpa_weak_other_distance(uint64_t distance)
{
	return -distance;
}

/* ---- pages of the cache ---- */

static struct page **bucket_of(struct dpa_weak *w, uint64_t copy)
{
	return &w->bucket[copy / PAGE_BYTES % BUCKETS];
}

static struct page *page_find(struct dpa_weak *w, uint64_t copy)
{
	struct page *page = *bucket_of(w, copy);

	while (page && page->copy != copy)
		page = page->next;
	return page;
}

static struct page *page_new(struct dpa_weak *w, uint64_t copy, uint64_t distance)
{
	void *want = (void *)(uintptr_t)copy, *got;
	struct page *page = calloc(1, sizeof(*page));

	if (!page)
		return NULL;
	got = mmap(want, PAGE_BYTES, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (got != want) {
		if (got != MAP_FAILED)
			munmap(got, PAGE_BYTES);
		free(page);
		log_warn("DPA memory: there is no room for the copy of 0x%llx of the host",
			 (unsigned long long)(copy - distance));
		return NULL;
	}
	page->copy = copy;
	page->distance = distance;
	for (unsigned i = 0; i < PAGE_LINES; i++)
		page->line[i].page = page;
	page->next = *bucket_of(w, copy);
	*bucket_of(w, copy) = page;
	w->pages++;
	return page;
}

static void cache_empty(struct dpa_weak *w)
{
	for (unsigned i = 0; i < BUCKETS; i++) {
		struct page *page;

		while ((page = w->bucket[i])) {
			w->bucket[i] = page->next;
			munmap((void *)(uintptr_t)page->copy, PAGE_BYTES);
			free(page);
		}
	}
	w->pages = 0;
	w->touched = NULL;
}

void dpa_weak_free(struct dpa_weak *w)
{
	if (!w)
		return;
	cache_empty(w);
	number_give(w->number);
	free(w);
}

/* ---- lines ---- */

static uint8_t *line_copy(const struct line *line)
{
	const struct page *page = line->page;

	return (uint8_t *)(uintptr_t)(page->copy + (uint64_t)(line - page->line) * LINE_BYTES);
}

static uint8_t *line_host(const struct line *line)
{
	return (uint8_t *)((uintptr_t)line_copy(line) - line->page->distance);
}

/*
 * Returns which bytes the thread has stored.  The compiler checks an address only once in a row of
 * accesses, so what differs from what was read was stored, too.
 */
static uint64_t line_stored(const struct line *line)
{
	const uint8_t *copy = line_copy(line);
	uint64_t stored = line->dirty;

	for (unsigned i = 0; line->generation && i < LINE_BYTES; i++)
		if (copy[i] != line->read[i])
			stored |= 1ull << i;
	return stored;
}

/* Bytes that the thread has stored stay as they are.  What cannot be read any more is 0. */
static void line_read(struct dpa_weak *w, struct line *line, const struct dpa_trail *trail)
{
	uint8_t *copy = line_copy(line);
	uint64_t stored = line_stored(line);

	if (!usermem_copy(line->read, line_host(line), LINE_BYTES))
		memset(line->read, 0, LINE_BYTES);
	for (unsigned i = 0; i < LINE_BYTES; i++)
		if (!(stored >> i & 1))
			copy[i] = line->read[i];
	line->dirty = stored;
	line->generation = w->generation;
	line->activation = w->activation;
	line->old_ns = 0;
	line->loaded = *trail;
}

static void line_write_back(struct line *line, uint64_t stored)
{
	uint8_t *copy = line_copy(line), *host = line_host(line);

	for (unsigned i = 0; i < LINE_BYTES; i++) {
		unsigned n = 0;

		while (i + n < LINE_BYTES && stored >> (i + n) & 1)
			n++;
		/* Memory that has gone has nothing to be written to. */
		if (n && usermem_copy(host + i, copy + i, n))
			memcpy(line->read + i, copy + i, n);
		i += n;
	}
	line->dirty = 0;
	line->dirty_ns = 0;
}

static void line_touch(struct dpa_weak *w, struct line *line)
{
	if (line->next_touched)
		return;
	line->next_touched = w->touched ? w->touched : line;
	w->touched = line;
}

/* Takes the next line off the list. */
static struct line *line_untouch(struct dpa_weak *w)
{
	struct line *line = w->touched;

	if (!line)
		return NULL;
	w->touched = line->next_touched == line ? NULL : line->next_touched;
	line->next_touched = NULL;
	return line;
}

/* ---- reports ---- */

static void report_store(struct dpa_weak *w, const struct line *line, uint64_t stored,
			 const char *what)
{
	const struct dpa_trail *trail = line->stored.pc[0] ? &line->stored : &line->loaded;
	char text[DPA_TRAIL_TEXT];

	if (dpa_said(&w->process->said, dpa_trail_place(w->process, trail)))
		return;
	log_warn("DPA memory: a store to 0x%llx of the host %s is not written back %s: "
		 "__dpa_thread_window_writeback() is missing",
		 (unsigned long long)((uintptr_t)line_host(line) +
				      (unsigned)__builtin_ctzll(stored)),
		 dpa_trail_text(w->process, trail, text), what);
}

static void report_load(struct dpa_weak *w, const struct line *line, uint64_t host,
			const struct dpa_trail *trail, const char *what)
{
	char here[DPA_TRAIL_TEXT], there[DPA_TRAIL_TEXT];

	if (dpa_said(&w->process->said, dpa_trail_place(w->process, trail)))
		return;
	log_warn("DPA memory: a load from 0x%llx of the host %s gives what was there %s, when the "
		 "line was read %s: __dpa_thread_window_read_inv() is missing",
		 (unsigned long long)host, dpa_trail_text(w->process, trail, here), what,
		 dpa_trail_text(w->process, &line->loaded, there));
}

/* Writes back what is older than that many nanoseconds; what: reports it first. */
static void cache_write_back(struct dpa_weak *w, uint64_t age_ns, const char *what)
{
	uint64_t now = age_ns ? clock_ns() : 0;
	struct line *keep = NULL, *line;

	while ((line = line_untouch(w))) {
		uint64_t stored = line_stored(line);

		if (age_ns && (!line->dirty_ns || now - line->dirty_ns < age_ns)) {
			line->next_touched = keep ? keep : line;
			keep = line;
			continue;
		}
		if (stored && what)
			report_store(w, line, stored, what);
		if (stored)
			line_write_back(line, stored);
	}
	w->touched = keep;
}

/* ---- accesses ---- */

/* Tells whether the host has changed bytes that the thread is about to load, and that it has not
 * stored itself. */
static bool line_is_old(const struct line *line, unsigned first, unsigned bytes)
{
	uint8_t now[LINE_BYTES];
	uint64_t stored = line_stored(line);

	if (!usermem_copy(now, line_host(line), LINE_BYTES))
		return false;
	for (unsigned i = first; i < first + bytes; i++)
		if (!(stored >> i & 1) && now[i] != line->read[i])
			return true;
	return false;
}

static void line_look(struct dpa_weak *w, struct line *line, unsigned first, unsigned bytes,
		      const struct dpa_trail *trail)
{
	uint64_t host = (uintptr_t)line_host(line) + first, now;

	if (!line_is_old(line, first, bytes))
		return;
	now = clock_ns();
	if (!line->old_ns)
		line->old_ns = now;
	if (line->activation != w->activation)
		report_load(w, line, host, trail, "before this activation");
	else if (now - line->old_ns >= PATIENT_NS)
		report_load(w, line, host, trail, "a second ago");
	else
		return;
	line_read(w, line, trail);
}

static void line_access(struct dpa_weak *w, struct line *line, unsigned first, unsigned bytes,
			bool write, const struct dpa_trail *trail)
{
	uint64_t mask = (bytes < LINE_BYTES ? (1ull << bytes) - 1 : UINT64_MAX) << first;

	if (line->generation != w->generation)
		line_read(w, line, trail);
	else if (!write)
		line_look(w, line, first, bytes, trail);
	line_touch(w, line);
	if (!write)
		return;
	if (!line->dirty_ns)
		line->dirty_ns = clock_ns();
	line->dirty |= mask;
	line->stored = *trail;
}

bool dpa_weak_access(struct dpa_weak *w, uint64_t copy, uint64_t distance, uint64_t bytes,
		     bool write, const struct dpa_trail *trail)
{
	uint64_t now = clock_ns();

	if (now - w->looked_ns >= PATIENT_NS) {
		cache_write_back(w, PATIENT_NS, "for a second");
		w->looked_ns = now;
	}
	while (bytes) {
		uint64_t begin = copy & ~(uint64_t)(PAGE_BYTES - 1), first = copy % LINE_BYTES;
		uint64_t n = min_u64(bytes, LINE_BYTES - first);
		struct page *page = page_find(w, begin);

		if (!page)
			page = page_new(w, begin, distance);
		if (!page)
			return false;
		line_access(w, &page->line[(copy - begin) / LINE_BYTES], (unsigned)first,
			    (unsigned)n, write, trail);
		copy += n;
		bytes -= n;
	}
	return true;
}

/* ---- what makes it coherent ---- */

/* Keeps a cache that has become large from growing, once nothing in it waits to be written back. */
static void cache_bound(struct dpa_weak *w)
{
	if (w->pages <= PAGES_MAX)
		return;
	for (const struct line *line = w->touched; line;
	     line = line->next_touched == line ? NULL : line->next_touched)
		if (line_stored(line))
			return;
	w->touched = NULL;
	cache_empty(w);
}

void dpa_weak_fence(struct dpa_weak *w, uint32_t before, uint32_t behind)
{
	if (before & DPA_FENCE_W)
		cache_write_back(w, 0, NULL);
	if (!(behind & DPA_FENCE_R))
		return;
	w->generation++;
	cache_bound(w);
}

void dpa_weak_settle(struct dpa_weak *w, uint64_t copy, uint64_t bytes)
{
	for (uint64_t at = copy & ~(uint64_t)(LINE_BYTES - 1); at < copy + bytes;
	     at += LINE_BYTES) {
		struct page *page = page_find(w, at & ~(uint64_t)(PAGE_BYTES - 1));
		struct line *line = page ? &page->line[at % PAGE_BYTES / LINE_BYTES] : NULL;
		uint64_t stored = line && line->generation ? line_stored(line) : 0;

		if (stored)
			line_write_back(line, stored);
		if (line)
			line->generation = 0;
	}
}

void dpa_weak_tells(struct dpa_weak *w, const char *what)
{
	cache_write_back(w, 0, what);
}

void dpa_weak_end(struct dpa_weak *w, bool stopped)
{
	/* A thread that was stopped was perhaps about to write back. */
	if (stopped)
		cache_write_back(w, PATIENT_NS, "for a second");
	cache_write_back(w, 0, stopped ? NULL : "when the activation ends");
	w->activation++;
	cache_bound(w);
}

void dpa_weak_forget(struct dpa_weak *w)
{
	cache_empty(w);
}
