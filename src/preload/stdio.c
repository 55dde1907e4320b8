// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files of the C library, which opens, reads and seeks in them without calling our functions.  As in
 * sysfs, a program that goes back to the start of a live attribute reads its present text.
 */
#include "preload/libc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "driver/cdev.h"
#include "preload/tree.h"

int stdio_open_flags(const char *mode)
{
	int flags, access_mode = strchr(mode, '+') ? O_RDWR : O_WRONLY;

	switch (mode[0]) {
	case 'r':
		flags = access_mode == O_RDWR ? O_RDWR : O_RDONLY;
		break;
	case 'w':
		flags = access_mode | O_CREAT | O_TRUNC;
		break;
	case 'a':
		flags = access_mode | O_CREAT | O_APPEND;
		break;
	default:
		return -1;
	}
	return flags | (strchr(mode, 'x') ? O_EXCL : 0) | (strchr(mode, 'e') ? O_CLOEXEC : 0);
}

static FILE *tree_fopen(const char *path, const char *mode)
{
	struct tree_path t;
	const char *mapped = tree_map(AT_FDCWD, path, false, &t);
	int flags, fd;
	FILE *file;

	flags = t.below ? stdio_open_flags(mode) : -1;
	if (flags < 0)
		return real(fopen)(mapped, mode);
	fd = tree_open(AT_FDCWD, path, flags, 0);
	if (fd < 0)
		return NULL;
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

/* The C library closes the stream's descriptor and opens another, which then becomes the tree's. */
static FILE *tree_freopen(const char *path, const char *mode, FILE *stream)
{
	struct tree_path t;
	const char *mapped = tree_map(AT_FDCWD, path, false, &t);
	int flags, fd, saved_errno;

	flags = t.below ? stdio_open_flags(mode) : -1;
	if (flags < 0)
		return real(freopen)(mapped, mode, stream);
	fd = tree_open(AT_FDCWD, path, flags, 0);
	if (fd < 0) {
		saved_errno = errno;
		fclose(stream);
		errno = saved_errno;
		return NULL;
	}
	stream = real(freopen)("/dev/null", mode, stream);
	if (stream && dup3(fd, fileno(stream), flags & O_CLOEXEC) < 0) {
		fclose(stream);
		stream = NULL;
	}
	close(fd);
	return stream;
}

exported FILE *freopen(const char *path, const char *mode, FILE *stream)
{
	return tree_freopen(path, mode, stream);
}

exported FILE *freopen64(const char *path, const char *mode, FILE *stream)
{
	return tree_freopen(path, mode, stream);
}

/* ---- back to the start ---- */

static void before_read_from_start(FILE *stream)
{
	int saved_errno = errno, fd = fileno(stream);

	if (cdev_is_ours(fd))
		cdev_before_read(fd, 0);
	errno = saved_errno;
}

exported void rewind(FILE *stream)
{
	before_read_from_start(stream);
	real(rewind)(stream);
}

static int tree_fseek(FILE *stream, off_t offset, int whence)
{
	if (!offset && whence == SEEK_SET)
		before_read_from_start(stream);
	return real(fseeko)(stream, offset, whence);
}

exported int fseek(FILE *stream, long offset, int whence)
{
	return tree_fseek(stream, offset, whence);
}

exported int fseeko(FILE *stream, off_t offset, int whence)
{
	return tree_fseek(stream, offset, whence);
}

exported int fseeko64(FILE *stream, __off64_t offset, int whence)
{
	return tree_fseek(stream, offset, whence);
}
