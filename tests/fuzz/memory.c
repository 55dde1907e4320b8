// SPDX-License-Identifier: BSD-2-Clause
/* See memory.h. */
#include "memory.h"

#include <sys/mman.h>

#include "fuzz.h"

#define RESERVED ((size_t)2 << 30)
#define AREAS	 40

struct area {
	uint8_t *start;
	size_t bytes;
	bool closed;
};

static uint8_t *reserved;
static struct area areas[AREAS];
static unsigned nareas;

uint8_t *memory_area(size_t bytes)
{
	uint8_t *start;

	bytes = align_up(bytes, MEMORY_PAGE);
	if (!reserved) {
		void *p = mmap(NULL, RESERVED, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		MUST(p != MAP_FAILED);
		reserved = p;
	}
	MUST(nareas < AREAS);
	start = nareas ? areas[nareas - 1].start + areas[nareas - 1].bytes : reserved;
	start += MEMORY_GAP;
	MUST((size_t)(start - reserved) + bytes + MEMORY_GAP <= RESERVED);
	MUST(!mprotect(start, bytes, PROT_READ | PROT_WRITE));
	areas[nareas++] = (struct area){start, bytes, false};
	return start;
}

bool memory_is_known(const void *addr)
{
	return reserved && (uintptr_t)addr - (uintptr_t)reserved < RESERVED;
}

bool memory_is_gap(const void *addr)
{
	if (!memory_is_known(addr))
		return false;
	for (unsigned i = 0; i < nareas; i++)
		if ((uintptr_t)addr - (uintptr_t)areas[i].start < areas[i].bytes)
			return false;
	return true;
}

void memory_close(uint8_t *area, bool closed)
{
	for (unsigned i = 0; i < nareas; i++)
		if (areas[i].start == area && areas[i].closed != closed) {
			areas[i].closed = closed;
			MUST(!mprotect(area, areas[i].bytes,
				       closed ? PROT_NONE : PROT_READ | PROT_WRITE));
		}
}
