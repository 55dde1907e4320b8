// SPDX-License-Identifier: BSD-2-Clause
#include "base/sparse.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u

/* Maps one page and grows it, because the limit of locked memory counts new mappings.  A page may
 * grow after it is unlocked. */
static void *sparse_grow(size_t bytes, int flags, int fd, uint64_t offset)
{
	void *page = mmap(NULL, PAGE, PROT_NONE, flags, fd, (off_t)offset);
	long grown;

	if (page == MAP_FAILED)
		return page;
	(void)munlock(page, PAGE);
	/* Calls the kernel and not the program's mremap, because nobody else should hear of this
	 * mapping. */
	grown = syscall(SYS_mremap, page, (size_t)PAGE, bytes, MREMAP_MAYMOVE, NULL);
	if (grown == -1) {
		munmap(page, PAGE);
		return MAP_FAILED;
	}
	return (void *)grown;
}

/* Maps without rights at first, because then locking cannot fill the mapping. */
void *sparse_map(size_t bytes, int prot, int fd, uint64_t offset)
{
	int flags = (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) | MAP_NORESERVE;
	void *p = mmap(NULL, bytes, PROT_NONE, flags, fd, (off_t)offset);

	if (p == MAP_FAILED && errno == EAGAIN)
		p = sparse_grow(bytes, flags, fd, offset);
	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, bytes, MADV_DONTDUMP);
	(void)munlock(p, bytes);
	if (prot != PROT_NONE && mprotect(p, bytes, prot)) {
		int error = errno;

		munmap(p, bytes);
		errno = error;
		return NULL;
	}
	return p;
}
