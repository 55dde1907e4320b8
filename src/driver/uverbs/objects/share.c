// SPDX-License-Identifier: BSD-2-Clause
#include "driver/uverbs/objects/objects.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/trace.h"
#include "driver/runtime/may_block.h"
#include "driver/runtime/process.h"
#include "driver/runtime/shared_file.h"
#include "driver/runtime/userfault.h"
#include "exposure/expose.h"

#define PAGE 4096u

static void note_refusal(const struct umr *mr, enum key_why why)
{
	trace(share, refused, (uintptr_t)mr->attr.addr, mr->attr.length, key_why_name(why));
}

static bool may_be_reached(uint32_t access)
{
	return access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ);
}

/*
 * Regions that peers reach, so that addresses lead to them.  A thread takes this lock after that of
 * the device file.  It looks at a region and lays it open under the lock, so that what the program
 * does to the memory comes before or after both.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct umr *open_regions;

/* Files of the program that could not be opened to peers.  Each attempt costs something, so after
 * this many nobody tries any more. */
#define MOST_REFUSALS 256u
static uint32_t refusals; /* under 'lock' */

/*
 * A thread that unmaps memory may hold locks that a registration waits for, above all those of an
 * allocator.  So the question whether an address concerns a region has its own lock, which a thread
 * takes after the other and holds only for the list.
 */
static pthread_mutex_t mapped_lock = PTHREAD_MUTEX_INITIALIZER;
static struct umr *mapped_regions;
static _Atomic(uint32_t) nmapped;

static void region_link(struct umr *mr)
{
	mr->open_next = open_regions;
	mr->open_at = &open_regions;
	if (open_regions)
		open_regions->open_at = &mr->open_next;
	open_regions = mr;
}

static void region_unlink(struct umr *mr)
{
	if (!mr->open_at)
		return;
	*mr->open_at = mr->open_next;
	if (mr->open_next)
		mr->open_next->open_at = mr->open_at;
	mr->open_at = NULL;
}

static void region_mapped(struct umr *mr)
{
	pthread_mutex_lock(&mapped_lock);
	mr->mapped_next = mapped_regions;
	mr->mapped_at = &mapped_regions;
	if (mapped_regions)
		mapped_regions->mapped_at = &mr->mapped_next;
	mapped_regions = mr;
	atomic_fetch_add(&nmapped, 1);
	pthread_mutex_unlock(&mapped_lock);
}

static void region_mapped_end(struct umr *mr)
{
	if (!mr->mapped_at)
		return;
	pthread_mutex_lock(&mapped_lock);
	*mr->mapped_at = mr->mapped_next;
	if (mr->mapped_next)
		mr->mapped_next->mapped_at = mr->mapped_at;
	mr->mapped_at = NULL;
	atomic_fetch_sub(&nmapped, 1);
	pthread_mutex_unlock(&mapped_lock);
}

static struct segment_table *segments_of(struct process *p)
{
	return &wire_process_expose(p->wire_process)->segments;
}

/* Opens the file under a region to peers, at least for that range, unless it is open already.
 * False: that is not possible. */
static bool file_open(struct process *p, const struct shared_range *r, struct segment_ref *out)
{
	struct hidden file;
	uint64_t bytes = 0;

	if (segment_table_hold(segments_of(p), r->id, r->end, out))
		return true;
	if (refusals >= MOST_REFUSALS)
		return false;
	file = shared_file_open(r, &bytes);
	if (!segment_table_add(segments_of(p), file, bytes, out))
		return true;
	refusals++;
	return false;
}

/* The memory is in a file that peers map, or where the program has it. */
static struct key_place memory_place(struct process *p, struct umr *mr, uint64_t addr)
{
	struct key_place kernel = {.way = KEY_KERNEL, .why = KEY_WHY_ASKED, .addr = addr};
	struct shared_range r;

	if (p->memory == MEMORY_KERNEL)
		return kernel;
	if (!shared_file_find(addr, mr->attr.length, &r)) {
		kernel.why = r.first.perms[3] == 's' ? KEY_WHY_CLOSED : KEY_WHY_PRIVATE;
		return kernel;
	}
	if (!file_open(p, &r, &mr->segment)) {
		kernel.why = KEY_WHY_CLOSED;
		note_refusal(mr, kernel.why);
		return kernel;
	}
	return (struct key_place){.way = KEY_MAPPED,
				  .why = KEY_WHY_SHARED,
				  .segment = mr->segment,
				  .offset = r.offset};
}

/* Publishes a region that cannot be reached as well, with the reason. */
static void region_place(struct process *p, struct umr *mr, struct key_place *place)
{
	uint64_t addr = (uintptr_t)mr->attr.addr;

	*place = (struct key_place){.way = KEY_PACKETS, .why = KEY_WHY_ON_DEMAND};
	if (mr->attr.access & IB_ACCESS_ON_DEMAND)
		return;
	if (memory_may_block(addr, mr->attr.length)) {
		place->why = KEY_WHY_MAY_WAIT;
		note_refusal(mr, place->why);
		return;
	}
	*place = memory_place(p, mr, addr);
}

void ushare_region(const struct ufile *f, struct umr *mr)
{
	struct process *p = process_current();
	struct key_place place;

	if (!p || !mr->attr.length)
		return;
	if (p->memory == MEMORY_PACKETS || !may_be_reached(mr->attr.access)) {
		mkey_note(f->hca->adapter, mr->mkey,
			  may_be_reached(mr->attr.access) ? KEY_WHY_ASKED : KEY_WHY_LOCAL);
		return;
	}
	pthread_mutex_lock(&lock);
	region_place(p, mr, &place);
	mkey_expose(f->hca->adapter, mr->mkey, &place);
	if (place.way != KEY_PACKETS)
		region_link(mr);
	if (place.way == KEY_MAPPED)
		region_mapped(mr);
	pthread_mutex_unlock(&lock);
}

void ushare_end(struct umr *mr)
{
	pthread_mutex_lock(&lock);
	region_unlink(mr);
	region_mapped_end(mr);
	pthread_mutex_unlock(&lock);
}

void ushare_release(struct umr *mr)
{
	struct process *p = process_current();

	if (!mr->segment.generation)
		return;
	pthread_mutex_lock(&lock);
	if (segment_table_drop(segments_of(p), mr->segment))
		wire_process_files_ended(p->wire_process);
	pthread_mutex_unlock(&lock);
	mr->segment = (struct segment_ref){0};
}

/* A forked child does not withdraw the parent's regions. */
static bool region_is_of(const struct umr *mr, uint64_t addr, uint64_t end)
{
	uint64_t start = (uintptr_t)mr->attr.addr;

	return start < end && addr < start + mr->attr.length &&
	       !atomic_load(&mr->uobj.file->cdev.foreign);
}

static void region_withdraw(struct umr *mr, enum key_why why)
{
	const struct key_place packets = {.way = KEY_PACKETS, .why = why};
	struct adapter *a = mr->uobj.file->hca->adapter;

	region_unlink(mr);
	region_mapped_end(mr);
	mkey_conceal(a, mr->mkey);
	mkey_expose(a, mr->mkey, &packets);
	note_refusal(mr, why);
}

void ushare_serving_begin(uint64_t addr, uint64_t bytes)
{
	uint64_t end = range_end(addr, bytes);
	struct umr *next;

	pthread_mutex_lock(&lock);
	userfault_note(addr, bytes);
	for (struct umr *mr = open_regions; mr; mr = next) {
		next = mr->open_next;
		if (region_is_of(mr, addr, end))
			region_withdraw(mr, KEY_WHY_MAY_WAIT);
	}
}

void ushare_serving_end(void)
{
	pthread_mutex_unlock(&lock);
}

static bool is_mapped_part(uint64_t addr, uint64_t end)
{
	bool found = false;

	pthread_mutex_lock(&mapped_lock);
	for (const struct umr *mr = mapped_regions; mr && !found; mr = mr->mapped_next)
		found = region_is_of(mr, addr, end);
	pthread_mutex_unlock(&mapped_lock);
	return found;
}

void ushare_unmapping(uint64_t addr, uint64_t bytes)
{
	uint64_t end = range_end(addr, align_up(bytes, PAGE));
	struct umr *next;

	if (likely(!atomic_load_explicit(&nmapped, memory_order_relaxed)) ||
	    !is_mapped_part(addr, end))
		return;
	pthread_mutex_lock(&lock);
	for (struct umr *mr = open_regions; mr; mr = next) {
		next = mr->open_next;
		if (mr->mapped_at && region_is_of(mr, addr, end))
			region_withdraw(mr, KEY_WHY_UNMAPPED);
	}
	pthread_mutex_unlock(&lock);
}

void ushare_fork_lock(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&mapped_lock);
	userfault_fork_lock();
}

void ushare_fork_unlock(void)
{
	userfault_fork_unlock();
	pthread_mutex_unlock(&mapped_lock);
	pthread_mutex_unlock(&lock);
}
