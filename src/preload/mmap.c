// SPDX-License-Identifier: BSD-2-Clause
/*
 * Mappings.  The driver wants to know where a program has the pages of a device file, and what the
 * program unmaps; all other calls pass by.
 *
 * Each call goes on to the next definition of its name, because registration caches (UCX's UCM, Open
 * MPI's patcher, libfabric's hooks) and tools change the C library's to learn what a program maps.
 * Those definitions are looked up when this library begins.  Until then these functions make the
 * system call: an allocator of the program calls mmap before anything else works, and looking up a
 * symbol may call the allocator.
 *
 * What the driver maps for itself is not the program's, and such a cache calls the driver; so the
 * library's own calls are system calls (own_calls.c).
 */
#include "preload/libc.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/cdev.h"
#include "preload/tree.h"

static void *(*next_mmap)(void *, size_t, int, int, int, off_t);
static int (*next_munmap)(void *, size_t);
static void *(*next_mremap)(void *, size_t, size_t, int, ...);
static int (*next_mlockall)(int);

static __attribute__((constructor)) void look_up(void)
{
	next_mmap = dlsym(RTLD_NEXT, "mmap");
	next_munmap = dlsym(RTLD_NEXT, "munmap");
	next_mremap = dlsym(RTLD_NEXT, "mremap");
	next_mlockall = dlsym(RTLD_NEXT, "mlockall");
}

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
	at = next_mmap ? next_mmap(addr, len, prot, flags, file, offset)
		       : (void *)syscall(SYS_mmap, addr, len, prot, flags, file, offset);
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
	return next_munmap ? next_munmap(addr, len) : (int)syscall(SYS_munmap, addr, len);
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
	at = next_mremap ? next_mremap(addr, len, new_len, flags, fixed)
			 : (void *)syscall(SYS_mremap, addr, len, new_len, flags, fixed);
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
	if (tree_device_opened())
		return cdev_lock_all(flags);
	return next_mlockall ? next_mlockall(flags) : (int)syscall(SYS_mlockall, flags);
}
