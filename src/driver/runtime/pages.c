// SPDX-License-Identifier: BSD-2-Clause
#include "driver/runtime/pages.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "usermem/usermem.h"

/*
 * A handler of the program that ran between the copy and its taking the place would write into
 * pages that go.  Faults are not blocked, because the copy may meet one.
 */
static void signals_hold(uint64_t *old)
{
	const uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) |
				1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) | 1ull << (SIGTRAP - 1);
	const uint64_t all = ~faults;

	syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, old, sizeof(all));
}

static void signals_release(const uint64_t *old)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, old, NULL, sizeof(*old));
}

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
	signals_hold(&signals);
	/* Not memcpy: a program under AddressSanitizer has bytes in its pages that it must not
	 * read. */
	replaced = usermem_copy(copy, at, bytes) && pages_put(copy, bytes, at);
	signals_release(&signals);
	if (!replaced)
		munmap(copy, bytes);
	return replaced;
}
