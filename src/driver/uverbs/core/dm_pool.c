// SPDX-License-Identifier: BSD-2-Clause
/*
 * The book is a list of areas, which implies the free pages.  An area exists from the store of its
 * page count on, so a process that dies in the middle of a change leaves a consistent book (the
 * lock is robust).
 */
#include "driver/uverbs/core/dm_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory_file.h"

struct dm_area {
	uint32_t pages; /* 0: unused */
	uint32_t first;
	uint64_t length;
	uint32_t holds;
};

struct dm_shared {
	pthread_mutex_t lock;
	struct dm_area areas[DM_PAGES]; /* each area has at least one page */
};

static int lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	int ret = pthread_mutexattr_init(&attr);

	if (ret)
		return -ret;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	ret = pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return -ret;
}

static void lock_book(struct dm_shared *s)
{
	if (pthread_mutex_lock(&s->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&s->lock);
}

static void unlock_book(struct dm_shared *s)
{
	pthread_mutex_unlock(&s->lock);
}

int dm_pool_open(struct dm_pool *p, int fd, uint64_t offset)
{
	struct dm_shared *s;
	uint8_t *memory;
	int ret;

	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s == MAP_FAILED)
		return -errno;
	ret = lock_init(&s->lock);
	if (ret < 0)
		goto unmap_shared;
	memory = sparse_map(DM_BYTES, PROT_READ | PROT_WRITE, fd, offset);
	if (!memory) {
		ret = -errno;
		goto unmap_shared;
	}
	*p = (struct dm_pool){s, memory};
	return 0;

unmap_shared:
	munmap(s, sizeof(*s));
	return ret;
}

/* This does not destroy the lock, because a child may go on with its mapping of it. */
void dm_pool_close(struct dm_pool *p)
{
	if (!p->shared)
		return;
	munmap(p->memory, DM_BYTES);
	munmap(p->shared, sizeof(*p->shared));
	*p = (struct dm_pool){0};
}

/* Returns the first free stretch of that many pages; DM_PAGES if there is none. */
static uint32_t dm_first_fit(const struct dm_shared *s, uint32_t pages)
{
	bool used[DM_PAGES] = {0};
	uint32_t run = 0;

	for (uint32_t i = 0; i < DM_PAGES; i++)
		if (s->areas[i].pages)
			memset(used + s->areas[i].first, true, s->areas[i].pages);
	for (uint32_t page = 0; page < DM_PAGES; page++) {
		run = used[page] ? 0 : run + 1;
		if (run == pages)
			return page + 1 - pages;
	}
	return DM_PAGES;
}

static struct dm_area *dm_area_unused(struct dm_shared *s)
{
	for (uint32_t i = 0; i < DM_PAGES; i++)
		if (!s->areas[i].pages)
			return &s->areas[i];
	return NULL;
}

static struct dm_area *dm_area_find(struct dm_shared *s, uint64_t handle)
{
	uint64_t index = handle - DM_HANDLE_FIRST;

	return index < DM_PAGES && s->areas[index].pages ? &s->areas[index] : NULL;
}

static void dm_area_describe(const struct dm_shared *s, const struct dm_area *area,
			     struct dm_info *out)
{
	*out = (struct dm_info){
		.handle = DM_HANDLE_FIRST + (uint32_t)(area - s->areas),
		.first_page = area->first,
		.length = area->length,
	};
}

int dm_alloc(struct dm_pool *p, uint64_t length, uint32_t log_align, struct dm_info *out)
{
	struct dm_shared *s = p->shared;
	struct dm_area *area;
	uint32_t first, pages;
	int ret = -ENOMEM;

	if (!length || log_align > DM_LOG_ALIGN)
		return -EINVAL;
	if (length > DM_BYTES)
		return -ENOMEM;
	pages = div_round_up(length, DM_PAGE_BYTES);
	lock_book(s);
	first = dm_first_fit(s, pages);
	area = dm_area_unused(s);
	if (first < DM_PAGES && area) {
		/* clears what an earlier owner left */
		memset(p->memory + (size_t)first * DM_PAGE_BYTES, 0, (size_t)pages * DM_PAGE_BYTES);
		area->first = first;
		area->length = length;
		area->holds = 0;
		/* stored last: from here on the area exists */
		__atomic_store_n(&area->pages, pages, __ATOMIC_RELEASE);
		dm_area_describe(s, area, out);
		ret = 0;
	}
	unlock_book(s);
	return ret;
}

int dm_free(struct dm_pool *p, uint64_t handle)
{
	struct dm_area *area;
	int ret = 0;

	lock_book(p->shared);
	area = dm_area_find(p->shared, handle);
	if (!area)
		ret = -ENOENT;
	else if (area->holds)
		ret = -EBUSY;
	else
		area->pages = 0;
	unlock_book(p->shared);
	return ret;
}

static int dm_look(struct dm_pool *p, uint64_t handle, uint32_t holds, struct dm_info *out)
{
	struct dm_area *area;

	lock_book(p->shared);
	area = dm_area_find(p->shared, handle);
	if (area) {
		area->holds += holds;
		dm_area_describe(p->shared, area, out);
	}
	unlock_book(p->shared);
	return area ? 0 : -ENOENT;
}

int dm_find(struct dm_pool *p, uint64_t handle, struct dm_info *out)
{
	return dm_look(p, handle, 0, out);
}

int dm_hold(struct dm_pool *p, uint64_t handle, struct dm_info *out)
{
	return dm_look(p, handle, 1, out);
}

void dm_release(struct dm_pool *p, uint64_t handle)
{
	struct dm_area *area;

	lock_book(p->shared);
	area = dm_area_find(p->shared, handle);
	if (area && area->holds)
		area->holds--;
	unlock_book(p->shared);
}
