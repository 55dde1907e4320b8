// SPDX-License-Identifier: BSD-2-Clause
/* The region of a DPA process: its heap, and the stacks of its threads. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/log.h"
#include "base/memory_file.h"
#include "dpa/process.h"

#define SIGNAL_STACKS_BYTES \
	(2ull * DPA_SIGNAL_APART_BYTES + (uint64_t)DPA_THREADS * DPA_SIGNAL_SLOT_BYTES)

static uint64_t heap_offset(const struct dpa_process *p)
{
	return align_up(p->image.span, DPA_GUARD_BYTES) + DPA_GUARD_BYTES;
}

static uint64_t redzone_bytes(void)
{
	const char *text = getenv("SOFTHCA_DPA_REDZONES");

	if (!text || !*text || !strcmp(text, "0"))
		return 0;
	if (strcmp(text, "1") != 0)
		log_warn("SOFTHCA_DPA_REDZONES is 0 or 1, not: %s", text);
	return strcmp(text, "1") ? 0 : DPA_REDZONE_BYTES;
}

int dpa_region_open(struct dpa_process *p)
{
	uint64_t stacks = heap_offset(p) + DPA_HEAP_BYTES + DPA_GUARD_BYTES;
	int ret;

	p->region_bytes = stacks + (uint64_t)DPA_THREADS * DPA_SLOT_BYTES;
	p->region = sparse_map(p->region_bytes, PROT_NONE, -1, 0);
	if (!p->region)
		return -ENOMEM;
	p->stacks = p->region + stacks;
	p->signal_stacks = sparse_map(SIGNAL_STACKS_BYTES, PROT_NONE, -1, 0);
	if (!p->signal_stacks)
		return -ENOMEM;
	/* A child has no threads, so it does not need the region. */
	(void)madvise(p->region, p->region_bytes, MADV_DONTFORK);
	(void)madvise(p->signal_stacks, SIGNAL_STACKS_BYTES, MADV_DONTFORK);
	if (mprotect(p->region + heap_offset(p), DPA_HEAP_BYTES, PROT_READ | PROT_WRITE))
		return -ENOMEM;
	ret = dpa_heap_open(&p->heap, (uintptr_t)p->region + heap_offset(p), DPA_HEAP_BYTES);
	if (!ret)
		p->heap.redzone = redzone_bytes();
	return ret;
}

uint64_t dpa_region_unasked(const struct dpa_process *p, uint64_t *bytes)
{
	uint64_t stacks = (uint64_t)(p->stacks - p->region);

	*bytes = p->heap.redzone ? p->region_bytes - stacks : p->region_bytes;
	return (uintptr_t)(p->heap.redzone ? p->stacks : p->region);
}

void dpa_region_close(struct dpa_process *p)
{
	if (p->heap.tag)
		dpa_heap_close(&p->heap);
	if (p->region)
		munmap(p->region, p->region_bytes);
	if (p->signal_stacks)
		munmap(p->signal_stacks, SIGNAL_STACKS_BYTES);
}

uint8_t *dpa_slot_stack(const struct dpa_process *p, uint32_t slot)
{
	return p->stacks + (uint64_t)slot * DPA_SLOT_BYTES + DPA_GUARD_BYTES;
}

uint8_t *dpa_slot_signal_stack(const struct dpa_process *p, uint32_t slot)
{
	return p->signal_stacks + DPA_SIGNAL_APART_BYTES + (uint64_t)slot * DPA_SIGNAL_SLOT_BYTES +
	       DPA_GUARD_BYTES;
}

struct dpa_stack_top *dpa_slot_top(const struct dpa_process *p, uint32_t slot)
{
	uint64_t bytes = align_up(sizeof(struct dpa_stack_top), 64);

	return (struct dpa_stack_top *)(void *)(dpa_slot_stack(p, slot) + DPA_STACK_BYTES - bytes);
}

static bool slot_open(const struct dpa_process *p, uint32_t slot)
{
	const int prot = PROT_READ | PROT_WRITE;

	return !mprotect(dpa_slot_stack(p, slot), DPA_STACK_BYTES, prot) &&
	       !mprotect(dpa_slot_signal_stack(p, slot), DPA_SIGNAL_STACK_BYTES, prot);
}

int dpa_slot_take(struct dpa_process *p, uint32_t *slot)
{
	for (uint32_t i = 0; i < DPA_THREADS; i++) {
		uint64_t bit = 1ull << i % 64;

		if (p->slots[i / 64] & bit)
			continue;
		if (!(p->slots_ready[i / 64] & bit) && !slot_open(p, i))
			return -ENOMEM;
		p->slots_ready[i / 64] |= bit;
		p->slots[i / 64] |= bit;
		*slot = i;
		return 0;
	}
	return -ENOSPC;
}

void dpa_slot_give(struct dpa_process *p, uint32_t slot)
{
	p->slots[slot / 64] &= ~(1ull << slot % 64);
}

/* ---- memory ---- */

void dpa_memory_info(struct dpa_process *p, struct dpa_heap_info *info)
{
	pthread_mutex_lock(&p->heap_lock);
	*info = (struct dpa_heap_info){p->heap.base, p->heap.bytes, p->heap.requested,
				       p->heap.allocated};
	pthread_mutex_unlock(&p->heap_lock);
}

uint64_t dpa_memory_alloc(struct dpa_process *p, uint64_t bytes)
{
	uint64_t addr;

	pthread_mutex_lock(&p->heap_lock);
	addr = dpa_heap_alloc(&p->heap, bytes);
	pthread_mutex_unlock(&p->heap_lock);
	return addr;
}

bool dpa_memory_free(struct dpa_process *p, uint64_t addr)
{
	bool done;

	pthread_mutex_lock(&p->heap_lock);
	done = dpa_heap_free(&p->heap, addr);
	pthread_mutex_unlock(&p->heap_lock);
	return done;
}

bool dpa_memory_has(struct dpa_process *p, uint64_t addr, uint64_t bytes)
{
	bool has;

	pthread_mutex_lock(&p->heap_lock);
	has = dpa_heap_has(&p->heap, addr, bytes);
	pthread_mutex_unlock(&p->heap_lock);
	return has;
}

bool dpa_memory_allows(struct dpa_process *p, uint64_t addr, uint64_t bytes)
{
	uint64_t heap = p->heap.base - (uintptr_t)p->region, at = addr - (uintptr_t)p->region;

	if (!range_inside(at, bytes, p->region_bytes))
		return false;
	return !p->heap.redzone || at + bytes <= heap || at >= heap + p->heap.bytes ||
	       dpa_memory_has(p, addr, bytes);
}

void *dpa_memory_part(const struct dpa_process *p, uint64_t addr, uint64_t bytes)
{
	return range_inside(addr - p->heap.base, bytes, p->heap.bytes) ? (void *)(uintptr_t)addr
								       : NULL;
}
