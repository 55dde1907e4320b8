// SPDX-License-Identifier: BSD-2-Clause
/* See icm.h. */
#include "adapter/ste/icm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/memory_file.h"

#define ICM_PAGE 4096u

void icm_init(struct icm *icm)
{
	*icm = (struct icm){0};
	pthread_mutex_init(&icm->lock, NULL);
}

void icm_release(struct icm *icm)
{
	for (enum icm_kind kind = 0; kind < ICM_KINDS; kind++) {
		uint8_t *memory =
			atomic_load_explicit(&icm->area[kind].memory, memory_order_relaxed);

		while (icm->area[kind].parts) {
			struct icm_part *part = icm->area[kind].parts;

			icm->area[kind].parts = part->next;
			free(part);
		}
		if (memory)
			munmap(memory, icm_bytes(kind));
	}
	pthread_mutex_destroy(&icm->lock);
}

/* ---- allocation, with the lock held ---- */

static int icm_map(struct icm *icm, enum icm_kind kind)
{
	uint8_t *memory = atomic_load_explicit(&icm->area[kind].memory, memory_order_relaxed);

	if (memory)
		return 0;
	memory = sparse_map(icm_bytes(kind), PROT_READ | PROT_WRITE, -1, 0);
	if (!memory)
		return -ENOMEM;
	atomic_store_explicit(&icm->area[kind].memory, memory, memory_order_release);
	return 0;
}

/* Finds the first gap; *at: where in the list the part goes. */
static int icm_first_fit(struct icm *icm, const struct icm_part *part, uint64_t align,
			 struct icm_part ***at, uint64_t *offset)
{
	uint64_t from = 0;

	for (*at = &icm->area[part->kind].parts; **at; *at = &(**at)->next) {
		if (from + part->bytes <= (**at)->offset)
			break;
		from = align_up((**at)->offset + (**at)->bytes, align);
	}
	*offset = from;
	return range_inside(from, part->bytes, icm_bytes(part->kind)) ? 0 : -ENOMEM;
}

static uint64_t icm_alignment(uint64_t bytes)
{
	uint64_t align = ICM_PAGE;

	while (align < bytes)
		align <<= 1;
	return align;
}

int icm_alloc(struct icm *icm, enum icm_kind kind, uint64_t bytes, struct icm_part **out)
{
	struct icm_part *part, **at;
	int ret;

	if (!bytes)
		return -EINVAL;
	if (bytes > icm_bytes(kind))
		return -ENOMEM;
	part = calloc(1, sizeof(*part));
	if (!part)
		return -ENOMEM;
	part->kind = kind;
	part->bytes = align_up(bytes, ICM_PAGE);
	pthread_mutex_lock(&icm->lock);
	ret = icm_map(icm, kind);
	if (ret == 0)
		ret = icm_first_fit(icm, part, icm_alignment(bytes), &at, &part->offset);
	if (ret == 0) {
		part->next = *at;
		*at = part;
	}
	pthread_mutex_unlock(&icm->lock);
	if (ret < 0)
		free(part);
	else
		*out = part;
	return ret;
}

void icm_free(struct icm *icm, struct icm_part *part)
{
	struct icm_part **at = &icm->area[part->kind].parts;
	uint8_t *memory = icm_part_memory(icm, part);

	pthread_mutex_lock(&icm->lock);
	/* The kernel keeps pages that are locked, so clear them by hand. */
	if (madvise(memory, part->bytes, MADV_DONTNEED) < 0)
		memset(memory, 0, part->bytes);
	while (*at != part)
		at = &(*at)->next;
	*at = part->next;
	pthread_mutex_unlock(&icm->lock);
	free(part);
}

uint64_t icm_part_address(const struct icm_part *part)
{
	return icm_base(part->kind) + part->offset;
}

uint8_t *icm_part_memory(const struct icm *icm, const struct icm_part *part)
{
	return atomic_load_explicit(&icm->area[part->kind].memory, memory_order_acquire) +
	       part->offset;
}

/* ---- reading ---- */

static void icm_copy(uint64_t *to, const _Atomic(uint64_t) *from, uint32_t words)
{
	for (uint32_t i = 0; i < words; i++)
		to[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
}

bool icm_read(const struct icm *icm, enum icm_kind kind, uint64_t address, void *to, uint32_t n)
{
	const uint8_t *memory = atomic_load_explicit(&icm->area[kind].memory, memory_order_acquire);
	uint64_t offset = address - icm_base(kind);
	uint64_t first[8], again[8];
	uint32_t words = n / 8;

	if (!memory || words > array_size(first) || address < icm_base(kind) || offset % 8 ||
	    !range_inside(offset, n, icm_bytes(kind)))
		return false;
	/* The device writes an entry at once, but here somebody may be copying it.  If we read the
	 * same twice, that is what the writer has left, or is so near to it that no order of writes
	 * could tell the two apart. */
	icm_copy(first, (const _Atomic(uint64_t) *)(memory + offset), words);
	for (unsigned tries = 0; tries < 4; tries++) {
		icm_copy(again, (const _Atomic(uint64_t) *)(memory + offset), words);
		if (!memcmp(first, again, (size_t)words * 8))
			break;
		memcpy(first, again, (size_t)words * 8);
	}
	memcpy(to, first, n);
	return true;
}

struct steer_target steer_target_of(uint64_t address)
{
	struct steer_target t = {.kind = STEER_NOWHERE, .address = address};
	uint64_t offset = address - icm_base(ICM_STEERING);

	if (address >> 39 == 1) {
		uint32_t kind = (uint32_t)(address >> STEER_OBJECT_SHIFT) & 0x1ff;

		if (kind > STEER_ENTRY && kind < STEER_KINDS)
			t.kind = (enum steer_kind)kind;
		t.number = (uint32_t)(address >> 6) & STEER_NUMBER_MASK;
	} else if (address >= icm_base(ICM_STEERING) && offset < icm_bytes(ICM_STEERING)) {
		t.kind = STEER_ENTRY;
	}
	return t;
}
