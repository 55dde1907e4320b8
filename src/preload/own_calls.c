// SPDX-License-Identifier: BSD-2-Clause
/*
 * The library's own calls of functions that it defines for the program, which rewrite paths or tell
 * the driver.  Neither is meant for the library: it would take its own files for the program's, such as
 * a directory "dev" that it removes for the machine's /dev.
 *
 * For the names in 'own_calls' of the top meson.build the linker's --wrap leads every call from
 * within the library to the definitions here, which ask the kernel or the C library.  tests/preload/own_calls.py
 * fails if the library calls a function of its own that is not there.
 */
#include "preload/libc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset);
int __wrap_munmap(void *addr, size_t len);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_openat64(int dirfd, const char *path, int flags, ...);
int __wrap_access(const char *path, int mode);
int __wrap_stat64(const char *path, struct stat64 *st);
int __wrap_fstat64(int fd, struct stat64 *st);
int __wrap_lstat64(const char *path, struct stat64 *st);
ssize_t __wrap_readlink(const char *path, char *buf, size_t len);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rmdir(const char *path);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int dirfd, const char *path, int flags);
int __wrap_ftruncate64(int fd, __off64_t length);
__off64_t __wrap_lseek64(int fd, __off64_t offset, int whence);
DIR *__wrap_opendir(const char *path);
DIR *__wrap_fdopendir(int fd);
struct dirent64 *__wrap_readdir64(DIR *dir);
int __wrap_closedir(DIR *dir);
FILE *__wrap_fopen64(const char *path, const char *mode);

/* ---- by number ---- */

typedef long system_call(long number, long a, long b, long c, long d, long e, long f);

static long syscall_first(long number, long a, long b, long c, long d, long e, long f);

/* The C library's syscall, not the one in system_call.c: the library blocks signals that the program must not.
 * The constructor looks it up, because a handler should not. */
__attribute__((used)) static _Atomic(void *) syscall_next = (void *)syscall_first;

static __attribute__((constructor)) void find_syscall(void)
{
	atomic_store_explicit(&syscall_next, dlsym(RTLD_NEXT, "syscall"), memory_order_relaxed);
}

static long syscall_first(long number, long a, long b, long c, long d, long e, long f)
{
	find_syscall();
	return ((system_call *)atomic_load_explicit(&syscall_next, memory_order_relaxed))(
		number, a, b, c, d, e, f);
}

/* A jump: callers pass as many arguments as the call has, and a function in C would write to its arguments'
 * places on the stack, of which some are then the caller's variables. */
__asm__(".pushsection .text\n"
	".globl __wrap_syscall\n"
	".hidden __wrap_syscall\n"
	".type __wrap_syscall, %function\n"
	"__wrap_syscall:\n"
#if defined(__x86_64__)
	"	jmp *syscall_next(%rip)\n"
#elif defined(__aarch64__)
	"	adrp x16, syscall_next\n"
	"	ldr x16, [x16, :lo12:syscall_next]\n"
	"	br x16\n"
#else
#error "how does this machine jump?"
#endif
	".size __wrap_syscall, . - __wrap_syscall\n"
	".popsection\n");

void *__wrap_mmap64(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
	return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

int __wrap_munmap(void *addr, size_t len)
{
	return (int)syscall(SYS_munmap, addr, len);
}

int __wrap_open64(const char *path, int flags, ...)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, MODE_OF(flags));
}

int __wrap_openat64(int dirfd, const char *path, int flags, ...)
{
	return (int)syscall(SYS_openat, dirfd, path, flags, MODE_OF(flags));
}

int __wrap_access(const char *path, int mode)
{
	return (int)syscall(SYS_faccessat, AT_FDCWD, path, mode);
}

int __wrap_stat64(const char *path, struct stat64 *st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, 0);
}

int __wrap_fstat64(int fd, struct stat64 *st)
{
	return (int)syscall(SYS_fstat, fd, st);
}

int __wrap_lstat64(const char *path, struct stat64 *st)
{
	return (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

ssize_t __wrap_readlink(const char *path, char *buf, size_t len)
{
	return syscall(SYS_readlinkat, AT_FDCWD, path, buf, len);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	return (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int __wrap_rmdir(const char *path)
{
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

int __wrap_unlink(const char *path)
{
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int __wrap_unlinkat(int dirfd, const char *path, int flags)
{
	return (int)syscall(SYS_unlinkat, dirfd, path, flags);
}

int __wrap_ftruncate64(int fd, __off64_t length)
{
	return (int)syscall(SYS_ftruncate, fd, length);
}

__off64_t __wrap_lseek64(int fd, __off64_t offset, int whence)
{
	return syscall(SYS_lseek, fd, offset, whence);
}

/* ---- by the C library ---- */

DIR *__wrap_fdopendir(int fd)
{
	return real(fdopendir)(fd);
}

struct dirent64 *__wrap_readdir64(DIR *dir)
{
	return real(readdir64)(dir);
}

int __wrap_closedir(DIR *dir)
{
	return real(closedir)(dir);
}

static void close_failed(int fd)
{
	int saved_errno = errno;

	syscall(SYS_close, fd);
	errno = saved_errno;
}

DIR *__wrap_opendir(const char *path)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path,
			      O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	DIR *dir = fd < 0 ? NULL : real(fdopendir)(fd);

	if (fd >= 0 && !dir)
		close_failed(fd);
	return dir;
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, stdio_open_flags(mode), 0666);
	FILE *file = fd < 0 ? NULL : fdopen(fd, mode);

	if (fd >= 0 && !file)
		close_failed(fd);
	return file;
}
