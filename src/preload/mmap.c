// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mappings.  The driver wants to know where a program has the pages of a device file, and what the
 * program unmaps; all other calls pass by.
 *
 * These functions make the system call themselves instead of looking up libc's function: an
 * allocator of the program calls mmap before anything else works, and looking up a symbol may call
 * the allocator.
 */
#include "preload/libc.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/cdev.h"
#include "preload/tree.h"

static void *map_and_tell(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	int file = fd;
	void *at;

	if (!(flags & MAP_ANONYMOUS) && cdev_is_ours(fd)) {
		file = cdev_map(fd, len, offset);
		if (file < 0)
			return MAP_FAILED;
	}
	/* MAP_FIXED removes what lies there. */
	if (flags & MAP_FIXED)
		cdev_unmapping(addr, len);
	at = (void *)syscall(SYS_mmap, addr, len, prot, flags, file, offset);
	/* The device sees no stores to a private mapping. */
	if (at != MAP_FAILED && !(flags & MAP_ANONYMOUS) && (flags & MAP_TYPE) != MAP_PRIVATE &&
	    cdev_is_ours(fd))
		cdev_mapped(fd, at, len, offset);
	return at;
}

exported void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return map_and_tell(addr, len, prot, flags, fd, offset);
}

exported void *mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return map_and_tell(addr, len, prot, flags, fd, offset);
}

exported int munmap(void *addr, size_t len)
{
	/* Told before, because afterwards another thread may get these addresses. */
	if (tree_device_opened())
		cdev_unmapping(addr, len);
	return (int)syscall(SYS_munmap, addr, len);
}

exported void *mremap(void *addr, size_t len, size_t new_len, int flags, ...)
{
	void *fixed = NULL, *at;
	va_list args;

	if (flags & MREMAP_FIXED) {
		va_start(args, flags);
		fixed = va_arg(args, void *);
		va_end(args);
		cdev_unmapping(fixed, new_len);
	}
	at = (void *)syscall(SYS_mremap, addr, len, new_len, flags, fixed);
	if (at == MAP_FAILED)
		return at;
	if (at != addr)
		cdev_moved(addr, len, at);
	else if (new_len < len)
		cdev_unmapping((char *)addr + new_len, len - new_len);
	return at;
}

exported int mlockall(int flags)
{
	return tree_device_opened() ? cdev_lock_all(flags) : (int)syscall(SYS_mlockall, flags);
}
