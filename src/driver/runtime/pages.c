// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/signals.h"
#include "base/vma.h"
#include "usermem/usermem.h"

#ifndef MADV_COLLAPSE /* Linux 6.1 */
#define MADV_COLLAPSE 25
#endif
/* Where large pages are larger, the kernel leaves those out that are not full. */
#define LARGE_PAGE (2u << 20)
#define PAGE	   4096u
/* Less is copied in little time. */
#define JOIN_MIN_BYTES (256u << 10)
/* A gigabyte takes half a second. */
#define JOIN_MAX_BYTES (1ull << 30)

/* Not by the program's mremap: it takes locks that a forked child finds taken. */
static bool pages_put(void *copy, uint64_t bytes, void *at)
{
	return syscall(SYS_mremap, copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, at) != -1;
}

bool pages_replace(uint64_t addr, uint64_t bytes, int fd, uint64_t offset)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *at = (void *)(uintptr_t)addr;
	void *copy = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, (off_t)offset);
	uint64_t signals;
	bool replaced;

	if (copy == MAP_FAILED)
		return false;
	/* A handler of the program that ran between the copy and its taking the place would write into
	 * pages that go. */
	signals_hold(&signals);
	/* Not memcpy: a program under AddressSanitizer has bytes in its pages that it must not
	 * read. */
	replaced = usermem_copy(copy, at, bytes) && pages_put(copy, bytes, at);
	signals_release(&signals);
	if (!replaced)
		munmap(copy, bytes);
	return replaced;
}

/* Is all of it in memory, so that nothing grows if it becomes part of a large page? */
static bool pages_are_there(uint64_t first, uint64_t end)
{
	uint8_t there[LARGE_PAGE / PAGE];

	if (mincore((void *)(uintptr_t)first, end - first, there) < 0)
		return false;
	for (uint64_t i = 0; i < div_round_up(end - first, PAGE); i++)
		if (!(there[i] & 1))
			return false;
	return true;
}

void pages_join(uint64_t addr, uint64_t bytes)
{
	uint64_t start = addr & ~(uint64_t)(PAGE - 1), end = align_up(addr + bytes, PAGE);
	uint64_t first = start & ~(uint64_t)(LARGE_PAGE - 1), last = align_up(end, LARGE_PAGE);
	struct vma v;

	if (likely(bytes < JOIN_MIN_BYTES) || bytes > JOIN_MAX_BYTES)
		return;
	/* Pages of files are others' as well. */
	if (!vma_at(start, &v) || v.perms[3] != 'p' || v.inode)
		return;
	if (first < start && (first < v.start || !pages_are_there(first, start)))
		first += LARGE_PAGE;
	if (end < last && (v.end < last || !pages_are_there(end, last)))
		last -= LARGE_PAGE;
	if (first < last)
		(void)madvise((void *)(uintptr_t)first, last - first, MADV_COLLAPSE);
}
