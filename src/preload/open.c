// SPDX-License-Identifier: BSD-2-Clause
/*
 * open(2) and its spellings, fopen, and directories.  The names with 64 and _2 are what programs
 * built with large-file or fortify switches call.
 */
#include "preload/libc.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver/cdev.h"
#include "preload/tree.h"

int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

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
	pid_t none = 0;

	atomic_compare_exchange_strong(&device_pid, &none, getpid());
	return tree_device_owner();
}

int tree_open(int dirfd, const char *path, int flags, mode_t mode)
{
	struct tree_path t;
	bool reads = (flags & O_ACCMODE) == O_RDONLY && !(flags & O_PATH);
	bool live = !(flags & O_PATH) && (reads || tree_written(path));
	const char *mapped = live ? tree_map_live(dirfd, path, &t) : tree_map(dirfd, path, &t);

	if (t.below && !(flags & (O_PATH | O_DIRECTORY))) {
		const char *device = tree_device(t.below);
		char name[PATH_MAX];
		int fd;

		if (device) {
			atomic_store_explicit(&device_pid, getpid(), memory_order_relaxed);
			pthread_testcancel();
			return cdev_open(device, flags);
		}
		if (reads && tree_live(t.below, name, sizeof(name))) {
			fd = cdev_open_attr(name, flags, may_track());
			if (fd >= 0)
				return fd;
		}
		/* The attribute is there, so a caller that insists on making it hears so. */
		if (live && !reads && !(flags & O_EXCL) && tree_live(t.below, name, sizeof(name)))
			return cdev_open_attr_for_writing(name, flags);
	}
	return real(openat)(dirfd, mapped, flags, mode);
}

/* Gives the optional third argument, if the flags say that there is one. */
#define MODE_OF(flags)                                 \
	({                                             \
		mode_t mode_ = 0;                      \
		if (__OPEN_NEEDS_MODE(flags)) {        \
			va_list args_;                 \
			va_start(args_, flags);        \
			mode_ = va_arg(args_, mode_t); \
			va_end(args_);                 \
		}                                      \
		mode_;                                 \
	})

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

static FILE *tree_fopen(const char *path, const char *mode)
{
	struct tree_path t;
	const char *mapped = tree_map_live(AT_FDCWD, path, &t);
	FILE *file;
	int flags, fd;

	flags = mode[0] == 'r' ? O_RDONLY : O_WRONLY;
	if (strchr(mode, '+'))
		flags = O_RDWR;
	/* An attribute that is only read may be live, and so may the one that programs write; the
	 * rest are ordinary files. */
	if (!t.below || (flags != O_RDONLY && (!tree_written(t.below) || strchr(mode, 'x'))))
		return real(fopen)(mapped, mode);
	fd = tree_open(AT_FDCWD, path, flags | (strchr(mode, 'e') ? O_CLOEXEC : 0), 0);
	if (fd < 0)
		return NULL;
	/* libc will seek in it and close it without us. */
	if (!tree_device(t.below))
		cdev_close(fd);
	file = fdopen(fd, mode);
	if (!file)
		close(fd);
	return file;
}

exported FILE *fopen(const char *path, const char *mode)
{
	if (!tree_active())
		return real(fopen)(path, mode);
	return tree_fopen(path, mode);
}

exported FILE *fopen64(const char *path, const char *mode)
{
	if (!tree_active())
		return real(fopen64)(path, mode);
	return tree_fopen(path, mode);
}

exported DIR *opendir(const char *path)
{
	struct tree_path t;

	if (!tree_active())
		return real(opendir)(path);
	return real(opendir)(tree_map(AT_FDCWD, path, &t));
}

exported int scandir(const char *path, struct dirent ***list, int (*filter)(const struct dirent *),
		     int (*compare)(const struct dirent **, const struct dirent **))
{
	struct tree_path t;

	if (!tree_active())
		return real(scandir)(path, list, filter, compare);
	return real(scandir)(tree_map(AT_FDCWD, path, &t), list, filter, compare);
}

exported int scandir64(const char *path, struct dirent64 ***list,
		       int (*filter)(const struct dirent64 *),
		       int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	struct tree_path t;

	if (!tree_active())
		return real(scandir64)(path, list, filter, compare);
	return real(scandir64)(tree_map(AT_FDCWD, path, &t), list, filter, compare);
}
