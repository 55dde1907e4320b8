// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/pages.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/signals.h"
#include "usermem/usermem.h"

/* Makes the system call itself, because the program's mremap takes locks that a forked child finds
 * taken. */
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
	/* If a handler of the program ran after the copy but before the copy takes its place, it
	 * would write into pages that go. */
	signals_hold(&signals);
	/* We do not use memcpy, because a program under AddressSanitizer has bytes in its pages
	 * that memcpy must not read. */
	replaced = usermem_copy(copy, at, bytes) && pages_put(copy, bytes, at);
	signals_release(&signals);
	if (!replaced)
		munmap(copy, bytes);
	return replaced;
}
