// SPDX-License-Identifier: BSD-2-Clause
/*
 * open(2) and its spellings, openat2(2), and creat.  The names with 64 and _2 are what programs built with
 * large-file or fortify switches call.
 */
#include "preload/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "driver/cdev.h"
#include "fabric/device_tree.h"
#include "preload/program_memory.h"
#include "preload/tree.h"

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);
int openat2(int dirfd, const char *path, const struct open_how *how, size_t size);

/* The process that has opened device files or live attributes, or 0. */
static _Atomic(pid_t) device_pid;

bool tree_device_opened(void)
{
	return atomic_load_explicit(&device_pid, memory_order_relaxed) != 0;
}

bool tree_device_owner(void)
{
	return atomic_load_explicit(&device_pid, memory_order_relaxed) == getpid();
}

void tree_device_forked(void)
{
	atomic_store_explicit(&device_pid, getpid(), memory_order_relaxed);
}

/* A child of vfork(2) would leave its descriptor in its parent's table. */
static bool may_track(void)
{
	pid_t owner = 0, self = getpid();

	return atomic_compare_exchange_strong(&device_pid, &owner, self) || owner == self;
}

/* As in sysfs, nobody makes files, root included. */
static int missing_open(struct tree_path *t, int flags)
{
	if (errno == ENOENT && flags & O_CREAT && tree_parent_is_there(t))
		errno = EACCES;
	return -1;
}

/* As in sysfs, nobody opens a file without write permission for writing, root included. */
static int attribute_open(const struct tree_path *t, struct stat *st, int flags)
{
	bool writes = (flags & O_ACCMODE) != O_RDONLY;
	int saved_errno = errno, fd;
	char name[PATH_MAX];

	if (writes && !(st->st_mode & (S_IWUSR | S_IWGRP | S_IWOTH))) {
		errno = EACCES;
		return -1;
	}
	tree_describe(t, st);
	if (writes && device_tree_is_written(t->below) && tree_live(t->below, name, sizeof(name)))
		return cdev_open_attr_for_writing(name, flags, may_track(), st);
	if (!writes && tree_live(t->below, name, sizeof(name))) {
		fd = cdev_open_attr(name, flags, may_track(), st);
		if (fd >= 0)
			return fd;
		errno = saved_errno;
	}
	return real(open)(t->text, flags & ~(O_CREAT | O_TRUNC));
}

static bool makes_only(int flags)
{
	return (flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL);
}

static int tree_file_open(struct tree_path *t, int flags)
{
	const char *device = device_tree_node(t->below);
	struct stat *st = &t->st;

	if (flags & O_PATH)
		return real(open)(t->text, flags);
	if (device && !(flags & (O_CREAT | O_DIRECTORY))) {
		atomic_store_explicit(&device_pid, getpid(), memory_order_relaxed);
		pthread_testcancel();
		return cdev_open(device, flags);
	}
	if (!t->looked && real(fstatat)(AT_FDCWD, t->text, st, AT_SYMLINK_NOFOLLOW))
		return missing_open(t, flags);
	if (device && !(flags & (O_EXCL | O_DIRECTORY)))
		return tree_file_open(t, flags & ~O_CREAT);
	if (S_ISREG(st->st_mode) && !makes_only(flags) && !(flags & O_DIRECTORY))
		return attribute_open(t, st, flags);
	if (S_ISDIR(st->st_mode) && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return real(open)(t->text, flags, 0);
}

int tree_open(int dirfd, const char *path, int flags, mode_t mode)
{
	bool keep_last = flags & O_NOFOLLOW || makes_only(flags);
	struct tree_path t;
	const char *mapped = tree_map(dirfd, path, keep_last, &t);

	if (t.below)
		return tree_file_open(&t, flags);
	return real(openat)(dirfd, mapped, flags, mode);
}

exported int open(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (!tree_active())
		return real(open)(path, flags, mode);
	return tree_open(AT_FDCWD, path, flags, mode);
}

exported int open64(const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (!tree_active())
		return real(open64)(path, flags, mode);
	return tree_open(AT_FDCWD, path, flags, mode);
}

exported int openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (!tree_active())
		return real(openat)(dirfd, path, flags, mode);
	return tree_open(dirfd, path, flags, mode);
}

exported int openat64(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = MODE_OF(flags);

	if (!tree_active())
		return real(openat64)(dirfd, path, flags, mode);
	return tree_open(dirfd, path, flags, mode);
}

/* Flags that need a mode are an error of the program here, which the real function reports. */
exported int __open_2(const char *path, int flags)
{
	if (!tree_active() || __OPEN_NEEDS_MODE(flags))
		return real(__open_2)(path, flags);
	return tree_open(AT_FDCWD, path, flags, 0);
}

exported int __open64_2(const char *path, int flags)
{
	if (!tree_active() || __OPEN_NEEDS_MODE(flags))
		return real(__open64_2)(path, flags);
	return tree_open(AT_FDCWD, path, flags, 0);
}

exported int __openat_2(int dirfd, const char *path, int flags)
{
	if (!tree_active() || __OPEN_NEEDS_MODE(flags))
		return real(__openat_2)(dirfd, path, flags);
	return tree_open(dirfd, path, flags, 0);
}

exported int __openat64_2(int dirfd, const char *path, int flags)
{
	if (!tree_active() || __OPEN_NEEDS_MODE(flags))
		return real(__openat64_2)(dirfd, path, flags);
	return tree_open(dirfd, path, flags, 0);
}

exported int creat(const char *path, mode_t mode)
{
	return tree_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

exported int creat64(const char *path, mode_t mode)
{
	return tree_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

/* ---- openat2 ---- */

#define LIMITS                                                                             \
	(RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | \
	 RESOLVE_IN_ROOT)

/* glibc has this function from 2.43 on.  Before that, a program finds ours alone. */
static int real_openat2(int dirfd, const char *path, const struct open_how *how, size_t size)
{
	__typeof__(&openat2) function = real(openat2);

	return function ? function(dirfd, path, how, size)
			: (int)syscall(SYS_openat2, dirfd, path, how, size);
}

/* The kernel judges what the program passes besides the path before it finds an empty path missing. */
static bool how_is_valid(const struct open_how *how, size_t size)
{
	int saved_errno = errno;

	if (syscall(SYS_openat2, AT_FDCWD, "", how, size) >= 0 || errno != ENOENT)
		return false;
	errno = saved_errno;
	return true;
}

exported int openat2(int dirfd, const char *path, const struct open_how *program_how, size_t size)
{
	struct open_how how;
	struct tree_path t;
	const char *mapped;

	if (!tree_active() || size < sizeof(how) || !program_read(&how, program_how, sizeof(how)))
		return real_openat2(dirfd, path, program_how, size);
	mapped = tree_map_within(dirfd, path, how.flags & O_NOFOLLOW || makes_only((int)how.flags),
				 how.resolve & LIMITS, &t);
	if (!t.below && !t.error && mapped == path)
		return real_openat2(dirfd, path, program_how, size);
	if (!how_is_valid(program_how, size))
		return -1;
	if (t.error) {
		errno = t.error;
		return -1;
	}
	if (t.below)
		return tree_file_open(&t, (int)how.flags);
	/* The walk has kept the limits, from another directory than the kernel would begin at. */
	how.resolve &= ~(uint64_t)LIMITS;
	return real_openat2(AT_FDCWD, mapped, &how, sizeof(how));
}
