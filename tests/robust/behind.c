// SPDX-License-Identifier: BSD-2-Clause
/*
 * A library that stands behind the device's, as caches of registrations stand in the C library: it counts the program's calls
 * that come through it (tests/robust/mapper.c asks), and makes the system call.
 */
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#pragma GCC visibility push(default)

extern unsigned behind_calls;
unsigned behind_calls;

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int munmap(void *addr, size_t len);
void *mremap(void *addr, size_t len, size_t new_len, int flags, ...);
int mlockall(int flags);

void *mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	behind_calls++;
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

int munmap(void *addr, size_t len)
{
	behind_calls++;
	return (int)syscall(SYS_munmap, addr, len);
}

void *mremap(void *addr, size_t len, size_t new_len, int flags, ...)
{
	behind_calls++;
	return (void *)syscall(SYS_mremap, addr, len, new_len, flags, NULL);
}

int mlockall(int flags)
{
	behind_calls++;
	return (int)syscall(SYS_mlockall, flags);
}
