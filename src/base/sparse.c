// SPDX-License-Identifier: BSD-2-Clause
#include "base/sparse.h"

#include <sys/mman.h>

/* Without rights at first, because then locking cannot fill it. */
void *sparse_map(size_t bytes, int fd, uint64_t offset)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *p = mmap(NULL, bytes, PROT_NONE, flags | MAP_NORESERVE, fd, (off_t)offset);

	if (p == MAP_FAILED)
		return NULL;
	(void)madvise(p, bytes, MADV_DONTDUMP);
	(void)munlock(p, bytes);
	return p;
}
